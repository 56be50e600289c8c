/* A graph as a picture in Graphviz's language, in the way of cudaGraphDebugDotPrint: one cluster for each graph. */
#include "emulated.h"

#include <stdio.h>

static const char *type_name(enum cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "KERNEL";
    case cudaGraphNodeTypeMemcpy: return "MEMCPY";
    case cudaGraphNodeTypeMemset: return "MEMSET";
    case cudaGraphNodeTypeHost: return "HOST";
    case cudaGraphNodeTypeGraph: return "GRAPH";
    case cudaGraphNodeTypeWaitEvent: return "EVENT_WAIT";
    case cudaGraphNodeTypeEventRecord: return "EVENT_RECORD";
    case cudaGraphNodeTypeConditional: return "CONDITIONAL";
    default: return "EMPTY";
  }
}

static void print_kernel(FILE *file, emu_piece_t *piece, unsigned int flags) {
  fprintf(file, "\\n%s", emu_kernel_name(piece));
  if (!(flags & (cudaGraphDebugDotFlagsVerbose | cudaGraphDebugDotFlagsKernelNodeParams))) return;
  struct cudaKernelNodeParams params = emu_kernel_params(piece);
  fprintf(file, "\\ngrid %u x %u x %u, block %u x %u x %u, %u bytes shared", params.gridDim.x, params.gridDim.y,
          params.gridDim.z, params.blockDim.x, params.blockDim.y, params.blockDim.z, params.sharedMemBytes);
}

static void print_graph(FILE *file, const emu_graph_t *graph, unsigned int flags, int *number) {
  int own = ++*number;
  fprintf(file, "subgraph cluster_%d {\nlabel=\"graph_%d\" graph[style=\"dashed\"];\n", own, own);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    emu_node_t *node = graph->nodes.items[i];
    fprintf(file, "\"graph_%d_node_%zu\"[shape=\"rectangle\" label=\"%zu\\n%s", own, i, i,
            type_name(node->piece->type));
    if (node->piece->type == cudaGraphNodeTypeKernel) print_kernel(file, node->piece, flags);
    fprintf(file, "\"];\n");
    for (size_t j = 0; j < node->dependencies.count; j++)
      fprintf(file, "\"graph_%d_node_%zu\" -> \"graph_%d_node_%zu\";\n", own, node->dependencies.items[j]->index, own,
              i);
    for (size_t j = 0; j < node->body_count; j++) print_graph(file, node->bodies[j], flags, number);
  }
  fprintf(file, "}\n");
}

static cudaError_t print(cudaGraph_t handle, const char *path, unsigned int flags) {
  const emu_graph_t *graph = emu_graph_find(handle);
  int number = 0;
  if (!graph || !path) return cudaErrorInvalidValue;
  FILE *file = fopen(path, "w");
  if (!file) return cudaErrorOperatingSystem;
  fprintf(file, "digraph dot {\n");
  print_graph(file, graph, flags, &number);
  fprintf(file, "}\n");
  bool failed = ferror(file);
  return fclose(file) || failed ? cudaErrorOperatingSystem : cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags) {
  EMU_RETURN(cudaGraphDebugDotPrint, true, print(graph, path, flags));
}
