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
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
#endif

#if CUDART_VERSION < 12050
/* Before 12.5 the runtime has no choice of version, and gives that of its own toolkit. */
#define cudaGetDriverEntryPointByVersion(name, out, version, flags, found) \
  cudaGetDriverEntryPoint(name, out, flags, found)
#endif

#if CUDART_VERSION < 12080
/* Headers before 12.8 do not declare what loads images. The runtime that is linked has it: that of 12.9, since older
 * ones are not published as static libraries. It launches such kernels through the plain calls, in graphs too. */
typedef struct CUlib_st *cudaLibrary_t;
enum cudaJitOption { cudaJitOptionNone };
enum cudaLibraryOption { cudaLibraryOptionNone };

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit_options,
                                void **jit_values, unsigned int n_jit, enum cudaLibraryOption *options,
                                void **values, unsigned int n);
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);
#endif

/* IF nodes may have a second body, and there are SWITCH nodes. */
#define TP_CUDA_SECOND_BODIES (CUDART_VERSION >= 12080)

#endif
