/* Copies that a memcpy cannot do: between strides, and between dtypes. */
#define TP_FAMILY "copy"
#include "args_copy.h"
#include "element.h"
#include "layout.h"

/* ---- runs of elements, one kernel for each source dtype ---- */

template <typename From, typename To>
TP_DEVICE void tp_cast_run(const tp_cast_args_t &p) {
  const From *source = tp_at<From>(p.source);
  To *out = tp_at<To>(p.out);
  TP_FOR_TILES(first, p.numel, TP_COPY_TILE) {
    int count = tp_tile_count(first, p.numel, TP_COPY_TILE);
    TP_FOR(i, count) out[first + i] = tp_cast<To>(source[first + i]);
  }
}

template <typename From>
TP_DEVICE void tp_cast_run_to(const tp_cast_args_t &p) {
  switch (p.out_dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  case code:                                                    \
    tp_cast_run<From, ctype>(p);                                \
    break;
#include "dtypes.def"
#undef TP_DTYPE
  }
}

#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  TP_KERNEL(tp_k_cast_##suffix, tp_cast_args_t) { tp_cast_run_to<ctype>(p); }
#include "dtypes.def"
#undef TP_DTYPE

/* ---- any strides: elements as they are, by size, or cast through the dtype that holds them all ---- */

template <typename T>
TP_DEVICE void tp_move_strided(const tp_copy_args_t &p) {
  const T *source = tp_at<T>(p.source);
  T *out = tp_at<T>(p.out);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2];
      tp_layout_places(p.layout, 0, first + i, places);
      out[places[0]] = source[places[1]];
    }
  }
}

template <typename Wide>
TP_DEVICE void tp_cast_strided(const tp_copy_args_t &p) {
  const void *source = tp_at<void>(p.source);
  void *out = tp_at<void>(p.out);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2];
      tp_layout_places(p.layout, 0, first + i, places);
      tp_store(out, p.out_dtype, places[0], tp_load<Wide>(source, p.source_dtype, places[1]));
    }
  }
}

TP_KERNEL(tp_k_move_1, tp_copy_args_t) { tp_move_strided<unsigned char>(p); }
TP_KERNEL(tp_k_move_2, tp_copy_args_t) { tp_move_strided<unsigned short>(p); }
TP_KERNEL(tp_k_move_4, tp_copy_args_t) { tp_move_strided<unsigned>(p); }
TP_KERNEL(tp_k_move_8, tp_copy_args_t) { tp_move_strided<unsigned long long>(p); }
TP_KERNEL(tp_k_cast_strided_float, tp_copy_args_t) { tp_cast_strided<float>(p); }
TP_KERNEL(tp_k_cast_strided_int, tp_copy_args_t) { tp_cast_strided<long long>(p); }

#undef TP_FAMILY
