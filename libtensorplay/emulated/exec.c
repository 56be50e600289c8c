/* Executable graphs. A launch queues a copy of every node's piece in its stream, in an order that the seed chooses
 * among those that the dependencies allow, between two pieces of its own: the first waits for the launch before,
 * the last completes what the next launch waits for. */
#include "emulated.h"

#include <stdlib.h>

struct emu_exec {
  emu_exec_t *next; /* of all that live */
  int references;   /* one while it lives, and one for each piece that needs it */
  emu_graph_t *graph;
  const emu_graph_t *original; /* of which `graph` is a copy; NULL once that is gone */
  emu_mark_t *last; /* the end of its last launch, or NULL */
};

static emu_exec_t *execs;

emu_exec_t *emu_exec_retain(emu_exec_t *exec) {
  exec->references++;
  return exec;
}

void emu_exec_release(emu_exec_t *exec) {
  if (--exec->references) return;
  emu_graph_free(exec->graph);
  emu_mark_release(exec->last);
  free(exec);
}

static emu_exec_t *find(cudaGraphExec_t handle) {
  emu_exec_t *exec = execs;
  while (exec && (cudaGraphExec_t)exec != handle) exec = exec->next;
  return exec;
}

void emu_exec_forget(const emu_graph_t *graph) {
  for (emu_exec_t *exec = execs; exec; exec = exec->next)
    if (exec->original == graph) exec->original = NULL;
}

/* ---- making and destroying ---- */

static bool has_executable(const emu_graph_t *graph) {
  const emu_exec_t *exec = execs;
  while (exec && exec->original != graph) exec = exec->next;
  return exec != NULL;
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long flags) {
  const unsigned long long known = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!out || !graph || emu_graph_busy(graph) || (flags & ~known)) return cudaErrorInvalidValue;
  if (!emu_conditional_valid(graph)) return cudaErrorInvalidValue;
  if (emu_conditional_in(graph) && has_executable(graph)) return cudaErrorNotSupported;
  emu_exec_t *exec = calloc(1, sizeof *exec);
  emu_graph_t *copy = exec ? emu_graph_copy(graph) : NULL;
  if (!copy) {
    free(exec);
    return cudaErrorMemoryAllocation;
  }
  *exec = (emu_exec_t){.next = execs, .references = 1, .graph = copy, .original = graph};
  execs = exec;
  *out = (cudaGraphExec_t)exec;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  EMU_RETURN(cudaGraphInstantiate, true, instantiate(out, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  EMU_RETURN(cudaGraphInstantiateWithFlags, true, instantiate(out, graph, flags));
}

/* Launches that are underway go on. */
static cudaError_t destroy(cudaGraphExec_t handle) {
  emu_exec_t *exec = find(handle);
  if (!exec) return cudaErrorInvalidValue;
  emu_exec_t **link = &execs;
  while (*link != exec) link = &(*link)->next;
  *link = exec->next;
  emu_exec_release(exec);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { EMU_RETURN(cudaGraphExecDestroy, true, destroy(exec)); }

/* ---- launching ---- */

static bool expand_node(emu_exec_t *exec, const emu_node_t *node, emu_chain_t *chain) {
  switch (node->piece->type) {
    case cudaGraphNodeTypeGraph: return emu_exec_expand(exec, node->bodies[0], chain);
    case cudaGraphNodeTypeConditional: return emu_chain_add(chain, emu_conditional_piece(exec, node));
    case cudaGraphNodeTypeEventRecord:
    case cudaGraphNodeTypeWaitEvent: return emu_chain_add(chain, emu_event_piece(node->piece));
    default: return emu_chain_add(chain, emu_piece_copy(node->piece));
  }
}

bool emu_exec_expand(emu_exec_t *exec, const emu_graph_t *graph, emu_chain_t *chain) {
  emu_nodes_t order;
  bool done = emu_graph_order(graph, &order);
  if (!done) return emu_chain_add(chain, NULL);
  for (size_t i = 0; done && i < order.count; i++) done = expand_node(exec, order.items[i], chain);
  emu_nodes_clear(&order);
  return done;
}

static cudaError_t run_begin(int device, void *payload) {
  emu_exec_t *const *exec = payload;
  (void)device;
  emu_conditional_reset((*exec)->graph);
  return cudaSuccess;
}

static void forget_begin(void *payload) { emu_exec_release(*(emu_exec_t *const *)payload); }

static emu_piece_t *begin_piece(emu_exec_t *exec, const emu_stream_t *stream) {
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeEmpty, sizeof exec);
  if (!piece) return NULL;
  *(emu_exec_t **)piece->payload = emu_exec_retain(exec);
  piece->device = stream->device;
  piece->run = run_begin;
  piece->forget = forget_begin;
  if (exec->last && !exec->last->done) piece->waits_for = emu_mark_retain(exec->last);
  return piece;
}

static emu_piece_t *end_piece(void) {
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeEmpty, 0);
  emu_mark_t *mark = piece ? calloc(1, sizeof *mark) : NULL;
  if (!mark) {
    emu_piece_free(piece);
    return NULL;
  }
  mark->references = 1;
  piece->completes = mark;
  return piece;
}

static cudaError_t launch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  emu_exec_t *exec = find(handle);
  emu_stream_t *stream = emu_stream_find(stream_handle);
  if (!exec) return cudaErrorInvalidValue;
  if (!stream) return cudaErrorInvalidResourceHandle;
  cudaError_t error = emu_capture_check_launch(stream);
  if (error) return error;
  emu_chain_t chain = {0};
  if (!emu_chain_add(&chain, begin_piece(exec, stream)) || !emu_exec_expand(exec, exec->graph, &chain) ||
      !emu_chain_add(&chain, end_piece()))
    return cudaErrorMemoryAllocation;
  emu_mark_release(exec->last);
  exec->last = emu_mark_retain(chain.last->completes);
  emu_push(stream, chain.first);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  EMU_RETURN(cudaGraphLaunch, true, launch(exec, stream));
}

/* There is nothing to bring to a device. */
static cudaError_t upload(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  emu_stream_t *stream = emu_stream_find(stream_handle);
  if (!find(handle)) return cudaErrorInvalidValue;
  return stream ? emu_capture_check(stream) : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  EMU_RETURN(cudaGraphUpload, true, upload(exec, stream));
}

/* ---- changing ---- */

/* The copy of a node, in the graph or in its bodies. */
static emu_node_t *find_copy(const emu_graph_t *graph, cudaGraphNode_t original) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    emu_node_t *node = graph->nodes.items[i];
    if ((cudaGraphNode_t)node->original == original) return node;
    for (size_t j = 0; j < node->body_count; j++) {
      emu_node_t *found = find_copy(node->bodies[j], original);
      if (found) return found;
    }
  }
  return NULL;
}

static void replace_piece(emu_node_t *node, emu_piece_t *piece) {
  piece->device = node->piece->device;
  emu_piece_free(node->piece);
  node->piece = piece;
}

static cudaError_t set_params(cudaGraphExec_t handle, cudaGraphNode_t original,
                              const struct cudaKernelNodeParams *params) {
  emu_exec_t *exec = find(handle);
  emu_piece_t *piece;
  emu_node_t *node = exec && original ? find_copy(exec->graph, original) : NULL;
  if (!node || !params || node->piece->type != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
  cudaError_t error = emu_kernel_piece(&piece, params);
  if (!error) replace_piece(node, piece);
  return error;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params) {
  EMU_RETURN(cudaGraphExecKernelNodeSetParams, true, set_params(exec, node, params));
}

/* Why a graph cannot take the place of another, and at which of its nodes. */
static enum cudaGraphExecUpdateResult compare(const emu_graph_t *old, const emu_graph_t *new, const emu_node_t **at) {
  *at = NULL;
  if (old->nodes.count != new->nodes.count) return cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < old->nodes.count; i++) {
    const emu_node_t *a = old->nodes.items[i], *b = *at = new->nodes.items[i];
    if (a->piece->type != b->piece->type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (a->dependencies.count != b->dependencies.count) return cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t j = 0; j < a->dependencies.count; j++)
      if (a->dependencies.items[j]->index != b->dependencies.items[j]->index)
        return cudaGraphExecUpdateErrorTopologyChanged;
    if (a->piece->device != b->piece->device || a->condition_type != b->condition_type ||
        a->body_count != b->body_count)
      return cudaGraphExecUpdateErrorParametersChanged;
    for (size_t j = 0; j < a->body_count; j++) {
      enum cudaGraphExecUpdateResult result = compare(a->bodies[j], b->bodies[j], at);
      if (result) return result;
    }
  }
  *at = NULL;
  return cudaGraphExecUpdateSuccess;
}

/* Takes over what the nodes do, and leaves the nodes: program's handles of the first graph stay good. */
static bool take_over(emu_graph_t *old, const emu_graph_t *new) {
  for (size_t i = 0; i < old->nodes.count; i++) {
    emu_node_t *node = old->nodes.items[i];
    emu_piece_t *piece = emu_piece_copy(new->nodes.items[i]->piece);
    if (!piece) return false;
    replace_piece(node, piece);
    node->condition = new->nodes.items[i]->condition;
    for (size_t j = 0; j < node->body_count; j++)
      if (!take_over(node->bodies[j], new->nodes.items[i]->bodies[j])) return false;
  }
  return true;
}

static cudaError_t update(cudaGraphExec_t handle, cudaGraph_t graph_handle, cudaGraphExecUpdateResultInfo *out) {
  emu_exec_t *exec = find(handle);
  const emu_graph_t *graph = emu_graph_find(graph_handle);
  const emu_node_t *at;
  if (!exec || !graph || !out || emu_graph_busy(graph)) return cudaErrorInvalidValue;
  *out = (cudaGraphExecUpdateResultInfo){.result = compare(exec->graph, graph, &at)};
  out->errorNode = (cudaGraphNode_t)at;
  if (out->result) return cudaErrorGraphExecUpdateFailure;
  return take_over(exec->graph, graph) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *out) {
  EMU_RETURN(cudaGraphExecUpdate, true, update(exec, graph, out));
}
