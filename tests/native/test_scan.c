/* Running totals against float64: every dtype and layout, sizes around tiles and splits, torch's rules. */
#include "tp_emulated.h"
#include "values.h"

enum {
#define TP_SCAN(name, code, rule) TP_SCAN_##name = code,
#include "ops.def"
  OPS = 0
#define TP_SCAN(name, code, rule) +1
#include "ops.def"
};

/* Checks tp_scan along dim, where values are the tensor's elements in C order. */
static void check_scan(int32_t op, const tp_tensor_t *tensor, const double *values, int32_t dim) {
  int64_t size = tensor->ndim ? tensor->shape[dim] : 1, inner = 1;
  for (int32_t d = dim + 1; d < tensor->ndim; ++d) inner *= tensor->shape[d];
  bool whole = tp__dtype_category(tensor->dtype) <= TP_CATEGORY_INT;
  tp_tensor_t *result = tp_scan(op, tensor, dim - (tensor->ndim ? tensor->ndim : 1), TP_DTYPE_NONE, NULL);
  CHECK(result && result->contiguous && result->numel == tensor->numel);
  CHECK(result->dtype == (whole ? (int32_t)TP_DTYPE_int64 : tensor->dtype));
  double *got = values_download(result);
  for (int64_t start = 0; start < tensor->numel; ++start) {
    if (start / inner % size) continue;
    uint64_t wrapped = op == TP_SCAN_cumprod;
    double total = (double)wrapped, room = 0;
    for (int64_t i = 0; i < size; ++i) {
      double x = values[start + i * inner];
      wrapped = op == TP_SCAN_cumprod ? wrapped * (uint64_t)(int64_t)x : wrapped + (uint64_t)(int64_t)x;
      total = op == TP_SCAN_cumprod ? total * x : total + x;
      room = op == TP_SCAN_cumprod ? fabs(total) : room + fabs(x);
      double expected = whole ? (double)(int64_t)wrapped : total;
      double tolerance = values_epsilon(tensor->dtype) * fabs(total) + 0x1p-36 * room;
      CHECK_CLOSE(got[start + i * inner], expected, whole ? 0 : tolerance, start + i * inner);
    }
  }
  free(got);
  tp_tensor_release(result);
}

/* Sums of random numbers, products of odd ones and of ones near 1. */
static void check_all(int32_t dtype, int32_t ndim, const int64_t *shape) {
  for (int32_t op = 0; op < OPS; ++op) {
    double *values;
    tp_tensor_t *tensor = values_random(dtype, ndim, shape, &values);
    if (op == TP_SCAN_cumprod) {
      bool whole = tp__dtype_category(dtype) <= TP_CATEGORY_INT;
      for (int64_t i = 0; i < tensor->numel; ++i)
        values[i] = whole ? (double)(values_between(-2, 3) * 2 + 1) : 1 + values[i] / 4096;
      tp_tensor_release(tensor);
      tensor = values_upload(dtype, ndim, shape, values);
    }
    for (int32_t dim = 0; dim < (ndim ? ndim : 1); ++dim) check_scan(op, tensor, values, dim);
    free(values);
    tp_tensor_release(tensor);
  }
}

static void test_dtypes(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    check_all(dtype, 0, NULL);
    check_all(dtype, 3, (int64_t[]){4, 65, 7});
    check_all(dtype, 2, (int64_t[]){3, 5000});
    check_all(dtype, 2, (int64_t[]){0, 4});
  }
}

/* Around a unit, the least row of a block, a tile, and what is worth a split. */
static void test_sizes(void) {
  static const int64_t edges[] = {8, 64, 128, 2048, 4096, 8192};
  for (size_t e = 0; e < sizeof edges / sizeof *edges; ++e) {
    for (int64_t size = edges[e] - 1; size <= edges[e] + 1; ++size) {
      check_all(TP_DTYPE_float32, 2, (int64_t[]){2, size});
      check_all(TP_DTYPE_int64, 2, (int64_t[]){size, 3});
    }
  }
  check_all(TP_DTYPE_float64, 1, (int64_t[]){100003});
  check_all(TP_DTYPE_int32, 2, (int64_t[]){40001, 2});
  check_all(TP_DTYPE_complex64, 1, (int64_t[]){20000});
}

/* Permuted, sliced and expanded operands. */
static void test_layouts(void) {
  tp_tensor_t *base = values_random(TP_DTYPE_float16, 3, (int64_t[]){6, 13, 70}, NULL);
  tp_tensor_t *one = tp_tensor_slice(base, 1, 5, 6, 1);
  tp_tensor_t *views[] = {tp_tensor_permute(base, 3, (int64_t[]){2, 0, 1}), tp_tensor_slice(base, 2, 1, 69, 3),
                          tp_tensor_expand(one, 3, (int64_t[]){6, 40, 70})};
  for (size_t v = 0; v < 3; ++v) {
    double *values = values_download(views[v]);
    for (int32_t dim = 0; dim < 3; ++dim) check_scan(TP_SCAN_cumsum, views[v], values, dim);
    free(values);
    tp_tensor_release(views[v]);
  }
  tp_tensor_release(one);
  tp_tensor_release(base);
}

/* dtype: elements are converted first where kinds differ, and only the result is rounded where they do not. */
static void test_dtype_of_the_result(void) {
  static const struct {
    int32_t operand, wanted;
    double values[3], expected[3];
  } cases[] = {
      {TP_DTYPE_float32, TP_DTYPE_int64, {1.5, 1.5, -2.5}, {1, 2, 0}},
      {TP_DTYPE_int32, TP_DTYPE_float32, {1, 2, 3}, {1, 3, 6}},
      {TP_DTYPE_float16, TP_DTYPE_float32, {60000, 60000, 1}, {60000, 120000, 120001}},
      {TP_DTYPE_uint8, TP_DTYPE_uint8, {200, 100, 1}, {200, 44, 45}},
      {TP_DTYPE_int32, TP_DTYPE_complex64, {1, 2, 3}, {1, 3, 6}},
      {TP_DTYPE_float64, TP_DTYPE_float32, {1e39, -1e39, 1}, {(double)INFINITY, 0, 1}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    double values[3];
    memcpy(values, cases[c].values, sizeof values);
    tp_tensor_t *tensor = values_upload(cases[c].operand, 1, (int64_t[]){3}, values);
    tp_tensor_t *result = tp_scan(TP_SCAN_cumsum, tensor, 0, cases[c].wanted, NULL);
    CHECK(result && result->dtype == cases[c].wanted);
    double *got = values_download(result);
    for (int i = 0; i < 3; ++i) CHECK_CLOSE(got[i], cases[c].expected[i], 0, i);
    free(got);
    tp_tensor_release(result);
    tp_tensor_release(tensor);
  }
}

/* out: itself, poisoned, not contiguous, of a higher dtype, shifted inside the operand. With and without splits. */
static void test_out(void) {
  for (int64_t size = 50; size <= 20000; size *= 400) {
    for (int kind = 0; kind < 5; ++kind) {
      double *values;
      tp_tensor_t *base = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, size + 1}, &values);
      tp_tensor_t *operand = tp_tensor_slice(base, 1, 0, size, 1);
      tp_tensor_t *expected = tp_scan(TP_SCAN_cumsum, operand, 1, TP_DTYPE_NONE, NULL);
      tp_tensor_t *turned = values_poisoned(TP_DTYPE_float32, 2, (int64_t[]){size, 2});
      tp_tensor_t *out = kind == 0 ? tp_tensor_alias(operand)
                       : kind == 1 ? values_poisoned(TP_DTYPE_float32, 2, (int64_t[]){2, size})
                       : kind == 2 ? tp_tensor_transpose(turned, 0, 1)
                       : kind == 3 ? values_poisoned(TP_DTYPE_float64, 2, (int64_t[]){2, size})
                                   : tp_tensor_slice(base, 1, 1, size + 1, 1);
      double *want = values_download(expected);
      tp_tensor_t *result = tp_scan(TP_SCAN_cumsum, operand, 1, TP_DTYPE_NONE, out);
      CHECK(result == out);
      double *got = values_download(out);
      for (int64_t i = 0; i < 2 * size; ++i) CHECK_CLOSE(got[i], want[i], 0, i);
      free(got);
      free(want);
      free(values);
      tp_tensor_t *tensors[] = {base, operand, expected, turned, out, result};
      for (size_t i = 0; i < 6; ++i) tp_tensor_release(tensors[i]);
    }
  }
}

static void test_refusals(void) {
  tp_tensor_t *floats = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, 3}, NULL);
  tp_tensor_t *integers = values_random(TP_DTYPE_int64, 2, (int64_t[]){2, 3}, NULL);
  CHECK(!tp_scan(OPS, floats, 0, TP_DTYPE_NONE, NULL) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_scan(TP_SCAN_cumsum, floats, 2, TP_DTYPE_NONE, NULL) && tp_error_status() == TP_INDEX);
  CHECK(!tp_scan(TP_SCAN_cumsum, floats, 0, TP_DTYPE_bool, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_scan(TP_SCAN_cumprod, floats, 0, TP_DTYPE_NONE, integers) && tp_error_status() == TP_DTYPE);
  CHECK(strcmp(tp_error_operation(), "cumprod") == 0);
  tp_tensor_release(integers);
  tp_tensor_release(floats);
}

int main(void) {
  values_start();
  test_dtypes();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_sizes();
    test_layouts();
    test_out();
  }
  test_dtype_of_the_result();
  test_refusals();
  return 0;
}
