/* Elements at places that index tensors name. What an invalid index names is read as zero and not written; the fault
 * is reported, and nothing outside the tensor is touched (docs/design/indexing.md). */
#define TP_FAMILY "index"
#include "indexed.h"
#include "layout.h"

namespace tp_index_kernels {

struct alignas(16) unit16 {
  unsigned long long words[2];
};

/* Rows of a contiguous tensor: index_select and embedding. */
template <typename Unit>
TP_DEVICE void rows(const tp_rows_args_t &p) {
  const Unit *input = tp_at<Unit>(p.input);
  Unit *out = tp_at<Unit>(p.out);
  long long total = p.outer * p.count * p.width;
  TP_FOR_TILES(first, total, TP_ROWS_TILE) {
    int count = tp_tile_count(first, total, TP_ROWS_TILE);
    TP_FOR(i, count) {
      long long row, at;
      if (total <= 0xffffffffll) { /* a division of 32 bits is several times cheaper */
        row = static_cast<unsigned>(first + i) / static_cast<unsigned>(p.width);
      } else {
        row = (first + i) / p.width;
      }
      at = first + i - row * p.width;
      long long outer = p.outer == 1 ? 0 : row / p.count, position = row - outer * p.count;
      long long index = tp_load_index(p.index, position);
      out[first + i] = index >= 0 ? input[(outer * p.index.limit + index) * p.width + at] : Unit();
    }
  }
}

template <typename Unit>
TP_DEVICE void read(const tp_indexed_args_t &p) {
  Unit *out = tp_at<Unit>(p.plain);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2];
      tp_layout_places(p.layout, 1, first + i, places);
      long long index = tp_load_index(p.index, places[1]);
      out[first + i] = index >= 0 ? tp_indexed<Unit>(p, index)[places[0]] : Unit();
    }
  }
}

template <typename Unit>
TP_DEVICE void write(const tp_indexed_args_t &p) {
  const Unit *source = tp_at<Unit>(p.plain);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[3];
      tp_layout_places(p.layout, 1, first + i, places);
      long long index = tp_load_index(p.index, places[1]);
      if (index >= 0) tp_indexed<Unit>(p, index)[places[0]] = source[places[2]];
    }
  }
}

}  // namespace tp_index_kernels

#define TP_INDEX_KERNELS(bytes, Unit)                                                               \
  TP_KERNEL(tp_k_rows_##bytes, tp_rows_args_t) { tp_index_kernels::rows<Unit>(p); }                 \
  TP_KERNEL(tp_k_read_##bytes, tp_indexed_args_t) { tp_index_kernels::read<Unit>(p); }              \
  TP_KERNEL(tp_k_write_##bytes, tp_indexed_args_t) { tp_index_kernels::write<Unit>(p); }
TP_INDEX_KERNELS(1, unsigned char)
TP_INDEX_KERNELS(2, unsigned short)
TP_INDEX_KERNELS(4, unsigned)
TP_INDEX_KERNELS(8, unsigned long long)
TP_INDEX_KERNELS(16, tp_index_kernels::unit16)
#undef TP_INDEX_KERNELS

/* Several index tensors as one of offsets. */
TP_KERNEL(tp_k_offsets, tp_offsets_args_t) {
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2 + TP_OFFSETS_INDICES];
      tp_layout_places(p.layout, 0, first + i, places);
      long long offset = p.adds ? tp_load_integer(p.out, p.out_is_int64, places[0]) : places[1];
      for (int k = 0; k < p.n; ++k) {
        long long index = tp_load_index(p.indices[k], places[2 + k]);
        offset = index >= 0 && offset >= 0 ? offset + index * p.indices[k].stride : -1;
      }
      if (p.out_is_int64)
        tp_at<long long>(p.out)[places[0]] = offset;
      else
        tp_at<int>(p.out)[places[0]] = static_cast<int>(offset);
    }
  }
}

#undef TP_FAMILY
