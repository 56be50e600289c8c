/* Conditional nodes: work of a graph that each replay does or leaves out, once or many times, as memory of the device
 * says. In front of the node a kernel copies the predicate to the node's condition. The body is a graph of its own to
 * CUDA, and captured on a stream of its own, in pieces
 * (piece.c; docs/design/graphs.md, "Conditional nodes"). */
#include <stdio.h>
#include <stdlib.h>

#include "../../kernels/args_condition.h"
#include "../captured.h"
#include "graph.h"

static const tp__access_t accesses[] = {TP_READS(tp_condition_args_t, predicate), {0}};
static tp__kernel_t condition_kernel = TP_KERNEL_INIT("condition", "tp_k_condition", accesses);

/* ---- what is refused ---- */

static tp_status_t check_predicate(const tp_tensor_t *predicate, const tp_stream_t *stream, const char *operation) {
  int32_t device = tp_stream_device(stream);
  tp_status_t status = predicate->device != device         ? TP_DEVICE
                       : predicate->dtype != TP_DTYPE_bool ? TP_DTYPE
                       : predicate->numel != 1             ? TP_SHAPE
                                                           : TP_OK;
  if (!status) return TP_OK;
  return tp__error_set(status, operation,
                       "got a predicate of %lld elements of %s on cuda:%d, expected one bool on cuda:%d",
                       (long long)predicate->numel, tp__dtype_name(predicate->dtype), (int)predicate->device,
                       (int)device);
}

static tp_status_t check_state(const tp_graph_t *graph, const char *operation) {
  if (graph->state != TP_GRAPH_CAPTURING)
    return tp__error_set(TP_STATE, operation, "no capture of this graph is underway: begin one first");
  if (*graph->broken) return tp__error_set(TP_STATE, operation, "a body in this capture has failed: end the capture");
  return TP_OK;
}

/* A node can be put behind what the stream holds. Under the lock. */
static tp_status_t check_place(const tp_graph_t *graph, const tp_stream_t *stream, const char *operation) {
  TP_TRY(check_state(graph, operation));
  if (graph->body && stream != graph->body->inside)
    return tp__error_set(TP_STATE, operation, "the stream is not the one that the innermost open body has begun with: "
                                              "make that one current");
  if (!graph->body && tp__stream_capture(stream) != graph->id)
    return tp__error_set(TP_STATE, operation, "the stream takes no part in the capture: make one current that does");
  return tp__device_enter(tp_stream_device(stream), operation);
}

/* ---- nodes ---- */

/* IF nodes have a second body, which may stay empty, since CUDA 12.8. */
static bool has_else(void) {
  int version = 0;
  cudaError_t error = cudaDriverGetVersion(&version);
  if (error) (void)cudaGetLastError();
  return !error && TP_CUDA_SECOND_BODIES && version >= 12080;
}

static tp_status_t set(cudaGraphConditionalHandle handle, const tp_tensor_t *predicate, tp_stream_t *stream,
                       const char *operation) {
  tp_condition_args_t args = {.condition = handle, .predicate = predicate->data};
  return tp__launch(&condition_kernel, predicate->device, stream, 1, 1, 1, 1, &args, operation);
}

static tp_status_t add(tp__condition_t *condition, enum cudaGraphConditionalNodeType type, cudaGraph_t graph,
                       const cudaGraphNode_t *behind, const cudaGraphEdgeData *edges, size_t count,
                       const char *operation) {
  struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
  params.conditional.handle = condition->handle;
  params.conditional.type = type;
  params.conditional.size = type == cudaGraphCondTypeIf && has_else() ? 2 : 1;
  TP_TRY_CUDA(cudaGraphAddNode(&condition->node, graph, behind, edges, count, &params), operation);
  condition->body = params.conditional.phGraph_out[0];
  condition->other_body = params.conditional.size > 1 ? params.conditional.phGraph_out[1] : NULL;
  return TP_OK;
}

/* What the stream's next node would come behind, in the graph that is being captured. */
typedef struct tail {
  cudaGraph_t graph;
  const cudaGraphNode_t *nodes;
  const cudaGraphEdgeData *edges;
  size_t count;
} tail_t;

static tp_status_t get_tail(const tp_stream_t *stream, tail_t *out, const char *operation) {
  enum cudaStreamCaptureStatus status;
  cudaError_t error =
      tp__captured_info(stream, &status, NULL, &out->graph, &out->nodes, &out->edges, &out->count);
  if (!error && status != cudaStreamCaptureStatusActive) error = cudaErrorStreamCaptureInvalidated;
  return error ? tp__error_set_cuda(error, operation, "cudaStreamGetCaptureInfo") : TP_OK;
}

/* Puts a node behind what the stream holds. In a body that ends the piece. */
static tp_status_t add_node(tp_graph_t *graph, tp__condition_t *condition, enum cudaGraphConditionalNodeType type,
                            const tp_tensor_t *predicate, tp_stream_t *stream, const char *operation) {
  tp__body_t *around = graph->body;
  tail_t tail;
  TP_TRY(get_tail(stream, &tail, operation));
  cudaGraph_t into = around ? around->graph : tail.graph;
  TP_TRY_CUDA(cudaGraphConditionalHandleCreate(&condition->handle, into, 0, 0), operation);
  TP_TRY(set(condition->handle, predicate, stream, operation));
  if (around) {
    TP_TRY(tp__piece_keep(graph, around, operation));
    TP_TRY(add(condition, type, into, &around->last, NULL, around->last != NULL, operation));
    around->last = condition->node;
    return TP_OK;
  }
  TP_TRY(get_tail(stream, &tail, operation));
  TP_TRY(add(condition, type, into, tail.nodes, tail.edges, tail.count, operation));
  TP_TRY_CUDA(cudaStreamUpdateCaptureDependencies(tp__stream_cuda(stream), &condition->node, NULL, 1,
                                                  cudaStreamSetCaptureDependencies),
              operation);
  return TP_OK;
}

/* ---- bodies ---- */

/* Opens a body as the innermost one: NULL, or the stream on which it is captured. */
static tp_stream_t *open_body(tp_graph_t *graph, const tp__body_t *wanted, const char *operation) {
  tp__body_t *body = malloc(sizeof *body);
  if (!body) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a body");
    return NULL;
  }
  *body = *wanted;
  tp__body_t *around = body->around;
  tp__watch_begin(&body->watch, body->inside, around ? &around->watch : &graph->watch);
  tp__draws_begin(&body->draws, body->condition.stream, around ? &around->draws : &graph->draws, body->condition.node);
  if (tp__piece_begin(graph, body, operation)) {
    tp__watch_end(&body->watch);
    tp__draws_end(&body->draws);
    free(body);
    return NULL;
  }
  tp__order_pass(body->inside, body->condition.stream, graph->id);
  if (body->predicate) {
    const tp__storage_t *storage = tp__tensor_retain(body->predicate)->storage;
    tp__watch_predicate(&body->watch, storage->data, storage->nbytes);
  }
  graph->body = body;
  return body->inside;
}

/* Forgets the innermost body, whose last piece has ended; the one around it goes on. Status: of that. */
static tp_status_t close_body(tp_graph_t *graph, const char *operation) {
  tp__body_t *body = graph->body, *around = body->around;
  tp__watch_end(&body->watch);
  tp__draws_end(&body->draws);
  graph->body = around;
  tp_status_t status = around ? tp__piece_begin(graph, around, operation) : TP_OK;
  tp__order_pass(body->condition.stream, body->inside, graph->id);
  tp_tensor_release(body->predicate);
  free(body);
  return status;
}

/* The first reason stays. */
static void break_graph(tp_graph_t *graph, const char *what) {
  if (!*graph->broken) snprintf(graph->broken, sizeof graph->broken, "%s", what);
}

/* What fails once a node, or a part of one, was captured leaves a graph that is not whole. What is captured then goes
 * nowhere, but it is captured: nothing runs that the program means for a replay. */
static tp_stream_t *opened_or_broken(tp_graph_t *graph, tp_stream_t *inside, const char *operation) {
  if (inside) return inside;
  break_graph(graph, tp_error_text());
  if (graph->body && !graph->body->capture) (void)tp__piece_begin(graph, graph->body, operation);
  return NULL;
}

static tp_stream_t *begin_node(tp_graph_t *graph, enum cudaGraphConditionalNodeType type, tp_tensor_t *predicate,
                               tp_stream_t *stream, const char *operation) {
  if (check_place(graph, stream, operation) || check_predicate(predicate, stream, operation)) return NULL;
  tp__body_t body = {.around = graph->body, .inside = tp__stream_body(stream, operation), .condition.stream = stream};
  if (!body.inside) return NULL;
  if (type == cudaGraphCondTypeWhile) body.predicate = predicate;
  tp_stream_t *inside = NULL;
  if (!add_node(graph, &body.condition, type, predicate, stream, operation)) {
    body.graph = body.condition.body;
    inside = open_body(graph, &body, operation);
  }
  return opened_or_broken(graph, inside, operation);
}

static tp_stream_t *begin(tp_graph_t *graph, enum cudaGraphConditionalNodeType type, tp_tensor_t *predicate,
                          tp_stream_t *stream, const char *operation) {
  if (tp__device_check_process(operation)) return NULL;
  pthread_mutex_lock(&graph->lock);
  tp_stream_t *inside = begin_node(graph, type, predicate, stream, operation);
  pthread_mutex_unlock(&graph->lock);
  return inside;
}

tp_stream_t *tp_graph_begin_if(tp_graph_t *graph, tp_tensor_t *predicate, tp_stream_t *stream) {
  return begin(graph, cudaGraphCondTypeIf, predicate, stream, "begin_capture_to_if_node");
}

tp_stream_t *tp_graph_begin_while(tp_graph_t *graph, tp_tensor_t *predicate, tp_stream_t *stream) {
  return begin(graph, cudaGraphCondTypeWhile, predicate, stream, "begin_capture_to_while_node");
}

/* Status STATE: the last if node is not all that the stream's next work comes behind. */
static tp_status_t check_behind_if(const tp_graph_t *graph, const tp_stream_t *stream, const char *operation) {
  const tp__condition_t *condition = &graph->last_if;
  const tp__body_t *around = graph->body;
  tail_t tail;
  TP_TRY(get_tail(stream, &tail, operation));
  bool is_behind = around ? tail.count == 0 && around->last == condition->node
                          : tail.count == 1 && tail.nodes[0] == condition->node;
  if (condition->stream != stream || !is_behind)
    return tp__error_set(TP_STATE, operation, "the stream's last work is no if node: it follows directly behind one");
  if (!condition->other_body)
    return tp__error_set(TP_UNAVAILABLE, operation,
                         "if nodes have no second body before CUDA 12.8, in the driver and in the runtime: use another "
                         "one, whose predicate is the opposite");
  return TP_OK;
}

static tp_stream_t *begin_else(tp_graph_t *graph, tp_stream_t *stream, const char *operation) {
  if (check_place(graph, stream, operation) || check_behind_if(graph, stream, operation)) return NULL;
  tp__body_t body = {.around = graph->body,
                     .inside = tp__stream_body(stream, operation),
                     .condition = graph->last_if,
                     .graph = graph->last_if.other_body};
  if (!body.inside) return NULL;
  tp_stream_t *inside = NULL;
  if (!body.around || !tp__piece_keep(graph, body.around, operation)) inside = open_body(graph, &body, operation);
  return opened_or_broken(graph, inside, operation);
}

tp_stream_t *tp_graph_begin_else(tp_graph_t *graph, tp_stream_t *stream) {
  const char *operation = "else_";
  if (tp__device_check_process(operation)) return NULL;
  pthread_mutex_lock(&graph->lock);
  tp_stream_t *inside = begin_else(graph, stream, operation);
  pthread_mutex_unlock(&graph->lock);
  return inside;
}

/* What comes last in the body of a while node. */
static tp_status_t renew(tp__body_t *body, const char *operation) {
  tp__watch_end(&body->watch);
  if (!body->predicate || body->is_set) return TP_OK;
  if (body->watch.is_written) return set(body->condition.handle, body->predicate, body->inside, operation);
  return tp__error_set(TP_STATE, operation, "the loop would never end: its body has to write the predicate, or to call "
                                            "set_conditional_handle_for_current_node()");
}

static tp_status_t end_body(tp_graph_t *graph, const char *operation) {
  tp__body_t *body = graph->body;
  if (!body) return tp__error_set(TP_STATE, operation, "no body of a conditional node is open: begin one first");
  TP_TRY(tp__device_enter(tp_stream_device(body->inside), operation));
  tp_status_t status = renew(body, operation);
  if (!status) status = tp__draws_end_body(&body->draws, body->inside, operation);
  if (!status) status = tp__piece_keep(graph, body, operation);
  tp__piece_drop(graph, body);
  graph->last_if = body->predicate || body->graph != body->condition.body ? (tp__condition_t){0} : body->condition;
  if (status) break_graph(graph, tp_error_text());
  tp_status_t reopened = close_body(graph, operation);
  if (reopened) break_graph(graph, tp_error_text());
  return status ? status : reopened;
}

tp_status_t tp_graph_end_body(tp_graph_t *graph) {
  const char *operation = "end_capture_to_conditional_node";
  TP_TRY(tp__device_check_process(operation));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = end_body(graph, operation);
  pthread_mutex_unlock(&graph->lock);
  return status;
}

static tp_status_t set_condition(tp_graph_t *graph, const tp_tensor_t *predicate, tp_stream_t *stream,
                                 const char *operation) {
  TP_TRY(check_state(graph, operation));
  tp__body_t *body = graph->body;
  if (!body) return tp__error_set(TP_STATE, operation, "no body of a conditional node is open: begin one first");
  if (!body->capture || tp__stream_capture(stream) != tp__capture_id(body->capture))
    return tp__error_set(TP_STATE, operation, "the stream takes no part in the innermost open body: make one current "
                                              "that does");
  TP_TRY(check_predicate(predicate, stream, operation));
  TP_TRY(set(body->condition.handle, predicate, stream, operation));
  body->is_set = true;
  return TP_OK;
}

tp_status_t tp_graph_set_condition(tp_graph_t *graph, const tp_tensor_t *predicate, tp_stream_t *stream) {
  const char *operation = "set_conditional_handle_for_current_node";
  TP_TRY(tp__device_check_process(operation));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = set_condition(graph, predicate, stream, operation);
  pthread_mutex_unlock(&graph->lock);
  return status;
}

void tp_graph_abandon_body(tp_graph_t *graph) {
  if (tp__device_is_inherited()) return;
  pthread_mutex_lock(&graph->lock);
  int32_t before;
  tp__body_t *body = graph->body;
  if (body) {
    (void)tp__device_visit(tp_stream_device(body->inside), &before); /* it ends in any case */
    tp__piece_drop(graph, body);
    (void)close_body(graph, "abandon_body");
    break_graph(graph, "an exception left it");
    tp__device_leave(before);
  }
  pthread_mutex_unlock(&graph->lock);
}

/* ---- from the capture around ---- */

tp_status_t tp__bodies_check(const tp_graph_t *graph, const char *operation) {
  if (graph->body)
    return tp__error_set(TP_STATE, operation,
                         "a body of a conditional node is open: end_capture_to_conditional_node() comes first");
  if (*graph->broken)
    return tp__error_set(TP_STATE, operation, "a body of a conditional node has failed: %s", graph->broken);
  return TP_OK;
}

void tp__bodies_abandon(tp_graph_t *graph) {
  for (tp__body_t *body; (body = graph->body);) {
    tp__piece_drop(graph, body);
    tp__watch_end(&body->watch);
    tp__draws_end(&body->draws);
    graph->body = body->around;
    tp_tensor_release(body->predicate);
    free(body);
  }
}
