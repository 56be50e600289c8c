/* Reductions against float64: every op, dtype and layout, the plans with and without splits, torch's rules.
 */
#include "tp_emulated.h"
#include "values.h"

enum {
#define TP_REDUCE(name, code, rule) TP_REDUCE_##name = code,
#include "ops.def"
  OPS = 0
#define TP_REDUCE(name, code, rule) +1
#include "ops.def"
};

static double fold(int32_t op, double a, double b) {
  switch (op) {
    case TP_REDUCE_amax: return isnan(a) || a > b ? a : b;
    case TP_REDUCE_amin: return isnan(a) || a < b ? a : b;
    case TP_REDUCE_any: return a != 0 || b != 0;
    case TP_REDUCE_all: return a != 0 && b != 0;
    default: return a + b;
  }
}

static double identity(int32_t op) {
  return op == TP_REDUCE_amax ? -INFINITY : op == TP_REDUCE_amin ? INFINITY : op == TP_REDUCE_all ? 1 : 0;
}

/* Checks tp_reduce(op, tensor, dims) where values are the tensor's elements in C order. */
static void check_reduce(int32_t op, const tp_tensor_t *tensor, const double *values, uint32_t dims) {
  int64_t steps[TP_MAX_NDIM] = {0}, count = 1, reduced = 1;
  int32_t kept = 0;
  for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
    if ((dims >> d) & 1) {
      reduced *= tensor->shape[d];
    } else {
      steps[d] = count;
      count *= tensor->shape[d];
      ++kept;
    }
  }
  double *expected = malloc((size_t)(count + 1) * sizeof *expected),
         *sizes = calloc((size_t)count + 1, sizeof *sizes);
  for (int64_t i = 0; i < count; ++i) expected[i] = identity(op);
  for (int64_t i = 0; i < tensor->numel; ++i) {
    int64_t rest = i, at = 0;
    for (int32_t d = tensor->ndim - 1; d >= 0; --d) {
      at += rest % tensor->shape[d] * steps[d];
      rest /= tensor->shape[d];
    }
    expected[at] = fold(op, expected[at], values[i]);
    sizes[at] += fabs(values[i]);
  }
  bool whole = tp__dtype_category(tensor->dtype) <= TP_CATEGORY_INT;
  for (int32_t keepdim = 0; keepdim < 2; ++keepdim) {
    tp_tensor_t *result = tp_reduce(op, tensor, dims, keepdim, TP_DTYPE_NONE, NULL);
    CHECK(result);
    CHECK(result->ndim == (keepdim ? tensor->ndim : kept) && result->numel == count && result->contiguous);
    bool is_sum = op == TP_REDUCE_sum || op == TP_REDUCE_mean;
    bool is_test = (op == TP_REDUCE_any || op == TP_REDUCE_all) && tensor->dtype != TP_DTYPE_uint8;
    int32_t natural = is_test           ? (int32_t)TP_DTYPE_bool
                      : is_sum && whole ? (int32_t)TP_DTYPE_int64
                                        : tensor->dtype;
    CHECK(result->dtype == natural);
    double *got = values_download(result);
    for (int64_t i = 0; i < count; ++i) {
      double divisor = op == TP_REDUCE_mean ? (double)reduced : 1, exact = expected[i] / divisor,
             tolerance = 0;
      /* At most 16 additions in float32 follow each other, each wrong by half a last digit; then the dtype
       * rounds. */
      if (is_sum && !whole)
        tolerance =
            16 * 0x1p-24 * sizes[i] / divisor + values_epsilon(tensor->dtype) / 2 * fabs(exact) + 0x1p-25;
      CHECK_CLOSE(got[i], exact, tolerance, i);
    }
    free(got);
    tp_tensor_release(result);
  }
  free(expected);
  free(sizes);
}

static void check_ops(const tp_tensor_t *tensor, const double *values, uint32_t dims) {
  for (int32_t op = 0; op < OPS; ++op) {
    int32_t category = tp__dtype_category(tensor->dtype);
    if (op == TP_REDUCE_mean && category <= TP_CATEGORY_INT) continue;
    if ((op == TP_REDUCE_amax || op == TP_REDUCE_amin) && category == TP_CATEGORY_COMPLEX) continue;
    if (op == TP_REDUCE_prod) continue; /* test_products */
    check_reduce(op, tensor, values, dims);
  }
}

/* step: every step-th dtype. Threads as fibres are slow, and what they test does not depend on the dtype. */
static void test_shapes(size_t step) {
  static const struct {
    int32_t ndim;
    int64_t shape[5];
    uint32_t dims;
  } cases[] = {
      {0, {0}, 1},           {1, {1}, 1},
      {1, {7}, 1},           {1, {1000}, 1},
      {2, {3, 5}, 1},        {2, {3, 5}, 2},
      {2, {3, 5}, 3},        {2, {300, 33}, 2},   /* rows */
      {2, {100, 70}, 1},                          /* columns, neighbours */
      {2, {700, 3}, 1},                           /* few columns */
      {2, {5, 1}, 2},        {3, {4, 50, 40}, 2}, /* the middle */
      {3, {40, 5, 60}, 5},                        /* around the middle */
      {4, {3, 4, 5, 6}, 10}, {5, {2, 3, 4, 5, 6}, 21},
      {2, {1, 300}, 1},      {3, {0, 4, 3}, 2}, /* an empty result */
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    for (size_t t = 0; t < TP_DTYPE_COUNT; t += step) {
      double *values;
      tp_tensor_t *tensor = values_random((int32_t)t, cases[c].ndim, cases[c].shape, &values);
      check_ops(tensor, values, cases[c].dims);
      free(values);
      tp_tensor_release(tensor);
    }
  }
}

/* Permuted, sliced, expanded and misaligned operands. */
static void test_layouts(void) {
  for (size_t t = 0; t < TP_DTYPE_COUNT; ++t) {
    tp_tensor_t *base = values_random((int32_t)t, 3, (int64_t[]){6, 13, 45}, NULL);
    tp_tensor_t *views[5];
    views[0] = tp_tensor_permute(base, 3, (int64_t[]){2, 0, 1});
    views[1] = tp_tensor_slice(base, 2, 1, 45, 3);
    views[2] = tp_tensor_slice(base, 2, 1, 40, 1);
    tp_tensor_t *one = tp_tensor_slice(base, 1, 5, 6, 1);
    views[3] = tp_tensor_expand(one, 3, (int64_t[]){6, 40, 45});
    views[4] = tp_tensor_transpose(views[1], 1, 2);
    for (size_t v = 0; v < 5; ++v) {
      double *values = values_download(views[v]);
      for (uint32_t dims = 1; dims < 8; ++dims) check_ops(views[v], values, dims);
      free(values);
    }
    for (size_t v = 0; v < 5; ++v) tp_tensor_release(views[v]);
    tp_tensor_release(one);
    tp_tensor_release(base);
  }
}

/* Splits: few results of many elements, in both forms. */
static void test_splits(void) {
  static const struct {
    int64_t shape[2];
    uint32_t dims;
  } cases[] = {{{1, 40001}, 3}, {{3, 30011}, 2}, {{30011, 3}, 1},
               {{3001, 40}, 1}, {{777, 300}, 1}, {{20000, 2}, 3}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    for (size_t t = 0; t < TP_DTYPE_COUNT; ++t) {
      double *values;
      tp_tensor_t *tensor = values_random((int32_t)t, 2, cases[c].shape, &values);
      check_ops(tensor, values, cases[c].dims);
      free(values);
      tp_tensor_release(tensor);
    }
  }
}

/* Integers wrap; fractions are near 1, so that float64 holds what is left of them. Rows and columns, with splits. */
static void test_products(void) {
  static const int64_t shapes[][2] = {{1, 1}, {3, 20}, {2, 40001}, {300, 90}, {4000, 3}};
  for (size_t c = 0; c < sizeof shapes / sizeof *shapes; ++c) {
    for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
      const int64_t *shape = shapes[c];
      bool whole = tp__dtype_category(dtype) <= TP_CATEGORY_INT;
      double *values;
      tp_tensor_release(values_random(dtype, 2, shape, &values));
      for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
        values[i] = whole ? (double)(values_between(-2, 3) * 2 + 1) : 1 + values[i] / 4096;
      tp_tensor_t *tensor = values_upload(dtype, 2, shape, values);
      for (int32_t dim = 0; dim < 2; ++dim) {
        tp_tensor_t *result = tp_reduce(TP_REDUCE_prod, tensor, 1u << dim, 0, TP_DTYPE_NONE, NULL);
        CHECK(result && result->dtype == (whole ? (int32_t)TP_DTYPE_int64 : dtype));
        double *got = values_download(result);
        for (int64_t k = 0; k < shape[1 - dim]; ++k) {
          uint64_t wrapped = 1;
          double exact = 1;
          for (int64_t i = 0; i < shape[dim]; ++i) {
            double x = values[dim ? k * shape[1] + i : i * shape[1] + k];
            wrapped *= (uint64_t)(int64_t)x;
            exact *= x;
          }
          double expected = whole ? (double)(int64_t)wrapped : exact;
          CHECK_CLOSE(got[k], expected, (values_epsilon(dtype) + 0x1p-36) * !whole * fabs(exact), k);
        }
        free(got);
        tp_tensor_release(result);
      }
      free(values);
      tp_tensor_release(tensor);
    }
  }
}

/* 257 is 256 in bfloat16, and becomes that before it is multiplied. */
static void test_products_convert_first(void) {
  double values[2] = {257, 257};
  tp_tensor_t *tensor = values_upload(TP_DTYPE_int32, 1, (int64_t[]){2}, values);
  tp_tensor_t *result = tp_reduce(TP_REDUCE_prod, tensor, 0, 0, TP_DTYPE_bfloat16, NULL);
  double *got = values_download(result);
  CHECK_CLOSE(got[0], 65536, 0, 0);
  free(got);
  tp_tensor_release(result);
  tp_tensor_release(tensor);
}

/* (1 + 2i), (3 - i), 2i and an infinite one, whose parts must not meet the zero of a beginning. */
static void test_complex_parts(void) {
  const double parts[] = {1, 2, 3, -1, 0, 2, (double)INFINITY, 0};
  static const double sum[] = {4, 3}, mean[] = {4.0 / 3, 1}, product[] = {-10, 10};
  tp_tensor_t *tensor = tp_tensor_empty(TP_DTYPE_complex128, 0, 1, (int64_t[]){4});
  CHECK_OK(tp_tensor_copy_from_host(tensor, parts, sizeof parts));
  tp_tensor_t *finite = tp_tensor_slice(tensor, 0, 0, 3, 1), *infinite = tp_tensor_slice(tensor, 0, 3, 4, 1);
  const struct {
    int32_t op;
    const double *expected;
  } cases[] = {{TP_REDUCE_sum, sum}, {TP_REDUCE_mean, mean}, {TP_REDUCE_prod, product}};
  for (size_t c = 0; c < 3; ++c) {
    double got[2];
    tp_tensor_t *result = tp_reduce(cases[c].op, finite, 0, 0, TP_DTYPE_NONE, NULL);
    CHECK(result && result->dtype == TP_DTYPE_complex128);
    CHECK_OK(tp_tensor_copy_to_host(result, got, sizeof got));
    for (int i = 0; i < 2; ++i) CHECK_CLOSE(got[i], cases[c].expected[i], 1e-15, i);
    tp_tensor_release(result);
    result = tp_reduce(cases[c].op, infinite, 0, 0, TP_DTYPE_NONE, NULL);
    CHECK_OK(tp_tensor_copy_to_host(result, got, sizeof got));
    CHECK(isinf(got[0]) && got[1] == 0);
    tp_tensor_release(result);
  }
  tp_tensor_release(finite);
  tp_tensor_release(infinite);
  tp_tensor_release(tensor);
}

/* 10^7 equal numbers: naive float32 sums are wrong in the third digit, and the mean of ones is not one. */
static void test_many_elements_are_exact(void) {
  int64_t n = 10000019;
  tp_tensor_t *tensor = tp_tensor_empty(TP_DTYPE_float32, 0, 1, &n);
  for (int32_t form = 0; form < 2; ++form) {
    float value = form ? 0.1f : 1.0f;
    CHECK_OK(tp_tensor_fill_float(tensor, value));
    tp_tensor_t *sum = tp_reduce(TP_REDUCE_sum, tensor, 0, 0, TP_DTYPE_NONE, NULL);
    tp_tensor_t *mean = tp_reduce(TP_REDUCE_mean, tensor, 0, 0, TP_DTYPE_NONE, NULL);
    double *got_sum = values_download(sum), *got_mean = values_download(mean);
    CHECK_CLOSE(got_sum[0], (double)value * (double)n, 0x1p-22 * value * (double)n, 0);
    CHECK_CLOSE(got_mean[0], value, 0x1p-22 * value, 0);
    free(got_sum);
    free(got_mean);
    tp_tensor_release(sum);
    tp_tensor_release(mean);
  }
  tp_tensor_release(tensor);
}

/* The dtype argument: elements are converted first, as torch does. */
static void test_dtypes(void) {
  static const struct {
    int32_t operand, wanted;
    double values[3], expected;
  } cases[] = {
      {TP_DTYPE_float32, TP_DTYPE_int64, {1.5, 1.5, -2.5}, 0},
      {TP_DTYPE_int32, TP_DTYPE_float32, {1, 2, 3}, 6},
      {TP_DTYPE_float16, TP_DTYPE_float32, {60000, 60000, 1}, 120001},
      {TP_DTYPE_int32, TP_DTYPE_int32, {2147483647, 1, 0}, -2147483648.0},
      {TP_DTYPE_int32, TP_DTYPE_NONE, {2147483647, 1, 0}, 2147483648.0},
      {TP_DTYPE_float32, TP_DTYPE_bool, {1, -1, 0}, 1},
      {TP_DTYPE_bool, TP_DTYPE_NONE, {1, 1, 1}, 3},
      {TP_DTYPE_bool, TP_DTYPE_float16, {1, 1, 0}, 2},
      {TP_DTYPE_uint8, TP_DTYPE_NONE, {200, 200, 1}, 401},
      {TP_DTYPE_uint8, TP_DTYPE_uint8, {200, 200, 1}, 145},
      {TP_DTYPE_float32, TP_DTYPE_int8, {1.5, 300.5, 1}, 46},
      {TP_DTYPE_float32, TP_DTYPE_int32, {1e10, 1, 1}, -2147483647.0},
      {TP_DTYPE_float32, TP_DTYPE_float64, {1, 0x1p-40, 0x1p-40}, 1 + 0x1p-39},
      {TP_DTYPE_float64, TP_DTYPE_float32, {1e39, -1e39, 1}, 1},
      {TP_DTYPE_int64, TP_DTYPE_complex64, {1, 2, 3}, 6},
      {TP_DTYPE_complex64, TP_DTYPE_float64, {1, 2, 3}, 6},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    double values[3];
    memcpy(values, cases[c].values, sizeof values);
    tp_tensor_t *tensor = values_upload(cases[c].operand, 1, (int64_t[]){3}, values);
    tp_tensor_t *result = tp_reduce(TP_REDUCE_sum, tensor, 0, 0, cases[c].wanted, NULL);
    CHECK(result && (cases[c].wanted == TP_DTYPE_NONE || result->dtype == cases[c].wanted));
    double *got = values_download(result);
    CHECK_CLOSE(got[0], cases[c].expected, 0, c);
    free(got);
    tp_tensor_release(result);
    tp_tensor_release(tensor);
  }
}

static void test_nan_wins(void) {
  for (size_t t = 0; t < sizeof floating_dtypes / sizeof *floating_dtypes; ++t) {
    for (int64_t at = 0; at < 300; at += 23) {
      double values[300];
      for (int i = 0; i < 300; ++i) values[i] = i - 150;
      values[at] = NAN;
      tp_tensor_t *tensor = values_upload(floating_dtypes[t], 2, (int64_t[]){3, 100}, values);
      for (uint32_t dims = 1; dims < 4; ++dims) check_ops(tensor, values, dims);
      tp_tensor_release(tensor);
    }
  }
}

static void test_nothing_to_reduce(void) {
  tp_tensor_t *tensor = tp_tensor_empty(TP_DTYPE_float32, 0, 2, (int64_t[]){3, 0});
  static const double expected[] = {
      [TP_REDUCE_sum] = 0, [TP_REDUCE_mean] = (double)NAN, [TP_REDUCE_any] = 0, [TP_REDUCE_all] = 1,
      [TP_REDUCE_prod] = 1};
  for (int32_t op = 0; op < OPS; ++op) {
    tp_tensor_t *result = tp_reduce(op, tensor, 2, 0, TP_DTYPE_NONE, NULL);
    if (op == TP_REDUCE_amax || op == TP_REDUCE_amin) {
      CHECK(!result && tp_error_status() == TP_INDEX);
      continue;
    }
    CHECK(result && result->numel == 3);
    double *got = values_download(result);
    for (int i = 0; i < 3; ++i) CHECK_CLOSE(got[i], expected[op], 0, i);
    free(got);
    tp_tensor_release(result);
  }
  tp_tensor_release(tensor);
}

/* out: poisoned, of a higher dtype, not contiguous, and inside the operand. */
static void test_out(void) {
  double *values;
  tp_tensor_t *tensor = values_random(TP_DTYPE_float16, 2, (int64_t[]){5, 90}, &values);
  tp_tensor_t *expected = tp_reduce(TP_REDUCE_sum, tensor, 2, 0, TP_DTYPE_NONE, NULL);
  double *want = values_download(expected);
  tp_tensor_t *base = values_poisoned(TP_DTYPE_float16, 2, (int64_t[]){5, 2});
  tp_tensor_t *outs[] = {values_poisoned(TP_DTYPE_float16, 1, (int64_t[]){5}),
                         values_poisoned(TP_DTYPE_float32, 1, (int64_t[]){5}), tp_tensor_select(base, 1, 1),
                         tp_tensor_select(tensor, 1, 3)};
  for (size_t o = 0; o < 4; ++o) {
    tp_tensor_t *result = tp_reduce(TP_REDUCE_sum, tensor, 2, 0, TP_DTYPE_NONE, outs[o]);
    CHECK(result == outs[o]);
    double *got = values_download(outs[o]);
    for (int i = 0; i < 5; ++i) CHECK_CLOSE(got[i], want[i], 0, i);
    free(got);
    tp_tensor_release(result);
    tp_tensor_release(outs[o]);
  }
  double *around = values_download(base);
  for (int i = 0; i < 10; ++i) CHECK(isnan(around[i]) == (i % 2 == 0));
  free(around);
  free(want);
  free(values);
  tp_tensor_release(base);
  tp_tensor_release(expected);
  tp_tensor_release(tensor);
}

static void test_refusals(void) {
  tp_tensor_t *integers = values_random(TP_DTYPE_int32, 2, (int64_t[]){2, 3}, NULL);
  tp_tensor_t *floats = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, 3}, NULL);
  CHECK(!tp_reduce(TP_REDUCE_mean, integers, 0, 0, TP_DTYPE_NONE, NULL) && tp_error_status() == TP_DTYPE);
  tp_tensor_t *complex = tp_tensor_to(floats, TP_DTYPE_complex64, 0);
  CHECK(!tp_reduce(TP_REDUCE_amax, complex, 0, 0, TP_DTYPE_NONE, NULL) && tp_error_status() == TP_DTYPE);
  tp_tensor_release(complex);
  CHECK(!tp_reduce(TP_REDUCE_mean, floats, 0, 0, TP_DTYPE_int64, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_reduce(TP_REDUCE_amax, floats, 0, 0, TP_DTYPE_float32, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_reduce(TP_REDUCE_sum, floats, 4, 0, TP_DTYPE_NONE, NULL) && tp_error_status() == TP_INDEX);
  CHECK(!tp_reduce(OPS, floats, 0, 0, TP_DTYPE_NONE, NULL) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_reduce(TP_REDUCE_sum, floats, 1, 0, TP_DTYPE_NONE, floats) && tp_error_status() == TP_SHAPE);
  CHECK(strcmp(tp_error_operation(), "sum") == 0);
  tp_tensor_release(integers);
  tp_tensor_release(floats);
}

int main(void) {
  values_start();
  test_shapes(1);
  test_layouts();
  test_splits();
  test_nan_wins();
  tp_emulated_set_fibres(1);
  test_shapes(3);
  test_nan_wins();
  tp_emulated_set_fibres(0);
  test_products();
  test_products_convert_first();
  test_complex_parts();
  test_many_elements_are_exact();
  test_dtypes();
  test_nothing_to_reduce();
  test_out();
  test_refusals();
  return 0;
}
