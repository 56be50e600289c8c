/* Elementwise operations against float64: every op and dtype, in every form that chooses another kernel. */
#include "tp_emulated.h"
#include "values.h"

enum {
#define TP_UNARY(name, code, takes, rule, kernels) UNARY_##name = code,
#define TP_BINARY(name, code, takes, rule, kernels) BINARY_##name = code,
#include "ops.def"
};
enum { ALL, REAL, NUMBERS, REAL_NUMBERS, BITS, INTEGERS, FLOATS };
enum { SAME, FLOAT, BOOL, MAGNITUDE };

typedef struct row {
  int takes, rule;
} row_t;
static const row_t unary_rows[] = {
#define TP_UNARY(name, code, takes, rule, kernels) [code] = {takes, rule},
#include "ops.def"
};
static const row_t binary_rows[] = {
#define TP_BINARY(name, code, takes, rule, kernels) [code] = {takes, rule},
#include "ops.def"
};
#define N_UNARY ((int32_t)(sizeof unary_rows / sizeof *unary_rows))
#define N_BINARY ((int32_t)(sizeof binary_rows / sizeof *binary_rows))

static double unary_expected(int32_t op, int32_t dtype, double x) {
  switch (op) {
    case UNARY_neg: return -x;
    case UNARY_abs: return fabs(x);
    case UNARY_sqrt: return sqrt(x);
    case UNARY_rsqrt: return 1 / sqrt(x);
    case UNARY_exp: return exp(x);
    case UNARY_log: return log(x);
    case UNARY_tanh: return tanh(x);
    case UNARY_erf: return erf(x);
    case UNARY_sigmoid: return 1 / (1 + exp(-x));
    case UNARY_relu: return x > 0 || isnan(x) ? x : 0;
    case UNARY_gelu: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
    case UNARY_gelu_tanh: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case UNARY_reciprocal: return 1 / x;
    case UNARY_sin: return sin(x);
    case UNARY_cos: return cos(x);
    case UNARY_logical_not: return x == 0;
    case UNARY_sign: return (x > 0) - (x < 0);
    case UNARY_exp2: return exp2(x);
    case UNARY_expm1: return expm1(x);
    case UNARY_log2: return log2(x);
    case UNARY_log10: return log10(x);
    case UNARY_log1p: return log1p(x);
    case UNARY_tan: return tan(x);
    case UNARY_asin: return asin(x);
    case UNARY_acos: return acos(x);
    case UNARY_atan: return atan(x);
    case UNARY_sinh: return sinh(x);
    case UNARY_cosh: return cosh(x);
    case UNARY_asinh: return asinh(x);
    case UNARY_acosh: return acosh(x);
    case UNARY_atanh: return atanh(x);
    case UNARY_erfc: return erfc(x);
    case UNARY_silu: return x / (1 + exp(-x));
    case UNARY_floor: return floor(x);
    case UNARY_ceil: return ceil(x);
    case UNARY_round: return nearbyint(x);
    case UNARY_trunc: return trunc(x);
    case UNARY_frac: return x - trunc(x);
    case UNARY_isnan: return isnan(x);
    case UNARY_isinf: return isinf(x) != 0;
    case UNARY_isfinite: return isfinite(x);
    case UNARY_signbit: return signbit(x) != 0;
    case UNARY_bitwise_not: return dtype == TP_DTYPE_bool ? x == 0 : -x - 1;
    case UNARY_conj: return x;
  }
  CHECK(!"an op without a formula");
  return NAN;
}

/* Of integers, down, and what is left; 0 where b is. */
static double floor_quotient(double a, double b) {
  double left = fmod(a, b), quotient = (a - left) / b;
  return left != 0 && (left < 0) != (b < 0) ? quotient - 1 : quotient;
}
static double remainder_of(double a, double b) {
  double left = fmod(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

/* Of integers, modulo 2^32. */
static double power(double a, double b) {
  if (b < 0) return fabs(a) == 1 ? pow(a, b) : 0;
  uint32_t product = 1;
  for (int k = 0; k < (int)b; ++k) product *= (uint32_t)(int32_t)a;
  return (int32_t)product;
}

/* b is small. */
static double shifted(double a, double b, bool left) {
  if (b < 0) return left || a >= 0 ? 0 : -1;
  return left ? ldexp(a, (int)b) : floor(ldexp(a, (int)-b));
}

static double binary_expected(int32_t op, int32_t compute, double a, double b) {
  bool whole = tp__dtype_category(compute) < TP_CATEGORY_FLOAT;
  if (whole && b == 0 && op >= BINARY_floor_divide && op <= BINARY_div_trunc) return 0;
  switch (op) {
    case BINARY_add: return a + b;
    case BINARY_sub: return a - b;
    case BINARY_mul: return a * b;
    case BINARY_div: return a / b;
    case BINARY_pow: return whole ? power(a, b) : pow(a, b);
    case BINARY_maximum: return isnan(a) || a > b ? a : b;
    case BINARY_minimum: return isnan(a) || a < b ? a : b;
    case BINARY_eq: return a == b;
    case BINARY_ne: return a != b;
    case BINARY_lt: return a < b;
    case BINARY_le: return a <= b;
    case BINARY_gt: return a > b;
    case BINARY_ge: return a >= b;
    case BINARY_logical_and: return a != 0 && b != 0;
    case BINARY_logical_or: return a != 0 || b != 0;
    case BINARY_floor_divide: return b == 0 ? a / b : nearbyint(floor_quotient(a, b));
    case BINARY_remainder: return remainder_of(a, b);
    case BINARY_fmod: return fmod(a, b);
    case BINARY_div_trunc: return compute == TP_DTYPE_float64 ? trunc(a / b) : (double)truncf((float)(a / b));
    case BINARY_atan2: return atan2(a, b);
    case BINARY_hypot: return hypot(a, b);
    case BINARY_copysign: return copysign(a, b);
    case BINARY_logical_xor: return (a != 0) != (b != 0);
    case BINARY_bitwise_and: return (double)((int64_t)a & (int64_t)b);
    case BINARY_bitwise_or: return (double)((int64_t)a | (int64_t)b);
    case BINARY_bitwise_xor: return (double)((int64_t)a ^ (int64_t)b);
    case BINARY_bitwise_left_shift: return shifted(a, b, true);
    case BINARY_bitwise_right_shift: return shifted(a, b, false);
    case BINARY_fmax: return fmax(a, b);
    case BINARY_fmin: return fmin(a, b);
  }
  CHECK(!"an op without a formula");
  return NAN;
}

/* By the rules of ops.def: the dtype to compute in, TP_DTYPE_NONE where the op refuses, and the result's. */
static int32_t computed_in(row_t row, int32_t dtype, int32_t *out_result) {
  int32_t category = tp__dtype_category(dtype);
  bool is_bool = category == TP_CATEGORY_BOOL, is_complex = category == TP_CATEGORY_COMPLEX;
  bool taken[] = {[ALL] = true,
                  [REAL] = !is_complex,
                  [NUMBERS] = !is_bool,
                  [REAL_NUMBERS] = !is_bool && !is_complex,
                  [BITS] = category <= TP_CATEGORY_INT,
                  [INTEGERS] = category == TP_CATEGORY_INT,
                  [FLOATS] = category == TP_CATEGORY_FLOAT};
  if (!taken[row.takes]) return TP_DTYPE_NONE;
  if (row.rule == FLOAT && category < TP_CATEGORY_FLOAT) dtype = TP_DTYPE_float32;
  *out_result = row.rule == BOOL ? TP_DTYPE_bool : dtype;
  if (row.rule == MAGNITUDE && is_complex)
    *out_result = dtype == TP_DTYPE_complex64 ? TP_DTYPE_float32 : TP_DTYPE_float64;
  return dtype;
}

/* Small integers for integers, so that products and powers stay exact. */
static double fresh(int32_t dtype) {
  if (dtype == TP_DTYPE_bool) return (double)(values_bits() & 1);
  if (tp__dtype_category(dtype) == TP_CATEGORY_INT)
    return (double)values_between(dtype == TP_DTYPE_uint8 ? 0 : -6, 7);
  return values_between(0, 40) ? (double)(int64_t)values_bits() * 0x1p-61 : 0; /* -4 to 4 */
}

/* A view of the shape with fresh elements: contiguous, with a gap in front (not aligned), or with its
 * dimensions in reversed order in memory. Elements in C order in *out_values. */
enum { CONTIGUOUS, SHIFTED, REVERSED, FORMS };
static tp_tensor_t *operand(int32_t dtype, int form, int32_t ndim, const int64_t *shape,
                            double **out_values) {
  int64_t numel = 1, memory[TP_MAX_NDIM], dims[TP_MAX_NDIM];
  for (int32_t d = 0; d < ndim; ++d) {
    numel *= shape[d];
    memory[d] = shape[ndim - 1 - d];
    dims[d] = ndim - 1 - d;
  }
  double *values = malloc((size_t)(numel + 1) * sizeof *values);
  for (int64_t i = 0; i <= numel; ++i) values[i] = fresh(dtype);
  tp_tensor_t *whole, *view;
  if (form == CONTIGUOUS) {
    view = values_upload(dtype, ndim, shape, values);
  } else if (form == SHIFTED) {
    whole = values_upload(dtype, 1, (int64_t[]){numel + 1}, values);
    tp_tensor_t *slice = tp_tensor_slice(whole, 0, 1, numel + 1, 1);
    view = tp_tensor_view(slice, ndim, shape);
    tp_tensor_release(slice);
    tp_tensor_release(whole);
  } else {
    whole = values_upload(dtype, ndim, memory, values);
    view = tp_tensor_permute(whole, ndim, dims);
    tp_tensor_release(whole);
  }
  CHECK(view);
  free(values);
  *out_values = values_download(view);
  return view;
}

/* Rounded results: half an ulp of the dtype, and the functions' own error. */
static double tolerance(int32_t dtype, double expected) {
  double epsilon = values_epsilon(dtype), functions = epsilon == 0x1p-52 ? 0x1p-49 : 0x1p-19;
  return epsilon == 0 ? 0 : fabs(expected) * (epsilon + functions) + functions / 2;
}

static void test_unary(void) {
  const int64_t shape[] = {3, 7, 5};
  for (int32_t op = 0; op < N_UNARY; ++op) {
    for (int32_t d = 0; d < TP_DTYPE_COUNT; ++d) {
      for (int form = 0; form < FORMS; ++form) {
        double *x;
        tp_tensor_t *a = operand(d, form, 3, shape, &x);
        int32_t result = d, compute = computed_in(unary_rows[op], d, &result);
        tp_tensor_t *y = tp_unary(op, a, NULL);
        if (compute == TP_DTYPE_NONE) {
          CHECK(!y && tp_error_status() == TP_DTYPE);
        } else {
          CHECK(y && tp_tensor_dtype(y) == result && tp_tensor_is_contiguous(y));
          double *got = values_download(y);
          for (int64_t i = 0; i < 105; ++i) {
            double expected = values_rounded(result, unary_expected(op, d, x[i]));
            CHECK_CLOSE(got[i], expected, tolerance(result, expected), i);
          }
          free(got);
        }
        tp_tensor_release(y);
        tp_tensor_release(a);
        free(x);
      }
    }
  }
}

/* Checks y = op(a, b) where both are broadcast to (3, 7, 5); at_a and at_b give an operand's element. */
static void check_binary(int32_t op, tp_tensor_t *y, int32_t promoted, const double *a, const double *b,
                         const int64_t *a_steps, const int64_t *b_steps, bool round_scalar[2]) {
  int32_t result = promoted, compute = computed_in(binary_rows[op], promoted, &result);
  if (compute == TP_DTYPE_NONE) {
    CHECK(!y && tp_error_status() == TP_DTYPE);
    return;
  }
  CHECK(y && tp_tensor_dtype(y) == result);
  double *got = values_download(y);
  for (int64_t i = 0; i < 105; ++i) {
    int64_t at[] = {i / 35, i / 5 % 7, i % 5};
    double x = a[at[0] * a_steps[0] + at[1] * a_steps[1] + at[2] * a_steps[2]];
    double z = b[at[0] * b_steps[0] + at[1] * b_steps[1] + at[2] * b_steps[2]];
    if (round_scalar[0]) x = values_rounded(compute, x);
    if (round_scalar[1]) z = values_rounded(compute, z);
    double expected = values_rounded(result, binary_expected(op, compute, x, z));
    CHECK_CLOSE(got[i], expected, tolerance(result, expected), i);
  }
  free(got);
}

static void test_binary(void) {
  static const struct {
    int32_t ndim;
    int64_t shape[3], steps[3];
  } shapes[] = {{3, {3, 7, 5}, {35, 5, 1}},
                {3, {3, 1, 5}, {5, 0, 1}},
                {2, {7, 1}, {0, 1, 0}},
                {0, {0}, {0, 0, 0}}};
  for (int32_t op = 0; op < N_BINARY; ++op) {
    for (int32_t da = 0; da < TP_DTYPE_COUNT; ++da) {
      for (int32_t db = 0; db < TP_DTYPE_COUNT; ++db) {
        int sa = (int)values_between(0, 4), sb = sa == 0 ? (int)values_between(0, 4) : 0;
        double *x, *z;
        tp_tensor_t *a = operand(da, (int)values_between(0, FORMS), shapes[sa].ndim, shapes[sa].shape, &x);
        tp_tensor_t *b = operand(db, (int)values_between(0, FORMS), shapes[sb].ndim, shapes[sb].shape, &z);
        tp_tensor_t *y = tp_binary(op, a, b, NULL);
        int32_t promoted = tp__promote(da, sa == 3, db, sb == 3);
        bool rounded[] = {true, true};
        check_binary(op, y, promoted, x, z, shapes[sa].steps, shapes[sb].steps, rounded);
        tp_tensor_release(y);
        tp_tensor_release(b);
        tp_tensor_release(a);
        free(x);
        free(z);
      }
    }
  }
}

static void test_scalars(void) {
  const int64_t shape[] = {3, 7, 5}, steps[] = {35, 5, 1}, none[] = {0, 0, 0};
  for (int32_t op = 0; op < N_BINARY; ++op) {
    for (int32_t d = 0; d < TP_DTYPE_COUNT; ++d) {
      for (int kind = 0; kind < 6; ++kind) {
        double *x, scalar = kind < 2 ? 1.3 : kind < 4 ? (double)values_between(-3, 4) : 1;
        int reversed = kind % 2;
        int32_t scalar_dtype = kind < 2 ? TP_DTYPE_float32 : kind < 4 ? TP_DTYPE_int64 : TP_DTYPE_bool;
        tp_tensor_t *a = operand(d, (int)values_between(0, FORMS), 3, shape, &x);
        tp_tensor_t *y = kind < 2 ? tp_binary_float(op, a, scalar, reversed, NULL)
                                  : tp_binary_int(op, a, (int64_t)scalar, kind >= 4, reversed, NULL);
        int32_t promoted = tp__promote(d, false, scalar_dtype, true);
        /* Fractions are computed with the number itself, integers and comparisons with what the dtype holds of it. */
        bool rounds = binary_rows[op].rule == BOOL || tp__dtype_category(promoted) < TP_CATEGORY_FLOAT;
        if (promoted != TP_DTYPE_float64 && promoted != TP_DTYPE_complex128) scalar = (double)(float)scalar;
        bool rounded[] = {reversed ? rounds : true, reversed ? true : rounds};
        check_binary(op, y, promoted, reversed ? &scalar : x, reversed ? x : &scalar, reversed ? none : steps,
                     reversed ? steps : none, rounded);
        tp_tensor_release(y);
        tp_tensor_release(a);
        free(x);
      }
    }
  }
}

/* More elements than the grid has in one round, an odd number of them, and none. */
static void test_sizes(void) {
  static const int64_t sizes[] = {0, 1, 2, 1023, 1025, 1000003};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    double *x, *z;
    tp_tensor_t *a = operand(TP_DTYPE_float32, CONTIGUOUS, 1, &sizes[s], &x);
    tp_tensor_t *b = operand(TP_DTYPE_float16, CONTIGUOUS, 1, &sizes[s], &z);
    tp_tensor_t *sum = tp_binary(BINARY_add, a, a, NULL), *mixed = tp_binary(BINARY_add, a, b, NULL);
    double *got = values_download(sum), *got_mixed = values_download(mixed);
    for (int64_t i = 0; i < sizes[s]; ++i) {
      CHECK_CLOSE(got[i], x[i] + x[i], 0, i);
      CHECK_CLOSE(got_mixed[i], (double)(float)(x[i] + z[i]), 0, i);
    }
    free(got);
    free(got_mixed);
    tp_tensor_t *results[] = {a, b, sum, mixed};
    for (int i = 0; i < 4; ++i) tp_tensor_release(results[i]);
    free(x);
    free(z);
  }
}

/* A broadcast sum into a part of a tensor: each operand has the shape's dimensions whose bit is set, and begins `start`
 * elements into its last dimension, of which every step-th element counts. */
static void check_places(int32_t dtype, int32_t ndim, const int64_t *shape, uint32_t a_dims, uint32_t b_dims,
                         int64_t start, int64_t step) {
  const uint32_t dims[] = {a_dims, b_dims, (1u << ndim) - 1};
  tp_tensor_t *wholes[3], *parts[3];
  double *values[3];
  int64_t numel = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  for (int i = 0; i < 3; ++i) {
    int64_t sizes[TP_MAX_NDIM];
    for (int32_t d = 0; d < ndim; ++d) sizes[d] = dims[i] >> d & 1 ? shape[d] : 1;
    bool full = sizes[ndim - 1] > 1;
    if (full) sizes[ndim - 1] = start + sizes[ndim - 1] * step;
    wholes[i] = values_random(dtype, ndim, sizes, &values[i]);
    parts[i] = full ? tp_tensor_slice(wholes[i], ndim - 1, start, sizes[ndim - 1], step)
                    : tp_tensor_slice(wholes[i], ndim - 1, 0, 1, 1);
  }
  CHECK(tp_binary(BINARY_add, parts[0], parts[1], parts[2]) == parts[2]);
  double *got = values_download(parts[2]);
  for (int64_t i = 0; i < numel; ++i) {
    double terms[2];
    for (int k = 0; k < 2; ++k) {
      int64_t rest = i, place = parts[k]->offset;
      for (int32_t d = ndim - 1; d >= 0; --d) {
        if (dims[k] >> d & 1) place += rest % shape[d] * tp_tensor_strides(parts[k])[d];
        rest /= shape[d];
      }
      terms[k] = values[k][place];
    }
    double expected = values_rounded(dtype, terms[0] + terms[1]);
    CHECK_CLOSE(got[i], expected, tolerance(dtype, expected), i);
  }
  free(got);
  for (int i = 0; i < 3; ++i) {
    free(values[i]);
    tp_tensor_release(wholes[i]);
    tp_tensor_release(parts[i]);
  }
  tp_tensor_release(parts[2]);
}

static void test_places(void) {
  static const int64_t shapes[][5] = {{3, 5, 8, 4, 16}, {2, 3, 2, 5, 7}, {5, 40, 4, 2, 3}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s)
    for (int32_t ndim = 1; ndim <= 5; ++ndim)
      for (uint32_t mask = 0; mask < 1u << ndim; ++mask)
        for (int64_t start = 0; start < 2; ++start)
          for (int64_t step = 1; step < 3; ++step) {
            check_places(TP_DTYPE_float32, ndim, shapes[s], (1u << ndim) - 1, mask, start, step);
            check_places(TP_DTYPE_float16, ndim, shapes[s], mask, ~mask, start, step);
            check_places(TP_DTYPE_float64, ndim, shapes[s], mask, ~mask, start, step);
            check_places(TP_DTYPE_uint8, ndim, shapes[s], mask, (1u << ndim) - 1, start, step);
          }
}

int main(void) {
  values_start();
  test_unary();
  test_binary();
  test_scalars();
  test_sizes();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_places();
  }
  return 0;
}
