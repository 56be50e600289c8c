/* What the threads of one block do together. For use in TP_KERNEL_COOPERATIVE only; every thread of the
 * block must reach each call. */
#ifndef TP_BLOCK_H
#define TP_BLOCK_H

#include "kernel.h"

/* Memory of the block: TP_SHARED(float, partial, TP_SCRATCH); declares an array of `count` elements. */
#define TP_SHARED(type, name, count) alignas(16) __shared__ type name[count]

/* Elements that tp_block_reduce needs: the most warps of a block on the GPU, threads on the host. */
#define TP_SCRATCH 32

#ifdef __CUDACC__
#define TP_WARP 32
#else
/* Without shuffles each thread is a warp by itself. */
#define TP_WARP 1
#endif

TP_DEVICE void tp_block_sync() {
#ifdef __CUDACC__
  __syncthreads();
#else
  tp_host_barrier();
#endif
}

/* Folds the values of a warp's threads; the result is in its first thread. op(a, b) gets the values of
 * lower threads first. T: any trivially copyable type of a multiple of 4 bytes. */
template <typename T, typename Op>
TP_DEVICE T tp_warp_reduce(T value, Op op) {
#ifdef __CUDACC__
  static_assert(sizeof(T) % sizeof(unsigned) == 0, "shuffles move words");
  int lane = tp_thread() % TP_WARP;
  int live = tp_threads() - (tp_thread() - lane);
  if (live > TP_WARP) live = TP_WARP;
  unsigned mask = live == TP_WARP ? ~0u : (1u << live) - 1;
  for (int offset = TP_WARP / 2; offset > 0; offset /= 2) {
    unsigned words[sizeof(T) / sizeof(unsigned)];
    memcpy(words, &value, sizeof(T));
    for (unsigned &word : words) word = __shfl_down_sync(mask, word, offset);
    T other;
    memcpy(&other, words, sizeof(T));
    if (lane + offset < live) value = op(value, other);
  }
#else
  (void)op;
#endif
  return value;
}

/* Folds one value of each thread of the block and gives the result to all. The order depends on the
 * number of threads only. scratch: TP_SCRATCH elements of shared memory, free again on return. */
template <typename T, typename Op>
TP_DEVICE T tp_block_reduce(T value, Op op, T *scratch) {
  value = tp_warp_reduce(value, op);
  if (tp_thread() % TP_WARP == 0) scratch[tp_thread() / TP_WARP] = value;
  tp_block_sync();
  int warps = (tp_threads() + TP_WARP - 1) / TP_WARP;
  value = scratch[0];
  for (int warp = 1; warp < warps; ++warp) value = op(value, scratch[warp]);
  tp_block_sync();
  return value;
}

#endif
