/* Running totals along one dimension (docs/design/reductions.md): two forms for each type that totals are held in.
 *
 *   rows     a block treats a row of adjacent elements, tile by tile.
 *   columns  a thread treats the elements of one column, one after the other; also rows of few elements.
 *
 * The order of additions is fixed by the shapes alone. */
#define TP_FAMILY "scan"
#include "block.h"
#include "visit.h"
#include "args_scan.h"

namespace tp_scan {

enum { TILE = TP_SCAN_TILE, UNIT = TP_SCAN_UNIT, UNITS = TILE / UNIT };
/* Loads of a thread that wait together. */
enum { BATCH = 4 };

/* ---- what totals are held in ---- */

template <typename T>
TP_DEVICE auto widest(T) {
  if constexpr (tp_is_complex<T>)
    return tp_complex128();
  else if constexpr (tp_is_floating<decltype(tp_wide(T()))>)
    return 0.0;
  else
    return 0ll;
}

template <typename Wide>
struct elements_of {
  template <typename T>
  struct takes {
    static constexpr bool value = tp_same<decltype(widest(T())), Wide>::value;
  };
};

/* Overflow wraps. */
TP_DEVICE long long fold(int op, long long a, long long b) {
  unsigned long long x = static_cast<unsigned long long>(a), y = static_cast<unsigned long long>(b);
  return static_cast<long long>(op == TP_SCAN_SUM ? x + y : x * y);
}
TP_DEVICE double fold(int op, double a, double b) { return op == TP_SCAN_SUM ? a + b : a * b; }
TP_DEVICE tp_complex128 fold(int op, tp_complex128 a, tp_complex128 b) {
  if (op == TP_SCAN_SUM) return {a.re + b.re, a.im + b.im};
  if (a.re == 1 && a.im == 0) return b; /* the identity; 0 times an infinite part would be NaN */
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <typename Wide>
TP_DEVICE Wide identity(int op) {
  return tp_cast<Wide>(op == TP_SCAN_SUM ? 0 : 1);
}

/* What comes before the elements of a split of a row or column. */
template <typename Wide>
TP_DEVICE Wide before(const tp_scan_args_t &p, long long line, long long split) {
  if (!p.out || split == 0) return identity<Wide>(p.op);
  return tp_at<Wide>(p.totals)[line * p.splits + split - 1];
}

/* ---- rows ---- */

/* Each unit is followed by a gap, so that neighbouring threads, which treat neighbouring units, meet in different
 * banks of the shared memory. */
TP_DEVICE int place_in_tile(int i) { return i + i / UNIT; }

template <typename Wide>
TP_DEVICE void load_tile(const tp_scan_args_t &p, long long first, int count, Wide *tile) {
  tp_visit<elements_of<Wide>::template takes>(p.in_dtype, [&](auto type) {
    typedef typename decltype(type)::element T;
    const T *input = tp_at<T>(p.input) + first;
    for (int i = tp_thread(); i < count; i += BATCH * tp_threads()) {
      T x[BATCH];
      for (int k = 0; k < BATCH; ++k) x[k] = input[tp_least(i + k * tp_threads(), count - 1)];
      for (int k = 0; k < BATCH; ++k) {
        int at = i + k * tp_threads();
        if (at < count) tile[place_in_tile(at)] = tp_cast<Wide>(x[k]);
      }
    }
  });
}

template <typename Wide>
TP_DEVICE void store_tile(const tp_scan_args_t &p, long long first, int count, const Wide *tile) {
  tp_visit<elements_of<Wide>::template takes>(p.out_dtype, [&](auto type) {
    typedef typename decltype(type)::element T;
    T *out = tp_at<T>(p.out) + first;
    TP_FOR(i, count) out[i] = tp_cast<T>(tile[place_in_tile(i)]);
  });
}

/* Running totals of `units` totals, in steps that double, between two buffers of UNITS places. The one they end in. */
template <typename Wide>
TP_DEVICE const Wide *scan_units(int op, int units, Wide *from, Wide *to) {
  for (int step = 1; step < units; step *= 2) {
    TP_FOR(u, units) to[u] = u < step ? from[u] : fold(op, from[u - step], from[u]);
    tp_block_sync();
    Wide *other = from;
    from = to;
    to = other;
  }
  return from;
}

/* The total of `count` adjacent elements, which needs no running ones. scratch: TP_SCRATCH places. */
template <typename Wide>
TP_DEVICE Wide total_of(const tp_scan_args_t &p, long long first, long long count, Wide *scratch) {
  int group = tp_group_size(TP_BLOCK_THREADS);
  Wide total = identity<Wide>(p.op);
  tp_visit<elements_of<Wide>::template takes>(p.in_dtype, [&](auto type) {
    typedef typename decltype(type)::element T;
    const T *input = tp_at<T>(p.input) + first;
    long long i = tp_thread() < group ? tp_thread() : count;
    for (; i + (BATCH - 1) * group < count; i += BATCH * group) {
      T x[BATCH];
      for (int k = 0; k < BATCH; ++k) x[k] = input[i + k * group];
      for (int k = 0; k < BATCH; ++k) total = fold(p.op, total, tp_cast<Wide>(x[k]));
    }
    for (; i < count; i += group) total = fold(p.op, total, tp_cast<Wide>(input[i]));
  });
  return tp_group_reduce(total, group, [&](Wide a, Wide b) { return fold(p.op, a, b); }, scratch);
}

template <typename Wide>
TP_DEVICE void rows(const tp_scan_args_t &p) {
  TP_SHARED(Wide, tile, TILE + UNITS);
  TP_SHARED(Wide, totals, 2 * UNITS);
  TP_FOR_TILES(item, p.outer * p.splits, 1) {
    long long row = item / p.splits, split = item - row * p.splits;
    long long end = tp_least((split + 1) * p.split, p.size);
    if (!p.out) {
      Wide sum = total_of(p, row * p.size + split * p.split, end - split * p.split, totals);
      if (tp_thread() == 0) tp_at<Wide>(p.totals)[row * p.splits + split] = sum;
      continue;
    }
    Wide total = before<Wide>(p, row, split);
    for (long long first = split * p.split; first < end; first += TILE) {
      int count = tp_tile_count(first, end, TILE), units = (count + UNIT - 1) / UNIT;
      load_tile(p, row * p.size + first, count, tile);
      tp_block_sync();
      TP_FOR(u, units) {
        Wide sum = tile[place_in_tile(u * UNIT)];
        for (int i = 1; i < UNIT; ++i)
          if (u * UNIT + i < count) sum = fold(p.op, sum, tile[place_in_tile(u * UNIT) + i]);
        totals[u] = sum;
      }
      tp_block_sync();
      const Wide *scanned = scan_units(p.op, units, totals, totals + UNITS);
      TP_FOR(u, units) {
        Wide sum = u ? fold(p.op, total, scanned[u - 1]) : total;
        for (int i = 0; i < UNIT; ++i) {
          Wide &at = tile[place_in_tile(u * UNIT) + i];
          if (u * UNIT + i < count) at = sum = fold(p.op, sum, at);
        }
      }
      tp_block_sync();
      store_tile(p, row * p.size + first, count, tile);
      total = fold(p.op, total, scanned[units - 1]);
      tp_block_sync();
    }
  }
}

/* ---- columns ---- */

template <typename Wide>
TP_DEVICE void column(const tp_scan_args_t &p, long long line, long long split) {
  long long outer = line / p.inner, start = outer * p.size * p.inner + (line - outer * p.inner);
  long long end = tp_least((split + 1) * p.split, p.size);
  Wide total = before<Wide>(p, line, split), values[BATCH];
  for (long long first = split * p.split; first < end; first += BATCH) {
    int count = tp_tile_count(first, end, BATCH);
    long long place = start + first * p.inner;
    tp_visit<elements_of<Wide>::template takes>(p.in_dtype, [&](auto type) {
      typedef typename decltype(type)::element T;
      const T *input = tp_at<T>(p.input) + place;
      T x[BATCH];
      for (int k = 0; k < BATCH; ++k) x[k] = input[static_cast<long long>(tp_least(k, count - 1)) * p.inner];
      for (int k = 0; k < BATCH; ++k) values[k] = tp_cast<Wide>(x[k]);
    });
    for (int k = 0; k < BATCH; ++k)
      if (k < count) values[k] = total = fold(p.op, total, values[k]);
    if (!p.out) continue;
    tp_visit<elements_of<Wide>::template takes>(p.out_dtype, [&](auto type) {
      typedef typename decltype(type)::element T;
      T *out = tp_at<T>(p.out) + place;
      for (int k = 0; k < BATCH; ++k)
        if (k < count) out[k * p.inner] = tp_cast<T>(values[k]);
    });
  }
  if (!p.out) tp_at<Wide>(p.totals)[line * p.splits + split] = total;
}

template <typename Wide>
TP_DEVICE void columns(const tp_scan_args_t &p) {
  long long lines = p.outer * p.inner;
  TP_FOR_TILES(first, lines * p.splits, TP_SCAN_COLUMNS) {
    int count = tp_tile_count(first, lines * p.splits, TP_SCAN_COLUMNS);
    TP_FOR(i, count) {
      long long split = (first + i) / lines; /* neighbouring threads have neighbouring columns */
      column<Wide>(p, first + i - split * lines, split);
    }
  }
}

}  // namespace tp_scan

#define TP_SCAN_KERNELS(suffix, Wide)                                                               \
  TP_KERNEL_COOPERATIVE(tp_k_scan_rows_##suffix, tp_scan_args_t) { tp_scan::rows<Wide>(p); }        \
  TP_KERNEL(tp_k_scan_columns_##suffix, tp_scan_args_t) { tp_scan::columns<Wide>(p); }
TP_SCAN_KERNELS(i64, long long)
TP_SCAN_KERNELS(f64, double)
TP_SCAN_KERNELS(c128, tp_complex128)
#undef TP_SCAN_KERNELS

#undef TP_FAMILY
