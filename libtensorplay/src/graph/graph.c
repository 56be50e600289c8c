/* The graph as an object: its making, its reset, its end (docs/design/graphs.md). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

tp_graph_t *tp_graph_create(void) {
  const char *operation = "graph_create";
  if (tp__device_check_process(operation)) return NULL;
  tp_graph_t *graph = calloc(1, sizeof *graph);
  if (!graph) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a graph");
    return NULL;
  }
  pthread_mutex_init(&graph->lock, NULL);
  return graph;
}

void tp__graph_discard(tp_graph_t *graph) {
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  /* A launch that is underway keeps what it needs of the executable graph. */
  if (graph->exec.cuda) (void)cudaGraphExecDestroy(graph->exec.cuda);
  if (graph->graph) (void)cudaGraphDestroy(graph->graph);
  tp__capture_restore(mode);
  tp__hold_drop(graph->hold);
  tp__draws_forget(&graph->draws);
  if (graph->mempool) tp__mempool_drop(graph->mempool);
  tp__watch_forget(&graph->watch);
  tp__order_drop(graph->last_point);
  tp__stage_drop(graph->stage);
  memset(&graph->state, 0, sizeof *graph - offsetof(struct tp_graph, state)); /* all that the lock guards */
}

tp_status_t tp_graph_reset(tp_graph_t *graph) {
  const char *operation = "reset";
  TP_TRY(tp__device_check_process(operation));
  tp_status_t status = TP_OK;
  size_t nbytes = 0;
  int64_t blocks = 0;
  pthread_mutex_lock(&graph->lock);
  if (graph->state == TP_GRAPH_CAPTURED) blocks = tp__capture_live_blocks(graph->mempool, graph->id, &nbytes);
  if (graph->state == TP_GRAPH_CAPTURING)
    status = tp__error_set(TP_STATE, operation, "a capture is underway: end it first");
  else if (blocks)
    status = tp__error_set(TP_STATE, operation,
                           "%lld blocks of %zu bytes that were allocated in the capture are in use: drop their "
                           "tensors first",
                           (long long)blocks, nbytes);
  else
    tp__graph_discard(graph);
  pthread_mutex_unlock(&graph->lock);
  return status;
}

void tp_graph_release(tp_graph_t *graph) {
  if (!graph || tp__device_is_inherited()) return;
  tp_graph_capture_abandon(graph);
  tp__graph_discard(graph);
  pthread_mutex_destroy(&graph->lock);
  free(graph);
}

/* ---- description ---- */

tp_mempool_t *tp_graph_mempool(tp_graph_t *graph) {
  const char *operation = "pool";
  if (tp__device_check_process(operation)) return NULL;
  pthread_mutex_lock(&graph->lock);
  tp_mempool_t *mempool = graph->mempool;
  if (mempool) tp__mempool_retain(mempool);
  pthread_mutex_unlock(&graph->lock);
  if (!mempool) tp__error_set(TP_STATE, operation, "nothing was captured: the graph has no pool yet");
  return mempool;
}

int32_t tp_graph_is_capturing(tp_graph_t *graph, const tp_stream_t *stream) {
  if (tp__device_is_inherited()) return 0;
  uint64_t capture = tp__stream_capture(stream);
  pthread_mutex_lock(&graph->lock);
  const tp__body_t *body = graph->body;
  bool found = capture && graph->capture &&
               (capture == graph->id || (body && body->capture && capture == tp__capture_id(body->capture)));
  pthread_mutex_unlock(&graph->lock);
  return found;
}

int32_t tp_graph_writes(tp_graph_t *graph, const tp_tensor_t *tensor) {
  if (tp__device_is_inherited()) return 0;
  pthread_mutex_lock(&graph->lock);
  bool writes = tp__watch_writes(&graph->watch, tensor->storage->data, tensor->storage->nbytes);
  pthread_mutex_unlock(&graph->lock);
  return writes;
}

int64_t tp_graph_node_count(tp_graph_t *graph) {
  if (tp__device_is_inherited()) return 0;
  size_t count = 0;
  pthread_mutex_lock(&graph->lock);
  if (graph->graph && cudaGraphGetNodes(graph->graph, NULL, &count)) (void)cudaGetLastError();
  pthread_mutex_unlock(&graph->lock);
  return (int64_t)count;
}

int64_t tp_graph_work_beside(tp_graph_t *graph, tp_stream_t **out_streams, const char **out_operation) {
  if (tp__device_is_inherited()) return 0;
  pthread_mutex_lock(&graph->lock);
  const tp__watch_t *watch = &graph->watch;
  int64_t count = graph->state == TP_GRAPH_CAPTURED ? watch->beside_count : 0;
  if (count) {
    out_streams[0] = graph->stream;
    out_streams[1] = watch->beside_stream;
    *out_operation = watch->beside_operation;
  }
  pthread_mutex_unlock(&graph->lock);
  return count;
}

uintptr_t tp_graph_handle(tp_graph_t *graph) {
  if (tp__device_is_inherited()) return 0;
  pthread_mutex_lock(&graph->lock);
  uintptr_t handle = (uintptr_t)graph->graph;
  pthread_mutex_unlock(&graph->lock);
  return handle;
}

uintptr_t tp_graph_exec_handle(tp_graph_t *graph) {
  if (tp__device_is_inherited()) return 0;
  pthread_mutex_lock(&graph->lock);
  uintptr_t handle = (uintptr_t)graph->exec.cuda;
  pthread_mutex_unlock(&graph->lock);
  return handle;
}
