/* What the threads of one block do together. For use in TP_KERNEL_COOPERATIVE only; every thread of the
 * block must reach each call. */
#ifndef TP_BLOCK_H
#define TP_BLOCK_H

#include "kernel.h"

/* Memory of the block: TP_SHARED(float, partial, TP_SCRATCH); declares an array of `count` elements. */
#define TP_SHARED(type, name, count) alignas(16) __shared__ type name[count]

/* Elements that tp_group_reduce needs: the most warps of a block on the GPU, threads on the host. */
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

/* ---- warps: TP_WARP neighbouring threads; a block that uses these has whole ones ---- */

/* What one thread of a warp wrote to shared memory, the others may read. */
TP_DEVICE void tp_warp_sync() {
#ifdef __CUDACC__
  __syncwarp();
#endif
}

/* Of the threads of a warp that have the same number: how many come before this one, and whether none comes after. */
struct tp_equals {
  int before;
  bool last;
};

/* number has BITS bits. By one vote for each of them, which is faster than __match_any_sync. */
template <int BITS>
TP_DEVICE tp_equals tp_warp_equals(unsigned number) {
#ifdef __CUDACC__
  unsigned equal = ~0u, lane = threadIdx.x % TP_WARP;
#pragma unroll
  for (int bit = 0; bit < BITS; ++bit) {
    int mine = static_cast<int>(number << (31 - bit)) >> 31; /* the bit 32 times */
    equal &= ~(__ballot_sync(~0u, mine) ^ static_cast<unsigned>(mine));
  }
  return {__popc(equal & ((1u << lane) - 1)), equal >> lane == 1};
#else
  static_cast<void>(number);
  return {0, true};
#endif
}

/* ---- groups: a power of two of neighbouring threads ---- */

/* The largest group of at most `wanted` threads, a power of two. The block has tp_threads() / size whole groups;
 * threads beyond these only keep the barriers. */
TP_DEVICE int tp_group_size(int wanted) {
  int size = 1;
  while (2 * size <= wanted && 2 * size <= tp_threads()) size *= 2;
  return size;
}

/* Folds one value of each thread of a group and gives the result to all of them. The order depends on size only; op
 * must not mind the order of its two arguments: then all threads get the same bits. T: any trivially copyable type
 * of a multiple of 4 bytes. scratch: TP_SCRATCH elements of shared memory, free again on return. */
template <typename T, typename Op>
TP_DEVICE T tp_group_reduce(T value, int size, Op op, T *scratch) {
#ifdef __CUDACC__
  static_assert(sizeof(T) % sizeof(unsigned) == 0, "shuffles move words");
  int live = tp_threads() - tp_thread() / TP_WARP * TP_WARP;
  unsigned mask = live >= TP_WARP ? ~0u : (1u << live) - 1;
  for (int offset = 1; offset < TP_WARP && offset < size; offset *= 2) {
    unsigned words[sizeof(T) / sizeof(unsigned)];
    memcpy(words, &value, sizeof(T));
    for (unsigned &word : words) word = __shfl_xor_sync(mask, word, offset);
    T other;
    memcpy(&other, words, sizeof(T));
    value = op(value, other);
  }
#endif
  if (size <= TP_WARP) return value;
  int warps = size / TP_WARP, warp = tp_thread() / TP_WARP;
  if (tp_thread() % TP_WARP == 0) scratch[warp] = value;
  tp_block_sync();
  const T *group = scratch + warp / warps * warps;
  value = group[0];
#ifdef __CUDACC__
#pragma unroll 2
#endif
  for (int i = 1; i < warps; ++i) value = op(value, group[i]);
  tp_block_sync();
  return value;
}

#endif
