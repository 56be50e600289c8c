/* Nodes that a program adds to a graph itself, and the parameters of kernel nodes. */
#include "emulated.h"

/* Owns the piece also when it fails. */
static cudaError_t add(emu_node_t **out, emu_graph_t *graph, emu_piece_t *piece, const emu_nodes_t *dependencies) {
  *out = piece ? emu_graph_add(graph, piece, dependencies) : NULL;
  if (!*out) emu_piece_free(piece);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t add_kernel(emu_node_t **out, emu_graph_t *graph, const emu_nodes_t *dependencies,
                              const struct cudaKernelNodeParams *params) {
  emu_piece_t *piece;
  cudaError_t error = params ? emu_kernel_piece(&piece, params) : cudaErrorInvalidValue;
  return error ? error : add(out, graph, piece, dependencies);
}

static cudaError_t add_child(emu_node_t **out, emu_graph_t *graph, const emu_nodes_t *dependencies,
                             const emu_graph_t *child) {
  if (!child || child == graph) return cudaErrorInvalidValue;
  if (emu_conditional_in(child)) return cudaErrorNotSupported;
  emu_graph_t *copy = emu_graph_copy(child);
  if (!copy) return cudaErrorMemoryAllocation;
  cudaError_t error = add(out, graph, emu_piece_new(cudaGraphNodeTypeGraph, 0), dependencies);
  if (error)
    emu_graph_free(copy);
  else if (!emu_node_add_body(*out, copy))
    error = cudaErrorMemoryAllocation;
  return error;
}

static cudaError_t add_any(emu_node_t **out, emu_graph_t *graph, const emu_nodes_t *dependencies,
                           struct cudaGraphNodeParams *params) {
  if (!params) return cudaErrorInvalidValue;
  switch (params->type) {
    case cudaGraphNodeTypeKernel: {
      struct cudaKernelNodeParams kernel = {
          .func = params->kernel.func, .gridDim = params->kernel.gridDim, .blockDim = params->kernel.blockDim,
          .sharedMemBytes = params->kernel.sharedMemBytes, .kernelParams = params->kernel.kernelParams};
      return add_kernel(out, graph, dependencies, &kernel);
    }
    case cudaGraphNodeTypeEmpty: return add(out, graph, emu_piece_new(cudaGraphNodeTypeEmpty, 0), dependencies);
    case cudaGraphNodeTypeGraph: return add_child(out, graph, dependencies, emu_graph_find(params->graph.graph));
    case cudaGraphNodeTypeConditional: return emu_conditional_add(out, graph, dependencies, &params->conditional);
    default: return cudaErrorNotSupported;
  }
}

/* Checks what all calls that add a node share; fills in the dependencies, which the caller clears. */
static cudaError_t enter(cudaGraphNode_t *out, cudaGraph_t handle, const cudaGraphNode_t *handles, size_t count,
                         emu_graph_t **graph, emu_nodes_t *dependencies) {
  *graph = emu_graph_find(handle);
  if (!out || !*graph || !emu_graph_has(*graph, handles, count)) return cudaErrorInvalidValue;
  return emu_nodes_add(dependencies, (emu_node_t *const *)handles, count) ? cudaSuccess : cudaErrorMemoryAllocation;
}

#define RETURN_NODE(name, call)                                                                    \
  do {                                                                                             \
    emu_graph_t *graph;                                                                            \
    emu_node_t *node = NULL;                                                                       \
    emu_nodes_t dependencies = {0};                                                                \
    cudaError_t error = emu_begin(EMU_##name, true);                                               \
    if (!error) error = enter(out, handle, handles, count, &graph, &dependencies);                 \
    if (!error) error = (call);                                                                    \
    if (!error) *out = (cudaGraphNode_t)node;                                                      \
    emu_nodes_clear(&dependencies);                                                                \
    return emu_end(error);                                                                         \
  } while (0)

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t handle, const cudaGraphNode_t *handles,
                             const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *params) {
  (void)edges; /* every edge is a whole one */
  RETURN_NODE(cudaGraphAddNode, add_any(&node, graph, &dependencies, params));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t handle, const cudaGraphNode_t *handles,
                                   size_t count, const struct cudaKernelNodeParams *params) {
  RETURN_NODE(cudaGraphAddKernelNode, add_kernel(&node, graph, &dependencies, params));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t handle, const cudaGraphNode_t *handles,
                                  size_t count) {
  RETURN_NODE(cudaGraphAddEmptyNode, add(&node, graph, emu_piece_new(cudaGraphNodeTypeEmpty, 0), &dependencies));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t handle, const cudaGraphNode_t *handles,
                                       size_t count, cudaGraph_t child) {
  RETURN_NODE(cudaGraphAddChildGraphNode, add_child(&node, graph, &dependencies, emu_graph_find(child)));
}

static cudaError_t get_params(cudaGraphNode_t handle, struct cudaKernelNodeParams *out) {
  emu_node_t *node = emu_node_find(handle);
  if (!node || !out || node->piece->type != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
  *out = emu_kernel_params(node->piece);
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *out) {
  EMU_RETURN(cudaGraphKernelNodeGetParams, true, get_params(node, out));
}

/* A kernel with its context, or its function: CUDA does not say which of the two it gives. */
static cudaError_t get_driver_params(cudaGraphNode_t handle, CUDA_KERNEL_NODE_PARAMS *out) {
  emu_node_t *node = emu_node_find(handle);
  if (!node || !out || node->piece->type != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
  struct cudaKernelNodeParams params = emu_kernel_params(node->piece);
  *out = (CUDA_KERNEL_NODE_PARAMS){
      .gridDimX = params.gridDim.x, .gridDimY = params.gridDim.y, .gridDimZ = params.gridDim.z,
      .blockDimX = params.blockDim.x, .blockDimY = params.blockDim.y, .blockDimZ = params.blockDim.z,
      .sharedMemBytes = params.sharedMemBytes, .kernelParams = params.kernelParams,
  };
  if (node->index % 2) {
    out->kern = (CUkernel)params.func;
    out->ctx = emu_context_of(node->piece->device);
  } else {
    out->func = emu_kernel_on(params.func, node->piece->device);
  }
  return cudaSuccess;
}

CUresult emu_kernel_node_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
  EMU_RETURN_DRIVER(cuGraphKernelNodeGetParams, get_driver_params(node, out));
}
