/* Replays: one call of CUDA each, where the stream is that of the last one. */
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

/* An event for each launch would cost as much as all else of it. So it is recorded when it is needed, and stands for
 * all that the other stream holds by now. */
static tp_status_t wait_for_last(const tp_graph_t *graph, tp_stream_t *stream, const char *operation) {
  tp_stream_t *last = graph->last_stream;
  if (!last || last == stream) return TP_OK;
  if (tp_stream_is_capturing(last))
    return tp__error_set(TP_STATE, operation,
                         "the graph was last launched on stream %#llx of cuda:%d, which is captured now, so that "
                         "another stream cannot wait for it: launch when that capture has ended",
                         (unsigned long long)tp_stream_handle(last), tp_stream_device(last));
  return tp_stream_wait_stream(stream, last);
}

tp_status_t tp__graph_follow(tp_graph_t *graph, const tp__exec_t *exec, tp_stream_t *stream, const char *operation) {
  if (exec && exec == graph->last_exec) return TP_OK;
  TP_TRY(wait_for_last(graph, stream, operation));
  if (exec) return TP_OK; /* what is launched is noted then */
  /* One of another library would stay noted where the launch behind fails, and may be gone when it is waited for. */
  if (!tp__stream_is_external(stream)) graph->last_stream = stream;
  graph->last_exec = NULL;
  return TP_OK;
}

/* The executable graph was launched on the stream. One of another library may be gone by the time it would be waited
 * for: a stream of ours waits at once, in its place. */
static tp_status_t note_launch(tp_graph_t *graph, const tp__exec_t *exec, tp_stream_t *stream, const char *operation) {
  graph->last_stream = stream;
  graph->last_exec = exec;
  tp__order_record(&graph->last_point, stream);
  if (!tp__stream_is_external(stream)) return TP_OK;
  tp_stream_t *own = tp__stream_body(stream, operation);
  if (!own) return tp_error_status();
  TP_TRY(tp_stream_wait_stream(own, stream));
  graph->last_stream = own;
  return TP_OK;
}

tp_status_t tp__graph_launch(tp_graph_t *graph, tp__exec_t *exec, int32_t count, const tp__touch_t *touches,
                             tp_stream_t *stream, const char *operation) {
  TP_TRY(tp__graph_follow(graph, exec, stream, operation));
  tp__order_wait_point(stream, &graph->last_point);
  TP_TRY(tp__watch(stream, count, touches, operation));
  bool queued;
  tp_status_t status = tp__draws_launch(&graph->draws, exec->cuda, exec->setter, stream, &queued, operation);
  tp_status_t noted = queued ? note_launch(graph, exec, stream, operation) : TP_OK;
  /* What is queued uses its pinned blocks, whatever else fails. */
  tp_status_t held = queued && graph->hold ? tp__hold_launched(graph->hold, stream, operation) : TP_OK;
  if (status || noted || held) return status ? status : noted ? noted : held;
  return tp__settle(stream, operation);
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

static tp_status_t follow(tp_graph_t *graph, tp_stream_t *stream) {
  const char *operation = "follow";
  TP_TRY(tp__graph_ready(graph, &stream, operation));
  return tp__graph_follow(graph, NULL, stream, operation);
}

tp_status_t tp_graph_follow(tp_graph_t *graph, tp_stream_t *stream) {
  TP_TRY(tp__device_check_process("follow"));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = follow(graph, stream);
  pthread_mutex_unlock(&graph->lock);
  return status;
}
