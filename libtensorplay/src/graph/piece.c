/* Pieces of a body: each is captured by itself, and becomes a part of the body's graph when it has ended well. For when
 * such a capture fails, CUDA destroys the graph that it was captured to, also where that is a node's. */
#include <stdlib.h>

#include "../captured.h"
#include "graph.h"

/* ---- what is refused ---- */

/* CUDA would refuse the whole graph later, and not say why. */
static tp_status_t check_node(cudaGraphNode_t node, const char *operation) {
  enum cudaGraphNodeType type;
  TP_TRY_CUDA(cudaGraphNodeGetType(node, &type), operation);
  const char *what;
  switch (type) {
    case cudaGraphNodeTypeHost: what = "calls a function of the host"; break;
    case cudaGraphNodeTypeWaitEvent: what = "waits for an external event"; break;
    case cudaGraphNodeTypeEventRecord: what = "records an external event"; break;
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: what = "allocates by CUDA's own calls"; break;
    default: return TP_OK;
  }
  return tp__error_set(TP_STATE, operation, "the body %s: CUDA takes kernels, copies and fills there", what);
}

static tp_status_t check_nodes(cudaGraph_t graph, size_t count, const char *operation) {
  cudaGraphNode_t *nodes = calloc(count, sizeof *nodes);
  if (!nodes) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to look at the body");
  cudaError_t error = cudaGraphGetNodes(graph, nodes, &count);
  tp_status_t status = error ? tp__error_set_cuda(error, operation, "cudaGraphGetNodes") : TP_OK;
  for (size_t i = 0; !status && i < count; i++) status = check_node(nodes[i], operation);
  free(nodes);
  return status;
}

/* ---- pieces ---- */

/* Relaxed, for the outermost capture has the mode. */
tp_status_t tp__piece_begin(tp_graph_t *graph, tp__body_t *body, const char *operation) {
  body->capture = tp__capture_begin_body(graph->capture, body->inside);
  if (!body->capture) return TP_HOST_MEMORY;
  tp__failure_begin(body->capture);
  cudaError_t error = tp__captured_begin(body->inside, cudaStreamCaptureModeRelaxed);
  if (error) {
    tp__capture_end(body->capture);
    body->capture = NULL;
    return tp__error_set_cuda(error, operation, "cudaStreamBeginCapture");
  }
  tp__watch_move(&body->watch, body->inside);
  tp__capture_set_draws(body->capture, &body->draws);
  return TP_OK;
}

/* CUDA's answer to the end of the piece that is underway. */
static cudaError_t end_piece(tp_graph_t *graph, tp__body_t *body, cudaGraph_t *out_captured) {
  *out_captured = NULL;
  uint64_t id = tp__capture_id(body->capture);
  cudaError_t error = tp__captured_end(body->inside, out_captured);
  if (!error) tp__hold_take(id, &graph->hold);
  tp__capture_end(body->capture);
  body->capture = NULL;
  return error;
}

/* Puts what was captured behind what the body has. */
static tp_status_t append(tp__body_t *body, cudaGraph_t captured, const char *operation) {
  size_t count = 0;
  cudaGraphNode_t node;
  TP_TRY_CUDA(cudaGraphGetNodes(captured, NULL, &count), operation);
  if (count == 0) return TP_OK;
  TP_TRY(check_nodes(captured, count, operation));
  TP_TRY(tp__edges_hasten(captured, tp_stream_device(body->inside), operation));
  TP_TRY_CUDA(cudaGraphAddChildGraphNode(&node, body->graph, &body->last, body->last != NULL, captured), operation);
  body->last = node;
  return TP_OK;
}

tp_status_t tp__piece_keep(tp_graph_t *graph, tp__body_t *body, const char *operation) {
  cudaGraph_t captured;
  tp__ending_t ending;
  if (!body->capture) return tp__error_set(TP_STATE, operation, "the body could not go on behind one that ended in it");
  TP_TRY(tp__capture_gather(body->capture, operation));
  tp__failure_look(body->capture, &ending);
  cudaError_t error = end_piece(graph, body, &captured);
  if (error) return tp__failure_set(&ending, error, operation);
  tp_status_t status = append(body, captured, operation);
  (void)cudaGraphDestroy(captured);
  return status;
}

void tp__piece_drop(tp_graph_t *graph, tp__body_t *body) {
  if (!body->capture) return;
  cudaGraph_t captured;
  if (end_piece(graph, body, &captured)) (void)cudaGetLastError();
  if (captured) (void)cudaGraphDestroy(captured);
}
