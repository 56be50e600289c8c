/* Products against float64: shapes of torch's matmul, every layout, linear with bias, out. */
#include "tp_emulated.h"
#include "products.h"

/* out: poisoned, of a higher dtype, strided, an operand. */
static void test_out(void) {
  int64_t shape[] = {130, 130}; /* several tiles, which read what others write */
  tp_tensor_t *a = values_random(TP_DTYPE_bfloat16, 2, shape, NULL),
              *b = values_random(TP_DTYPE_bfloat16, 2, shape, NULL);
  tp_tensor_t *expected = tp_matmul(a, b, NULL), *base = values_poisoned(TP_DTYPE_bfloat16, 2, shape);
  double *want = values_download(expected);
  tp_tensor_t *outs[] = {values_poisoned(TP_DTYPE_bfloat16, 2, shape),
                         values_poisoned(TP_DTYPE_float32, 2, shape), tp_tensor_transpose(base, 0, 1),
                         tp_tensor_alias(b)};
  for (size_t o = 0; o < 4; ++o) {
    tp_tensor_t *result = tp_matmul(a, b, outs[o]);
    CHECK(result == outs[o]);
    double *got = values_download(result);
    for (int i = 0; i < 130 * 130; ++i) CHECK_CLOSE(got[i], want[i], 0, i);
    free(got);
    tp_tensor_release(result);
    tp_tensor_release(outs[o]);
  }
  free(want);
  tp_tensor_t *tensors[] = {a, b, expected, base};
  for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
}

/* Integers wrap as their dtype does; what an int64 holds of the sum does not matter for narrower ones. */
static void test_integers(void) {
  static const int32_t dtypes[] = {TP_DTYPE_uint8, TP_DTYPE_int8, TP_DTYPE_int16, TP_DTYPE_int32, TP_DTYPE_int64};
  enum { M = 3, K = 67, N = 70 };
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t) {
    double *x, *y;
    tp_tensor_t *a = values_random(dtypes[t], 2, (int64_t[]){M, K}, &x);
    tp_tensor_t *b = values_random(dtypes[t], 2, (int64_t[]){K, N}, &y);
    tp_tensor_t *result = tp_matmul(a, b, NULL);
    CHECK(result && result->dtype == dtypes[t]);
    double *got = values_download(result);
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        double sum = 0;
        for (int k = 0; k < K; ++k) sum += x[i * K + k] * y[k * N + j];
        CHECK_CLOSE(got[i * N + j], values_rounded(dtypes[t], sum), 0, i * N + j);
      }
    double *values[] = {x, y, got};
    for (size_t v = 0; v < 3; ++v) free(values[v]);
    tp_tensor_t *tensors[] = {a, b, result};
    for (size_t r = 0; r < 3; ++r) tp_tensor_release(tensors[r]);
  }
}

static void test_refusals(void) {
  tp_tensor_t *a = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, 3}, NULL);
  tp_tensor_t *half = values_random(TP_DTYPE_float16, 2, (int64_t[]){3, 2}, NULL);
  tp_tensor_t *integers = values_random(TP_DTYPE_int32, 2, (int64_t[]){3, 3}, NULL);
  tp_tensor_t *bools = values_random(TP_DTYPE_bool, 2, (int64_t[]){3, 3}, NULL);
  tp_tensor_t *square = values_random(TP_DTYPE_float32, 2, (int64_t[]){3, 3}, NULL);
  tp_tensor_t *scalar = values_random(TP_DTYPE_float32, 0, NULL, NULL);
  tp_tensor_t *far = tp_tensor_empty(TP_DTYPE_float32, 1, 2, (int64_t[]){3, 2});
  tp_tensor_t *two = values_random(TP_DTYPE_float32, 3, (int64_t[]){2, 3, 4}, NULL);
  tp_tensor_t *three = values_random(TP_DTYPE_float32, 3, (int64_t[]){3, 2, 3}, NULL);
  tp_tensor_t *pair = values_random(TP_DTYPE_float32, 1, (int64_t[]){3}, NULL);
  CHECK(!tp_matmul(a, a, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_matmul(a, half, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_matmul(bools, bools, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_linear(bools, bools, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_linear_gelu(integers, integers, NULL, 1) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_linear_gelu(a, a, pair, 1) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_addmm(half, square, square, 1, 0, 1, 0, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_addmm(three, square, square, 1, 0, 1, 0, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_addmm(a, square, square, 1, 0, 1, 0, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_matmul(a, scalar, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_matmul(a, far, NULL) && tp_error_status() == TP_DEVICE);
  CHECK(!tp_matmul(three, two, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_linear(a, two, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_linear(a, a, pair) && tp_error_status() == TP_SHAPE);
  CHECK(tp_blas_load("/nowhere/libcublasLt.so") == TP_UNAVAILABLE && tp_blas_is_loaded() == 0);
  tp_tensor_t *tensors[] = {a, half, integers, bools, square, scalar, far, two, three, pair};
  for (size_t t = 0; t < 10; ++t) tp_tensor_release(tensors[t]);
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    for (size_t t = 0; t < (fibres ? 1 : 4); ++t) { /* fibres are slow, and indifferent to dtypes */
      test_shapes(floating_dtypes[t]);
      test_layouts(floating_dtypes[t]);
      test_linear(floating_dtypes[t]);
      test_linear_gelu(floating_dtypes[t]);
      test_addmm(floating_dtypes[t]);
    }
    test_complex(TP_DTYPE_complex64);
    test_complex(TP_DTYPE_complex128);
  }
  test_out();
  test_integers();
  test_refusals();
  return 0;
}
