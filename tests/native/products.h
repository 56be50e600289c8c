/* Products of every shape and layout, compared with float64: for the tiled kernel and for cuBLASLt. */
#ifndef TP_TESTS_PRODUCTS_H
#define TP_TESTS_PRODUCTS_H

#include <complex.h>

#include "values.h"

/* Element (batch..., i, j) of a tensor seen as matrices; batch counts in C order of the result's batch. */
typedef struct matrices {
  const tp_tensor_t *tensor;
  double *values;
  int64_t rows, columns;
  int64_t batch_ndim;
} matrices_t;

static inline matrices_t matrices_of(const tp_tensor_t *tensor, bool column_vector) {
  bool vector = tensor->ndim == 1;
  matrices_t m = {
      .tensor = tensor, .values = values_download(tensor), .batch_ndim = vector ? 0 : tensor->ndim - 2};
  int64_t last = tensor->shape[tensor->ndim - 1];
  m.rows = vector ? (column_vector ? last : 1) : tensor->shape[tensor->ndim - 2];
  m.columns = vector && column_vector ? 1 : last;
  return m;
}

/* First element of the matrix for that place of the result's batch. */
static inline const double *matrix_at(const matrices_t *m, int64_t ndim, const int64_t *shape,
                                      int64_t place) {
  int64_t at = 0, step = 1;
  for (int64_t d = ndim - 1; d >= 0; --d) {
    int64_t own = d - (ndim - m->batch_ndim), here = place % shape[d];
    place /= shape[d];
    if (own < 0) continue;
    if (m->tensor->shape[own] != 1) at += here * step;
    step *= m->tensor->shape[own];
  }
  return m->values + at * m->rows * m->columns;
}

/* bias: NULL or the values of one row. */
static inline void check_values(const tp_tensor_t *result, const tp_tensor_t *a, const tp_tensor_t *b,
                                const double *bias) {
  CHECK(result && result->dtype == a->dtype);
  matrices_t left = matrices_of(a, false), right = matrices_of(b, true);
  int64_t m = left.rows, k = left.columns, n = right.columns;
  int64_t ndim = left.batch_ndim > right.batch_ndim ? left.batch_ndim : right.batch_ndim, batch = 1;
  CHECK(result->ndim == ndim + (a->ndim > 1) + (b->ndim > 1));
  for (int64_t d = 0; d < ndim; ++d) batch *= result->shape[d];
  CHECK(result->numel == batch * m * n);
  double *got = values_download(result);
  for (int64_t p = 0; p < batch; ++p) {
    const double *x = matrix_at(&left, ndim, result->shape, p),
                 *y = matrix_at(&right, ndim, result->shape, p);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias ? bias[j] : 0, size = fabs(sum);
        for (int64_t l = 0; l < k; ++l) {
          sum += x[i * k + l] * y[l * n + j];
          size += fabs(x[i * k + l] * y[l * n + j]);
        }
        bool wide = a->dtype == TP_DTYPE_float64;
        double tolerance = (wide ? 0x1p-52 : 0x1p-24) * (8 + sqrt((double)k)) * size +
                           values_epsilon(a->dtype) / 2 * fabs(sum) + (wide ? 0 : 0x1p-25);
        CHECK_CLOSE(got[(p * m + i) * n + j], sum, tolerance, (p * m + i) * n + j);
      }
  }
  free(got);
  free(left.values);
  free(right.values);
}

static inline void check_matmul(const tp_tensor_t *a, const tp_tensor_t *b) {
  tp_tensor_t *result = tp_matmul(a, b, NULL);
  check_values(result, a, b, NULL);
  tp_tensor_release(result);
}

static inline void test_shapes(int32_t dtype) {
  static const struct {
    int32_t a_ndim, b_ndim;
    int64_t a[4], b[4];
  } cases[] = {
      {1, 1, {5}, {5}},
      {1, 2, {5}, {5, 3}},
      {2, 1, {4, 5}, {5}},
      {2, 2, {1, 1}, {1, 1}},
      {2, 2, {3, 4}, {4, 5}},
      {2, 2, {64, 64}, {64, 64}},
      {2, 2, {65, 63}, {63, 129}},
      {2, 2, {130, 200}, {200, 70}},
      {2, 2, {1, 300}, {300, 2}},
      {2, 2, {3, 0}, {0, 4}},
      {2, 2, {0, 3}, {3, 4}},
      {3, 2, {3, 4, 5}, {5, 6}},
      {2, 3, {4, 5}, {3, 5, 6}},
      {3, 3, {3, 4, 5}, {3, 5, 6}},
      {3, 3, {1, 4, 5}, {3, 5, 6}},
      {4, 3, {2, 1, 4, 5}, {3, 5, 6}},
      {4, 4, {2, 3, 17, 9}, {2, 3, 9, 11}},
      {4, 4, {2, 1, 4, 5}, {1, 3, 5, 6}},
      {1, 3, {5}, {3, 5, 2}},
      {3, 1, {3, 4, 5}, {5}},
      {3, 3, {2, 3, 0}, {2, 0, 4}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    tp_tensor_t *a = values_random(dtype, cases[c].a_ndim, cases[c].a, NULL);
    tp_tensor_t *b = values_random(dtype, cases[c].b_ndim, cases[c].b, NULL);
    check_matmul(a, b);
    tp_tensor_release(a);
    tp_tensor_release(b);
  }
}

/* A (2, rows, columns) tensor of each layout that views can make. */
enum { LAYOUTS = 7 };
static inline tp_tensor_t *laid_out(int32_t dtype, int layout, int64_t rows, int64_t columns) {
  int64_t plain[] = {2, rows, columns};
  tp_tensor_t *base = NULL, *middle = NULL, *view = NULL;
  switch (layout) {
    case 0: return values_random(dtype, 3, plain, NULL);
    case 1: /* transposed */
      base = values_random(dtype, 3, (int64_t[]){2, columns, rows}, NULL);
      view = tp_tensor_transpose(base, 1, 2);
      break;
    case 2: /* the batch inside, as attention's heads are */
      base = values_random(dtype, 3, (int64_t[]){rows, 2, columns}, NULL);
      view = tp_tensor_transpose(base, 0, 1);
      break;
    case 3: /* rows apart, an odd start */
      base = values_random(dtype, 3, (int64_t[]){2, rows, columns + 3}, NULL);
      view = tp_tensor_slice(base, 2, 1, columns + 1, 1);
      break;
    case 4: /* no dimension is a run */
      base = values_random(dtype, 3, (int64_t[]){2, rows, 2 * columns}, NULL);
      view = tp_tensor_slice(base, 2, 1, 2 * columns, 2);
      break;
    case 5: /* one matrix for the whole batch */
      base = values_random(dtype, 3, (int64_t[]){1, rows, columns}, NULL);
      view = tp_tensor_expand(base, 3, plain);
      break;
    default: /* one row for all rows */
      base = values_random(dtype, 3, (int64_t[]){2, 1, columns}, NULL);
      middle = tp_tensor_expand(base, 3, plain);
      view = tp_tensor_alias(middle);
  }
  tp_tensor_release(base);
  tp_tensor_release(middle);
  return view;
}

static inline void test_layouts(int32_t dtype) {
  for (int i = 0; i < LAYOUTS; ++i)
    for (int j = 0; j < LAYOUTS; ++j) {
      tp_tensor_t *a = laid_out(dtype, i, 17, 21), *b = laid_out(dtype, j, 21, 13);
      check_matmul(a, b);
      tp_tensor_t *left = tp_tensor_select(a, 0, 1), *right = tp_tensor_select(b, 0, 1);
      check_matmul(left, right);
      check_matmul(a, right);
      check_matmul(left, b);
      tp_tensor_t *tensors[] = {a, b, left, right};
      for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
    }
}

/* A matrix of complex numbers with both parts, which are in *out_values by turns. */
static inline tp_tensor_t *complex_matrix(int32_t dtype, int64_t rows, int64_t columns, double **out_values) {
  int32_t part = dtype == TP_DTYPE_complex64 ? TP_DTYPE_float32 : TP_DTYPE_float64;
  tp_tensor_t *parts = values_random(part, 2, (int64_t[]){rows, 2 * columns}, out_values);
  tp_tensor_t *matrix = tp_tensor_view_dtype(parts, dtype);
  tp_tensor_release(parts);
  return matrix;
}

/* beta * input + alpha * (a @ b), where every part of every number matters. */
static inline void test_complex(int32_t dtype) {
  enum { M = 70, K = 35, N = 66 };
  const double complex beta = 0.5 - 0.25 * I, alpha = 2 + 1.5 * I;
  double *x, *y, *z;
  tp_tensor_t *a = complex_matrix(dtype, M, K, &x), *b = complex_matrix(dtype, K, N, &y);
  tp_tensor_t *input = complex_matrix(dtype, 1, N, &z);
  tp_tensor_t *result = tp_addmm(input, a, b, creal(beta), cimag(beta), creal(alpha), cimag(alpha), NULL);
  CHECK(result && result->dtype == dtype);
  int32_t part = dtype == TP_DTYPE_complex64 ? TP_DTYPE_float32 : TP_DTYPE_float64;
  tp_tensor_t *parts = tp_tensor_view_dtype(result, part);
  double *got = values_download(parts);
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double complex sum = 0;
      for (int64_t k = 0; k < K; ++k)
        sum += (x[2 * (i * K + k)] + I * x[2 * (i * K + k) + 1]) * (y[2 * (k * N + j)] + I * y[2 * (k * N + j) + 1]);
      sum = beta * (z[2 * j] + I * z[2 * j + 1]) + alpha * sum;
      int64_t at = 2 * (i * N + j);
      CHECK_CLOSE(got[at], creal(sum), values_epsilon(part) * 200, at);
      CHECK_CLOSE(got[at + 1], cimag(sum), values_epsilon(part) * 200, at + 1);
    }
  double *values[] = {x, y, z, got};
  for (size_t v = 0; v < 4; ++v) free(values[v]);
  tp_tensor_t *tensors[] = {a, b, input, result, parts};
  for (size_t t = 0; t < 5; ++t) tp_tensor_release(tensors[t]);
}

/* beta * input + alpha * (a @ b) of a batch: into fresh memory, into the input, and without reading it. */
static inline void test_addmm(int32_t dtype) {
  int64_t whole[] = {2, 5, 7};
  double *x;
  tp_tensor_t *a = laid_out(dtype, 2, 5, 9), *b = laid_out(dtype, 1, 9, 7), *product = tp_matmul(a, b, NULL);
  tp_tensor_t *input = values_random(dtype, 3, whole, &x), *poison = values_poisoned(dtype, 3, whole);
  tp_tensor_t *fresh = tp_addmm(input, a, b, -0.5, 0, 2, 0, NULL);
  tp_tensor_t *in_place = tp_addmm(input, a, b, -0.5, 0, 2, 0, input);
  tp_tensor_t *unread = tp_addmm(poison, a, b, 0, 0, 2, 0, poison);
  CHECK(in_place == input && unread == poison);
  double *sums = values_download(product), *first = values_download(fresh), *second = values_download(in_place),
         *third = values_download(unread);
  for (int64_t i = 0; i < product->numel; ++i) {
    double close = values_epsilon(dtype) * (fabs(sums[i]) * 2 + 1) + values_epsilon(TP_DTYPE_float32);
    CHECK_CLOSE(first[i], 2 * sums[i] - 0.5 * x[i], close, i);
    CHECK_CLOSE(second[i], first[i], 0, i);
    CHECK_CLOSE(third[i], 2 * sums[i], close, i);
  }
  double *values[] = {x, sums, first, second, third};
  for (size_t v = 0; v < 5; ++v) free(values[v]);
  tp_tensor_t *tensors[] = {a, b, product, input, poison, fresh, in_place, unread};
  for (size_t t = 0; t < 8; ++t) tp_tensor_release(tensors[t]);
}

/* gelu and gelu_tanh of linear, with and without a bias, and without inner elements. */
static inline void test_linear_gelu(int32_t dtype) {
  for (int c = 0; c < 8; ++c) {
    int64_t k = c & 2 ? 30 : 0;
    int32_t by_tanh = c & 4;
    tp_tensor_t *a = values_random(dtype, 3, (int64_t[]){2, 9, k}, NULL);
    tp_tensor_t *weight = values_random(dtype, 2, (int64_t[]){70, k}, NULL);
    tp_tensor_t *bias = c & 1 ? values_random(dtype, 1, (int64_t[]){70}, NULL) : NULL;
    tp_tensor_t *linear = tp_linear(a, weight, bias), *result = tp_linear_gelu(a, weight, bias, by_tanh);
    CHECK(linear && result && result->dtype == dtype && result->numel == linear->numel);
    double *x = values_download(linear), *got = values_download(result);
    for (int64_t i = 0; i < result->numel; ++i) {
      double below = by_tanh ? 1 + tanh(0.7978845608028654 * (x[i] + 0.044715 * x[i] * x[i] * x[i]))
                             : erfc(-x[i] / sqrt(2));
      /* The sum may be rounded before. The slope is at most 1.13. */
      double tolerance = values_epsilon(dtype) * 2 * fabs(x[i]) + (dtype == TP_DTYPE_float64 ? 0x1p-50 : 0x1p-21);
      CHECK_CLOSE(got[i], x[i] / 2 * below, tolerance, i);
    }
    free(x);
    free(got);
    tp_tensor_t *tensors[] = {a, weight, bias, linear, result};
    for (size_t t = 0; t < 5; ++t) tp_tensor_release(tensors[t]);
  }
}

static inline void test_linear(int32_t dtype) {
  for (int i = 0; i < LAYOUTS; ++i) {
    tp_tensor_t *a = laid_out(dtype, i, 9, 30);
    for (int with_bias = 0; with_bias < 2; ++with_bias) {
      double *bias_values = NULL;
      tp_tensor_t *weight = values_random(dtype, 2, (int64_t[]){70, 30}, NULL);
      tp_tensor_t *bias = with_bias ? values_random(dtype, 1, (int64_t[]){70}, &bias_values) : NULL;
      tp_tensor_t *turned = tp_tensor_transpose(weight, 0, 1);
      tp_tensor_t *result = tp_linear(a, weight, bias);
      check_values(result, a, turned, bias_values);
      tp_tensor_t *row = tp_tensor_select(a, 0, 1), *vector = tp_tensor_select(row, 0, 2);
      tp_tensor_t *small = tp_linear(vector, weight, bias);
      check_values(small, vector, turned, bias_values);
      free(bias_values);
      tp_tensor_t *tensors[] = {weight, bias, turned, result, row, vector, small};
      for (size_t t = 0; t < 7; ++t) tp_tensor_release(tensors[t]);
    }
    tp_tensor_release(a);
  }
  /* Without inner elements only the bias is left. */
  double *bias_values;
  tp_tensor_t *a = values_random(dtype, 2, (int64_t[]){3, 0}, NULL),
              *weight = values_random(dtype, 2, (int64_t[]){4, 0}, NULL);
  tp_tensor_t *bias = values_random(dtype, 1, (int64_t[]){4}, &bias_values),
              *result = tp_linear(a, weight, bias);
  double *got = values_download(result);
  for (int i = 0; i < 12; ++i) CHECK_CLOSE(got[i], bias_values[i % 4], 0, i);
  free(got);
  free(bias_values);
  tp_tensor_t *tensors[] = {a, weight, bias, result};
  for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
}

#endif
