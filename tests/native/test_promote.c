/* Promotion of dtypes, and the default dtype. */
#include "values.h"

enum {
#define TP_UNARY(name, code, takes, rule, kernels) UNARY_##name = code,
#define TP_BINARY(name, code, takes, rule, kernels) BINARY_##name = code,
#include "ops.def"
};

/* Categories win over dimensions, dimensions over 0-d tensors, and among equals the table decides. */
static void test_promotion(void) {
  static const struct {
    int32_t a;
    bool a_weak;
    int32_t b;
    bool b_weak;
    int32_t result;
  } cases[] = {
      {TP_DTYPE_float16, false, TP_DTYPE_bfloat16, false, TP_DTYPE_float32},
      {TP_DTYPE_int64, false, TP_DTYPE_float16, false, TP_DTYPE_float16},
      {TP_DTYPE_bool, false, TP_DTYPE_int32, false, TP_DTYPE_int32},
      {TP_DTYPE_uint8, false, TP_DTYPE_int8, false, TP_DTYPE_int16},
      {TP_DTYPE_float32, true, TP_DTYPE_float16, false, TP_DTYPE_float16},
      {TP_DTYPE_float16, false, TP_DTYPE_float32, true, TP_DTYPE_float16},
      {TP_DTYPE_float32, true, TP_DTYPE_float16, true, TP_DTYPE_float32},
      {TP_DTYPE_int64, true, TP_DTYPE_int32, true, TP_DTYPE_int64},
      {TP_DTYPE_int64, true, TP_DTYPE_int32, false, TP_DTYPE_int32},
      {TP_DTYPE_int64, true, TP_DTYPE_bool, false, TP_DTYPE_int64},
      {TP_DTYPE_int32, false, TP_DTYPE_float16, true, TP_DTYPE_float16},
      {TP_DTYPE_float64, true, TP_DTYPE_complex64, false, TP_DTYPE_complex64},
      {TP_DTYPE_float64, false, TP_DTYPE_complex64, true, TP_DTYPE_complex128},
      {TP_DTYPE_float32, false, TP_DTYPE_complex128, true, TP_DTYPE_complex64},
      {TP_DTYPE_int64, false, TP_DTYPE_complex128, true, TP_DTYPE_complex128},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    CHECK(tp__promote(cases[i].a, cases[i].a_weak, cases[i].b, cases[i].b_weak) == cases[i].result);
}

/* Takes y. */
static void check_dtype(tp_tensor_t *y, int32_t dtype) {
  CHECK(y && tp_tensor_dtype(y) == dtype);
  tp_tensor_release(y);
}

/* What integers become under the rule FLOAT, and what numbers with a fraction are beside them. */
static void test_default(void) {
  static const int32_t defaults[] = {TP_DTYPE_float64, TP_DTYPE_float16, TP_DTYPE_bfloat16, TP_DTYPE_float32};
  tp_tensor_t *whole = values_random(TP_DTYPE_int32, 1, (int64_t[]){3}, NULL);
  tp_tensor_t *single = values_random(TP_DTYPE_float32, 1, (int64_t[]){3}, NULL);
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; ++i) {
    int32_t dtype = defaults[i];
    CHECK_OK(tp_dtype_set_default(dtype));
    check_dtype(tp_unary(UNARY_exp, whole, NULL), dtype);
    check_dtype(tp_binary(BINARY_div, whole, whole, NULL), dtype);
    check_dtype(tp_binary_float(BINARY_add, whole, 0.5, 0, NULL), dtype);
    check_dtype(tp_binary_int(BINARY_div, whole, 3, 0, 0, NULL), dtype);
    check_dtype(tp_binary_float(BINARY_add, single, 0.5, 0, NULL), TP_DTYPE_float32);
    check_dtype(tp_binary_complex(BINARY_add, single, 0, 1, 0, NULL), TP_DTYPE_complex64);
    check_dtype(tp_binary_complex(BINARY_add, whole, 0, 1, 0, NULL),
                dtype == TP_DTYPE_float64 ? TP_DTYPE_complex128 : TP_DTYPE_complex64);
  }
  static const int32_t refused[] = {TP_DTYPE_int64, TP_DTYPE_bool, TP_DTYPE_complex64, TP_DTYPE_NONE, TP_DTYPE_COUNT};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) CHECK(tp_dtype_set_default(refused[i]) == TP_DTYPE);
  check_dtype(tp_unary(UNARY_exp, whole, NULL), TP_DTYPE_float32);
  tp_tensor_release(whole);
  tp_tensor_release(single);
}

/* A third in double, where the default has it. */
static void test_default_precision(void) {
  double one = 1;
  tp_tensor_t *whole = values_upload(TP_DTYPE_int64, 0, NULL, &one);
  CHECK_OK(tp_dtype_set_default(TP_DTYPE_float64));
  tp_tensor_t *third = tp_binary_int(BINARY_div, whole, 3, 0, 0, NULL);
  tp_tensor_t *sum = tp_binary_float(BINARY_add, whole, 0.1, 0, NULL);
  CHECK_OK(tp_dtype_set_default(TP_DTYPE_float32));
  double *thirds = values_download(third), *sums = values_download(sum);
  CHECK(thirds[0] == 1.0 / 3 && sums[0] == 1.1);
  free(thirds);
  free(sums);
  tp_tensor_t *all[] = {whole, third, sum};
  for (int i = 0; i < 3; ++i) tp_tensor_release(all[i]);
}

int main(void) {
  values_start();
  test_promotion();
  test_default();
  test_default_precision();
  return 0;
}
