/* Conditional nodes. Each tests a value that kernels set; the bodies that it chooses are put behind it in the
 * stream when it runs, and behind a loop's body the node itself. */
#include "emulated.h"

#include <stdlib.h>

#include "include/host_device.h"

/* A handle is the number of its condition, from 1. Conditions are never made anew: a kernel may still know them. */
typedef struct condition {
  const emu_graph_t *graph; /* of its node; NULL once that is gone */
  bool has_node;
  bool resets; /* to the initial value at each launch */
  unsigned int initial;
  unsigned int value;
} condition_t;

static condition_t *conditions;
static size_t condition_count;

static condition_t *find(cudaGraphConditionalHandle handle) {
  return handle && handle <= condition_count ? &conditions[handle - 1] : NULL;
}

static cudaError_t create(cudaGraphConditionalHandle *out, cudaGraph_t handle, unsigned int initial,
                          unsigned int flags) {
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!out || !graph || (flags & ~(unsigned int)cudaGraphCondAssignDefault)) return cudaErrorInvalidValue;
  condition_t *grown = realloc(conditions, (condition_count + 1) * sizeof *grown);
  if (!grown) return cudaErrorMemoryAllocation;
  conditions = grown;
  conditions[condition_count++] = (condition_t){.graph = graph, .resets = flags, .initial = initial};
  *out = condition_count;
  return cudaSuccess;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *out, cudaGraph_t graph, unsigned int initial,
                                             unsigned int flags) {
  EMU_RETURN(cudaGraphConditionalHandleCreate, true, create(out, graph, initial, flags));
}

void emu_conditional_forget(const emu_graph_t *graph) {
  for (size_t i = 0; i < condition_count; i++)
    if (conditions[i].graph == graph) conditions[i].graph = NULL;
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value) {
  condition_t *condition = find(handle);
  if (!condition) emu_kernel_fault(cudaErrorIllegalAddress, "no conditional handle %llu", handle);
  condition->value = value;
}

/* ---- nodes ---- */

/* How many bodies a node of this type may have; 0: there is no such type. */
static unsigned int most_bodies(enum cudaGraphConditionalNodeType type) {
  switch (type) {
    case cudaGraphCondTypeWhile: return 1;
#if TP_CUDA_SECOND_BODIES
    case cudaGraphCondTypeIf: return 2;
    case cudaGraphCondTypeSwitch: return UINT32_MAX;
#else
    case cudaGraphCondTypeIf: return 1;
#endif
    default: return 0;
  }
}

cudaError_t emu_conditional_add(emu_node_t **out, emu_graph_t *graph, const emu_nodes_t *dependencies,
                                struct cudaConditionalNodeParams *params) {
  condition_t *condition = find(params->handle);
  if (!condition || condition->graph != graph || condition->has_node) return cudaErrorInvalidValue;
  if (params->size == 0 || params->size > most_bodies(params->type)) return cudaErrorInvalidValue;
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeConditional, 0);
  emu_node_t *node = piece ? emu_graph_add(graph, piece, dependencies) : NULL;
  if (!node) {
    emu_piece_free(piece);
    return cudaErrorMemoryAllocation;
  }
  piece->device = emu_device_current();
  node->condition = params->handle;
  node->condition_type = params->type;
  for (unsigned int i = 0; i < params->size; i++)
    if (!emu_node_add_body(node, emu_graph_new())) return cudaErrorMemoryAllocation;
  condition->has_node = true;
  params->phGraph_out = (cudaGraph_t *)node->bodies;
  *out = node;
  return cudaSuccess;
}

bool emu_conditional_in(const emu_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i]->piece->type == cudaGraphNodeTypeConditional) return true;
  return false;
}

/* A body has no host functions and events, and copies none of pageable memory. */
static bool body_valid(const emu_graph_t *body) {
  for (size_t i = 0; i < body->nodes.count; i++) {
    const emu_node_t *node = body->nodes.items[i];
    enum cudaGraphNodeType type = node->piece->type;
    if (type == cudaGraphNodeTypeHost || type == cudaGraphNodeTypeEventRecord || type == cudaGraphNodeTypeWaitEvent)
      return false;
    if (node->piece->pageable) return false;
    for (size_t j = 0; j < node->body_count; j++)
      if (!body_valid(node->bodies[j])) return false;
  }
  return true;
}

bool emu_conditional_valid(const emu_graph_t *graph) {
  for (size_t i = 0; i < condition_count; i++)
    if (conditions[i].graph == graph && !conditions[i].has_node) return false;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const emu_node_t *node = graph->nodes.items[i];
    for (size_t j = 0; j < node->body_count; j++) {
      if (node->piece->type == cudaGraphNodeTypeConditional && !body_valid(node->bodies[j])) return false;
      if (!emu_conditional_valid(node->bodies[j])) return false;
    }
  }
  return true;
}

void emu_conditional_reset(const emu_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const emu_node_t *node = graph->nodes.items[i];
    condition_t *condition = find(node->condition);
    if (condition && condition->resets) condition->value = condition->initial;
    for (size_t j = 0; j < node->body_count; j++) emu_conditional_reset(node->bodies[j]);
  }
}

/* ---- running ---- */

typedef struct decision {
  emu_exec_t *exec;
  const emu_node_t *node;
} decision_t;

/* The body for the condition's value, NULL where none is to run. */
static const emu_graph_t *chosen_body(const emu_node_t *node) {
  unsigned int value = find(node->condition)->value;
#if TP_CUDA_SECOND_BODIES
  if (node->condition_type == cudaGraphCondTypeSwitch) return value < node->body_count ? node->bodies[value] : NULL;
#endif
  if (value) return node->bodies[0];
  return node->body_count > 1 ? node->bodies[1] : NULL;
}

static cudaError_t decide(int device, void *payload) {
  const decision_t *decision = payload;
  const emu_graph_t *body = chosen_body(decision->node);
  bool again = decision->node->condition_type == cudaGraphCondTypeWhile;
  emu_chain_t chain = {0};
  (void)device;
  if (!body) return cudaSuccess;
  if (!emu_exec_expand(decision->exec, body, &chain) ||
      (again && !emu_chain_add(&chain, emu_conditional_piece(decision->exec, decision->node)))) {
    emu_fault_note("a conditional node: the host has no memory for the pieces of its body");
    return cudaErrorLaunchFailure;
  }
  if (chain.first) emu_push_next(chain.first);
  return cudaSuccess;
}

static void forget(void *payload) { emu_exec_release(((const decision_t *)payload)->exec); }

emu_piece_t *emu_conditional_piece(emu_exec_t *exec, const emu_node_t *node) {
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeConditional, sizeof(decision_t));
  if (!piece) return NULL;
  *(decision_t *)piece->payload = (decision_t){emu_exec_retain(exec), node};
  piece->device = node->piece->device;
  piece->run = decide;
  piece->forget = forget;
  piece->cost_ns = EMU_PIECE_NS;
  return piece;
}
