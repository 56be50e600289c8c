/* Replays: one call of CUDA each. */
#include "graph.h"

tp_status_t tp__graph_ready(const tp_graph_t *graph, tp_stream_t **stream, const char *operation) {
  if (graph->state != TP_GRAPH_CAPTURED)
    return tp__error_set(TP_STATE, operation, "%s", graph->state == TP_GRAPH_CAPTURING
                                                        ? "the capture is underway: end it first"
                                                        : "nothing was captured: capture something first");
  if (!*stream) *stream = tp__stream_current(graph->device);
  if (tp_stream_device(*stream) != graph->device)
    return tp__error_set(TP_DEVICE, operation, "got a stream of cuda:%d, expected one of cuda:%d, where the graph is",
                         tp_stream_device(*stream), graph->device);
  /* CUDA would refuse as well, and end the capture for it. */
  if (tp__is_watched() && tp__stream_capture(*stream))
    return tp__error_set(TP_STATE, operation,
                         "the stream is captured, and a graph cannot be part of another one: capture what it does");
  return tp__device_enter(graph->device, operation);
}

tp_status_t tp__graph_launch(tp_graph_t *graph, tp__exec_t *exec, int32_t count, const tp__touch_t *touches,
                             tp_stream_t *stream, const char *operation) {
  tp__order_wait_point(stream, &exec->point);
  TP_TRY(tp__watch(stream, count, touches, operation));
  TP_TRY(tp__draws_launch(&graph->draws, exec->cuda, exec->setter, stream, operation));
  tp__order_record(&exec->point, stream);
  if (graph->hold) TP_TRY(tp__hold_launched(graph->hold, stream, operation));
  return tp__stream_settle(stream, operation);
}

static tp_status_t replay(tp_graph_t *graph, tp_stream_t *stream) {
  const char *operation = "replay";
  TP_TRY(tp__graph_ready(graph, &stream, operation));
  return tp__graph_launch(graph, &graph->exec, graph->watch.touch_count, graph->watch.touches, stream, operation);
}

tp_status_t tp_graph_replay(tp_graph_t *graph, tp_stream_t *stream) {
  TP_TRY(tp__device_check_process("replay"));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = replay(graph, stream);
  pthread_mutex_unlock(&graph->lock);
  return status;
}
