/* Replays: one call of CUDA each. */
#include "graph.h"

static tp_status_t launch(tp_graph_t *graph, tp_stream_t *stream, const char *operation) {
  if (graph->state != TP_GRAPH_CAPTURED)
    return tp__error_set(TP_STATE, operation, "%s", graph->state == TP_GRAPH_CAPTURING
                                                        ? "the capture is underway: end it first"
                                                        : "nothing was captured: capture something first");
  if (!stream) stream = tp__stream_current(graph->device);
  if (tp_stream_device(stream) != graph->device)
    return tp__error_set(TP_DEVICE, operation, "got a stream of cuda:%d, expected one of cuda:%d, where the graph is",
                         tp_stream_device(stream), graph->device);
  TP_TRY(tp__device_enter(graph->device, operation));
  tp__order_wait_point(stream, &graph->point);
  TP_TRY(tp__watch(stream, graph->watch.touch_count, graph->watch.touches, operation));
  TP_TRY(tp__draws_launch(&graph->draws, graph->exec, graph->draws.setter, stream, operation));
  tp__order_record(&graph->point, stream);
  if (graph->hold) TP_TRY(tp__hold_launched(graph->hold, stream, operation));
  return tp__stream_settle(stream, operation);
}

tp_status_t tp_graph_replay(tp_graph_t *graph, tp_stream_t *stream) {
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = launch(graph, stream, "replay");
  pthread_mutex_unlock(&graph->lock);
  return status;
}
