/* Graphs as text in the language DOT, as CUDA writes it. */
#include "graph.h"

tp_status_t tp_graph_write_dot(tp_graph_t *graph, const char *path, int32_t is_verbose) {
  const char *operation = "debug_dump";
  TP_TRY(tp__device_check_process(operation));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = TP_OK;
  if (graph->state != TP_GRAPH_CAPTURED) {
    status = tp__error_set(TP_STATE, operation, "%s", graph->state == TP_GRAPH_CAPTURING
                                                         ? "the capture is underway: end it first"
                                                         : "nothing was captured: there is no graph to write");
  } else {
    cudaError_t error = cudaGraphDebugDotPrint(graph->graph, path, is_verbose ? cudaGraphDebugDotFlagsVerbose : 0);
    if (error) status = tp__error_set_cuda(error, operation, "cudaGraphDebugDotPrint");
  }
  pthread_mutex_unlock(&graph->lock);
  return status;
}
