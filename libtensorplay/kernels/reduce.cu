/* Reductions over any dimensions (docs/design/reductions.md): two forms for each element type.
 *
 *   rows     a block folds the reduced elements of one result; best where they lie next to each other.
 *   columns  a thread folds those of one result; best where they are few, or where neighbouring results
 *            have neighbouring elements.
 *
 * Where results are few, the reduced elements are split among several blocks, which write totals; a
 * second launch of the same kernels, with the totals as input, folds these. The order is fixed by the
 * shapes alone. */
#define TP_FAMILY "reduce"
#include "block.h"
#include "element.h"
#include "args_reduce.h"
#include "layout.h"

namespace tp_reduce {

/* Elements that are read at once: 16 bytes, at an address of that alignment. */
template <typename T>
struct alignas(16) pack_of {
  static const int size = 16 / static_cast<int>(sizeof(T));
  T values[16 / sizeof(T)];
};

/* Elements that one lane folds in its own type before they go into a total: short, so that rounding
 * errors of float32 do not grow with the size. */
enum { RUN = 16 };

/* Results that one thread of the columns form folds side by side: on the host a vectorised loop. */
#ifdef __CUDACC__
enum { LANES = 1 };
#else
enum { LANES = 64 };
#endif

/* What a lane holds of elements of type T: half types are computed in float32. */
template <typename T>
struct lane_of {
  typedef T type;
};
template <>
struct lane_of<bool> {
  typedef int type;
};
template <>
struct lane_of<__half> {
  typedef float type;
};
template <>
struct lane_of<__nv_bfloat16> {
  typedef float type;
};

/* Sums of int32 are made in int64 from the start: they would overflow in a lane. */
template <typename T>
struct sum_lane_of : lane_of<T> {};
template <>
struct sum_lane_of<int> {
  typedef long long type;
};

/* What runs of lanes are folded into. */
template <typename N>
struct total_of {
  typedef long long type;
};
template <>
struct total_of<float> {
  typedef double type;
};
template <>
struct total_of<double> {
  typedef double type;
};

template <typename N>
struct limits_of;
template <>
struct limits_of<float> {
  TP_DEVICE float highest() { return 1.0f / 0.0f; }
  TP_DEVICE float lowest() { return -highest(); }
};
template <>
struct limits_of<double> {
  TP_DEVICE double highest() { return 1.0 / 0.0; }
  TP_DEVICE double lowest() { return -highest(); }
};
template <>
struct limits_of<int> {
  TP_DEVICE int highest() { return 0x7fffffff; }
  TP_DEVICE int lowest() { return -highest() - 1; }
};
template <>
struct limits_of<long long> {
  TP_DEVICE long long highest() { return 0x7fffffffffffffffll; }
  TP_DEVICE long long lowest() { return -highest() - 1; }
};

/* An operation has the type of its lanes, the number that an element counts as, and a fold with its
 * identity. fold serves lanes and totals. */
template <typename T>
struct sum {
  typedef typename sum_lane_of<T>::type lane;
  TP_DEVICE lane load(T x) { return static_cast<lane>(tp_wide(x)); }
  TP_DEVICE lane identity() { return 0; }
  TP_DEVICE float fold(float a, float b) { return a + b; }
  TP_DEVICE int fold(int a, int b) { return a + b; }
  TP_DEVICE double fold(double a, double b) { return a + b; }
  /* Overflow wraps, as torch's sums do. */
  TP_DEVICE long long fold(long long a, long long b) {
    return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
  }
};

/* A NaN wins against every number. */
template <typename T>
struct amax {
  typedef typename lane_of<T>::type lane;
  TP_DEVICE lane load(T x) { return static_cast<lane>(tp_wide(x)); }
  TP_DEVICE lane identity() { return limits_of<lane>::lowest(); }
  template <typename V>
  TP_DEVICE V fold(V a, V b) {
    return b > a || b != b ? b : a;
  }
};

template <typename T>
struct amin {
  typedef typename lane_of<T>::type lane;
  TP_DEVICE lane load(T x) { return static_cast<lane>(tp_wide(x)); }
  TP_DEVICE lane identity() { return limits_of<lane>::highest(); }
  template <typename V>
  TP_DEVICE V fold(V a, V b) {
    return b < a || b != b ? b : a;
  }
};

template <typename Op>
using total = typename total_of<typename Op::lane>::type;

template <typename Op>
TP_DEVICE total<Op> widen(typename Op::lane value) {
  return static_cast<total<Op>>(value);
}

/* What runs once for a result, or for an operand of many dimensions only, is not copied into every form:
 * that would make most of the family's images. */
#ifdef __CUDACC__
#define TP_SHARED_CODE static __device__ __noinline__
#define TP_ROLLED _Pragma("unroll 1")
#define TP_IN_PAIRS _Pragma("unroll 2")
#else
#define TP_ROLLED
#define TP_IN_PAIRS
#define TP_SHARED_CODE static __attribute__((noinline))
#endif

TP_SHARED_CODE long long place_of(const tp_layout_t &layout, int operand, long long index) {
  return tp_layout_offset(layout, operand, index);
}

TP_DEVICE long long reduced_place(const tp_layout_t &layout, long long index) {
  return layout.ndim == 1 ? index * layout.strides[0][0] : place_of(layout, 0, index);
}

template <typename V>
TP_SHARED_CODE void store(const tp_reduce_args_t &p, long long index, V value) {
  if (p.out_dtype == TP_REDUCE_TOTALS)
    tp_at<V>(p.out)[index] = value;
  else if (tp_same<V, double>::value)
    tp_store(tp_at<void>(p.out), p.out_dtype, index, value / p.divisor);
  else
    tp_store(tp_at<void>(p.out), p.out_dtype, index, value);
}

/* ---- rows ---- */

/* The thread's share of n elements that lie next to each other. */
template <typename Op, typename T>
TP_DEVICE total<Op> fold_adjacent(const T *x, long long n) {
  typedef pack_of<T> pack;
  long long head = static_cast<long long>((16 - reinterpret_cast<size_t>(x) % 16) % 16 / sizeof(T));
  if (head > n) head = n;
  const pack *packs = reinterpret_cast<const pack *>(x + head);
  long long count = (n - head) / pack::size, tail = head + count * pack::size;
  total<Op> result = widen<Op>(Op::identity());
  TP_ROLLED
  TP_FOR(i, static_cast<int>(head)) result = Op::fold(result, widen<Op>(Op::load(x[i])));
  TP_ROLLED
  TP_FOR(i, static_cast<int>(n - tail)) result = Op::fold(result, widen<Op>(Op::load(x[tail + i])));
  int tile = RUN * tp_threads();
  for (long long first = 0; first < count; first += tile) {
    int part = tp_tile_count(first, count, tile);
    typename Op::lane lanes[pack::size];
    for (int j = 0; j < pack::size; ++j) lanes[j] = Op::identity();
    TP_IN_PAIRS
    TP_FOR(i, part) {
      pack values = packs[first + i];
      for (int j = 0; j < pack::size; ++j) lanes[j] = Op::fold(lanes[j], Op::load(values.values[j]));
    }
    for (int j = 0; j < pack::size; ++j) result = Op::fold(result, widen<Op>(lanes[j]));
  }
  return result;
}

/* The thread's share of elements begin .. end-1 of any layout. */
template <typename Op, typename T>
TP_DEVICE total<Op> fold_scattered(const T *x, const tp_layout_t &layout, long long begin, long long end) {
  total<Op> result = widen<Op>(Op::identity());
  int tile = RUN * tp_threads();
  for (long long first = begin; first < end; first += tile) {
    int part = tp_tile_count(first, end, tile);
    typename Op::lane lane = Op::identity();
    TP_ROLLED
    TP_FOR(i, part) lane = Op::fold(lane, Op::load(x[reduced_place(layout, first + i)]));
    result = Op::fold(result, widen<Op>(lane));
  }
  return result;
}

template <typename Op, typename T>
TP_DEVICE void rows(const tp_reduce_args_t &p) {
  TP_SHARED(total<Op>, scratch, TP_SCRATCH);
  bool adjacent = p.reduced.ndim == 0 || (p.reduced.ndim == 1 && p.reduced.strides[0][0] == 1);
  TP_FOR_TILES(item, p.kept.numel * p.splits, 1) {
    long long split = item / p.kept.numel;
    const T *x = tp_at<T>(p.input) + place_of(p.kept, 1, item - split * p.kept.numel);
    long long begin = split * p.split;
    long long end = p.reduced.numel - begin < p.split ? p.reduced.numel : begin + p.split;
    total<Op> result = adjacent ? fold_adjacent<Op, T>(x + begin, end - begin)
                                : fold_scattered<Op, T>(x, p.reduced, begin, end);
    result = tp_block_reduce(result, [](total<Op> a, total<Op> b) { return Op::fold(a, b); }, scratch);
    if (tp_thread() == 0) store(p, item, result);
  }
}

/* ---- columns ---- */

/* `width` results from the k-th on, of the reduced elements begin .. end-1. */
template <typename Op, typename T>
TP_DEVICE void fold_columns(const tp_reduce_args_t &p, long long split, long long k, int width) {
  const T *at[LANES];
  total<Op> results[LANES];
  bool adjacent = width == LANES;
  for (int j = 0; j < width; ++j) {
    at[j] = tp_at<T>(p.input) + place_of(p.kept, 1, k + j);
    adjacent = adjacent && at[j] == at[0] + j;
    results[j] = widen<Op>(Op::identity());
  }
  long long begin = split * p.split;
  long long end = p.reduced.numel - begin < p.split ? p.reduced.numel : begin + p.split;
  for (long long first = begin; first < end; first += RUN) {
    int part = tp_tile_count(first, end, RUN);
    typename Op::lane lanes[LANES];
    for (int j = 0; j < LANES; ++j) lanes[j] = Op::identity();
    for (int i = 0; i < part; ++i) {
      long long offset = reduced_place(p.reduced, first + i);
      if (adjacent) {
        const T *x = at[0] + offset;
        for (int j = 0; j < LANES; ++j) lanes[j] = Op::fold(lanes[j], Op::load(x[j]));
      } else {
        for (int j = 0; j < width; ++j) lanes[j] = Op::fold(lanes[j], Op::load(at[j][offset]));
      }
    }
    for (int j = 0; j < width; ++j) results[j] = Op::fold(results[j], widen<Op>(lanes[j]));
  }
  for (int j = 0; j < width; ++j) store(p, split * p.kept.numel + k + j, results[j]);
}

template <typename Op, typename T>
TP_DEVICE void columns(const tp_reduce_args_t &p) {
  for (long long split = blockIdx.y; split < p.splits; split += gridDim.y) {
    TP_FOR_TILES(first, p.kept.numel, TP_REDUCE_TILE) {
      int count = tp_tile_count(first, p.kept.numel, TP_REDUCE_TILE);
      TP_FOR(chunk, (count + LANES - 1) / LANES) {
        int done = chunk * LANES;
        fold_columns<Op, T>(p, split, first + done,
                            count - done < LANES ? count - done : static_cast<int>(LANES));
      }
    }
  }
}

}  // namespace tp_reduce

#define TP_REDUCE_FORM(form, T)                                             \
  switch (p.fold) {                                                         \
    case TP_FOLD_SUM: return tp_reduce::form<tp_reduce::sum<T>, T>(p);      \
    case TP_FOLD_HIGHEST: return tp_reduce::form<tp_reduce::amax<T>, T>(p); \
    case TP_FOLD_LOWEST: return tp_reduce::form<tp_reduce::amin<T>, T>(p);  \
  }

#define TP_REDUCE_KERNELS(suffix, T)                                                      \
  TP_KERNEL_COOPERATIVE(tp_k_rows_##suffix, tp_reduce_args_t) { TP_REDUCE_FORM(rows, T) } \
  TP_KERNEL(tp_k_columns_##suffix, tp_reduce_args_t) { TP_REDUCE_FORM(columns, T) }

#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) TP_REDUCE_KERNELS(suffix, ctype)
#include "dtypes.def"
#undef TP_DTYPE
TP_REDUCE_KERNELS(f64, double)
#undef TP_REDUCE_KERNELS
#undef TP_REDUCE_FORM
#undef TP_SHARED_CODE
#undef TP_ROLLED
#undef TP_IN_PAIRS

#undef TP_FAMILY
