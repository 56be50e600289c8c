/* Graphs: nodes, what they depend on, and the calls that build and read them, but for edges. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

static emu_graph_t *graphs; /* that live */
static size_t graph_count;  /* of all that were made */

/* ---- sets of nodes ---- */

bool emu_nodes_have(const emu_nodes_t *nodes, const emu_node_t *node) {
  for (size_t i = 0; i < nodes->count; i++)
    if (nodes->items[i] == node) return true;
  return false;
}

static bool push(emu_nodes_t *nodes, emu_node_t *node) {
  if (nodes->count == nodes->room) {
    size_t room = nodes->room ? 2 * nodes->room : 4;
    emu_node_t **grown = realloc(nodes->items, room * sizeof *grown);
    if (!grown) return false;
    nodes->items = grown;
    nodes->room = room;
  }
  nodes->items[nodes->count++] = node;
  return true;
}

bool emu_nodes_add(emu_nodes_t *nodes, emu_node_t *const *items, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!emu_nodes_have(nodes, items[i]) && !push(nodes, items[i])) return false;
  return true;
}

void emu_nodes_clear(emu_nodes_t *nodes) {
  free(nodes->items);
  *nodes = (emu_nodes_t){0};
}

bool emu_nodes_reach(const emu_graph_t *graph, const emu_nodes_t *nodes, const emu_nodes_t *wanted) {
  for (size_t i = 0; i < graph->nodes.count; i++) graph->nodes.items[i]->reached = false;
  for (size_t i = 0; i < nodes->count; i++) nodes->items[i]->reached = true;
  for (size_t i = graph->nodes.count; i-- > 0;) { /* dependencies come before what depends on them */
    const emu_node_t *node = graph->nodes.items[i];
    for (size_t j = 0; node->reached && j < node->dependencies.count; j++)
      node->dependencies.items[j]->reached = true;
  }
  for (size_t i = 0; i < wanted->count; i++)
    if (!wanted->items[i]->reached) return false;
  return true;
}

/* ---- graphs ---- */

emu_graph_t *emu_graph_new(void) {
  emu_graph_t *graph = calloc(1, sizeof *graph);
  if (!graph) return NULL;
  graph->number = ++graph_count;
  graph->next = graphs;
  return graphs = graph;
}

static void free_node(emu_node_t *node) {
  for (size_t i = 0; i < node->body_count; i++) emu_graph_free(node->bodies[i]);
  free(node->bodies);
  emu_nodes_clear(&node->dependencies);
  emu_nodes_clear(&node->dependents);
  emu_nodes_clear(&node->early);
  emu_piece_free(node->piece);
  free(node);
}

void emu_graph_free(emu_graph_t *graph) {
  emu_graph_t **link = &graphs;
  while (*link != graph) link = &(*link)->next;
  *link = graph->next;
  emu_capture_forget(graph);
  emu_exec_forget(graph);
  emu_conditional_forget(graph);
  for (size_t i = 0; i < graph->nodes.count; i++) free_node(graph->nodes.items[i]);
  emu_nodes_clear(&graph->nodes);
  free(graph);
}

bool emu_node_add_body(emu_node_t *node, emu_graph_t *body) {
  emu_graph_t **grown = body ? realloc(node->bodies, (node->body_count + 1) * sizeof *grown) : NULL;
  if (!grown) {
    if (body) emu_graph_free(body);
    return false;
  }
  body->owned = true;
  node->bodies = grown;
  node->bodies[node->body_count++] = body;
  return true;
}

/* `graph` has copies of all earlier nodes of node's graph, under the same numbers. */
static bool copy_node(emu_graph_t *graph, const emu_node_t *node) {
  emu_nodes_t dependencies = {0};
  emu_piece_t *piece = emu_piece_copy(node->piece);
  emu_node_t *copy = NULL;
  bool done = piece != NULL;
  for (size_t i = 0; done && i < node->dependencies.count; i++)
    done = push(&dependencies, graph->nodes.items[node->dependencies.items[i]->index]);
  if (done) copy = emu_graph_add(graph, piece, &dependencies);
  emu_nodes_clear(&dependencies);
  if (!copy) {
    emu_piece_free(piece);
    return false;
  }
  copy->original = node;
  for (size_t i = 0; done && i < node->early.count; i++)
    done = push(&copy->early, graph->nodes.items[node->early.items[i]->index]);
  copy->condition = node->condition;
  copy->condition_type = node->condition_type;
  for (size_t i = 0; done && i < node->body_count; i++) done = emu_node_add_body(copy, emu_graph_copy(node->bodies[i]));
  return done;
}

emu_graph_t *emu_graph_copy(const emu_graph_t *graph) {
  emu_graph_t *copy = emu_graph_new();
  if (copy) copy->owned = true;
  for (size_t i = 0; copy && i < graph->nodes.count; i++) {
    if (copy_node(copy, graph->nodes.items[i])) continue;
    emu_graph_free(copy);
    return NULL;
  }
  return copy;
}

bool emu_graph_order(const emu_graph_t *graph, emu_nodes_t *out) {
  size_t placed = 0, count = graph->nodes.count;
  *out = (emu_nodes_t){.items = malloc((count + 1) * sizeof *out->items), .room = count + 1};
  if (!out->items) return false;
  for (size_t i = 0; i < count; i++) {
    emu_node_t *node = graph->nodes.items[i];
    node->missing = node->dependencies.count;
    if (!node->missing) out->items[out->count++] = node;
  }
  /* Those from `placed` on could come next. */
  for (; placed < count; placed++) {
    size_t ready = out->count - placed;
    size_t chosen = placed + (ready > 1 ? emu_random_below(ready) : 0);
    emu_node_t *node = out->items[chosen];
    out->items[chosen] = out->items[placed];
    out->items[placed] = node;
    for (size_t i = 0; i < node->dependents.count; i++)
      if (--node->dependents.items[i]->missing == 0) out->items[out->count++] = node->dependents.items[i];
  }
  return true;
}

bool emu_graph_busy(const emu_graph_t *graph) {
  bool busy = graph->captures > 0;
  for (size_t i = 0; !busy && i < graph->nodes.count; i++)
    for (size_t j = 0; !busy && j < graph->nodes.items[i]->body_count; j++)
      busy = emu_graph_busy(graph->nodes.items[i]->bodies[j]);
  return busy;
}

emu_graph_t *emu_graph_find(cudaGraph_t handle) {
  emu_graph_t *graph = graphs;
  while (graph && (cudaGraph_t)graph != handle) graph = graph->next;
  return graph;
}

emu_node_t *emu_node_find(cudaGraphNode_t handle) {
  for (const emu_graph_t *graph = graphs; graph; graph = graph->next)
    if (emu_nodes_have(&graph->nodes, (emu_node_t *)handle)) return (emu_node_t *)handle;
  return NULL;
}

bool emu_graph_has(const emu_graph_t *graph, const cudaGraphNode_t *handles, size_t count) {
  if (count && !handles) return false;
  for (size_t i = 0; i < count; i++)
    if (!emu_nodes_have(&graph->nodes, (emu_node_t *)handles[i])) return false;
  return true;
}

emu_node_t *emu_graph_add(emu_graph_t *graph, emu_piece_t *piece, const emu_nodes_t *dependencies) {
  emu_node_t *node = calloc(1, sizeof *node);
  if (!node) return NULL;
  node->graph = graph;
  node->index = graph->nodes.count;
  if (!emu_nodes_add(&node->dependencies, dependencies->items, dependencies->count) || !push(&graph->nodes, node)) {
    free_node(node);
    return NULL;
  }
  for (size_t i = 0; i < node->dependencies.count; i++) {
    if (push(&node->dependencies.items[i]->dependents, node)) continue;
    while (i-- > 0) node->dependencies.items[i]->dependents.count--;
    graph->nodes.count--;
    free_node(node);
    return NULL;
  }
  node->piece = piece;
  return node;
}

/* ---- making and destroying ---- */

static cudaError_t create(cudaGraph_t *out, unsigned int flags) {
  if (!out || flags) return cudaErrorInvalidValue;
  *out = (cudaGraph_t)emu_graph_new();
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned int flags) {
  EMU_RETURN(cudaGraphCreate, true, create(out, flags));
}

static cudaError_t destroy(cudaGraph_t handle) {
  emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || graph->owned || emu_graph_busy(graph)) return cudaErrorInvalidValue;
  emu_graph_free(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { EMU_RETURN(cudaGraphDestroy, true, destroy(graph)); }

static cudaError_t clone(cudaGraph_t *out, cudaGraph_t handle) {
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!out || !graph || emu_graph_busy(graph)) return cudaErrorInvalidValue;
  if (emu_conditional_in(graph)) return cudaErrorNotSupported;
  emu_graph_t *copy = emu_graph_copy(graph);
  if (!copy) return cudaErrorMemoryAllocation;
  copy->owned = false;
  *out = (cudaGraph_t)copy;
  return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph) { EMU_RETURN(cudaGraphClone, true, clone(out, graph)); }

static cudaError_t find_in_clone(cudaGraphNode_t *out, cudaGraphNode_t original, cudaGraph_t handle) {
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!out || !original || !graph) return cudaErrorInvalidValue;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    if ((cudaGraphNode_t)graph->nodes.items[i]->original != original) continue;
    *out = (cudaGraphNode_t)graph->nodes.items[i];
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t original, cudaGraph_t graph) {
  EMU_RETURN(cudaGraphNodeFindInClone, true, find_in_clone(out, original, graph));
}

/* ---- reading ---- */

cudaError_t emu_nodes_give(const emu_nodes_t *nodes, cudaGraphNode_t *out, size_t *out_count) {
  size_t count = nodes->count;
  for (size_t i = 0; out && i < *out_count; i++) out[i] = i < count ? (cudaGraphNode_t)nodes->items[i] : NULL;
  if (!out || *out_count > count) *out_count = count;
  return cudaSuccess;
}

static cudaError_t get_nodes(cudaGraph_t handle, cudaGraphNode_t *out, size_t *out_count, bool only_roots) {
  emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || !out_count) return cudaErrorInvalidValue;
  emu_nodes_t found = {0};
  for (size_t i = 0; i < graph->nodes.count; i++) {
    emu_node_t *node = graph->nodes.items[i];
    if (only_roots && node->dependencies.count) continue;
    if (!push(&found, node)) {
      emu_nodes_clear(&found);
      return cudaErrorMemoryAllocation;
    }
  }
  cudaError_t error = emu_nodes_give(&found, out, out_count);
  emu_nodes_clear(&found);
  return error;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  EMU_RETURN(cudaGraphGetNodes, true, get_nodes(graph, nodes, count, false));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  EMU_RETURN(cudaGraphGetRootNodes, true, get_nodes(graph, nodes, count, true));
}

static cudaError_t get_type(cudaGraphNode_t handle, enum cudaGraphNodeType *out) {
  const emu_node_t *node = emu_node_find(handle);
  if (!node || !out) return cudaErrorInvalidValue;
  *out = node->piece->type;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *out) {
  EMU_RETURN(cudaGraphNodeGetType, true, get_type(node, out));
}
