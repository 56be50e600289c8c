/* Elementwise operations that write into `out`, values at the edges, and what is refused. */
#include "values.h"

enum {
#define TP_UNARY(name, code, takes, rule, kernels) UNARY_##name = code,
#define TP_BINARY(name, code, takes, rule, kernels) BINARY_##name = code,
#include "ops.def"
};

static tp_tensor_t *vector(int32_t dtype, int64_t n, const double *values) {
  double *copy = malloc((size_t)(n + 1) * sizeof *copy);
  memcpy(copy, values, (size_t)n * sizeof *copy);
  tp_tensor_t *tensor = values_upload(dtype, 1, &n, copy);
  free(copy);
  return tensor;
}

/* `y` is the given out with one more reference. */
static void check_is_out(tp_tensor_t *y, tp_tensor_t *out) {
  CHECK(y == out);
  tp_tensor_release(y);
}

static void test_in_place(void) {
  tp_tensor_t *a = vector(TP_DTYPE_float32, 4, (double[]){1, 2, 3, 4});
  check_is_out(tp_binary(BINARY_mul, a, a, a), a);
  values_check(a, (double[]){1, 4, 9, 16});
  check_is_out(tp_binary_int(BINARY_sub, a, 1, 0, 1, a), a);
  values_check(a, (double[]){0, -3, -8, -15});
  check_is_out(tp_unary(UNARY_abs, a, a), a);
  values_check(a, (double[]){0, 3, 8, 15});
  tp_tensor_release(a);
}

/* out overlaps an operand in other places: the result is as if it did not. */
static void test_overlap(void) {
  tp_tensor_t *a = vector(TP_DTYPE_int32, 6, (double[]){1, 2, 3, 4, 5, 6});
  tp_tensor_t *head = tp_tensor_slice(a, 0, 0, 5, 1), *tail = tp_tensor_slice(a, 0, 1, 6, 1);
  check_is_out(tp_binary(BINARY_add, head, tail, tail), tail);
  values_check(a, (double[]){1, 3, 5, 7, 9, 11});
  tp_tensor_t *square = tp_tensor_arange_int(0, 1, 9, TP_DTYPE_float32, 0);
  tp_tensor_t *rows = tp_tensor_view(square, 2, (int64_t[]){3, 3});
  tp_tensor_t *columns = tp_tensor_transpose(rows, 0, 1);
  check_is_out(tp_binary(BINARY_add, rows, columns, rows), rows);
  values_check(rows, (double[]){0, 4, 8, 4, 8, 12, 8, 12, 16});
  tp_tensor_t *condition = tp_binary_int(BINARY_gt, columns, 7, 0, 0, NULL);
  tp_tensor_t *first = tp_tensor_select(rows, 0, 0);
  check_is_out(tp_where(condition, first, columns, rows), rows);
  values_check(rows, (double[]){0, 4, 8, 4, 4, 8, 0, 4, 8});
  tp_tensor_t *all[] = {a, head, tail, square, rows, columns, condition, first};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

/* Written in out's dtype and strides, within or above the result's category. */
static void test_cast_into_out(void) {
  tp_tensor_t *a = vector(TP_DTYPE_int32, 3, (double[]){7, -1, 2});
  static const int32_t dtypes[] = {TP_DTYPE_int64, TP_DTYPE_float16, TP_DTYPE_bfloat16, TP_DTYPE_float32};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
    tp_tensor_t *wide = values_poisoned(dtypes[i], 2, (int64_t[]){3, 2}), *out = tp_tensor_select(wide, 1, 1);
    check_is_out(tp_binary(BINARY_add, a, a, out), out);
    values_check(out, (double[]){14, -2, 4});
    check_is_out(tp_binary_int(BINARY_lt, a, 3, 0, 0, out), out);
    values_check(out, (double[]){0, 1, 1});
    tp_tensor_release(out);
    tp_tensor_release(wide);
  }
  /* Computed in the promoted dtype first: True or True is True, and int32 wraps before it is int64. */
  tp_tensor_t *flags = vector(TP_DTYPE_bool, 1, (double[]){1});
  tp_tensor_t *most = vector(TP_DTYPE_int32, 1, (double[]){INT32_MAX});
  tp_tensor_t *out = values_poisoned(TP_DTYPE_int64, 1, (int64_t[]){1});
  check_is_out(tp_binary(BINARY_add, flags, flags, out), out);
  values_check(out, (double[]){1});
  check_is_out(tp_binary_int(BINARY_add, most, 1, 0, 0, out), out);
  values_check(out, (double[]){INT32_MIN});
  tp_tensor_t *all[] = {a, flags, most, out};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

static void test_refused(void) {
  tp_tensor_t *a = vector(TP_DTYPE_int32, 3, (double[]){1, 2, 3});
  tp_tensor_t *four = values_poisoned(TP_DTYPE_float32, 1, (int64_t[]){4});
  tp_tensor_t *flags = values_poisoned(TP_DTYPE_bool, 1, (int64_t[]){3});
  tp_tensor_t *other = tp_tensor_empty(TP_DTYPE_int32, 1, 1, (int64_t[]){3});
  tp_tensor_t *one = values_poisoned(TP_DTYPE_float32, 1, (int64_t[]){1});
  tp_tensor_t *same = tp_tensor_expand(one, 1, (int64_t[]){3});
  CHECK(!tp_binary(BINARY_add, a, four, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_binary(BINARY_add, a, a, four) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_binary(BINARY_div, a, a, a) && tp_error_status() == TP_DTYPE); /* float32 into int32 */
  CHECK(!tp_binary_int(BINARY_add, flags, 1, 0, 0, flags) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_binary(BINARY_sub, flags, flags, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_unary(UNARY_neg, flags, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_binary(BINARY_add, a, other, NULL) && tp_error_status() == TP_DEVICE);
  CHECK(!tp_binary(BINARY_add, a, a, other) && tp_error_status() == TP_DEVICE);
  CHECK(!tp_where(a, a, a, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_where(flags, a, other, NULL) && tp_error_status() == TP_DEVICE);
  CHECK(!tp_where(flags, a, four, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_binary(BINARY_add, a, a, same) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_unary(99, a, NULL) && tp_error_status() == TP_INVALID_ARGUMENT);
  values_check(a, (double[]){1, 2, 3});
  tp_tensor_t *all[] = {a, four, flags, other, one, same};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

/* NaN wins in maximum and minimum and is unequal to itself; relu keeps it. */
static void test_nan(void) {
  for (size_t d = 0; d < 3; ++d) {
    tp_tensor_t *a = vector(floating_dtypes[d], 4, (double[]){NAN, 1, -INFINITY, NAN});
    tp_tensor_t *b = vector(floating_dtypes[d], 4, (double[]){2, NAN, INFINITY, NAN});
    tp_tensor_t *results[] = {tp_binary(BINARY_maximum, a, b, NULL), tp_binary(BINARY_minimum, a, b, NULL),
                              tp_binary(BINARY_eq, a, a, NULL), tp_unary(UNARY_relu, a, NULL),
                              tp_binary(BINARY_logical_and, a, b, NULL)};
    values_check(results[0], (double[]){NAN, NAN, INFINITY, NAN});
    values_check(results[1], (double[]){NAN, NAN, -INFINITY, NAN});
    values_check(results[2], (double[]){0, 1, 1, 0});
    values_check(results[3], (double[]){NAN, 1, 0, NAN});
    values_check(results[4], (double[]){1, 1, 1, 1});
    for (int i = 0; i < 5; ++i) tp_tensor_release(results[i]);
    tp_tensor_release(a);
    tp_tensor_release(b);
  }
}

/* Integers wrap, scalars that do not fit too. */
static void test_wrap(void) {
  tp_tensor_t *a = vector(TP_DTYPE_int32, 3, (double[]){INT32_MAX, INT32_MIN, 3});
  tp_tensor_t *results[] = {tp_binary_int(BINARY_add, a, 1, 0, 0, NULL), tp_unary(UNARY_neg, a, NULL),
                            tp_binary(BINARY_mul, a, a, NULL),
                            tp_binary_int(BINARY_add, a, (int64_t)1 << 40, 0, 0, NULL),
                            tp_binary_int(BINARY_pow, a, 21, 0, 0, NULL)};
  values_check(results[0], (double[]){INT32_MIN, INT32_MIN + 1.0, 4});
  values_check(results[1], (double[]){-(double)INT32_MAX, INT32_MIN, -3});
  values_check(results[2], (double[]){1, 0, 9});
  values_check(results[3], (double[]){INT32_MAX, INT32_MIN, 3});
  values_check(results[4], (double[]){INT32_MAX, 0, (int32_t)(uint32_t)10460353203u});
  for (int i = 0; i < 5; ++i) tp_tensor_release(results[i]);
  tp_tensor_release(a);
}

/* Operands count as elements of the promoted dtype: float16 has no 2049, and 70000 is infinite in it. */
static void test_rounding_of_operands(void) {
  tp_tensor_t *whole = vector(TP_DTYPE_int32, 2, (double[]){70000, 2049});
  tp_tensor_t *half = vector(TP_DTYPE_float16, 2, (double[]){60000, 2048});
  tp_tensor_t *difference = tp_binary(BINARY_sub, whole, half, NULL);
  values_check(difference, (double[]){INFINITY, 0});
  tp_tensor_t *all[] = {whole, half, difference};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

/* So does a number in a comparison, in the kernels for runs and for strides; in arithmetic it does not. */
static void test_rounding_of_numbers(void) {
  tp_tensor_t *run = vector(TP_DTYPE_float16, 4, (double[]){0.1, 0.2, 0.1, 0.2});
  tp_tensor_t *strided = tp_tensor_slice(run, 0, 0, 4, 2);
  tp_tensor_t *equal = tp_binary_float(BINARY_eq, run, 0.1, 0, NULL);
  tp_tensor_t *strided_equal = tp_binary_float(BINARY_eq, strided, 0.1, 0, NULL);
  values_check(equal, (double[]){1, 0, 1, 0});
  values_check(strided_equal, (double[]){1, 1});
  tp_tensor_t *wrapped = vector(TP_DTYPE_int32, 4, (double[]){5, 6, 5, 6});
  tp_tensor_t *strided_wrapped = tp_tensor_slice(wrapped, 0, 0, 4, 2);
  tp_tensor_t *wrapped_equal = tp_binary_int(BINARY_eq, strided_wrapped, ((int64_t)1 << 32) + 5, 0, 0, NULL);
  values_check(wrapped_equal, (double[]){1, 1});
  double tenth = (double)(float)0.1, x[] = {0.1, 0.2, 0.1, 0.2}, expected[4], element[1];
  tp_tensor_t *exact = values_upload(TP_DTYPE_float16, 1, (int64_t[]){4}, x);
  tp_tensor_t *product = tp_binary_float(BINARY_mul, exact, 0.1, 0, NULL);
  for (int i = 0; i < 4; ++i)
    expected[i] = values_encode(TP_DTYPE_float16, (double)((float)x[i] * (float)tenth), element);
  values_check(product, expected);
  tp_tensor_t *all[] = {run,     strided,         equal,         strided_equal, exact,
                        wrapped, strided_wrapped, wrapped_equal, product};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

/* Takes y. */
static void check_result(tp_tensor_t *y, int32_t dtype, const double *expected) {
  CHECK(y && tp_tensor_dtype(y) == dtype);
  values_check(y, expected);
  tp_tensor_release(y);
}

/* Zero's sign, infinities and NaN, in the kernels that take any op. */
static void test_special_numbers(void) {
  static const int32_t dtypes[] = {TP_DTYPE_float16, TP_DTYPE_bfloat16, TP_DTYPE_float32, TP_DTYPE_float64};
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t) {
    int32_t dtype = dtypes[t];
    tp_tensor_t *a = vector(dtype, 6, (double[]){-0.0, 2.5, -3.5, INFINITY, -INFINITY, NAN});
    check_result(tp_unary(UNARY_sign, a, NULL), dtype, (double[]){0, 1, -1, 1, -1, 0});
    check_result(tp_unary(UNARY_isnan, a, NULL), TP_DTYPE_bool, (double[]){0, 0, 0, 0, 0, 1});
    check_result(tp_unary(UNARY_isinf, a, NULL), TP_DTYPE_bool, (double[]){0, 0, 0, 1, 1, 0});
    check_result(tp_unary(UNARY_isfinite, a, NULL), TP_DTYPE_bool, (double[]){1, 1, 1, 0, 0, 0});
    check_result(tp_unary(UNARY_signbit, a, NULL), TP_DTYPE_bool, (double[]){1, 0, 1, 0, 1, 0});
    check_result(tp_unary(UNARY_round, a, NULL), dtype, (double[]){0, 2, -4, INFINITY, -INFINITY, NAN});
    tp_tensor_t *b = vector(dtype, 6, (double[]){0, 0, INFINITY, 2, NAN, 1});
    check_result(tp_binary(BINARY_floor_divide, a, b, NULL), dtype, (double[]){NAN, INFINITY, -1, NAN, NAN, NAN});
    check_result(tp_binary(BINARY_remainder, a, b, NULL), dtype, (double[]){NAN, NAN, INFINITY, NAN, NAN, NAN});
    check_result(tp_binary(BINARY_fmod, a, b, NULL), dtype, (double[]){NAN, NAN, -3.5, NAN, NAN, NAN});
    check_result(tp_binary(BINARY_fmax, a, b, NULL), dtype, (double[]){0, 2.5, INFINITY, INFINITY, -INFINITY, 1});
    check_result(tp_binary(BINARY_hypot, a, b, NULL), dtype, (double[]){0, 2.5, INFINITY, INFINITY, INFINITY, NAN});
    tp_tensor_release(a);
    tp_tensor_release(b);
  }
}

/* Division by zero gives 0, the lowest number by -1 itself; shifts by what no shift takes; narrow types wrap. */
static void test_integers(void) {
  static const struct {
    int32_t dtype;
    double lowest, width;
  } cases[] = {{TP_DTYPE_int8, -0x1p7, 8}, {TP_DTYPE_int16, -0x1p15, 16}, {TP_DTYPE_int32, -0x1p31, 32},
               {TP_DTYPE_int64, -0x1p63, 64}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    int32_t dtype = cases[c].dtype;
    double lowest = cases[c].lowest;
    tp_tensor_t *a = vector(dtype, 6, (double[]){lowest, lowest, 7, -7, -7, 7});
    tp_tensor_t *b = vector(dtype, 6, (double[]){-1, 0, 0, 2, -2, -2});
    check_result(tp_binary(BINARY_floor_divide, a, b, NULL), dtype, (double[]){lowest, 0, 0, -4, 3, -4});
    check_result(tp_binary(BINARY_div_trunc, a, b, NULL), dtype, (double[]){lowest, 0, 0, -3, 3, -3});
    check_result(tp_binary(BINARY_remainder, a, b, NULL), dtype, (double[]){0, 0, 0, 1, -1, -1});
    check_result(tp_binary(BINARY_fmod, a, b, NULL), dtype, (double[]){0, 0, 0, -1, -1, 1});
    check_result(tp_unary(UNARY_abs, a, NULL), dtype, (double[]){lowest, lowest, 7, 7, 7, 7});
    double width = cases[c].width;
    tp_tensor_t *counts = vector(dtype, 6, (double[]){-1, width, width - 1, width, width - 1, 1});
    check_result(tp_binary(BINARY_bitwise_left_shift, a, counts, NULL), dtype,
                 (double[]){0, 0, lowest, 0, lowest, 14});
    check_result(tp_binary(BINARY_bitwise_right_shift, a, counts, NULL), dtype, (double[]){-1, -1, 0, -1, -1, 3});
    tp_tensor_t *all[] = {a, b, counts};
    for (int i = 0; i < 3; ++i) tp_tensor_release(all[i]);
  }
  tp_tensor_t *bytes = vector(TP_DTYPE_uint8, 3, (double[]){0, 44, 255});
  check_result(tp_binary_int(BINARY_add, bytes, 300, 0, 0, NULL), TP_DTYPE_uint8, (double[]){44, 88, 43});
  check_result(tp_binary_int(BINARY_eq, bytes, 300, 0, 0, NULL), TP_DTYPE_bool, (double[]){0, 1, 0});
  check_result(tp_unary(UNARY_bitwise_not, bytes, NULL), TP_DTYPE_uint8, (double[]){255, 211, 0});
  check_result(tp_binary_int(BINARY_bitwise_right_shift, bytes, 8, 0, 0, NULL), TP_DTYPE_uint8, (double[]){0, 0, 0});
  tp_tensor_release(bytes);
}

/* Numbers beside float64 are exact, and integers beside float32 are rounded once. */
static void test_exact_numbers(void) {
  tp_tensor_t *a = vector(TP_DTYPE_float64, 1, (double[]){1});
  check_result(tp_binary_float(BINARY_mul, a, 0.1, 0, NULL), TP_DTYPE_float64, (double[]){0.1});
  check_result(tp_binary_float(BINARY_eq, a, 1 + 0x1p-52, 0, NULL), TP_DTYPE_bool, (double[]){0});
  check_result(tp_binary_int(BINARY_mul, a, 9007199254740991, 0, 1, NULL), TP_DTYPE_float64,
               (double[]){9007199254740991});
  tp_tensor_t *single = vector(TP_DTYPE_float32, 1, (double[]){1});
  int64_t number = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1; /* a double would round it to the middle */
  check_result(tp_binary_int(BINARY_mul, single, number, 0, 0, NULL), TP_DTYPE_float32,
               (double[]){0x1p60 + 0x1p37});
  tp_tensor_release(a);
  tp_tensor_release(single);
}

int main(void) {
  values_start();
  test_in_place();
  test_overlap();
  test_cast_into_out();
  test_refused();
  test_nan();
  test_wrap();
  test_rounding_of_operands();
  test_rounding_of_numbers();
  test_special_numbers();
  test_integers();
  test_exact_numbers();
  for (int32_t device = 0; device < 2; ++device) CHECK(tp_memory_stat(device, 0) == 0); /* nothing is left */
  return 0;
}
