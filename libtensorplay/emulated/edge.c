/* Edges of graphs: the calls that add, remove and read them. An edge is a plain one, or, between kernels, a
 * programmatic one, whose second kernel waits by itself. Here both order the same: no kernel starts before those that
 * it comes behind have ended. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

static const cudaGraphEdgeData plain;
static const cudaGraphEdgeData programmatic = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                               .type = cudaGraphDependencyTypeProgrammatic};

static cudaGraphEdgeData data_of(const emu_node_t *from, const emu_node_t *to) {
  return emu_nodes_have(&to->early, from) ? programmatic : plain;
}

static bool is(const cudaGraphEdgeData *edge, const cudaGraphEdgeData *kind) {
  return edge->from_port == kind->from_port && edge->to_port == kind->to_port && edge->type == kind->type;
}

/* ---- adding ---- */

/* Behind everything that it depends on, and in the old order beyond that. */
static void place(emu_graph_t *graph, emu_node_t *node) {
  if (node->reached) return;
  node->reached = true;
  for (size_t i = 0; i < node->dependencies.count; i++) place(graph, node->dependencies.items[i]);
  node->index = graph->nodes.count;
  graph->nodes.items[graph->nodes.count++] = node;
}

static bool sort(emu_graph_t *graph) {
  size_t count = graph->nodes.count;
  emu_node_t **old = malloc(count * sizeof(emu_node_t *));
  if (!old) return false;
  memcpy(old, graph->nodes.items, count * sizeof *old);
  for (size_t i = 0; i < count; i++) old[i]->reached = false;
  graph->nodes.count = 0;
  for (size_t i = 0; i < count; i++) place(graph, old[i]);
  free(old);
  return true;
}

static void drop(emu_nodes_t *nodes, const emu_node_t *node) {
  size_t place = 0;
  while (place < nodes->count && nodes->items[place] != node) place++;
  if (place == nodes->count) return;
  nodes->count--;
  memmove(nodes->items + place, nodes->items + place + 1, (nodes->count - place) * sizeof *nodes->items);
}

static void unlink(emu_node_t *from, emu_node_t *to) {
  drop(&to->dependencies, from);
  drop(&to->early, from);
  drop(&from->dependents, to);
}

static cudaError_t add_edge(emu_graph_t *graph, emu_node_t *from, emu_node_t *to, const cudaGraphEdgeData *edge) {
  const emu_nodes_t sources = {.items = &from, .count = 1}, targets = {.items = &to, .count = 1};
  bool is_early = is(edge, &programmatic);
  bool are_kernels = from->piece->type == cudaGraphNodeTypeKernel && to->piece->type == cudaGraphNodeTypeKernel &&
                     from->piece->device == to->piece->device;
  if (!is(edge, &plain) && !(is_early && are_kernels)) return cudaErrorInvalidValue;
  if (emu_nodes_have(&to->dependencies, from) || emu_nodes_reach(graph, &sources, &targets))
    return cudaErrorInvalidValue;
  if (emu_nodes_add(&to->dependencies, &from, 1) && emu_nodes_add(&from->dependents, &to, 1) &&
      (!is_early || emu_nodes_add(&to->early, &from, 1)) && (from->index < to->index || sort(graph)))
    return cudaSuccess;
  unlink(from, to);
  return cudaErrorMemoryAllocation;
}

static cudaError_t add_edges(cudaGraph_t handle, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                             const cudaGraphEdgeData *edges, size_t count) {
  emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || !emu_graph_has(graph, from, count) || !emu_graph_has(graph, to, count)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++) {
    cudaError_t error = add_edge(graph, (emu_node_t *)from[i], (emu_node_t *)to[i], edges ? &edges[i] : &plain);
    if (error) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count) {
  EMU_RETURN(cudaGraphAddDependencies, true, add_edges(graph, from, to, edges, count));
}

/* ---- removing ---- */

static cudaError_t remove_edges(cudaGraph_t handle, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                const cudaGraphEdgeData *edges, size_t count) {
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || !emu_graph_has(graph, from, count) || !emu_graph_has(graph, to, count)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++) {
    emu_node_t *first = (emu_node_t *)from[i], *second = (emu_node_t *)to[i];
    cudaGraphEdgeData edge = data_of(first, second);
    if (!emu_nodes_have(&second->dependencies, first) || !is(edges ? &edges[i] : &plain, &edge))
      return cudaErrorInvalidValue;
    unlink(first, second);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edges, size_t count) {
  EMU_RETURN(cudaGraphRemoveDependencies, true, remove_edges(graph, from, to, edges, count));
}

/* ---- reading ---- */

/* Gives an edge's data. Status: whoever wants none must not miss any. */
static cudaError_t give_data(const emu_node_t *from, const emu_node_t *to, cudaGraphEdgeData *out) {
  cudaGraphEdgeData edge = data_of(from, to);
  if (out) *out = edge;
  return out || is(&edge, &plain) ? cudaSuccess : cudaErrorLossyQuery;
}

static cudaError_t get_edges(cudaGraph_t handle, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                             size_t *out_count) {
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || !out_count || !from != !to) return cudaErrorInvalidValue;
  size_t count = 0;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const emu_node_t *node = graph->nodes.items[i];
    for (size_t j = 0; j < node->dependencies.count; j++, count++) {
      if (!from || count >= *out_count || error) continue;
      from[count] = (cudaGraphNode_t)node->dependencies.items[j];
      to[count] = (cudaGraphNode_t)node;
      error = give_data(node->dependencies.items[j], node, edges ? edges + count : NULL);
    }
  }
  for (size_t i = count; from && i < *out_count; i++) from[i] = to[i] = NULL;
  if (!from || *out_count > count) *out_count = count;
  return error;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count) {
  EMU_RETURN(cudaGraphGetEdges, true, get_edges(graph, from, to, edges, count));
}

/* The nodes on the other ends of a node's edges. */
static cudaError_t get_others(cudaGraphNode_t handle, bool behind, cudaGraphNode_t *out, cudaGraphEdgeData *edges,
                              size_t *out_count) {
  const emu_node_t *node = emu_node_find(handle);
  if (!node || !out_count || (out && *out_count == 0)) return cudaErrorInvalidValue;
  const emu_nodes_t *others = behind ? &node->dependents : &node->dependencies;
  for (size_t i = 0; out && i < *out_count && i < others->count; i++) {
    const emu_node_t *other = others->items[i];
    cudaError_t error = give_data(behind ? node : other, behind ? other : node, edges ? edges + i : NULL);
    if (error) return error;
  }
  return emu_nodes_give(others, out, out_count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *edges,
                                         size_t *out_count) {
  EMU_RETURN(cudaGraphNodeGetDependencies, true, get_others(node, false, out, edges, out_count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *edges,
                                           size_t *out_count) {
  EMU_RETURN(cudaGraphNodeGetDependentNodes, true, get_others(node, true, out, edges, out_count));
}
