/* Memory that another library lends us. Its owner may use it again as soon as the release is called, so this waits
 * until the streams that used it here are done: at once when they are, else at a later call that waits or that
 * exchanges memory. Releases run outside of all locks, for they may wait for others (Python's) and come back here.
 *
 * Everything that can fail happens when a use is noted, as in alloc/defer.c. */
#include <pthread.h>
#include <stdlib.h>

#include "mark.h"

typedef struct use {
  tp__mark_t mark;
  struct use *next;
} use_t;

struct tp__foreign {
  tp_release_t release;
  void *context;
  int32_t device;
  use_t *uses;
  tp__foreign_t *next; /* of those that wait */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards uses and the list */
static tp__foreign_t *waiting;
static _Atomic int32_t waiting_count;

/* ---- noting a use ---- */

/* Under the lock, once the memory is known to others. */
static tp_status_t note(tp__foreign_t *foreign, tp_stream_t *stream, const char *operation) {
  for (use_t *use = foreign->uses; use; use = use->next) {
    if (use->mark.stream == stream) return TP_OK;
  }
  use_t *use = malloc(sizeof *use);
  if (!use) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note a stream");
  *use = (use_t){.next = foreign->uses};
  tp_status_t status = tp__mark_take(stream, &use->mark);
  if (status) {
    free(use);
    return status;
  }
  foreign->uses = use;
  return TP_OK;
}

tp__foreign_t *tp__foreign_new(int32_t device, tp_release_t release, void *context, const char *operation) {
  tp__foreign_poll();
  tp__foreign_t *foreign = malloc(sizeof *foreign);
  if (!foreign) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note memory of another library");
    return NULL;
  }
  *foreign = (tp__foreign_t){.release = release, .context = context, .device = device};
  if (note(foreign, tp__stream_current(device), operation)) {
    free(foreign);
    return NULL;
  }
  return foreign;
}

tp_status_t tp__foreign_record_stream(tp__foreign_t *foreign, tp_stream_t *stream) {
  pthread_mutex_lock(&lock);
  tp_status_t status = note(foreign, stream, "record_stream");
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- giving back ---- */

/* Whether the stream is done with what was queued before the drop. An event is recorded where it is not, unless
 * the stream is being captured: that is done once the capture has ended. */
static bool is_done(use_t *use) {
  tp_stream_t *stream = use->mark.stream;
  if (tp__stream_is_external(stream)) {
    /* It may be gone, and is not asked itself. */
    cudaError_t error = cudaDeviceSynchronize();
    if (error) (void)cudaGetLastError();
    return error != cudaErrorStreamCaptureUnsupported;
  }
  if (tp__mark_is_recorded(&use->mark)) return tp__mark_ask(&use->mark, false) != cudaErrorNotReady;
  if (tp__stream_is_capturing(stream)) return false;
  cudaError_t error = cudaStreamQuery(tp__stream_cuda(stream));
  if (error) (void)cudaGetLastError(); /* not ready; or the context is lost: whoever waits next reports it */
  if (error == cudaErrorNotReady) (void)tp__mark_set(&use->mark);
  return error != cudaErrorNotReady;
}

/* Drops the uses that are done; true when none is left. */
static bool is_idle(tp__foreign_t *foreign) {
  int32_t before;
  bool entered = tp__device_visit(foreign->device, &before);
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  for (use_t **link = &foreign->uses; *link;) {
    use_t *use = *link;
    if (entered && !is_done(use)) {
      link = &use->next;
      continue;
    }
    *link = use->next;
    tp__mark_give(&use->mark);
    free(use);
  }
  tp__capture_restore(mode);
  tp__device_leave(before);
  return !foreign->uses;
}

static void give_back(tp__foreign_t *foreign) {
  foreign->release(foreign->context);
  free(foreign);
}

void tp__foreign_drop(tp__foreign_t *foreign) {
  if (tp__device_is_inherited()) return;
  tp__foreign_poll();
  if (is_idle(foreign)) { /* nobody else knows it any more */
    give_back(foreign);
    return;
  }
  pthread_mutex_lock(&lock);
  foreign->next = waiting;
  waiting = foreign;
  atomic_fetch_add_explicit(&waiting_count, 1, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
}

void tp__foreign_poll(void) {
  if (!atomic_load_explicit(&waiting_count, memory_order_relaxed) || tp__device_is_inherited()) return;
  tp__foreign_t *idle = NULL;
  pthread_mutex_lock(&lock);
  for (tp__foreign_t **link = &waiting; *link;) {
    tp__foreign_t *foreign = *link;
    if (!is_idle(foreign)) {
      link = &foreign->next;
      continue;
    }
    *link = foreign->next;
    foreign->next = idle;
    idle = foreign;
    atomic_fetch_sub_explicit(&waiting_count, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
  while (idle) {
    tp__foreign_t *foreign = idle;
    idle = foreign->next;
    give_back(foreign);
  }
}
