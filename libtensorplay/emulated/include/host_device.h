/* What the kernels of ../../kernels need when the host's C++ compiler builds them: CUDA's keywords, index
 * variables and mathematical functions, and the way from a device address to memory.
 *
 * The runtime runs one kernel at a time, under its lock, on the thread whose call made it run. So shared
 * memory and the index variables are plain static objects, which costs nothing inside a loop. */
#ifndef TP_HOST_DEVICE_H
#define TP_HOST_DEVICE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <vector_types.h> /* uint3, and CUDA's keywords, which are empty for a host compiler */

#ifdef __cplusplus
extern "C" {
#endif

/* Of the thread that runs now, under CUDA's names; the launcher sets them. They are variables and not
 * macros because CUDA's headers use two of the names for parameters. */
extern uint3 threadIdx;
extern uint3 blockIdx;
extern uint3 blockDim;
extern uint3 gridDim;

/* Runs one thread of a kernel with the kernel's argument structure. */
typedef void (*tp_host_trampoline_t)(const void *arguments);

/* Makes a kernel known by family and name; called while the library is loaded. The texts are static.
 * `cooperative` says that the kernel uses tp_host_barrier. */
void tp_host_register_kernel(const char *family, const char *name, size_t arguments_nbytes, bool cooperative,
                             tp_host_trampoline_t trampoline);

/* Where the bytes of a device address lie; pinned host addresses and NULL are returned as they are. An
 * address that the running kernel's device cannot reach ends the kernel with cudaErrorIllegalAddress:
 * the call then does not return. */
void *tp_host_address(const void *address);

/* CUDA's own: the value that a conditional node of a graph tests. cudaGraphConditionalHandle is this type. */
void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

/* All threads of the block meet here. Does nothing while blocks have one thread. */
void tp_host_barrier(void);

#ifdef __cplusplus
}

#undef __shared__
#define __shared__ static

#undef __launch_bounds__
#define __launch_bounds__(...)

/* Not the C library's: its newest version would need glibc 2.35. */
static inline double tp_host_hypot(double a, double b) {
  double x = fabs(a), y = fabs(b), large = x > y ? x : y, small = x > y ? y : x;
  if (isinf(x) || isinf(y)) return static_cast<double>(INFINITY);
  if (large == 0 || x != x || y != y) return x + y;
  double ratio = small / large;
  return large * sqrt(1 + ratio * ratio);
}
static inline float tp_host_hypotf(float a, float b) {
  return static_cast<float>(tp_host_hypot(static_cast<double>(a), static_cast<double>(b)));
}
#define hypot tp_host_hypot
#define hypotf tp_host_hypotf

/* Atomic also against the host, which may read a word of pinned memory in another thread. */
template <typename T>
static inline T atomicCAS(T *address, T expected, T desired) {
  __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

template <typename T>
static inline T atomicAdd(T *address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}

#endif
#endif
