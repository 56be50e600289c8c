/* Gathers rows by index: index_select and embedding. A row whose index is out of range becomes zeros and
 * is reported in the device's fault word; nothing outside the input is read. */
#define TP_FAMILY "index"
#include "kernel.h"
#include "args_index.h"
#include "fault.h"

namespace tp_index {

struct alignas(16) unit16 {
  unsigned long long words[2];
};

TP_DEVICE void report(const tp_gather_args_t &p, long long value) {
  tp_fault_t *fault = tp_at<tp_fault_t>(p.fault);
  if (atomicCAS(&fault->code, static_cast<int>(TP_FAULT_NONE), static_cast<int>(TP_FAULT_INDEX)) !=
      TP_FAULT_NONE)
    return;
  fault->operation = p.operation;
  fault->value = value;
  fault->limit = p.limit;
}

template <typename Unit>
TP_DEVICE void gather(const tp_gather_args_t &p) {
  const Unit *input = tp_at<Unit>(p.input);
  Unit *out = tp_at<Unit>(p.out);
  long long total = p.outer * p.count * p.width;
  TP_FOR_TILES(first, total, TP_GATHER_TILE) {
    int count = tp_tile_count(first, total, TP_GATHER_TILE);
    TP_FOR(i, count) {
      long long row, at;
      if (total <= 0xffffffffll) { /* a division of 32 bits is several times cheaper */
        row = static_cast<unsigned>(first + i) / static_cast<unsigned>(p.width);
      } else {
        row = (first + i) / p.width;
      }
      at = first + i - row * p.width;
      long long outer = p.outer == 1 ? 0 : row / p.count, position = row - outer * p.count;
      long long index =
          p.index_is_int64 ? tp_at<long long>(p.index)[position] : tp_at<int>(p.index)[position];
      bool valid = index >= 0 && index < p.limit;
      out[first + i] = valid ? input[(outer * p.limit + index) * p.width + at] : Unit();
      if (!valid) report(p, index);
    }
  }
}

}  // namespace tp_index

TP_KERNEL(tp_k_gather_1, tp_gather_args_t) { tp_index::gather<unsigned char>(p); }
TP_KERNEL(tp_k_gather_2, tp_gather_args_t) { tp_index::gather<unsigned short>(p); }
TP_KERNEL(tp_k_gather_4, tp_gather_args_t) { tp_index::gather<unsigned>(p); }
TP_KERNEL(tp_k_gather_8, tp_gather_args_t) { tp_index::gather<unsigned long long>(p); }
TP_KERNEL(tp_k_gather_16, tp_gather_args_t) { tp_index::gather<tp_index::unit16>(p); }

#undef TP_FAMILY
