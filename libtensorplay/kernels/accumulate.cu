/* Sums of what index tensors send to the same place. Integers are added one by one, in any order. Sums of floating and
 * complex numbers depend on their order, so it is fixed: by keys, in chunks of a constant size. */
#define TP_FAMILY "accumulate"
#include "args_accumulate.h"
#include "indexed.h"
#include "op_math.h"
#include "layout.h"

namespace tp_accumulate {

/* ---- integers ---- */

TP_DEVICE void add(unsigned *to, unsigned value) { atomicAdd(to, value); }
TP_DEVICE void add(unsigned long long *to, unsigned long long value) { atomicAdd(to, value); }
TP_DEVICE void add(bool *to, bool value) {
  if (value) *to = true; /* all that write here write this */
}

/* As part of the aligned word around it. */
template <typename Narrow>
TP_DEVICE void add(Narrow *to, Narrow value) {
  size_t address = reinterpret_cast<size_t>(to), inside = address % sizeof(unsigned);
  unsigned *word = reinterpret_cast<unsigned *>(address - inside);
  unsigned shift = static_cast<unsigned>(8 * inside), mask = static_cast<unsigned>(static_cast<Narrow>(-1)) << shift;
  unsigned seen = *word, before;
  do {
    before = seen;
    unsigned sum = (before >> shift) + value;
    seen = atomicCAS(word, before, (before & ~mask) | (sum << shift & mask));
  } while (seen != before);
}

template <typename T>
TP_DEVICE void add_each(const tp_indexed_args_t &p) {
  const T *source = tp_at<T>(p.plain);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[3];
      tp_layout_places(p.layout, 1, first + i, places);
      long long index = tp_load_index(p.index, places[1]);
      if (index >= 0) add(tp_indexed<T>(p, index) + places[0], source[places[2]]);
    }
  }
}

/* ---- floating and complex numbers ---- */

/* What is added to a sum without changing it; 0 would turn -0 into 0. */
template <typename Wide>
TP_DEVICE Wide nothing() {
  if constexpr (tp_is_complex<Wide>)
    return {-0.0f, -0.0f};
  else
    return static_cast<Wide>(-0.0f);
}

template <typename T>
TP_DEVICE void add_sum(const tp_runs_args_t &p, long long key, long long column, decltype(tp_wide(T())) sum) {
  if (key < 0) return;
  T *to = tp_at<T>(p.target) + key + tp_layout_offset(p.row, 1, column);
  *to = tp_cast<T>(tp_add(tp_wide(*to), sum));
}

/* Leaves a key and its sum to the next launch. */
template <typename Wide>
TP_DEVICE void put_aside(const tp_runs_args_t &p, long long at, long long key, long long column, Wide sum) {
  tp_at<Wide>(p.out_sums)[at * p.width + column] = sum;
  if (column == 0) tp_at<long long>(p.out_keys)[at] = key;
}

/* One column of one chunk. */
template <typename T>
TP_DEVICE void add_chunk(const tp_runs_args_t &p, long long chunk, long long column) {
  using Wide = decltype(tp_wide(T()));
  const long long *order = tp_at<long long>(p.order);
  const T *elements = tp_at<T>(p.values);
  const Wide *sums = tp_at<Wide>(p.values);
  long long first = chunk * TP_RUNS_CHUNK, run = 0;
  int count = tp_tile_count(first, p.count, TP_RUNS_CHUNK);
  bool aside = p.out_keys, first_run = true;
  Wide sum = nothing<Wide>();
  for (int j = 0; j < count; ++j) {
    long long row = order ? order[first + j] : first + j;
    long long key = tp_load_integer(p.keys, p.keys_are_int64, row);
    Wide value = order ? tp_wide(elements[row * p.width + column]) : sums[row * p.width + column];
    if (j > 0 && key != run) {
      if (aside && first_run)
        put_aside(p, 2 * chunk, run, column, sum);
      else
        add_sum<T>(p, run, column, sum);
      first_run = false;
      sum = nothing<Wide>();
    }
    run = key;
    sum = tp_add(sum, value);
  }
  if (!aside) return add_sum<T>(p, run, column, sum);
  if (first_run) {
    put_aside(p, 2 * chunk, run, column, sum);
    sum = nothing<Wide>();
  }
  put_aside(p, 2 * chunk + 1, run, column, sum);
}

template <typename T>
TP_DEVICE void add_runs(const tp_runs_args_t &p) {
  long long total = (p.count + TP_RUNS_CHUNK - 1) / TP_RUNS_CHUNK * p.width;
  TP_FOR_TILES(first, total, TP_RUNS_TILE) {
    int count = tp_tile_count(first, total, TP_RUNS_TILE);
    TP_FOR(i, count) {
      long long chunk = (first + i) / p.width;
      add_chunk<T>(p, chunk, first + i - chunk * p.width);
    }
  }
}

}  // namespace tp_accumulate

#define TP_ADD(name, T) \
  TP_KERNEL(tp_k_add_##name, tp_indexed_args_t) { tp_accumulate::add_each<T>(p); }
TP_ADD(bool, bool)
TP_ADD(1, unsigned char)
TP_ADD(2, unsigned short)
TP_ADD(4, unsigned)
TP_ADD(8, unsigned long long)
#undef TP_ADD

#define TP_RUNS(suffix, T) \
  TP_KERNEL(tp_k_runs_##suffix, tp_runs_args_t) { tp_accumulate::add_runs<T>(p); }
TP_RUNS(f16, __half)
TP_RUNS(bf16, __nv_bfloat16)
TP_RUNS(f32, float)
TP_RUNS(f64, double)
TP_RUNS(c64, tp_complex64)
TP_RUNS(c128, tp_complex128)
#undef TP_RUNS

#undef TP_FAMILY
