/* How a capture begins and ends. Memory is routed to the graph's pool before the first call can be captured, and until
 * the capture is over (alloc/capture.c). */
#include "../captured.h"
#include "graph.h"

/* One capture begins at a time, so that of two on one stream one is refused, and none while tp_graph_prepare waits,
 * which would break it. */
static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

tp_status_t tp_graph_prepare(int32_t device) {
  const char *operation = "graph_prepare";
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  if (!tp_device_is_started(device) || tp__captures_underway()) return TP_OK;
  TP_TRY(tp__device_enter(device, operation));
  TP_TRY(tp__wait_note(operation));
  pthread_mutex_lock(&beginning);
  bool waits = !tp__captures_underway();
  cudaError_t error = waits ? cudaDeviceSynchronize() : cudaSuccess;
  pthread_mutex_unlock(&beginning);
  if (error) return tp__error_set_cuda(error, operation, "cudaDeviceSynchronize");
  if (!waits) return TP_OK;
  tp__order_reach_device(device);
  TP_TRY(tp__device_check_fault(device));
  return tp_memory_empty_cache(device);
}

/* Status STATE: why the graph, or the stream, cannot begin a capture. Under the lock. */
static tp_status_t check(const tp_graph_t *graph, const tp_stream_t *stream, const char *operation) {
  if (graph->state == TP_GRAPH_CAPTURING)
    return tp__error_set(TP_STATE, operation, "a capture of this graph is underway: end it first");
  if (graph->state == TP_GRAPH_CAPTURED)
    return tp__error_set(TP_STATE, operation, "the graph has a capture already: reset() it first");
  if (!tp__stream_cuda(stream))
    return tp__error_set(TP_STATE, operation,
                         "the default stream cannot be captured: make another stream current, or pass stream=");
  if (tp_stream_is_capturing(stream)) /* where CUDA does not tell, it refuses */
    return tp__error_set(TP_STATE, operation,
                         "the stream takes part in a capture already: pass another one as stream=");
  return TP_OK;
}

static tp_status_t begin(tp_graph_t *graph, tp_stream_t *stream, enum cudaStreamCaptureMode mode,
                         const char *operation) {
  graph->unknown = tp__stream_unknown;
  graph->capture = tp__capture_begin(graph->mempool, stream);
  if (!graph->capture) return TP_HOST_MEMORY;
  tp__failure_begin(graph->capture);
  cudaError_t error = tp__captured_begin(stream, mode);
  if (error) {
    tp__capture_end(graph->capture);
    graph->capture = NULL;
    return tp__error_set_cuda(error, operation, "cudaStreamBeginCapture");
  }
  graph->id = tp__capture_id(graph->capture);
  graph->stream = stream;
  graph->device = tp_stream_device(stream);
  graph->state = TP_GRAPH_CAPTURING;
  tp__watch_begin(&graph->watch, stream, NULL);
  tp__draws_begin(&graph->draws, stream, NULL, NULL);
  tp__capture_set_draws(graph->capture, &graph->draws);
  return TP_OK;
}

tp_status_t tp_graph_capture_begin(tp_graph_t *graph, tp_stream_t *stream, tp_mempool_t *mempool, int32_t mode) {
  const char *operation = "capture_begin";
  if (!stream) return tp__error_set(TP_INVALID_ARGUMENT, operation, "got NULL, expected a stream");
  if (mode < TP_CAPTURE_GLOBAL || mode > TP_CAPTURE_RELAXED)
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got mode %d, expected one of TP_CAPTURE_*", mode);
  TP_TRY(tp__device_enter(tp_stream_device(stream), operation));
  pthread_mutex_lock(&graph->lock);
  pthread_mutex_lock(&beginning);
  tp_status_t status = check(graph, stream, operation);
  if (!status) {
    if (mempool) tp__mempool_retain(mempool);
    graph->mempool = mempool ? mempool : tp_mempool_create(TP_MEMPOOL_OF_CAPTURE, NULL, NULL);
    status = graph->mempool ? begin(graph, stream, (enum cudaStreamCaptureMode)mode, operation) : TP_HOST_MEMORY;
    if (status) tp__graph_discard(graph);
  }
  pthread_mutex_unlock(&beginning);
  pthread_mutex_unlock(&graph->lock);
  return status;
}

/* Ends the capture that is underway, for good or for nothing: CUDA's answer. Under the lock. */
static cudaError_t end_capture(tp_graph_t *graph, cudaGraph_t *out_graph) {
  *out_graph = NULL;
  tp__bodies_abandon(graph);
  tp__watch_end(&graph->watch);
  cudaError_t error = tp__captured_end(graph->stream, out_graph);
  if (!error) tp__hold_take(graph->id, &graph->hold);
  tp__capture_end(graph->capture);
  tp__draws_end(&graph->draws);
  graph->capture = NULL;
  return error;
}

static tp_status_t instantiate(tp_graph_t *graph, const char *operation) {
  TP_TRY(tp__draws_prepare(&graph->draws, operation));
  TP_TRY(tp__edges_hasten(graph->graph, graph->device, operation));
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  cudaError_t error = cudaGraphInstantiate(&graph->exec.cuda, graph->graph, 0);
  tp__capture_restore(mode);
  graph->exec.setter = graph->draws.setter;
  return error ? tp__error_set_cuda(error, operation, "cudaGraphInstantiate") : TP_OK;
}

/* Work of a stream whose capture is not known may be in the graph without its memory, or its random numbers. */
static tp_status_t check_known(const tp_graph_t *graph, const char *operation) {
  if (graph->unknown == tp__stream_unknown) return TP_OK;
  return tp__error_set(TP_STATE, operation, "CUDA did not tell whether a stream takes part in a capture "
                                            "(cudaStreamGetCaptureInfo), so the graph may be wrong: capture again");
}

static tp_status_t end(tp_graph_t *graph, const char *operation) {
  if (graph->state != TP_GRAPH_CAPTURING)
    return tp__error_set(TP_STATE, operation, "no capture of this graph is underway: begin one first");
  tp__ending_t ending;
  tp_status_t status = tp__device_enter(graph->device, operation); /* it ends in any case */
  if (!status) status = tp__bodies_check(graph, operation);
  tp__failure_look(graph->capture, &ending);
  cudaError_t error = end_capture(graph, &graph->graph);
  if (status && error) (void)cudaGetLastError();
  if (!status && error) status = tp__failure_set(&ending, error, operation);
  if (!status) status = check_known(graph, operation);
  if (!status) status = instantiate(graph, operation);
  if (status)
    tp__graph_discard(graph);
  else
    graph->state = TP_GRAPH_CAPTURED;
  return status;
}

tp_status_t tp_graph_capture_end(tp_graph_t *graph) {
  const char *operation = "capture_end";
  TP_TRY(tp__device_check_process(operation));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = end(graph, operation);
  pthread_mutex_unlock(&graph->lock);
  return status;
}

void tp_graph_capture_abandon(tp_graph_t *graph) {
  if (tp__device_is_inherited()) return;
  pthread_mutex_lock(&graph->lock);
  int32_t before;
  if (graph->state == TP_GRAPH_CAPTURING) {
    (void)tp__device_visit(graph->device, &before); /* it ends in any case */
    (void)end_capture(graph, &graph->graph);
    (void)cudaGetLastError();
    tp__graph_discard(graph);
    tp__device_leave(before);
  }
  pthread_mutex_unlock(&graph->lock);
}
