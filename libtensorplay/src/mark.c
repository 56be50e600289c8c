/* Places in streams' work for which the library waits. */
#include "mark.h"

static void set_recorded(tp__mark_t *mark, bool recorded) {
  atomic_store_explicit(&mark->recorded, recorded, memory_order_relaxed);
}

tp_status_t tp__mark_take(tp_stream_t *stream, tp__mark_t *out) {
  out->stream = stream;
  set_recorded(out, false);
  return tp__event_pool_take(tp_stream_device(stream), &out->event);
}

void tp__mark_give(tp__mark_t *mark) { tp__event_pool_give(tp_stream_device(mark->stream), mark->event); }

cudaError_t tp__mark_set(tp__mark_t *mark) {
  set_recorded(mark, false);
  if (tp__stream_is_capturing(mark->stream)) return cudaSuccess;
  cudaError_t error = cudaEventRecord(mark->event, tp__stream_cuda(mark->stream));
  if (error) {
    (void)cudaGetLastError();
    return error;
  }
  /* A capture that has begun in the meantime has the event. */
  set_recorded(mark, !tp__stream_is_capturing(mark->stream));
  return cudaSuccess;
}

/* CUDA refuses to ask an event that a capture has: it says so while the capture is underway, and calls the event an
 * invalid value once that has ended. */
static bool is_captured(cudaError_t error) {
  return error == cudaErrorCapturedEvent || error == cudaErrorInvalidValue;
}

cudaError_t tp__mark_ask(tp__mark_t *mark, bool wait) {
  if (!tp__mark_is_recorded(mark)) {
    /* An external stream may be gone. */
    cudaError_t error = tp__stream_is_external(mark->stream) ? cudaSuccess : tp__mark_set(mark);
    if (error) return error;
    if (!tp__mark_is_recorded(mark)) return cudaErrorNotReady;
  }
  cudaError_t error = wait ? cudaEventSynchronize(mark->event) : cudaEventQuery(mark->event);
  if (error) (void)cudaGetLastError();
  if (!is_captured(error)) return error;
  set_recorded(mark, false);
  return cudaErrorNotReady;
}
