/* What the CUDA runtime before 12.8 lacks: loading an image and launching its kernels, in graphs too. Here the driver
 * does it. Linked with the real runtime only. The driver's results have the numbers of the runtime's errors. */
#include "cuda_api.h"

#if CUDART_VERSION < 12080

#include <cuda.h>
#include <stdatomic.h>

/* A function of the driver, found once. The race of two threads ends with the same address twice. */
static cudaError_t find(const char *name, _Atomic(void *) *place, void **out) {
  *out = atomic_load_explicit(place, memory_order_acquire);
  if (*out) return cudaSuccess;
  enum cudaDriverEntryPointQueryResult found;
  cudaError_t error = cudaGetDriverEntryPoint(name, out, cudaEnableDefault, &found);
  if (error) return error;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorSymbolNotFound;
  atomic_store_explicit(place, *out, memory_order_release);
  return cudaSuccess;
}

#define FIND(name)                                              \
  static _Atomic(void *) place;                                 \
  void *function;                                               \
  cudaError_t missing = find(#name, &place, &function);         \
  if (missing) return missing;                                  \
  __typeof__(&name) call = (__typeof__(&name))function

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit_options,
                                void **jit_values, unsigned int n_jit, enum cudaLibraryOption *options,
                                void **values, unsigned int n) {
  if (jit_options || jit_values || n_jit || options || values || n) return cudaErrorInvalidValue;
  FIND(cuLibraryLoadData);
  return (cudaError_t)call((CUlibrary *)library, code, NULL, NULL, 0, NULL, NULL, 0);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
  FIND(cuLibraryGetKernel);
  return (cudaError_t)call((CUkernel *)kernel, (CUlibrary)library, name);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  FIND(cuLibraryUnload);
  return (cudaError_t)call((CUlibrary)library);
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
  FIND(cuLaunchKernel);
  return (cudaError_t)call((CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                           (unsigned int)shared, (CUstream)stream, arguments, NULL);
}

static CUDA_KERNEL_NODE_PARAMS params_of(const struct cudaKernelNodeParams *params) {
  return (CUDA_KERNEL_NODE_PARAMS){
      .kern = (CUkernel)params->func,
      .gridDimX = params->gridDim.x, .gridDimY = params->gridDim.y, .gridDimZ = params->gridDim.z,
      .blockDimX = params->blockDim.x, .blockDimY = params->blockDim.y, .blockDimZ = params->blockDim.z,
      .sharedMemBytes = params->sharedMemBytes, .kernelParams = params->kernelParams,
  };
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t n, const struct cudaKernelNodeParams *params) {
  FIND(cuGraphAddKernelNode);
  const CUDA_KERNEL_NODE_PARAMS driver = params_of(params);
  return (cudaError_t)call(node, graph, dependencies, n, &driver);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params) {
  FIND(cuGraphExecKernelNodeSetParams);
  const CUDA_KERNEL_NODE_PARAMS driver = params_of(params);
  return (cudaError_t)call(exec, node, &driver);
}

#else

/* ISO C wants a declaration in every file. */
typedef int tp_nothing_is_missing_t;

#endif
