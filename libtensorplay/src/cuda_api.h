/* The one place that includes CUDA's headers. Differences between toolkit versions end here: the rest of
 * the library writes the spelling of CUDA 13. */
#ifndef TP_CUDA_API_H
#define TP_CUDA_API_H

#include <cuda.h> /* the driver's types: its functions are found at run time */
#include <cuda_runtime_api.h>

#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphAddNode cudaGraphAddNode_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#endif

#if CUDART_VERSION < 12050
/* Before 12.5 the runtime has no choice of version, and gives that of its own toolkit. */
#define cudaGetDriverEntryPointByVersion(name, out, version, flags, found) \
  cudaGetDriverEntryPoint(name, out, flags, found)
#endif

#if CUDART_VERSION < 12080
/* The runtime has libraries from 12.8 on, and only since then launches and nodes take their kernels. Before,
 * compat/library.c asks the driver, which has both since 12.0. */
#define cudaLaunchKernel tp_compat_launch_kernel
#define cudaGraphAddKernelNode tp_compat_graph_add_kernel_node
#define cudaGraphExecKernelNodeSetParams tp_compat_graph_exec_kernel_node_set_params

typedef struct CUlib_st *cudaLibrary_t;
enum cudaJitOption { cudaJitOptionNone };
enum cudaLibraryOption { cudaLibraryOptionNone };

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit_options,
                                void **jit_values, unsigned int n_jit, enum cudaLibraryOption *options,
                                void **values, unsigned int n);
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t n, const struct cudaKernelNodeParams *params);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params);
#endif

#endif
