/* Softmax and layer normalisation (docs/design/reductions.md). Everything is computed in float32, sums
 * go through float64 totals. Rows: a block treats one row at a time. Columns: a thread treats one column
 * of a softmax over a dimension that is not the last. */
#define TP_FAMILY "normalize"
#include "block.h"
#include "element.h"
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

/* A row's elements as float32: from shared memory when the row fits, else from the input each time. */
template <typename T>
struct row {
  const T *input;
  float *kept; /* NULL when the row is too long */
  long long size;

  __device__ __forceinline__ float at(long long i) const { return kept ? kept[i] : tp_wide(input[i]); }
};

/* The threads of the block share 0 .. size-1: TP_FOR for sizes of any number. */
#define TP_FOR_ROW(i, size)                                                         \
  for (long long i##_first = 0; i##_first < (size); i##_first += TP_NORMALIZE_KEPT) \
    TP_FOR(i##_in, tp_tile_count(i##_first, size, TP_NORMALIZE_KEPT))              \
      if (long long i = i##_first + i##_in; true)

template <typename T>
TP_DEVICE row<T> load_row(const void *input, long long index, long long size, float *shared) {
  row<T> x = {tp_at<T>(input) + index * size, size <= TP_NORMALIZE_KEPT ? shared : nullptr, size};
  if (x.kept) {
    /* In the former row's last pass a thread read what it now writes: equal loops are shared equally. */
    TP_FOR(i, static_cast<int>(size)) x.kept[i] = tp_wide(x.input[i]);
    tp_block_sync();
  }
  return x;
}

/* A NaN wins against every number. */
TP_DEVICE float larger(float a, float b) { return b > a || b != b ? b : a; }

/* Sum of f(element) over the row, for all threads. */
template <typename T, typename F>
TP_DEVICE double sum_row(const row<T> &x, F f, double *scratch) {
  double total = 0;
  int tile = RUN * LANES * tp_threads();
  for (long long first = 0; first < x.size; first += tile) {
    int count = tp_tile_count(first, x.size, tile), packs = count / LANES;
    float lanes[LANES] = {};
    TP_FOR(i, packs) {
      for (int j = 0; j < LANES; ++j) lanes[j] += f(x.at(first + LANES * i + j));
    }
    for (int j = 0; j < LANES; ++j) total += lanes[j];
    TP_FOR(i, count - packs * LANES) total += f(x.at(first + packs * LANES + i));
  }
  return tp_block_reduce(total, [](double a, double b) { return a + b; }, scratch);
}

template <typename T>
TP_DEVICE void softmax_rows(const tp_softmax_args_t &p) {
  TP_SHARED(float, shared, TP_NORMALIZE_KEPT);
  TP_SHARED(float, scratch, TP_SCRATCH);
  TP_SHARED(double, totals, TP_SCRATCH);
  TP_FOR_TILES(index, p.outer, 1) {
    row<T> x = load_row<T>(p.input, index, p.size, shared);
    T *out = tp_at<T>(p.out) + index * p.size;
    float highest = x.at(0);
    TP_FOR_ROW(i, p.size) highest = larger(highest, x.at(i));
    highest = tp_block_reduce(highest, larger, scratch);
    float sum = static_cast<float>(sum_row(x, [=](float v) { return expf(v - highest); }, totals));
    if (p.log) {
      float shift = logf(sum);
      TP_FOR_ROW(i, p.size) out[i] = tp_cast<T>(x.at(i) - highest - shift);
    } else {
      float scale = 1.0f / sum;
      TP_FOR_ROW(i, p.size) out[i] = tp_cast<T>(expf(x.at(i) - highest) * scale);
    }
  }
}

/* `width` neighbouring results of a softmax over the middle of (outer, size, inner), from the c-th on. */
template <typename T>
TP_DEVICE void softmax_of_columns(const tp_softmax_args_t &p, long long c, int width) {
  long long at[COLUMNS];
  float highest[COLUMNS], shift[COLUMNS];
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
    float lanes[COLUMNS] = {};
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < width; ++j)
        lanes[j] += expf(tp_wide(input[at[j] + (first + i) * p.inner]) - highest[j]);
    for (int j = 0; j < width; ++j) totals[j] += lanes[j];
  }
  for (int j = 0; j < width; ++j) {
    float sum = static_cast<float>(totals[j]);
    shift[j] = p.log ? logf(sum) : 1.0f / sum;
  }
  for (long long i = 0; i < p.size; ++i)
    for (int j = 0; j < width; ++j) {
      float x = tp_wide(input[at[j] + i * p.inner]) - highest[j];
      out[at[j] + i * p.inner] = tp_cast<T>(p.log ? x - shift[j] : expf(x) * shift[j]);
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

template <typename T>
TP_DEVICE void layer_norm(const tp_layer_norm_args_t &p) {
  TP_SHARED(float, shared, TP_NORMALIZE_KEPT);
  TP_SHARED(double, totals, TP_SCRATCH);
  const T *weight = p.weight ? tp_at<T>(p.weight) : nullptr;
  const T *bias = p.bias ? tp_at<T>(p.bias) : nullptr;
  TP_FOR_TILES(index, p.rows, 1) {
    row<T> x = load_row<T>(p.input, index, p.size, shared);
    T *out = tp_at<T>(p.out) + index * p.size;
    double numel = static_cast<double>(p.size);
    float mean = static_cast<float>(sum_row(x, [](float v) { return v; }, totals) / numel);
    double variance = sum_row(x, [=](float v) { return (v - mean) * (v - mean); }, totals) / numel;
    float scale = 1.0f / sqrtf(static_cast<float>(variance) + p.eps);
    TP_FOR_ROW(i, p.size) {
      float y = (x.at(i) - mean) * scale;
      if (weight) y *= tp_wide(weight[i]);
      if (bias) y += tp_wide(bias[i]);
      out[i] = tp_cast<T>(y);
    }
  }
}

}  // namespace tp_normalize

#define TP_NORMALIZE_KERNELS(suffix, T)                                                                      \
  TP_KERNEL_COOPERATIVE(tp_k_softmax_rows_##suffix, tp_softmax_args_t) { tp_normalize::softmax_rows<T>(p); } \
  TP_KERNEL(tp_k_softmax_columns_##suffix, tp_softmax_args_t) { tp_normalize::softmax_columns<T>(p); }       \
  TP_KERNEL_COOPERATIVE(tp_k_layer_norm_##suffix, tp_layer_norm_args_t) { tp_normalize::layer_norm<T>(p); }
TP_NORMALIZE_KERNELS(f16, __half)
TP_NORMALIZE_KERNELS(bf16, __nv_bfloat16)
TP_NORMALIZE_KERNELS(f32, float)
#undef TP_NORMALIZE_KERNELS
#undef TP_FOR_ROW

#undef TP_FAMILY
