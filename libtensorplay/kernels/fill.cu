/* Elements that come from numbers: one value everywhere, or an arithmetic sequence. */
#define TP_FAMILY "fill"
#include "args_copy.h"
#include "flat.h"

template <typename T>
struct tp_flat_constant {
  T value;

  template <int N>
  struct elements {};

  template <int N>
  __device__ __forceinline__ void read(const long long (&)[TP_PLACES_OPERANDS], int, elements<N> &) const {}

  template <int N>
  __device__ __forceinline__ void compute(int, const elements<N> &, T (&out)[N]) const {
    for (int i = 0; i < N; ++i) out[i] = value;
  }
};

#define TP_DTYPE(name, suffix, code, ctype, itemsize, category)                    \
  TP_KERNEL(tp_k_fill_##suffix, tp_flat_args_t) {                                  \
    constexpr bool whole = !tp_is_floating<tp_wide_t<ctype>> && !tp_is_complex<ctype>;    \
    ctype value = !whole ? tp_cast<ctype>(p.scalar.as_float) : tp_cast<ctype>(p.scalar.as_int); \
    tp_flat_write<ctype, ctype>(p, tp_flat_constant<ctype>{value});                \
  }
#include "dtypes.def"
#undef TP_DTYPE

TP_KERNEL(tp_k_arange_float, tp_arange_args_t) {
  void *out = tp_at<void>(p.out);
  TP_FOR_TILES(first, p.numel, TP_COPY_TILE) {
    int count = tp_tile_count(first, p.numel, TP_COPY_TILE);
    TP_FOR(i, count) {
      double value = p.float_start + static_cast<double>(first + i) * p.float_step;
      tp_store(out, p.out_dtype, first + i, value);
    }
  }
}

/* Unsigned, because a sequence that leaves the range wraps. */
TP_KERNEL(tp_k_arange_int, tp_arange_args_t) {
  using Bits = unsigned long long;
  Bits start = static_cast<Bits>(p.int_start), step = static_cast<Bits>(p.int_step);
  void *out = tp_at<void>(p.out);
  TP_FOR_TILES(first, p.numel, TP_COPY_TILE) {
    int count = tp_tile_count(first, p.numel, TP_COPY_TILE);
    TP_FOR(i, count) {
      Bits value = start + static_cast<Bits>(first + i) * step;
      tp_store(out, p.out_dtype, first + i, static_cast<long long>(value));
    }
  }
}

#undef TP_FAMILY
