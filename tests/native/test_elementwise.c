/* Elementwise operations against float64: every op and dtype, in every form that chooses another kernel. */
#include "tp_emulated.h"
#include "values.h"

enum {
#define TP_UNARY(name, code, rule) UNARY_##name = code,
#define TP_BINARY(name, code, rule) BINARY_##name = code,
#include "ops.def"
};
enum { SAME, NUMERIC, FLOAT, BOOL };

static const struct {
  int rule;
} unary_rules[] = {
#define TP_UNARY(name, code, rule) [code] = {rule},
#include "ops.def"
}, binary_rules[] = {
#define TP_BINARY(name, code, rule) [code] = {rule},
#include "ops.def"
};
#define N_UNARY ((int32_t)(sizeof unary_rules / sizeof *unary_rules))
#define N_BINARY ((int32_t)(sizeof binary_rules / sizeof *binary_rules))

static double unary_expected(int32_t op, double x) {
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
    default: return x == 0;
  }
}

static double binary_expected(int32_t op, bool floating, double a, double b) {
  switch (op) {
    case BINARY_add: return a + b;
    case BINARY_sub: return a - b;
    case BINARY_mul: return a * b;
    case BINARY_div: return a / b;
    case BINARY_pow: return floating || b >= 0 || fabs(a) == 1 ? pow(a, b) : 0;
    case BINARY_maximum: return isnan(a) || a > b ? a : b;
    case BINARY_minimum: return isnan(a) || a < b ? a : b;
    case BINARY_eq: return a == b;
    case BINARY_ne: return a != b;
    case BINARY_lt: return a < b;
    case BINARY_le: return a <= b;
    case BINARY_gt: return a > b;
    case BINARY_ge: return a >= b;
    case BINARY_logical_and: return a != 0 && b != 0;
    default: return a != 0 || b != 0;
  }
}

/* By the rules of ops.def: the dtype to compute in, TP_DTYPE_NONE where the op refuses, and the result's. */
static int32_t computed_in(int rule, int32_t dtype, int32_t *out_result) {
  if (rule == NUMERIC && dtype == TP_DTYPE_bool) return TP_DTYPE_NONE;
  if (rule == FLOAT && !tp__dtype_is_floating(dtype)) dtype = TP_DTYPE_float32;
  *out_result = rule == BOOL ? TP_DTYPE_bool : dtype;
  return dtype;
}

static double as_dtype(int32_t dtype, double x) {
  char element[8];
  return values_encode(dtype, x, element);
}

/* Small integers for integers, so that products and powers stay exact. */
static double fresh(int32_t dtype) {
  if (dtype == TP_DTYPE_bool) return (double)(values_bits() & 1);
  if (!tp__dtype_is_floating(dtype)) return (double)values_between(-6, 7);
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

/* Rounded results: half an ulp of the dtype, and the float functions' own error. */
static double tolerance(int32_t dtype, double expected) {
  return tp__dtype_is_floating(dtype) ? fabs(expected) * (values_epsilon(dtype) + 0x1p-19) + 0x1p-20 : 0;
}

static void test_unary(void) {
  const int64_t shape[] = {3, 7, 5};
  for (int32_t op = 0; op < N_UNARY; ++op) {
    for (int32_t d = 0; d < TP_DTYPE_COUNT; ++d) {
      for (int form = 0; form < FORMS; ++form) {
        double *x;
        tp_tensor_t *a = operand(d, form, 3, shape, &x);
        int32_t result = d, compute = computed_in(unary_rules[op].rule, d, &result);
        tp_tensor_t *y = tp_unary(op, a, NULL);
        if (compute == TP_DTYPE_NONE) {
          CHECK(!y && tp_error_status() == TP_DTYPE);
        } else {
          CHECK(y && tp_tensor_dtype(y) == result && tp_tensor_is_contiguous(y));
          double *got = values_download(y);
          for (int64_t i = 0; i < 105; ++i) {
            double expected = as_dtype(result, unary_expected(op, x[i]));
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
  int32_t result = promoted, compute = computed_in(binary_rules[op].rule, promoted, &result);
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
    if (round_scalar[0]) x = as_dtype(compute, x);
    if (round_scalar[1]) z = as_dtype(compute, z);
    double expected = as_dtype(result, binary_expected(op, tp__dtype_is_floating(compute), x, z));
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
        /* Arithmetic sees the number itself, comparisons what the tensor's dtype holds of it. */
        bool rounds = binary_rules[op].rule == BOOL;
        scalar = kind < 2 ? (double)(float)scalar : scalar;
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
