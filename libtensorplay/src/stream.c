/* Streams: one interned object per CUDA stream, kept for the life of the process, and the current stream of
 * each thread on each device. CUDA's streams are made 32 at a time, at the first use of a priority, and
 * handed out in turn: a program that makes streams without end then uses a bounded number of them, and the
 * allocator's memory per stream stays bounded as well. Bodies of conditional nodes have one for each stream. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "captured.h"
#include "internal.h"

enum {
  STREAMS_PER_PRIORITY = 32,
  MAX_PRIORITIES = 16, /* devices have at most 8; further levels share the most urgent one that is kept */
  OF_CAPTURES_ID = 1 + MAX_PRIORITIES * STREAMS_PER_PRIORITY,
  FIRST_SINGLE_ID,
};

struct tp_stream {
  int32_t device;
  int32_t priority;
  int32_t id;
  bool is_external;
  cudaStream_t cuda;
  tp_stream_t *body; /* NULL until it is first asked for; under the device's lock */
};

typedef struct stream_pool {
  _Atomic uint32_t next;
  tp_stream_t streams[STREAMS_PER_PRIORITY];
} stream_pool_t;

typedef struct device_streams {
  pthread_mutex_t lock;    /* guards all that follows; a pool's `next` is free of it */
  bool has_range;
  int least, greatest;     /* priorities; the greatest is the smaller number */
  stream_pool_t *pools[MAX_PRIORITIES];
  tp_stream_t of_captures; /* without a handle until it is first asked for */
} device_streams_t;

static device_streams_t all_streams[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static tp_stream_t default_streams[TP_MAX_DEVICES];
static pthread_once_t default_streams_once = PTHREAD_ONCE_INIT;

/* NULL stands for the default stream. */
static _Thread_local tp_stream_t *current_streams[TP_MAX_DEVICES];

/* ---- the default and the current stream ---- */

static void number_default_streams(void) {
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) default_streams[device].device = device;
}

static tp_stream_t *default_stream(int32_t device) {
  pthread_once(&default_streams_once, number_default_streams);
  return &default_streams[device];
}

tp_stream_t *tp_stream_default(int32_t device) {
  device = tp__device_resolve(device, "stream_default");
  return device < 0 ? NULL : default_stream(device);
}

tp_stream_t *tp__stream_current(int32_t device) {
  tp_stream_t *stream = current_streams[device];
  if (!stream) current_streams[device] = stream = default_stream(device);
  return stream;
}

tp_stream_t *tp_stream_current(int32_t device) {
  device = tp__device_resolve(device, "stream_current");
  return device < 0 ? NULL : tp__stream_current(device);
}

tp_status_t tp_stream_set_current(tp_stream_t *stream) {
  if (!stream) return tp__error_set(TP_INVALID_ARGUMENT, "stream_set_current", "got NULL, expected a stream");
  current_streams[stream->device] = stream;
  return TP_OK;
}

/* Switches both; a device that has streams exists. */
static void make_current(tp_stream_t *stream, int32_t device) {
  current_streams[stream->device] = stream;
  if (device != tp_device_current()) (void)tp_device_set(device);
}

tp_place_t tp_stream_place(const tp_stream_t *stream) {
  return (tp_place_t){tp__stream_current(stream->device), tp_device_current()};
}

tp_place_t tp_stream_enter(tp_stream_t *stream) {
  tp_place_t former = tp_stream_place(stream);
  make_current(stream, stream->device);
  return former;
}

void tp_stream_leave(tp_place_t former) { make_current(former.stream, former.device); }

/* ---- the pool ---- */

/* Under the lock, the device being entered. */
static tp_status_t make_pool(int32_t device, int32_t level, int32_t priority, stream_pool_t **out) {
  const char *operation = "stream_from_pool";
  stream_pool_t *pool = calloc(1, sizeof *pool);
  if (!pool) {
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory for %d streams", STREAMS_PER_PRIORITY);
  }
  for (int32_t i = 0; i < STREAMS_PER_PRIORITY; i++) {
    tp_stream_t *stream = &pool->streams[i];
    cudaError_t error = cudaStreamCreateWithPriority(&stream->cuda, cudaStreamNonBlocking, priority);
    if (error) {
      while (i-- > 0) (void)cudaStreamDestroy(pool->streams[i].cuda);
      free(pool);
      return tp__error_set_cuda(error, operation, "cudaStreamCreateWithPriority");
    }
    stream->device = device;
    stream->priority = priority;
    stream->id = 1 + level * STREAMS_PER_PRIORITY + i;
  }
  *out = pool;
  return TP_OK;
}

/* The pool of a priority, made at first use; the priority is clamped. */
static tp_status_t find_pool(int32_t device, int32_t priority, stream_pool_t **out) {
  device_streams_t *self = &all_streams[device];
  tp_status_t status = TP_OK;
  pthread_mutex_lock(&self->lock);
  if (!self->has_range) {
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&self->least, &self->greatest);
    if (error) status = tp__error_set_cuda(error, "stream_from_pool", "cudaDeviceGetStreamPriorityRange");
    if (self->least - self->greatest >= MAX_PRIORITIES) self->greatest = self->least - MAX_PRIORITIES + 1;
    self->has_range = !error;
  }
  if (!status) {
    priority = priority > self->least ? self->least : priority < self->greatest ? self->greatest : priority;
    int32_t level = self->least - priority;
    if (!self->pools[level]) {
      enum cudaStreamCaptureMode mode = tp__capture_relax();
      status = make_pool(device, level, priority, out);
      tp__capture_restore(mode);
      if (!status) self->pools[level] = *out;
    }
    *out = self->pools[level];
  }
  pthread_mutex_unlock(&self->lock);
  return status;
}

tp_stream_t *tp_stream_from_pool(int32_t device, int32_t priority) {
  device = tp__device_resolve(device, "stream_from_pool");
  if (device < 0) return NULL;
  if (tp__device_enter(device, "stream_from_pool")) return NULL;
  stream_pool_t *pool = NULL;
  if (find_pool(device, priority, &pool)) return NULL;
  uint32_t turn = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
  return &pool->streams[turn % STREAMS_PER_PRIORITY];
}

tp_stream_t *tp_stream_of_captures(int32_t device) {
  const char *operation = "stream_of_captures";
  device = tp__device_resolve(device, operation);
  if (device < 0 || tp__device_enter(device, operation)) return NULL;
  tp_stream_t *stream = &all_streams[device].of_captures;
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&all_streams[device].lock);
  if (!stream->cuda) {
    enum cudaStreamCaptureMode mode = tp__capture_relax();
    *stream = (tp_stream_t){.device = device, .id = OF_CAPTURES_ID};
    error = cudaStreamCreateWithFlags(&stream->cuda, cudaStreamNonBlocking);
    if (error) stream->cuda = NULL;
    tp__capture_restore(mode);
  }
  pthread_mutex_unlock(&all_streams[device].lock);
  if (error) tp__error_set_cuda(error, operation, "cudaStreamCreateWithFlags");
  return error ? NULL : stream;
}

/* ---- streams that are made one by one: those of others, and of bodies ---- */

typedef struct single {
  tp_stream_t stream;
  struct single *next;
} single_t;

static single_t *singles[TP_MAX_DEVICES]; /* guarded by the device's lock */
static int32_t single_counts[TP_MAX_DEVICES];

/* Without a handle; NULL without host memory. Under the lock. */
static tp_stream_t *add_single(int32_t device, int32_t priority, const char *operation) {
  single_t *single = malloc(sizeof *single);
  if (!single) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note a stream");
    return NULL;
  }
  int32_t id = FIRST_SINGLE_ID + single_counts[device]++;
  *single = (single_t){{.device = device, .priority = priority, .id = id}, singles[device]};
  singles[device] = single;
  return &single->stream;
}

/* Takes back the last one. */
static void drop_single(int32_t device) {
  single_t *single = singles[device];
  singles[device] = single->next;
  single_counts[device]--;
  free(single);
}

/* One of ours by its handle, or one that is known already. Under the lock. */
static tp_stream_t *find_known(int32_t device, cudaStream_t handle) {
  if (all_streams[device].of_captures.cuda == handle) return &all_streams[device].of_captures;
  for (int32_t level = 0; level < MAX_PRIORITIES; level++) {
    stream_pool_t *pool = all_streams[device].pools[level];
    for (int32_t i = 0; pool && i < STREAMS_PER_PRIORITY; i++) {
      if (pool->streams[i].cuda == handle) return &pool->streams[i];
    }
  }
  single_t *single = singles[device];
  while (single && single->stream.cuda != handle) single = single->next;
  return single ? &single->stream : NULL;
}

static tp_status_t find_external(int32_t device, cudaStream_t handle, tp_stream_t **out) {
  const char *operation = "stream_external";
  if ((*out = find_known(device, handle))) return TP_OK;
  int priority;
  TP_TRY_CUDA(cudaStreamGetPriority(handle, &priority), operation);
  if (!(*out = add_single(device, priority, operation))) return TP_HOST_MEMORY;
  (*out)->cuda = handle;
  (*out)->is_external = true;
  return TP_OK;
}

static tp_status_t make_body(tp_stream_t *stream, const char *operation) {
  tp_stream_t *body = add_single(stream->device, stream->priority, operation);
  if (!body) return TP_HOST_MEMORY;
  cudaError_t error = cudaStreamCreateWithPriority(&body->cuda, cudaStreamNonBlocking, stream->priority);
  if (error) {
    drop_single(stream->device);
    return tp__error_set_cuda(error, operation, "cudaStreamCreateWithPriority");
  }
  stream->body = body;
  return TP_OK;
}

tp_stream_t *tp__stream_body(tp_stream_t *stream, const char *operation) {
  pthread_mutex_t *lock = &all_streams[stream->device].lock;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  pthread_mutex_lock(lock);
  tp_status_t status = stream->body ? TP_OK : make_body(stream, operation);
  pthread_mutex_unlock(lock);
  tp__capture_restore(mode);
  return status ? NULL : stream->body;
}

tp_stream_t *tp_stream_external(int32_t device, uintptr_t handle) {
  device = tp__device_resolve(device, "stream_external");
  if (device < 0) return NULL;
  if (handle == 0 || handle == (uintptr_t)cudaStreamLegacy) return default_stream(device);
  if (tp__device_enter(device, "stream_external")) return NULL;
  tp_stream_t *stream = NULL;
  pthread_mutex_lock(&all_streams[device].lock);
  tp_status_t status = find_external(device, (cudaStream_t)handle, &stream);
  pthread_mutex_unlock(&all_streams[device].lock);
  return status ? NULL : stream;
}

void tp__stream_each(int32_t device, void (*visit)(const tp_stream_t *stream, void *context), void *context) {
  device_streams_t *self = &all_streams[device];
  pthread_mutex_lock(&self->lock);
  if (self->of_captures.cuda) visit(&self->of_captures, context);
  for (int32_t level = 0; level < MAX_PRIORITIES; level++) {
    for (int32_t i = 0; self->pools[level] && i < STREAMS_PER_PRIORITY; i++) {
      visit(&self->pools[level]->streams[i], context);
    }
  }
  for (const single_t *single = singles[device]; single; single = single->next) {
    if (!single->stream.is_external) visit(&single->stream, context);
  }
  pthread_mutex_unlock(&self->lock);
}

/* ---- description ---- */

int32_t tp_stream_device(const tp_stream_t *stream) { return stream->device; }

int32_t tp_stream_priority(const tp_stream_t *stream) { return stream->priority; }

uintptr_t tp_stream_handle(const tp_stream_t *stream) { return (uintptr_t)stream->cuda; }

cudaStream_t tp__stream_cuda(const tp_stream_t *stream) { return stream->cuda; }

int32_t tp__stream_id(const tp_stream_t *stream) { return stream->id; }

bool tp__stream_is_external(const tp_stream_t *stream) { return stream->is_external; }

bool tp__stream_is_capturing(const tp_stream_t *stream) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t error = tp__captured_status(stream, &status);
  if (error) (void)cudaGetLastError();
  if (error == cudaErrorInvalidResourceHandle) return false; /* an external stream that is gone */
  /* Else an error is one of the default stream: a stream that waits for it is captured. */
  return error || status != cudaStreamCaptureStatusNone;
}

int32_t tp_stream_is_capturing(const tp_stream_t *stream) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  /* The default stream never is, and must not be asked beside a capture. */
  if (!stream->cuda || tp__device_is_inherited()) return 0;
  if (tp__captured_status(stream, &status)) (void)cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

_Atomic uint32_t tp__stream_unknown;

uint64_t tp__stream_capture(const tp_stream_t *stream) {
  if (!stream->cuda || tp__device_is_inherited()) return 0; /* the legacy default stream is never captured */
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (tp__captured_info(stream, &status, &id, NULL, NULL, NULL, NULL)) {
    (void)cudaGetLastError();
    atomic_fetch_add_explicit(&tp__stream_unknown, 1, memory_order_relaxed);
  }
  return status == cudaStreamCaptureStatusActive ? id : 0;
}

/* ---- waiting ---- */

int32_t tp_stream_query(tp_stream_t *stream) {
  if (!tp_device_is_started(stream->device)) return 1;
  TP_TRY(tp__device_enter(stream->device, "stream_query"));
  int32_t done = tp__error_or_done(cudaStreamQuery(stream->cuda), "stream_query", "cudaStreamQuery");
  if (done == 1) tp__order_reach(stream);
  return done;
}

tp_status_t tp_stream_synchronize(tp_stream_t *stream) {
  if (!tp_device_is_started(stream->device)) return TP_OK;
  TP_TRY(tp__wait_note("stream_synchronize"));
  return tp__stream_finish(stream, "stream_synchronize");
}

tp_status_t tp__stream_finish(tp_stream_t *stream, const char *operation) {
  TP_TRY(tp__device_enter(stream->device, operation));
  TP_TRY_CUDA(cudaStreamSynchronize(stream->cuda), operation);
  tp__order_reach(stream);
  tp__foreign_poll();
  return tp__device_check_fault(stream->device);
}

tp_status_t tp_stream_wait_event(tp_stream_t *stream, tp_event_t *event) {
  cudaEvent_t cuda = (cudaEvent_t)tp_event_handle(event);
  if (!cuda) return TP_OK;
  TP_TRY(tp__device_enter(stream->device, "stream_wait_event"));
  TP_TRY(tp__event_check_wait(event, stream, "stream_wait_event"));
  unsigned int flags = tp__event_enters_graph(event, stream) ? cudaEventWaitExternal : cudaEventWaitDefault;
  TP_TRY_CUDA(cudaStreamWaitEvent(stream->cuda, cuda, flags), "stream_wait_event");
  tp__event_order(event, stream);
  return TP_OK;
}

static tp_status_t wait_behind(tp_stream_t *stream, tp_stream_t *other, cudaEvent_t event) {
  TP_TRY_CUDA(cudaEventRecord(event, other->cuda), "stream_wait_stream");
  TP_TRY(tp__device_enter(stream->device, "stream_wait_stream"));
  TP_TRY_CUDA(cudaStreamWaitEvent(stream->cuda, event, 0), "stream_wait_stream");
  return TP_OK;
}

tp_status_t tp_stream_wait_stream(tp_stream_t *stream, tp_stream_t *other) {
  if (stream == other || !tp_device_is_started(other->device)) return TP_OK;
  TP_TRY(tp__device_enter(other->device, "stream_wait_stream"));
  uint64_t capture = tp__is_watched() ? tp__watch_capture(other) : 0;
  if (capture) TP_TRY(tp__watch_check_wait(stream, capture, "stream_wait_stream"));
  cudaEvent_t event;
  TP_TRY(tp__event_pool_take(other->device, &event));
  tp_status_t status = wait_behind(stream, other, event);
  if (!status) tp__order_wait(stream, other);
  /* CUDA has noted the wait: recording the event again for something else does not change it. */
  tp__event_pool_give(other->device, event);
  return status;
}
