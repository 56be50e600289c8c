/* Where the elements of strided operands lie (args_layout.h). */
#ifndef TP_LAYOUT_H
#define TP_LAYOUT_H

#include "args_layout.h"
#include "kernel.h"

TP_DEVICE unsigned tp_divide(unsigned n, const tp_divisor_t &by) {
  unsigned high = static_cast<unsigned>((static_cast<unsigned long long>(n) * by.multiplier) >> 32);
  return (n + high) >> by.shift;
}

/* The form for indices of more than 31 bits, with true divisions. Kept apart, since it is seldom taken and would be
 * half of the code of every strided kernel; returned by value, so that places stay in registers. */
template <int N>
struct tp_wide_places {
  long long at[N];
};
template <int N>
TP_DEVICE_COLD tp_wide_places<N> tp_layout_places_wide(const tp_layout_t &layout, int operand, long long index) {
  tp_wide_places<N> places = {};
  for (int dim = 0; dim < layout.ndim; ++dim) {
    long long outer = dim + 1 == layout.ndim ? 0 : index / layout.sizes[dim];
    long long at = index - outer * layout.sizes[dim];
    index = outer;
    for (int i = 0; i < N; ++i) places.at[i] += at * layout.strides[operand + i][dim];
  }
  return places;
}

/* places[i]: elements from the first one of operand `operand + i` to the index-th in the layout's order.
 * The outermost dimension needs no division; the branch on narrow is the same for all threads. */
template <int N>
TP_DEVICE void tp_layout_places(const tp_layout_t &layout, int operand, long long index,
                                long long (&places)[N]) {
  if (!layout.narrow) {
    tp_wide_places<N> wide = tp_layout_places_wide<N>(layout, operand, index);
    for (int i = 0; i < N; ++i) places[i] = wide.at[i];
    return;
  }
  for (int i = 0; i < N; ++i) places[i] = 0;
  unsigned rest = static_cast<unsigned>(index);
#ifdef __CUDACC__
#pragma unroll 1 /* unrolled, it would be most of the code of many kernels */
#endif
  for (int dim = 0; dim < layout.ndim; ++dim) {
    unsigned outer = dim + 1 == layout.ndim ? 0 : tp_divide(rest, layout.divisors[dim]);
    long long at = rest - outer * layout.divisors[dim].size;
    rest = outer;
    for (int i = 0; i < N; ++i) places[i] += at * layout.strides[operand + i][dim];
  }
}

TP_DEVICE long long tp_layout_offset(const tp_layout_t &layout, int operand, long long index) {
  long long places[1];
  tp_layout_places(layout, operand, index, places);
  return places[0];
}

#endif
