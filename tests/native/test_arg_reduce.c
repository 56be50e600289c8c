/* Places of the highest and lowest elements: every dtype and layout, with and without splits, torch's rules. */
#include "tp_emulated.h"
#include "values.h"

enum {
#define TP_ARG_REDUCE(name, code, rule) TP_ARG_REDUCE_##name = code,
#include "ops.def"
  OPS = 0
#define TP_ARG_REDUCE(name, code, rule) +1
#include "ops.def"
};

static bool beats(int32_t op, double x, double best) {
  if (isnan(best)) return false;
  return isnan(x) || (op == TP_ARG_REDUCE_argmax ? x > best : x < best);
}

/* Checks tp_arg_reduce along dim, where values are the tensor's elements in C order. */
static void check(int32_t op, const tp_tensor_t *tensor, const double *values, int32_t dim) {
  int64_t size = tensor->ndim ? tensor->shape[dim] : 1, inner = 1, k = 0;
  for (int32_t d = dim + 1; d < tensor->ndim; ++d) inner *= tensor->shape[d];
  for (int32_t keepdim = 0; keepdim < 2; ++keepdim) {
    tp_tensor_t *result = tp_arg_reduce(op, tensor, dim, keepdim);
    CHECK(result && result->dtype == TP_DTYPE_int64 && result->numel == tensor->numel / size);
    CHECK(result->ndim == (keepdim || !tensor->ndim ? tensor->ndim : tensor->ndim - 1));
    double *got = values_download(result);
    k = 0;
    for (int64_t start = 0; start < tensor->numel; ++start) {
      if (start / inner % size) continue;
      int64_t best = 0;
      for (int64_t i = 1; i < size; ++i)
        if (beats(op, values[start + i * inner], values[start + best * inner])) best = i;
      CHECK_CLOSE(got[k], (double)best, 0, k);
      ++k;
    }
    free(got);
    tp_tensor_release(result);
  }
}

/* Of all elements, where values are in C order. */
static void check_flat(int32_t op, const tp_tensor_t *tensor, const double *values) {
  int64_t best = 0;
  for (int64_t i = 1; i < tensor->numel; ++i)
    if (beats(op, values[i], values[best])) best = i;
  for (int32_t keepdim = 0; keepdim < 2; ++keepdim) {
    tp_tensor_t *result = tp_arg_reduce_all(op, tensor, keepdim);
    CHECK(result && result->numel == 1 && result->ndim == (keepdim ? tensor->ndim : 0));
    double *got = values_download(result);
    CHECK_CLOSE(got[0], (double)best, 0, 0);
    free(got);
    tp_tensor_release(result);
  }
}

static void check_all(const tp_tensor_t *tensor, const double *values) {
  for (int32_t op = 0; op < OPS; ++op) {
    for (int32_t dim = 0; dim < (tensor->ndim ? tensor->ndim : 1); ++dim) check(op, tensor, values, dim);
    check_flat(op, tensor, values);
  }
}

/* Few different numbers, so that many are equal; nan_each: every so many of fractions is NaN. */
static tp_tensor_t *upload(int32_t dtype, int32_t ndim, const int64_t *shape, int64_t nan_each, double **values) {
  tp_tensor_release(values_random(dtype, ndim, shape, values));
  int64_t numel = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  for (int64_t i = 0; i < numel; ++i) {
    (*values)[i] = (double)values_between(dtype == TP_DTYPE_bool || dtype == TP_DTYPE_uint8 ? 0 : -9, 10);
    if (tp__dtype_is_floating(dtype) && nan_each && values_between(0, nan_each) == 0) (*values)[i] = (double)NAN;
  }
  return values_upload(dtype, ndim, shape, *values);
}

static void test_shapes(void) {
  static const struct {
    int32_t ndim;
    int64_t shape[3];
  } cases[] = {{0, {0}},         {1, {1}},         {1, {33}},          {2, {7, 90}},
               {3, {4, 50, 40}}, {2, {3, 30011}},  {2, {30011, 3}}, /* splits */
               {2, {777, 300}},  {1, {100003}},    {2, {5, 8193}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
      if (tp__dtype_category(dtype) == TP_CATEGORY_COMPLEX) continue;
      double *values;
      tp_tensor_t *tensor = upload(dtype, cases[c].ndim, cases[c].shape, dtype % 2 ? 50 : 0, &values);
      check_all(tensor, values);
      free(values);
      tp_tensor_release(tensor);
    }
  }
}

static void test_layouts(void) {
  double *unused;
  tp_tensor_t *base = upload(TP_DTYPE_float32, 3, (int64_t[]){6, 13, 70}, 100, &unused);
  tp_tensor_t *one = tp_tensor_slice(base, 1, 5, 6, 1);
  tp_tensor_t *views[] = {tp_tensor_permute(base, 3, (int64_t[]){2, 0, 1}), tp_tensor_slice(base, 2, 1, 69, 3),
                          tp_tensor_expand(one, 3, (int64_t[]){6, 40, 70})};
  for (size_t v = 0; v < 3; ++v) {
    double *values = values_download(views[v]);
    check_all(views[v], values);
    free(values);
    tp_tensor_release(views[v]);
  }
  free(unused);
  tp_tensor_release(one);
  tp_tensor_release(base);
}

/* The extremes of each dtype, infinities and both zeros, which are equal. */
static void test_extremes(void) {
  static const struct {
    int32_t dtype;
    double values[4];
  } cases[] = {{TP_DTYPE_int8, {0, -128, 127, -1}},
               {TP_DTYPE_uint8, {1, 0, 255, 128}},
               {TP_DTYPE_int64, {0, -0x1p63, 0x1p62, 1}},
               {TP_DTYPE_float16, {-0.0, 0.0, -0.0, 0.0}},
               {TP_DTYPE_bfloat16, {-0.0, 0.0, -0.0, 0.0}},
               {TP_DTYPE_float32, {1, -(double)INFINITY, (double)INFINITY, 0}},
               {TP_DTYPE_float64, {-1e-310, -0.0, 1e-310, 0}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    double values[4];
    memcpy(values, cases[c].values, sizeof values);
    tp_tensor_t *tensor = values_upload(cases[c].dtype, 1, (int64_t[]){4}, values);
    check_all(tensor, values);
    tp_tensor_release(tensor);
  }
}

static void test_refusals(void) {
  tp_tensor_t *floats = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, 3}, NULL);
  tp_tensor_t *complex = tp_tensor_to(floats, TP_DTYPE_complex64, 0);
  tp_tensor_t *empty = tp_tensor_empty(TP_DTYPE_float32, 0, 2, (int64_t[]){0, 3});
  CHECK(!tp_arg_reduce(OPS, floats, 0, 0) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_arg_reduce(TP_ARG_REDUCE_argmax, floats, 2, 0) && tp_error_status() == TP_INDEX);
  CHECK(!tp_arg_reduce(TP_ARG_REDUCE_argmax, complex, 0, 0) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_arg_reduce(TP_ARG_REDUCE_argmin, empty, 0, 0) && tp_error_status() == TP_INDEX);
  CHECK(strcmp(tp_error_operation(), "argmin") == 0);
  CHECK(!tp_arg_reduce_all(TP_ARG_REDUCE_argmin, empty, 0) && tp_error_status() == TP_INDEX);
  tp_tensor_t *none = tp_arg_reduce(TP_ARG_REDUCE_argmin, empty, 1, 0);
  CHECK(none && none->numel == 0);
  tp_tensor_t *tensors[] = {floats, complex, empty, none};
  for (size_t i = 0; i < 4; ++i) tp_tensor_release(tensors[i]);
}

int main(void) {
  values_start();
  test_shapes();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_layouts();
    test_extremes();
  }
  test_refusals();
  return 0;
}
