/* What all argument structures share. Plain C: included by the kernels and by the C files that launch
 * them, so it names neither CUDA nor stdint types (NVRTC has no stdint.h). */
#ifndef TP_ARGS_H
#define TP_ARGS_H

#include "dtype_codes.h"

/* Threads of a block, and the most a kernel is compiled for. */
#define TP_BLOCK_THREADS 256

/* Dimensions that are left after coalescing; TP_MAX_NDIM of tensorplay.h, which kernels do not include. */
#define TP_ARGS_NDIM 16

#endif
