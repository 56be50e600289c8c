/* Reductions over any dimensions (docs/design/reductions.md): two forms for each element type.
 *
 *   rows     a group of threads folds the reduced elements of one result; best where they lie next to each
 *            other.
 *   columns  a thread folds those of one result, or of adjacent ones; best where they are few, or where
 *            neighbouring results have neighbouring elements.
 *
 * Where results are few, the reduced elements are split among several blocks, which write totals; a
 * second launch of the same kernels, with the totals as input, folds these. The order is fixed by the
 * shapes alone. */
#define TP_FAMILY "reduce"
#include "block.h"
#include "element.h"
#include "args_reduce.h"
#include "flat.h"

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

/* The most results that a thread of the columns form folds side by side: a vector of elements, or as many as loops
 * that the host's compiler vectorises should have. */
#ifdef __CUDACC__
template <typename T>
constexpr bool is_floating = tp_same<tp_wide_t<T>, float>::value || tp_same<T, double>::value;
template <typename T>
constexpr int lanes_of_columns = is_floating<T> ? pack_of<T>::size : 1;
#else
enum { LANES = 64 };
template <typename T>
constexpr int lanes_of_columns = LANES;
#endif

/* Loads of a thread that wait together. */
enum { BATCH = 4 };

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
  TP_DEVICE float highest() { return static_cast<float>(tp_infinity()); }
  TP_DEVICE float lowest() { return -highest(); }
};
template <>
struct limits_of<double> {
  TP_DEVICE double highest() { return tp_infinity(); }
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

/* Folds of lanes and of totals. */
struct sum_fold {
  TP_DEVICE float fold(float a, float b) { return a + b; }
  TP_DEVICE int fold(int a, int b) { return a + b; }
  TP_DEVICE double fold(double a, double b) { return a + b; }
  /* Overflow wraps, as torch's sums do. */
  TP_DEVICE long long fold(long long a, long long b) {
    return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
  }
};

struct product_fold {
  TP_DEVICE double fold(double a, double b) { return a * b; }
  TP_DEVICE long long fold(long long a, long long b) {
    return static_cast<long long>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
  }
};

/* A NaN wins against every number. */
struct highest_fold {
  template <typename V>
  TP_DEVICE V fold(V a, V b) {
    return b > a || b != b ? b : a;
  }
};

struct lowest_fold {
  template <typename V>
  TP_DEVICE V fold(V a, V b) {
    return b < a || b != b ? b : a;
  }
};

/* An operation is a fold with the type of its lanes, the number that an element counts as, and the identity. */
template <typename T>
struct sum : sum_fold {
  typedef sum_fold fold_type;
  typedef typename sum_lane_of<T>::type lane;
  TP_DEVICE lane load(T x) { return static_cast<lane>(tp_wide(x)); }
  TP_DEVICE lane identity() { return 0; }
};

template <typename T>
struct product : product_fold {
  typedef product_fold fold_type;
  typedef T lane;
  TP_DEVICE lane load(T x) { return x; }
  TP_DEVICE lane identity() { return 1; }
};

template <typename T>
struct amax : highest_fold {
  typedef highest_fold fold_type;
  typedef typename lane_of<T>::type lane;
  TP_DEVICE lane load(T x) { return static_cast<lane>(tp_wide(x)); }
  TP_DEVICE lane identity() { return limits_of<lane>::lowest(); }
};

template <typename T>
struct amin : lowest_fold {
  typedef lowest_fold fold_type;
  typedef typename lane_of<T>::type lane;
  TP_DEVICE lane load(T x) { return static_cast<lane>(tp_wide(x)); }
  TP_DEVICE lane identity() { return limits_of<lane>::highest(); }
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
#else
#define TP_ROLLED
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

/* The total of a group. Element types share it. */
template <typename Fold, typename V>
TP_SHARED_CODE V fold_group(V value, int group, V *scratch) {
  return tp_group_reduce(value, group, [](V a, V b) { return Fold::fold(a, b); }, scratch);
}

/* ---- rows ---- */

/* The share of a thread, `lane` of a group, in n elements that lie next to each other. */
template <typename Op, typename T>
TP_DEVICE total<Op> fold_adjacent(const T *x, long long n, int lane, int group) {
  typedef pack_of<T> pack;
  long long head = static_cast<long long>((16 - reinterpret_cast<size_t>(x) % 16) % 16 / sizeof(T));
  if (head > n) head = n;
  const pack *packs = reinterpret_cast<const pack *>(x + head);
  long long count = (n - head) / pack::size, tail = head + count * pack::size;
  total<Op> result = widen<Op>(Op::identity());
  TP_ROLLED
  for (int i = lane; i < static_cast<int>(head + n - tail); i += group)
    result = Op::fold(result, widen<Op>(Op::load(x[i < head ? i : tail + i - head])));
  TP_ROLLED
  for (long long at = lane; at < count;) {
    typename Op::lane lanes[pack::size];
    for (int j = 0; j < pack::size; ++j) lanes[j] = Op::identity();
    int left = RUN;
    TP_ROLLED
    for (; left > 0 && at + (BATCH - 1) * group < count; left -= BATCH, at += BATCH * group) {
      pack values[BATCH];
      for (int i = 0; i < BATCH; ++i) values[i] = packs[at + i * group];
      for (int i = 0; i < BATCH; ++i)
        for (int j = 0; j < pack::size; ++j) lanes[j] = Op::fold(lanes[j], Op::load(values[i].values[j]));
    }
    TP_ROLLED
    for (; left > 0 && at < count; --left, at += group) {
      pack values = packs[at];
      for (int j = 0; j < pack::size; ++j) lanes[j] = Op::fold(lanes[j], Op::load(values.values[j]));
    }
    for (int j = 0; j < pack::size; ++j) result = Op::fold(result, widen<Op>(lanes[j]));
  }
  return result;
}

/* The same for elements begin .. end-1 of any layout. */
template <typename Op, typename T>
TP_DEVICE total<Op> fold_scattered(const T *x, const tp_layout_t &layout, long long begin, long long end, int lane,
                                   int group) {
  total<Op> result = widen<Op>(Op::identity());
  TP_ROLLED
  for (long long at = begin + lane; at < end;) {
    typename Op::lane run = Op::identity();
    TP_ROLLED
    for (int left = RUN; left > 0 && at < end; --left, at += group)
      run = Op::fold(run, Op::load(x[reduced_place(layout, at)]));
    result = Op::fold(result, widen<Op>(run));
  }
  return result;
}

template <typename Op, typename T>
TP_DEVICE void rows(const tp_reduce_args_t &p, void *memory) {
  total<Op> *scratch = static_cast<total<Op> *>(memory);
  bool adjacent = p.reduced.ndim == 0 || (p.reduced.ndim == 1 && p.reduced.strides[0][0] == 1);
  int group = tp_group_size(p.group), groups = tp_threads() / group, lane = tp_thread() % group;
  long long items = p.kept.numel * p.splits;
  TP_FOR_TILES(first, items, groups) {
    long long item = first + tp_thread() / group;
    bool inside = tp_thread() / group < groups && item < items;
    total<Op> result = widen<Op>(Op::identity());
    if (inside) {
      long long split = p.splits == 1 ? 0 : item / p.kept.numel;
      const T *x = tp_at<T>(p.input) + place_of(p.kept, 1, item - split * p.kept.numel);
      long long begin = split * p.split;
      long long end = p.reduced.numel - begin < p.split ? p.reduced.numel : begin + p.split;
      result = adjacent ? fold_adjacent<Op, T>(x + begin, end - begin, lane, group)
                        : fold_scattered<Op, T>(x, p.reduced, begin, end, lane, group);
    }
    result = fold_group<typename Op::fold_type>(result, group, scratch);
    if (inside && lane == 0) store(p, item, result);
  }
}

/* ---- columns ---- */

/* results: `width` totals of the reduced elements begin .. end-1, from the k-th result on, side by side. PACKED: the
 * kept elements are adjacent and lie as pack_of. */
template <typename Op, typename T, int LANES, bool PACKED>
TP_DEVICE void fold_columns(const tp_reduce_args_t &p, long long k, int width, long long begin, long long end,
                            total<Op> (&results)[LANES]) {
  const T *at[LANES];
  bool adjacent = width == LANES;
  for (int j = 0; j < (PACKED ? 1 : width); ++j) {
    at[j] = tp_at<T>(p.input) + place_of(p.kept, 1, k + j);
    adjacent = adjacent && at[j] == at[0] + j;
  }
  TP_ROLLED
  for (long long first = begin; first < end; first += RUN) {
    int part = tp_tile_count(first, end, RUN), done = 0;
    typename Op::lane lanes[LANES];
    for (int j = 0; j < LANES; ++j) lanes[j] = Op::identity();
    if constexpr (PACKED) {
      bool linear = p.reduced.ndim == 1;
      long long step = p.reduced.strides[0][0];
      TP_ROLLED
      for (; linear && done + BATCH <= part; done += BATCH) {
        pack_of<T> packs[BATCH];
        const T *x = at[0] + (first + done) * step;
        for (int i = 0; i < BATCH; ++i) packs[i] = *reinterpret_cast<const pack_of<T> *>(x + i * step);
        for (int i = 0; i < BATCH; ++i)
          for (int j = 0; j < LANES; ++j) lanes[j] = Op::fold(lanes[j], Op::load(packs[i].values[j]));
      }
    }
    TP_ROLLED
    for (; done < part; ++done) {
      long long offset = reduced_place(p.reduced, first + done);
      if constexpr (PACKED) {
        pack_of<T> pack = *reinterpret_cast<const pack_of<T> *>(at[0] + offset);
        for (int j = 0; j < LANES; ++j) lanes[j] = Op::fold(lanes[j], Op::load(pack.values[j]));
      } else if (adjacent) {
        const T *x = at[0] + offset;
        for (int j = 0; j < LANES; ++j) lanes[j] = Op::fold(lanes[j], Op::load(x[j]));
      } else {
        for (int j = 0; j < width; ++j) lanes[j] = Op::fold(lanes[j], Op::load(at[j][offset]));
      }
    }
    for (int j = 0; j < width; ++j) results[j] = Op::fold(results[j], widen<Op>(lanes[j]));
  }
}

/* The block's threads stand in `group` rows: neighbours in a row have neighbouring results, LANES each, and each row a
 * share of the reduced elements. */
template <typename Op, typename T, int LANES, bool PACKED>
TP_DEVICE void columns_of(const tp_reduce_args_t &p, total<Op> *shares) {
  int group = tp_group_size(p.group), across = tp_threads() / group;
  int row = tp_thread() / across, column = tp_thread() % across;
  for (long long split = blockIdx.y; split < p.splits; split += gridDim.y) {
    long long begin = split * p.split;
    long long count = p.reduced.numel - begin < p.split ? p.reduced.numel - begin : p.split;
    long long share = ((count + group - 1) / group + BATCH - 1) / BATCH * BATCH, start = row * share;
    long long stop = start + share < count ? start + share : count;
    TP_FOR_TILES(first, p.kept.numel, across * LANES) {
      long long k = first + column * LANES, left = p.kept.numel - k;
      int width = left < LANES ? static_cast<int>(left < 0 ? 0 : left) : LANES;
      total<Op> results[LANES];
      for (int j = 0; j < LANES; ++j) results[j] = widen<Op>(Op::identity());
      if (width > 0 && row < group)
        fold_columns<Op, T, LANES, PACKED>(p, k, width, begin + start, begin + stop, results);
      if (group > 1) {
        for (int j = 0; j < LANES; ++j) shares[j * tp_threads() + tp_thread()] = results[j];
        tp_block_sync();
        TP_ROLLED
        for (int other = 1; row == 0 && other < group; ++other)
          for (int j = 0; j < LANES; ++j)
            results[j] = Op::fold(results[j], shares[j * tp_threads() + other * across + column]);
        tp_block_sync();
      }
      if (row == 0)
        for (int j = 0; j < width; ++j) store(p, split * p.kept.numel + k + j, results[j]);
    }
  }
}

template <typename Op, typename T>
TP_DEVICE void columns(const tp_reduce_args_t &p, void *memory) {
  total<Op> *shares = static_cast<total<Op> *>(memory);
#ifdef __CUDACC__
  if constexpr (is_floating<T>) { /* the others are not worth the larger images */
    if (p.packed) return columns_of<Op, T, pack_of<T>::size, true>(p, shares);
  }
  columns_of<Op, T, 1, false>(p, shares);
#else
  columns_of<Op, T, LANES, false>(p, shares);
#endif
}

/* A form, for the fold that is asked for. */
#define TP_REDUCE_FORM(form)                                           \
  template <typename T>                                                \
  TP_DEVICE void any_##form(const tp_reduce_args_t &p, void *memory) { \
    switch (p.fold) {                                                  \
      case TP_FOLD_SUM: return form<sum<T>, T>(p, memory);             \
      case TP_FOLD_HIGHEST: return form<amax<T>, T>(p, memory);        \
      case TP_FOLD_LOWEST: return form<amin<T>, T>(p, memory);         \
      case TP_FOLD_PRODUCT:                                            \
        if constexpr (sizeof(T) == 8) form<product<T>, T>(p, memory);  \
    }                                                                  \
  }
TP_REDUCE_FORM(rows)
TP_REDUCE_FORM(columns)
#undef TP_REDUCE_FORM

}  // namespace tp_reduce

/* The memory is declared here, once for all folds: it holds totals, which have 8 bytes. */
#define TP_REDUCE_KERNELS(dtype, suffix, T)                                                                 \
  TP_KERNEL_COOPERATIVE(tp_k_rows_##suffix, tp_reduce_args_t) {                                      \
    TP_SHARED(long long, scratch, TP_SCRATCH);                                                       \
    tp_reduce::any_rows<T>(p, scratch);                                                              \
  }                                                                                                  \
  TP_KERNEL_COOPERATIVE(tp_k_columns_##suffix, tp_reduce_args_t) {                                   \
    TP_SHARED(long long, shares, TP_BLOCK_THREADS *tp_reduce::lanes_of_columns<T>);                  \
    tp_reduce::any_columns<T>(p, shares);                                                            \
  }

TP_REDUCE_SOURCES(TP_REDUCE_KERNELS)
#undef TP_REDUCE_KERNELS
#undef TP_SHARED_CODE
#undef TP_ROLLED

#undef TP_FAMILY
