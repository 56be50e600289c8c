/* The one place that includes CUDA's headers. Differences between toolkit versions end here: the rest of
 * the library writes the spelling of CUDA 13. */
#ifndef TP_CUDA_API_H
#define TP_CUDA_API_H

#include <cuda_runtime_api.h>

#endif
