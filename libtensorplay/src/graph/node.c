/* Kernels in front of what was captured: nodes of the graph, whose arguments are renewed before launches. */
#include <stdlib.h>

#include "graph.h"

#define PARAMS(first, function)                                                                        \
  &(struct cudaKernelNodeParams) {                                                                     \
    .func = (function), .gridDim = {(first)->blocks, 1, 1}, .blockDim = {TP_BLOCK_THREADS, 1, 1},      \
    .kernelParams = (void *[]){(void *)(first)->arguments},                                            \
  }

/* All others come behind the node, as what has nothing before it does. */
static tp_status_t go_before(cudaGraph_t graph, cudaGraphNode_t node, size_t count, cudaGraphNode_t *nodes,
                             const char *operation) {
  cudaGraphNode_t *roots = nodes, *befores = nodes + count;
  TP_TRY_CUDA(cudaGraphGetRootNodes(graph, roots, &count), operation);
  size_t others = 0;
  for (size_t i = 0; i < count; i++) {
    if (roots[i] != node) roots[others++] = roots[i];
  }
  for (size_t i = 0; i < others; i++) befores[i] = node;
  if (others) TP_TRY_CUDA(cudaGraphAddDependencies(graph, befores, roots, NULL, others), operation);
  return TP_OK;
}

tp_status_t tp__node_put_first(cudaGraph_t graph, const tp__first_t *first, cudaGraphNode_t *out,
                               const char *operation) {
  void *function;
  TP_TRY(tp__launch_find(first->kernel, first->device, &function));
  TP_TRY_CUDA(cudaGraphAddKernelNode(out, graph, NULL, 0, PARAMS(first, function)), operation);
  size_t count = 0;
  TP_TRY_CUDA(cudaGraphGetRootNodes(graph, NULL, &count), operation);
  cudaGraphNode_t *nodes = malloc(2 * count * sizeof *nodes);
  if (!nodes) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list %zu nodes", count);
  tp_status_t status = go_before(graph, *out, count, nodes, operation);
  free(nodes);
  return status;
}

tp_status_t tp__node_renew(cudaGraphExec_t exec, cudaGraphNode_t node, const tp__first_t *first,
                           const char *operation) {
  void *function;
  TP_TRY(tp__launch_find(first->kernel, first->device, &function));
  TP_TRY_CUDA(cudaGraphExecKernelNodeSetParams(exec, node, PARAMS(first, function)), operation);
  return TP_OK;
}
