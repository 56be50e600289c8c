/* A graph as text in the language DOT, in the form of CUDA's dumps: graphs are clusters side by side, the outermost
 * first and the deepest last, and a node's label names the graphs in it. */
#include "emulated.h"

#include <stdio.h>

static const char *type_name(enum cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeMemcpy: return "MEMCPY";
    case cudaGraphNodeTypeMemset: return "MEMSET";
    case cudaGraphNodeTypeHost: return "HOST";
    case cudaGraphNodeTypeWaitEvent: return "EVENT_WAIT";
    case cudaGraphNodeTypeEventRecord: return "EVENT_RECORD";
    default: return "EMPTY";
  }
}

static void print_extent(FILE *file, dim3 extent) {
  if (extent.y == 1 && extent.z == 1)
    fprintf(file, "%u", extent.x);
  else
    fprintf(file, "\\{%u,%u,%u\\}", extent.x, extent.y, extent.z);
}

static void print_kernel(FILE *file, const emu_node_t *node, unsigned int flags) {
  const char *name = emu_kernel_name(node->piece);
  if (!(flags & (cudaGraphDebugDotFlagsVerbose | cudaGraphDebugDotFlagsKernelNodeParams))) {
    fprintf(file, "[style=\"bold\" shape=\"octagon\" label=\"%zu\n%s\n\"];\n", node->index, name);
    return;
  }
  struct cudaKernelNodeParams params = emu_kernel_params(node->piece);
  fprintf(file, "[style=\"bold\" shape=\"record\" label=\"{KERNEL\n| {ID | %zu | %s\\<\\<\\<", node->index, name);
  print_extent(file, params.gridDim);
  fputc(',', file);
  print_extent(file, params.blockDim);
  fprintf(file, ",%u\\>\\>\\>}\n}\"];\n", params.sharedMemBytes);
}

static void print_conditional(FILE *file, const emu_node_t *node) {
  bool loops = node->condition_type == cudaGraphCondTypeWhile, chooses = node->condition_type == cudaGraphCondTypeIf;
  fprintf(file, "[style=\"bold\" shape=\"record\" label=\"{\nCONDITIONAL\n| {ID | %zu}\n| {Conditional Type| %s}\n",
          node->index, loops ? "WHILE" : chooses ? "IF" : "SWITCH");
  for (size_t i = 0; i < node->body_count; i++) {
    size_t number = node->bodies[i]->number;
    if (loops || (chooses && node->body_count == 1))
      fprintf(file, "| {True|graph_%zu}\n", number);
    else if (chooses)
      fprintf(file, "| {%s| graph_%zu}\n", i ? "False" : "True ", number);
    else
      fprintf(file, "| {%zu | graph_%zu}\n", i, number);
  }
  fprintf(file, "}\n\"];\n");
}

static void print_node(FILE *file, const emu_node_t *node, unsigned int flags) {
  const char *plain = "[style=\"solid\" shape=\"rectangle\" label=\"";
  fprintf(file, "\"graph_%zu_node_%zu\"", node->graph->number, node->index);
  switch (node->piece->type) {
    case cudaGraphNodeTypeKernel: print_kernel(file, node, flags); break;
    case cudaGraphNodeTypeConditional: print_conditional(file, node); break;
    case cudaGraphNodeTypeGraph:
      fprintf(file, "%s%zu\ngraph_%zu\n\"];\n", plain, node->index, node->bodies[0]->number);
      break;
    default: fprintf(file, "%s%zu\n%s\n\"];\n", plain, node->index, type_name(node->piece->type));
  }
  fputc('\n', file);
}

static void print_cluster(FILE *file, const emu_graph_t *graph, unsigned int flags) {
  size_t number = graph->number;
  fprintf(file, "subgraph cluster_%zu {\nlabel=\"graph_%zu\" graph[style=\"dashed\"];\n", number, number);
  for (size_t i = 0; i < graph->nodes.count; i++) print_node(file, graph->nodes.items[i], flags);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const emu_nodes_t *dependencies = &graph->nodes.items[i]->dependencies;
    for (size_t j = 0; j < dependencies->count; j++)
      fprintf(file, "\"graph_%zu_node_%zu\" -> \"graph_%zu_node_%zu\";\n", number, dependencies->items[j]->index,
              number, i);
  }
  fprintf(file, "}\n");
}

/* The graphs that lie so deep in this one; false: there are none. */
static bool print_depth(FILE *file, const emu_graph_t *graph, size_t depth, unsigned int flags) {
  bool found = depth == 0;
  if (found) print_cluster(file, graph, flags);
  for (size_t i = 0; depth && i < graph->nodes.count; i++) {
    const emu_node_t *node = graph->nodes.items[i];
    for (size_t j = 0; j < node->body_count; j++) found |= print_depth(file, node->bodies[j], depth - 1, flags);
  }
  return found;
}

static cudaError_t print(cudaGraph_t handle, const char *path, unsigned int flags) {
  const emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || !path) return cudaErrorInvalidValue;
  FILE *file = fopen(path, "w");
  if (!file) return cudaErrorOperatingSystem;
  fprintf(file, "digraph dot {\n");
  for (size_t depth = 0; print_depth(file, graph, depth, flags); depth++) continue;
  fprintf(file, "}\n");
  bool failed = ferror(file);
  return fclose(file) || failed ? cudaErrorOperatingSystem : cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags) {
  EMU_RETURN(cudaGraphDebugDotPrint, true, print(graph, path, flags));
}
