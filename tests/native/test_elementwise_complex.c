/* Complex numbers: every op that takes them, against C's own in double. */
#include <complex.h>

#include "values.h"

typedef double complex number_t;

enum {
#define TP_UNARY(name, code, takes, rule, kernels) UNARY_##name = code,
#define TP_BINARY(name, code, takes, rule, kernels) BINARY_##name = code,
#include "ops.def"
};

static const int32_t dtypes[] = {TP_DTYPE_complex64, TP_DTYPE_complex128};

static double part(int32_t dtype, double x) { return dtype == TP_DTYPE_complex64 ? (double)(float)x : x; }

/* The elements become what the dtype holds. */
static tp_tensor_t *upload(int32_t dtype, int64_t n, number_t *values) {
  tp_tensor_t *tensor = tp_tensor_empty(dtype, 0, 1, &n);
  size_t nbytes = (size_t)n * tp__dtype_size(dtype);
  char *bytes = malloc(nbytes + 1);
  for (int64_t i = 0; i < n; ++i) {
    double parts[] = {creal(values[i]), cimag(values[i])};
    for (int k = 0; k < 2; ++k) {
      parts[k] = part(dtype, parts[k]);
      if (dtype == TP_DTYPE_complex64)
        ((float *)bytes)[2 * i + k] = (float)parts[k];
      else
        ((double *)bytes)[2 * i + k] = parts[k];
    }
    values[i] = CMPLX(parts[0], parts[1]);
  }
  CHECK_OK(tp_tensor_copy_from_host(tensor, bytes, nbytes));
  free(bytes);
  return tensor;
}

/* Takes y, and checks that its elements are near to the expected ones, of whatever dtype it is. */
static void check_near(tp_tensor_t *y, int32_t dtype, int64_t n, const number_t *expected) {
  CHECK(y && tp_tensor_dtype(y) == dtype);
  if (tp__dtype_category(dtype) != TP_CATEGORY_COMPLEX) {
    double *got = values_download(y);
    for (int64_t i = 0; i < n; ++i)
      CHECK_CLOSE(got[i], creal(expected[i]), values_epsilon(dtype) * 4 * cabs(expected[i]), i);
    free(got);
  } else {
    size_t nbytes = (size_t)n * tp__dtype_size(dtype);
    char *bytes = malloc(nbytes + 1);
    CHECK_OK(tp_tensor_copy_to_host(y, bytes, nbytes));
    for (int64_t i = 0; i < n; ++i) {
      double tolerance = values_epsilon(dtype) * 8 * cabs(expected[i]), parts[2];
      for (int k = 0; k < 2; ++k)
        parts[k] = dtype == TP_DTYPE_complex64 ? (double)((float *)bytes)[2 * i + k] : ((double *)bytes)[2 * i + k];
      CHECK_CLOSE(parts[0], creal(expected[i]), tolerance, i);
      CHECK_CLOSE(parts[1], cimag(expected[i]), tolerance, i);
    }
    free(bytes);
  }
  tp_tensor_release(y);
}

#define N 37
static void fresh(number_t *values) {
  for (int i = 0; i < N; ++i)
    values[i] = CMPLX((double)values_between(-8, 8), (double)values_between(-8, 8)) / 4; /* some equal, some 0 */
}

static number_t unary_expected(int32_t op, number_t x) {
  switch (op) {
    case UNARY_neg: return -x;
    case UNARY_abs: return cabs(x);
    case UNARY_conj: return conj(x);
    default: return x == 0;
  }
}

static number_t binary_expected(int32_t op, number_t a, number_t b) {
  switch (op) {
    case BINARY_add: return a + b;
    case BINARY_sub: return a - b;
    case BINARY_mul: return a * b;
    case BINARY_div: return a / b;
    case BINARY_eq: return a == b;
    case BINARY_ne: return a != b;
    case BINARY_logical_and: return a != 0 && b != 0;
    case BINARY_logical_or: return a != 0 || b != 0;
    default: return (a != 0) != (b != 0);
  }
}

static void test_ops(void) {
  static const int32_t unary[] = {UNARY_neg, UNARY_abs, UNARY_conj, UNARY_logical_not};
  static const int32_t binary[] = {BINARY_add, BINARY_sub, BINARY_mul, BINARY_div, BINARY_eq,
                                   BINARY_ne, BINARY_logical_and, BINARY_logical_or, BINARY_logical_xor};
  for (int t = 0; t < 2; ++t) {
    int32_t dtype = dtypes[t], real = t ? TP_DTYPE_float64 : TP_DTYPE_float32;
    number_t x[N], z[N], expected[N], scalar = CMPLX(-0.5, 1.25);
    fresh(x);
    fresh(z);
    tp_tensor_t *a = upload(dtype, N, x), *b = upload(dtype, N, z);
    for (size_t k = 0; k < sizeof unary / sizeof *unary; ++k) {
      int32_t op = unary[k];
      for (int i = 0; i < N; ++i) expected[i] = unary_expected(op, x[i]);
      int32_t result = op == UNARY_abs ? real : op == UNARY_logical_not ? (int32_t)TP_DTYPE_bool : dtype;
      check_near(tp_unary(op, a, NULL), result, N, expected);
    }
    for (size_t k = 0; k < sizeof binary / sizeof *binary; ++k) {
      int32_t op = binary[k], result = op <= BINARY_div ? dtype : (int32_t)TP_DTYPE_bool;
      for (int i = 0; i < N; ++i) {
        if (op == BINARY_div && z[i] == 0) z[i] = 1;
      }
      if (op == BINARY_div) {
        tp_tensor_release(b);
        b = upload(dtype, N, z);
      }
      for (int i = 0; i < N; ++i) expected[i] = binary_expected(op, x[i], z[i]);
      check_near(tp_binary(op, a, b, NULL), result, N, expected);
      for (int i = 0; i < N; ++i) expected[i] = binary_expected(op, x[i], scalar);
      check_near(tp_binary_complex(op, a, creal(scalar), cimag(scalar), 0, NULL), result, N, expected);
      for (int i = 0; i < N; ++i) expected[i] = binary_expected(op, scalar, z[i]);
      check_near(tp_binary_complex(op, b, creal(scalar), cimag(scalar), 1, NULL), result, N, expected);
      for (int i = 0; i < N; ++i) expected[i] = binary_expected(op, x[i], 0.1);
      if (t) check_near(tp_binary_float(op, a, 0.1, 0, NULL), result, N, expected);
      for (int i = 0; i < N; ++i) expected[i] = binary_expected(op, 3, z[i]);
      check_near(tp_binary_int(op, b, 3, 0, 1, NULL), result, N, expected);
    }
    tp_tensor_release(a);
    tp_tensor_release(b);
  }
}

/* Quotients whose parts' squares leave the range, and by zero; magnitudes likewise. */
static void test_range(void) {
  const double huge[] = {0x1p120, 0x1p1000}, tiny[] = {0x1p-120, 0x1p-1000};
  for (int t = 0; t < 2; ++t) {
    double h = huge[t], s = tiny[t];
    number_t x[] = {CMPLX(h, h), CMPLX(s, s), CMPLX(h, 0), CMPLX(1, 0), CMPLX(3, -2), 0};
    number_t z[] = {CMPLX(h, h), CMPLX(s, -s), CMPLX(h, h), CMPLX(0, s), 0, 0};
    tp_tensor_t *a = upload(dtypes[t], 6, x), *b = upload(dtypes[t], 6, z);
    const number_t quotients[] = {1, CMPLX(0, 1), CMPLX(0.5, -0.5), CMPLX(0, -1 / s), CMPLX(INFINITY, -INFINITY),
                                  CMPLX(NAN, NAN)};
    check_near(tp_binary(BINARY_div, a, b, NULL), dtypes[t], 6, quotients);
    const number_t magnitudes[] = {h * sqrt(2), s * sqrt(2), h, 1, sqrt(13), 0};
    check_near(tp_unary(UNARY_abs, a, NULL), t ? TP_DTYPE_float64 : TP_DTYPE_float32, 6, magnitudes);
    tp_tensor_release(a);
    tp_tensor_release(b);
  }
}

/* Complex numbers have no order; a magnitude goes into what takes fractions, a number not into what holds none. */
static void test_refused(void) {
  number_t x[] = {CMPLX(3, 4)};
  tp_tensor_t *a = upload(TP_DTYPE_complex64, 1, x), *out = values_poisoned(TP_DTYPE_float64, 1, (int64_t[]){1});
  tp_tensor_t *whole = values_poisoned(TP_DTYPE_int64, 1, (int64_t[]){1});
  static const int32_t ordered[] = {BINARY_lt, BINARY_ge, BINARY_maximum, BINARY_fmin, BINARY_pow, BINARY_atan2,
                                    BINARY_remainder, BINARY_bitwise_or};
  for (size_t i = 0; i < sizeof ordered / sizeof *ordered; ++i)
    CHECK(!tp_binary(ordered[i], a, a, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_binary_complex(BINARY_lt, out, 0, 1, 0, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_unary(UNARY_exp, a, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_unary(UNARY_neg, a, out) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_unary(UNARY_abs, a, whole) && tp_error_status() == TP_DTYPE);
  CHECK(tp_unary(UNARY_abs, a, out) == out);
  check_near(out, TP_DTYPE_float64, 1, (number_t[]){5});
  tp_tensor_t *all[] = {a, out, whole};
  for (int i = 0; i < 3; ++i) tp_tensor_release(all[i]);
}

int main(void) {
  values_start();
  test_ops();
  test_range();
  test_refused();
  for (int32_t device = 0; device < 2; ++device) CHECK(tp_memory_stat(device, 0) == 0); /* nothing is left */
  return 0;
}
