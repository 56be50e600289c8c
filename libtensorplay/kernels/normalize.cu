/* Softmax and layer normalisation (docs/design/reductions.md). Everything but float64 is computed in float32, sums
 * go through float64 totals. Rows: a group of threads treats one row at a time. Columns: a thread treats one
 * column of a softmax over a dimension that is not the last. */
#define TP_FAMILY "normalize"
#include "block.h"
#include "flat.h"
#include "op_math.h"
#include "args_normalize.h"

namespace tp_normalize {

/* Elements that a lane adds up in float32 before they go into a total. */
enum { RUN = 32 };
/* Independent lanes: the host's compiler makes one vector of them. */
enum { LANES = 4 };

/* Columns that one thread treats side by side. */
#ifdef __CUDACC__
enum { COLUMNS = 1 };
#else
enum { COLUMNS = 64 };
#endif

/* Elements of a row that one thread holds, and as what: on the GPU in registers, which takes loops of constant
 * length, and halves as they are; on the host as float32 or float64, since conversions cost more there. */
#ifdef __CUDACC__
template <typename T>
constexpr int held_by_thread = TP_NORMALIZE_VECTORS * TP_VECTOR(T);
template <typename T>
using held = T;
#define TP_FEW_COPIES _Pragma("unroll 4")
#define TP_FOR_UNITS(u, mine) _Pragma("unroll") for (int u = 0; u < UNITS; ++u) if (u < (mine))
#else
template <typename T>
constexpr int held_by_thread = 4096;
template <typename T>
using held = tp_wide_t<T>;
#define TP_FEW_COPIES
#define TP_FOR_UNITS(u, mine) for (int u = 0; u < (mine); ++u)
#endif

/* A NaN wins against every number. */
template <typename N>
TP_DEVICE N larger(N a, N b) {
  return b > a || b != b ? b : a;
}

/* A row in units of N elements, which the threads of a group hold between them. */
template <typename T, int N>
struct held_row {
  typedef tp_wide_t<T> computed;
  static constexpr int UNITS = held_by_thread<T> / N, WIDTH = N;
  held<T> at[UNITS][N];
  int group, lane, mine; /* mine: units of this thread */

  __device__ __forceinline__ int place(int u) const { return (u * group + lane) * N; }

  __device__ __forceinline__ held_row(const T *input, long long size, int group_, int lane_)
      : group(group_), lane(lane_) {
    int units = static_cast<int>(size) / N;
    mine = (units - lane + group - 1) / group; /* lane < group: 0 or more */
    TP_FOR_UNITS(u, mine) {
      T elements[N];
      tp_read(input + place(u), elements);
      for (int j = 0; j < N; ++j) at[u][j] = tp_cast<held<T>>(elements[j]);
    }
  }

  /* Of the thread's elements. */
  __device__ __forceinline__ computed highest() const {
    computed result = -static_cast<computed>(tp_infinity());
    TP_FOR_UNITS(u, mine)
    for (int j = 0; j < N; ++j) result = larger(result, tp_wide(at[u][j]));
    return result;
  }

  /* Sum of f(element) over the thread's elements. */
  template <typename F>
  __device__ __forceinline__ double sum(F f) const {
#ifdef __CUDACC__
    static_assert(UNITS * N <= RUN, "one lane adds them all up");
    computed result = 0;
    TP_FOR_UNITS(u, mine)
    for (int j = 0; j < N; ++j) result += f(tp_wide(at[u][j]));
    return result;
#else
    double result = 0;
    for (int first = 0; first < mine; first += RUN * LANES) {
      int count = tp_tile_count(first, mine, RUN * LANES), packs = count / LANES;
      computed lanes[LANES] = {};
      for (int i = 0; i < packs; ++i)
        for (int j = 0; j < LANES; ++j) lanes[j] += f(at[first + i * LANES + j][0]);
      for (int j = 0; j < LANES; ++j) result += lanes[j];
      for (int i = packs * LANES; i < count; ++i) result += f(at[first + i][0]);
    }
    return result;
#endif
  }

  /* out := f(element, place) */
  template <typename F>
  __device__ __forceinline__ void store(T *out, F f) const {
    TP_FOR_UNITS(u, mine) {
      computed x[N];
      for (int j = 0; j < N; ++j) x[j] = tp_wide(at[u][j]);
      f(out, place(u), x);
    }
  }
};

/* A row that is too long for that, or not aligned: read again each time. */
template <typename T>
struct long_row {
  typedef tp_wide_t<T> computed;
  static constexpr int WIDTH = 1;
  const T *input;
  long long size;
  int group, lane;

  __device__ __forceinline__ long_row(const T *input_, long long size_, int group_, int lane_)
      : input(input_), size(size_), group(group_), lane(lane_) {}

  __device__ __forceinline__ computed highest() const {
    computed result = -static_cast<computed>(tp_infinity());
    for (long long i = lane; i < size; i += group) result = larger(result, tp_wide(input[i]));
    return result;
  }

  template <typename F>
  __device__ __forceinline__ double sum(F f) const {
    double result = 0;
    for (long long first = lane; first < size; first += static_cast<long long>(RUN) * group) {
      computed run = 0;
      TP_FEW_COPIES
      for (int i = 0; i < RUN && first + i * group < size; ++i) run += f(tp_wide(input[first + i * group]));
      result += run;
    }
    return result;
  }

  template <typename F>
  __device__ __forceinline__ void store(T *out, F f) const {
    for (long long i = lane; i < size; i += group) {
      const computed x[1] = {tp_wide(input[i])};
      f(out, i, x);
    }
  }
};

/* Op::treat(p, row, out, sum of all, largest of all) for every row; both folds are of a group. A group beyond the last
 * row has one without elements: all threads meet the barriers. */
template <typename Op, typename Row, typename T, typename Args>
TP_DEVICE void treat_rows_as(const Args &p, tp_wide_t<T> *numbers, double *totals) {
  int group = tp_group_size(p.rows.group), groups = tp_threads() / group, lane = tp_thread() % group;
  auto sum = [&](double x) {
    return tp_group_reduce(x, group, [](double a, double b) { return a + b; }, totals);
  };
  auto largest = [&](tp_wide_t<T> x) { return tp_group_reduce(x, group, larger<tp_wide_t<T>>, numbers); };
  TP_FOR_TILES(first, p.rows.count, groups) {
    long long index = first + tp_thread() / group;
    bool inside = tp_thread() / group < groups && index < p.rows.count;
    long long start = inside ? index * p.size : 0;
    Row row(tp_at<T>(p.input) + start, inside ? p.size : 0, group, lane);
    Op::treat(p, row, tp_at<T>(p.out) + start, sum, largest);
  }
}

/* Kept apart from the other kind of row, so that its registers are not needed there. */
template <typename Op, typename T, typename Args>
TP_DEVICE_COLD void treat_long_rows(const Args &p, tp_wide_t<T> *numbers, double *totals) {
  treat_rows_as<Op, long_row<T>, T>(p, numbers, totals);
}

template <typename Op, typename T, typename Args>
TP_DEVICE void treat_rows(const Args &p) {
  TP_SHARED(tp_wide_t<T>, numbers, TP_SCRATCH);
  TP_SHARED(double, totals, TP_SCRATCH);
  bool fits = p.size <= static_cast<long long>(tp_group_size(p.rows.group)) * held_by_thread<T>;
  if (fits && (p.rows.aligned || TP_VECTOR(T) == 1))
    treat_rows_as<Op, held_row<T, TP_VECTOR(T)>, T>(p, numbers, totals);
  else
    treat_long_rows<Op, T>(p, numbers, totals);
}

struct softmax {
  template <typename Row, typename T, typename Sum, typename Largest>
  static __device__ __forceinline__ void treat(const tp_softmax_args_t &p, const Row &row, T *out, Sum sum,
                                               Largest largest) {
    typedef tp_wide_t<T> number;
    number highest = largest(row.highest());
    number total = static_cast<number>(sum(row.sum([=](number x) { return tp_m_exp(x - highest); })));
    number shift = p.log ? tp_m_log(total) : 0, scale = 1 / total;
    row.store(out, [=](T *to, long long place, const number(&x)[Row::WIDTH]) {
      T y[Row::WIDTH];
      for (int j = 0; j < Row::WIDTH; ++j)
        y[j] = tp_cast<T>(p.log ? x[j] - highest - shift : tp_m_exp(x[j] - highest) * scale);
      tp_write(to + place, y);
    });
  }
};

struct layer_norm {
  template <typename Row, typename T, typename Sum, typename Largest>
  static __device__ __forceinline__ void treat(const tp_layer_norm_args_t &p, const Row &row, T *out, Sum sum,
                                               Largest) {
    const T *weight = tp_at<T>(p.weight), *bias = tp_at<T>(p.bias);
    double numel = static_cast<double>(p.size);
    typedef tp_wide_t<T> number;
    number mean = static_cast<number>(sum(row.sum([](number x) { return x; })) / numel);
    double variance = sum(row.sum([=](number x) { return (x - mean) * (x - mean); })) / numel;
    number scale = 1 / tp_m_sqrt(static_cast<number>(variance) + static_cast<number>(p.eps));
    row.store(out, [=](T *to, long long place, const number(&x)[Row::WIDTH]) {
      T w[Row::WIDTH], b[Row::WIDTH], y[Row::WIDTH];
      if (p.weight) tp_read(weight + place, w);
      if (p.bias) tp_read(bias + place, b);
      for (int j = 0; j < Row::WIDTH; ++j) {
        number value = (x[j] - mean) * scale;
        if (p.weight) value *= tp_wide(w[j]);
        if (p.bias) value += tp_wide(b[j]);
        y[j] = tp_cast<T>(value);
      }
      tp_write(to + place, y);
    });
  }
};

/* `width` neighbouring results of a softmax over the middle of (outer, size, inner), from the c-th on. */
template <typename T>
TP_DEVICE void softmax_of_columns(const tp_softmax_args_t &p, long long c, int width) {
  long long at[COLUMNS];
  tp_wide_t<T> highest[COLUMNS], shift[COLUMNS];
  double totals[COLUMNS];
  const T *input = tp_at<T>(p.input);
  T *out = tp_at<T>(p.out);
  for (int j = 0; j < width; ++j) {
    long long outer = (c + j) / p.inner;
    at[j] = outer * p.size * p.inner + (c + j - outer * p.inner);
    highest[j] = tp_wide(input[at[j]]);
    totals[j] = 0;
  }
  for (long long i = 1; i < p.size; ++i)
    for (int j = 0; j < width; ++j) highest[j] = larger(highest[j], tp_wide(input[at[j] + i * p.inner]));
  for (long long first = 0; first < p.size; first += RUN) {
    int count = tp_tile_count(first, p.size, RUN);
    tp_wide_t<T> lanes[COLUMNS] = {};
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < width; ++j)
        lanes[j] += tp_m_exp(tp_wide(input[at[j] + (first + i) * p.inner]) - highest[j]);
    for (int j = 0; j < width; ++j) totals[j] += lanes[j];
  }
  for (int j = 0; j < width; ++j) {
    tp_wide_t<T> sum = static_cast<tp_wide_t<T>>(totals[j]);
    shift[j] = p.log ? tp_m_log(sum) : 1 / sum;
  }
  for (long long i = 0; i < p.size; ++i)
    for (int j = 0; j < width; ++j) {
      tp_wide_t<T> x = tp_wide(input[at[j] + i * p.inner]) - highest[j];
      out[at[j] + i * p.inner] = tp_cast<T>(p.log ? x - shift[j] : tp_m_exp(x) * shift[j]);
    }
}

template <typename T>
TP_DEVICE void softmax_columns(const tp_softmax_args_t &p) {
  long long columns = p.outer * p.inner;
  TP_FOR_TILES(first, columns, TP_SOFTMAX_TILE) {
    int count = tp_tile_count(first, columns, TP_SOFTMAX_TILE);
    TP_FOR(chunk, (count + COLUMNS - 1) / COLUMNS) {
      int done = chunk * COLUMNS;
      softmax_of_columns<T>(p, first + done,
                            count - done < COLUMNS ? count - done : static_cast<int>(COLUMNS));
    }
  }
}

}  // namespace tp_normalize

#define TP_NORMALIZE_KERNELS(suffix, T, blocks)                                                         \
  TP_KERNEL_RESIDENT(tp_k_softmax_rows_##suffix, tp_softmax_args_t, blocks) {                           \
    tp_normalize::treat_rows<tp_normalize::softmax, T>(p);                                              \
  }                                                                                                     \
  TP_KERNEL(tp_k_softmax_columns_##suffix, tp_softmax_args_t) { tp_normalize::softmax_columns<T>(p); }  \
  TP_KERNEL_RESIDENT(tp_k_layer_norm_##suffix, tp_layer_norm_args_t, blocks) {                          \
    tp_normalize::treat_rows<tp_normalize::layer_norm, T>(p);                                           \
  }
TP_NORMALIZE_KERNELS(f16, __half, 4)
TP_NORMALIZE_KERNELS(bf16, __nv_bfloat16, 4)
TP_NORMALIZE_KERNELS(f32, float, 4)
TP_NORMALIZE_KERNELS(f64, double, 1)
#undef TP_NORMALIZE_KERNELS
#undef TP_FEW_COPIES
#undef TP_FOR_UNITS

#undef TP_FAMILY
