/* Elements that come from numbers: one value everywhere, or an arithmetic sequence. */
#define TP_FAMILY "fill"
#include "args_copy.h"
#include "element.h"

/* 16 bytes at an address that is a multiple of 16. */
struct alignas(16) tp_fill_vector {
  unsigned long long halves[2];
};

/* By bytes, so that one kernel serves elements of every size and runs that start at any of them. */
TP_KERNEL(tp_k_fill, tp_fill_args_t) {
  unsigned char *head = tp_at<unsigned char>(p.out);
  tp_fill_vector *out = reinterpret_cast<tp_fill_vector *>(head + p.head);
  const tp_fill_vector pattern = {{p.pattern[0], p.pattern[1]}};
  TP_FOR_TILES(first, p.vectors, p.tile) {
    int count = tp_tile_count(first, p.vectors, p.tile);
    TP_FOR(i, count) out[first + i] = pattern;
  }
  if (blockIdx.x > 0) return;
  const unsigned char *bytes = reinterpret_cast<const unsigned char *>(p.pattern);
  TP_FOR(i, p.head) head[i] = bytes[16 - p.head + i];
  unsigned char *tail = reinterpret_cast<unsigned char *>(out + p.vectors);
  TP_FOR(i, p.tail) tail[i] = bytes[i];
}

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
