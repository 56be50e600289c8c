/* How a kernel is defined, once for two compilers.
 *
 * On the GPU TP_KERNEL expands to an extern "C" __global__ function; for the host's C++ compiler to a
 * plain function and an object that registers it. A file of kernels starts with
 *
 *     #define TP_FAMILY "elementwise"
 *     #include "kernel.h"
 *
 * and ends with #undef TP_FAMILY. A kernel has one argument structure, which its body calls p:
 *
 *     TP_KERNEL(tp_k_fill_f32, tp_fill_args_t) {
 *       float *out = tp_at<float>(p.out);
 *       TP_FOR_TILES(first, p.numel, TILE) {
 *         int count = tp_tile_count(first, p.numel, TILE);
 *         TP_FOR(i, count) out[first + i] = p.value;
 *       }
 *     }
 *
 * It must be right for any number of threads and blocks, one of each included, and must not assume
 * which thread TP_FOR gives an element to. What needs barriers is a TP_KERNEL_COOPERATIVE and uses
 * block.h. TP_KERNEL_RESIDENT is such a one whose registers are kept so few that a multiprocessor holds that
 * many blocks. Every kernel is declared by one of the three: graphs rely on how they begin. */
#ifndef TP_KERNEL_H
#define TP_KERNEL_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "args.h"

#ifdef __CUDACC__

/* What a kernel does before it touches memory. In a graph of ours it may be launched while the kernels that it comes
 * behind still run (src/graph/edges.c): it waits until they have ended and their writes can be seen. And a grid of few
 * blocks lets what comes behind it be launched: beside many, blocks that only wait would keep its own from their
 * places. Without such edges both instructions do nothing. A predicate, for a branch here costs some kernels
 * registers. */
static __device__ __forceinline__ void tp_begin_kernel() {
#if __CUDA_ARCH__ >= 900
  unsigned blocks = gridDim.x * gridDim.y * gridDim.z; /* where it wraps, the next one comes too early, and waits */
  asm volatile("{ .reg .pred few; setp.le.u32 few, %0, 128; @few griddepcontrol.launch_dependents; }" ::"r"(blocks));
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#define TP_DEVICE_KERNEL(name, args_t, ...)                                                       \
  static __device__ __forceinline__ void name##_body(const args_t &p);                            \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name(const __grid_constant__ args_t p) { \
    tp_begin_kernel();                                                                            \
    name##_body(p);                                                                               \
  }                                                                                               \
  static __device__ __forceinline__ void name##_body(const args_t &p)

#define TP_KERNEL(name, args_t) TP_DEVICE_KERNEL(name, args_t, TP_BLOCK_THREADS)
#define TP_KERNEL_COOPERATIVE(name, args_t) TP_KERNEL(name, args_t)
#define TP_KERNEL_RESIDENT(name, args_t, blocks) TP_DEVICE_KERNEL(name, args_t, TP_BLOCK_THREADS, blocks)

#else

#include "host_device.h"

#define TP_KERNEL(name, args_t) TP_HOST_KERNEL(name, args_t, 0)
#define TP_KERNEL_COOPERATIVE(name, args_t) TP_HOST_KERNEL(name, args_t, 1)
#define TP_KERNEL_RESIDENT(name, args_t, blocks) TP_KERNEL_COOPERATIVE(name, args_t)

#define TP_HOST_KERNEL(name, args_t, cooperative)                                            \
  static void name(const args_t &p);                                                         \
  static void name##_trampoline(const void *arguments) {                                     \
    name(*static_cast<const args_t *>(arguments));                                           \
  }                                                                                          \
  __attribute__((unused)) static const int name##_registered =                               \
      (tp_host_register_kernel(TP_FAMILY, #name, sizeof(args_t), cooperative, name##_trampoline), 0); \
  static void name(const args_t &p)

#endif

/* A function that kernels call. */
#define TP_DEVICE static __device__ __forceinline__
/* One that is called seldom: kept out of its callers, so that these stay small. */
#define TP_DEVICE_COLD static __device__ __attribute__((noinline))

/* Infinity. Written as a quotient it would be divided anew by every thread. */
#ifdef __CUDACC__
TP_DEVICE double tp_infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
#else
TP_DEVICE double tp_infinity() { return static_cast<double>(INFINITY); }
#endif

TP_DEVICE int tp_least(int a, int b) { return a < b ? a : b; }
TP_DEVICE long long tp_least(long long a, long long b) { return a < b ? a : b; }

/* ---- addresses ---- */

/* A device address as a pointer that this compiler's code may follow. */
template <typename T>
TP_DEVICE T *tp_at(void *address) {
#ifdef __CUDACC__
  return static_cast<T *>(address);
#else
  return static_cast<T *>(const_cast<void *>(tp_host_address(address)));
#endif
}

template <typename T>
TP_DEVICE const T *tp_at(const void *address) {
  return tp_at<const T>(const_cast<void *>(address));
}

/* ---- threads and tiles ---- */

TP_DEVICE int tp_thread() { return static_cast<int>(threadIdx.x); }
TP_DEVICE int tp_threads() { return static_cast<int>(blockDim.x); }

/* The blocks of a grid (x) share the tiles: first is the number of a tile's first element. The size of a
 * tile is a constant of the kernel, so that results never depend on the launch. */
#define TP_FOR_TILES(first, numel, size)                                                        \
  for (long long first = static_cast<long long>(blockIdx.x) * (size); first < (numel);          \
       first += static_cast<long long>(gridDim.x) * (size))

/* Elements of the tile that starts at first. */
TP_DEVICE int tp_tile_count(long long first, long long numel, int size) {
  return numel - first < size ? static_cast<int>(numel - first) : size;
}

/* The threads of a block share 0 .. count-1. Neighbouring threads take neighbouring elements on the
 * GPU, for coalesced accesses; on the host each takes a run, so that the loop has step 1 and vectorises. */
#ifdef __CUDACC__
#define TP_FOR(i, count) for (int i = tp_thread(); i < (count); i += tp_threads())
#else
#define TP_FOR(i, count)                                                                          \
  for (int i = tp_host_share(count, tp_thread()), i##_end = tp_host_share(count, tp_thread() + 1); \
       i < i##_end; ++i)
TP_DEVICE int tp_host_share(int count, int thread) {
  return static_cast<int>(static_cast<long long>(count) * thread / tp_threads());
}
#endif

#endif
