/* Events. CUDA's events are never destroyed: each device keeps a stack of free ones for each combination of
 * flags, from which users' events and the library's own are taken and to which they return. So neither a
 * release nor a free of memory calls CUDA, and a new event costs a pop. A pooled event is always recorded
 * before it is asked or waited for, so what it was recorded for last does not matter. Events between processes, in
 * which others see what they stand for, are made and destroyed one by one. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { POOLED = TP_EVENT_TIMING | TP_EVENT_BLOCKING, FLAVOURS = POOLED + 1 };

typedef struct event_pool {
  pthread_mutex_t lock;
  cudaEvent_t *idle;   /* a stack; its room is at least the number of events ever made */
  int32_t idle_count;
  int32_t made;
  int32_t room;
} event_pool_t;

static event_pool_t pools[TP_MAX_DEVICES][FLAVOURS] = {
    [0 ... TP_MAX_DEVICES - 1] = {[0 ... FLAVOURS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}},
};

struct tp_event {
  int32_t flags;
  int32_t device;            /* valid once cuda is set */
  _Atomic bool in_graph;     /* graphs may record it as long as the process lives */
  _Atomic(cudaEvent_t) cuda; /* NULL before the first record */
  _Atomic uint64_t capture;  /* CUDA's number of the capture of ours where it was recorded last; 0 where in none */
  _Atomic(tp__order_point_t *) point;
};

/* Guards first records, which are rare. */
static pthread_mutex_t first_record_lock = PTHREAD_MUTEX_INITIALIZER;

static tp_status_t make_cuda_event(int32_t device, int32_t flags, cudaEvent_t *out) {
  const char *operation = "event_create";
  unsigned int cuda_flags = (flags & TP_EVENT_TIMING ? cudaEventDefault : cudaEventDisableTiming) |
                            (flags & TP_EVENT_BLOCKING ? cudaEventBlockingSync : cudaEventDefault) |
                            (flags & TP_EVENT_INTERPROCESS ? cudaEventInterprocess : cudaEventDefault);
  TP_TRY(tp__device_enter(device, operation));
  TP_TRY_CUDA(cudaEventCreateWithFlags(out, cuda_flags), operation);
  return TP_OK;
}

/* ---- the pool ---- */

/* Under the lock: room for one more event, made and pushed. */
static tp_status_t make_event(event_pool_t *pool, int32_t device, int32_t flags) {
  const char *operation = "event_create";
  if (pool->made == pool->room) {
    int32_t room = pool->room ? 2 * pool->room : 64;
    cudaEvent_t *idle = realloc(pool->idle, (size_t)room * sizeof *idle);
    if (!idle) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list %d events", room);
    pool->idle = idle;
    pool->room = room;
  }
  cudaEvent_t event;
  TP_TRY(make_cuda_event(device, flags, &event));
  pool->made++;
  pool->idle[pool->idle_count++] = event;
  return TP_OK;
}

static tp_status_t take(int32_t device, int32_t flags, cudaEvent_t *out) {
  event_pool_t *pool = &pools[device][flags];
  tp_status_t status = TP_OK;
  pthread_mutex_lock(&pool->lock);
  if (pool->idle_count == 0) status = make_event(pool, device, flags);
  if (!status) *out = pool->idle[--pool->idle_count];
  pthread_mutex_unlock(&pool->lock);
  return status;
}

static void give(int32_t device, int32_t flags, cudaEvent_t event) {
  if (tp__device_is_inherited()) return;
  event_pool_t *pool = &pools[device][flags];
  pthread_mutex_lock(&pool->lock);
  pool->idle[pool->idle_count++] = event;
  pthread_mutex_unlock(&pool->lock);
}

tp_status_t tp__event_pool_take(int32_t device, cudaEvent_t *out) { return take(device, 0, out); }

void tp__event_pool_give(int32_t device, cudaEvent_t event) { give(device, 0, event); }

/* ---- users' events ---- */

static cudaEvent_t cuda_of(const tp_event_t *event) {
  return atomic_load_explicit(&event->cuda, memory_order_acquire);
}

tp_event_t *tp_event_create(int32_t flags) {
  if (flags & ~(POOLED | TP_EVENT_EXTERNAL | TP_EVENT_INTERPROCESS)) {
    tp__error_set(TP_INVALID_ARGUMENT, "event_create", "got flags %d, expected a sum of TP_EVENT_*", flags);
    return NULL;
  }
  if (flags & TP_EVENT_INTERPROCESS && flags & TP_EVENT_TIMING) {
    tp__error_set(TP_INVALID_ARGUMENT, "event_create", "got timing for an event between processes, expected none");
    return NULL;
  }
  tp_event_t *event = malloc(sizeof *event);
  if (!event) {
    tp__error_set(TP_HOST_MEMORY, "event_create", "no host memory for an event");
    return NULL;
  }
  event->flags = flags;
  event->device = -1;
  atomic_init(&event->cuda, NULL);
  atomic_init(&event->capture, 0);
  atomic_init(&event->point, NULL);
  atomic_init(&event->in_graph, false);
  return event;
}

static void destroy(int32_t device, cudaEvent_t event) {
  int32_t before;
  if (!tp__device_visit(device, &before)) return;
  if (cudaEventDestroy(event)) (void)cudaGetLastError();
  tp__device_leave(before);
}

void tp_event_release(tp_event_t *event) {
  if (!event) return;
  cudaEvent_t cuda = cuda_of(event);
  if (cuda && !atomic_load_explicit(&event->in_graph, memory_order_relaxed)) {
    if (event->flags & TP_EVENT_INTERPROCESS)
      destroy(event->device, cuda);
    else
      give(event->device, event->flags & POOLED, cuda);
  }
  tp__order_point_t *point = atomic_load_explicit(&event->point, memory_order_relaxed);
  if (point) tp__order_drop(point);
  free(event);
}

int32_t tp_event_device(const tp_event_t *event) { return cuda_of(event) ? event->device : -1; }

uintptr_t tp_event_handle(const tp_event_t *event) { return (uintptr_t)cuda_of(event); }

/* Gives the event CUDA's event, of the device, unless another thread was first. */
static tp_status_t bind(tp_event_t *event, int32_t device) {
  tp_status_t status = TP_OK;
  pthread_mutex_lock(&first_record_lock);
  if (!cuda_of(event)) {
    cudaEvent_t cuda;
    bool is_shared = event->flags & TP_EVENT_INTERPROCESS;
    status = is_shared ? make_cuda_event(device, event->flags, &cuda) : take(device, event->flags & POOLED, &cuda);
    if (!status) {
      event->device = device;
      atomic_store_explicit(&event->cuda, cuda, memory_order_release);
    }
  }
  pthread_mutex_unlock(&first_record_lock);
  return status;
}

tp_status_t tp_event_record(tp_event_t *event, tp_stream_t *stream) {
  int32_t device = tp_stream_device(stream);
  TP_TRY(tp__device_check_process("event_record"));
  if (!cuda_of(event)) TP_TRY(bind(event, device));
  if (event->device != device) {
    return tp__error_set(TP_DEVICE, "event_record",
                         "the event belongs to cuda:%d, where it was first recorded; got a stream of cuda:%d",
                         event->device, device);
  }
  TP_TRY(tp__device_enter(device, "event_record"));
  uint64_t capture = 0;
  if (tp__event_enters_graph(event, stream)) {
    unsigned int flags = cudaEventRecordExternal;
    TP_TRY_CUDA(cudaEventRecordWithFlags(cuda_of(event), tp__stream_cuda(stream), flags), "event_record");
  } else {
    TP_TRY_CUDA(cudaEventRecord(cuda_of(event), tp__stream_cuda(stream)), "event_record");
    if (tp__is_watched()) capture = tp__watch_capture(stream);
  }
  atomic_store_explicit(&event->capture, capture, memory_order_relaxed);
  if (tp__order_is_on()) tp__order_record(&event->point, stream);
  return TP_OK;
}

tp_status_t tp_event_record_current(tp_event_t *event) {
  return tp_event_record(event, tp__stream_current(tp_device_current()));
}

bool tp__event_enters_graph(tp_event_t *event, const tp_stream_t *stream) {
  if (!(event->flags & TP_EVENT_EXTERNAL) || !tp__stream_is_capturing(stream)) return false;
  atomic_store_explicit(&event->in_graph, true, memory_order_relaxed);
  return true;
}

tp_status_t tp__event_check_wait(const tp_event_t *event, const tp_stream_t *stream, const char *operation) {
  uint64_t capture = atomic_load_explicit(&event->capture, memory_order_relaxed);
  return capture ? tp__watch_check_wait(stream, capture, operation) : TP_OK;
}

int32_t tp_event_query(tp_event_t *event) {
  cudaEvent_t cuda = cuda_of(event);
  if (!cuda) return 1;
  /* In a thread without a device CUDA would start its device 0 for the question. */
  TP_TRY(tp__device_enter(event->device, "event_query"));
  TP_TRY(tp__event_check_wait(event, NULL, "event_query"));
  int32_t done = tp__error_or_done(cudaEventQuery(cuda), "event_query", "cudaEventQuery");
  if (done == 1) tp__order_reach_point(&event->point);
  return done;
}

void tp__event_order(tp_event_t *event, tp_stream_t *stream) { tp__order_wait_point(stream, &event->point); }

tp_status_t tp_event_synchronize(tp_event_t *event) {
  cudaEvent_t cuda = cuda_of(event);
  if (!cuda) return TP_OK;
  TP_TRY(tp__device_enter(event->device, "event_synchronize"));
  TP_TRY(tp__event_check_wait(event, NULL, "event_synchronize"));
  TP_TRY(tp__wait_note("event_synchronize"));
  TP_TRY_CUDA(cudaEventSynchronize(cuda), "event_synchronize");
  tp__order_reach_point(&event->point);
  tp__foreign_poll();
  return tp__device_check_fault(event->device);
}

/* ---- events between processes ---- */

_Static_assert(sizeof(cudaIpcEventHandle_t) == TP_EVENT_HANDLE_NBYTES, "the header knows the size");

tp_status_t tp_event_ipc_handle(tp_event_t *event, uint8_t *out) {
  const char *operation = "event_ipc_handle";
  if (!(event->flags & TP_EVENT_INTERPROCESS)) {
    return tp__error_set(TP_STATE, operation, "the event was made for this process; make it with interprocess enabled");
  }
  if (!cuda_of(event)) TP_TRY(bind(event, tp_device_current()));
  TP_TRY(tp__device_enter(event->device, operation));
  cudaIpcEventHandle_t handle;
  TP_TRY_CUDA(cudaIpcGetEventHandle(&handle, cuda_of(event)), operation);
  memcpy(out, &handle, sizeof handle);
  return TP_OK;
}

static tp_status_t open_handle(tp_event_t *event, int32_t device, const uint8_t *bytes) {
  const char *operation = "event_from_ipc_handle";
  cudaIpcEventHandle_t handle;
  memcpy(&handle, bytes, sizeof handle);
  if ((device = tp__device_resolve(device, operation)) < 0) return device;
  TP_TRY(tp__device_enter(device, operation));
  cudaEvent_t cuda;
  TP_TRY_CUDA(cudaIpcOpenEventHandle(&cuda, handle), operation);
  event->device = device;
  atomic_store_explicit(&event->cuda, cuda, memory_order_release);
  return TP_OK;
}

tp_event_t *tp_event_from_ipc_handle(int32_t device, const uint8_t *handle) {
  tp_event_t *event = tp_event_create(TP_EVENT_INTERPROCESS);
  if (!event || !open_handle(event, device, handle)) return event;
  tp_event_release(event);
  return NULL;
}

/* ---- time between events ---- */

static tp_status_t check_timed(const tp_event_t *event, const char *which) {
  const char *operation = "event_elapsed_time";
  if (!(event->flags & TP_EVENT_TIMING)) {
    return tp__error_set(TP_STATE, operation,
                         "the %s event was made without timing; make it with timing enabled", which);
  }
  if (!cuda_of(event)) {
    return tp__error_set(TP_STATE, operation, "the %s event was never recorded; record it first", which);
  }
  return TP_OK;
}

static tp_status_t check_complete(tp_event_t *event, const char *which) {
  int32_t complete = tp_event_query(event);
  if (complete < 0) return complete;
  if (complete) return TP_OK;
  return tp__error_set(TP_STATE, "event_elapsed_time",
                       "the work before the %s event is not done; synchronize with the event first", which);
}

tp_status_t tp_event_elapsed_time_ms(tp_event_t *start, tp_event_t *end, double *out_ms) {
  const char *operation = "event_elapsed_time";
  TP_TRY(check_timed(start, "start"));
  TP_TRY(check_timed(end, "end"));
  if (start->device != end->device) {
    return tp__error_set(TP_STATE, operation,
                         "start was recorded on cuda:%d, end on cuda:%d; record both on one device",
                         start->device, end->device);
  }
  TP_TRY(check_complete(start, "start"));
  TP_TRY(check_complete(end, "end"));
  float milliseconds = 0;
  cudaError_t error = cudaEventElapsedTime(&milliseconds, cuda_of(start), cuda_of(end));
  if (error == cudaErrorNotReady) { /* another thread has recorded one of them again */
    (void)cudaGetLastError();
    return tp__error_set(TP_STATE, operation, "one of the events was recorded again during the call");
  }
  if (error) return tp__error_set_cuda(error, operation, "cudaEventElapsedTime");
  *out_ms = milliseconds;
  return TP_OK;
}
