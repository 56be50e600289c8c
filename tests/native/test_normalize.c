/* Softmax and layer normalisation against float64. */
#include "tp_emulated.h"
#include "values.h"

/* softmax of float64 over (outer, size, inner). */
static void softmax(const double *x, double *y, int64_t outer, int64_t size, int64_t inner, bool log_result) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < inner; ++c) {
      const double *from = x + o * size * inner + c;
      double *to = y + o * size * inner + c, highest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < size; ++i) highest = from[i * inner] > highest ? from[i * inner] : highest;
      for (int64_t i = 0; i < size; ++i) sum += exp(from[i * inner] - highest);
      for (int64_t i = 0; i < size; ++i) {
        double shifted = from[i * inner] - highest;
        to[i * inner] = log_result ? shifted - log(sum) : exp(shifted) / sum;
      }
    }
}

static void check_softmax(const tp_tensor_t *tensor, int32_t dim) {
  double *values = values_download(tensor),
         *expected = malloc((size_t)(tensor->numel + 1) * sizeof *expected);
  int64_t outer = 1, inner = 1, size = tensor->ndim ? tensor->shape[dim] : 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (d < dim) outer *= tensor->shape[d];
    if (d > dim) inner *= tensor->shape[d];
  }
  for (int32_t log_result = 0; log_result < 2; ++log_result) {
    tp_tensor_t *result = tp_softmax(tensor, dim - (tensor->ndim ? tensor->ndim : 1), log_result, NULL);
    CHECK(result && result->dtype == tensor->dtype && result->numel == tensor->numel);
    double *got = values_download(result);
    softmax(values, expected, outer, size, inner, log_result);
    for (int64_t i = 0; i < tensor->numel; ++i) {
      double scale = log_result ? 30 + fabs(expected[i]) : expected[i];
      double tolerance =
          16 * 0x1p-24 * scale + values_epsilon(tensor->dtype) / 2 * fabs(expected[i]) + 0x1p-25;
      CHECK_CLOSE(got[i], expected[i], tolerance, i);
    }
    free(got);
    tp_tensor_release(result);
  }
  free(values);
  free(expected);
}

/* Random elements of -scale to scale. */
static tp_tensor_t *scaled(int32_t dtype, int32_t ndim, const int64_t *shape, double scale) {
  double *values;
  tp_tensor_release(values_random(dtype, ndim, shape, &values));
  int64_t numel = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  for (int64_t i = 0; i < numel; ++i) values[i] *= scale;
  tp_tensor_t *tensor = values_upload(dtype, ndim, shape, values);
  free(values);
  return tensor;
}

/* dtypes: how many; fibres are slow, and indifferent to dtypes. */
static void test_softmax(size_t dtypes) {
  static const struct {
    int32_t ndim;
    int64_t shape[4];
  } cases[] = {{0, {0}},       {1, {1}},        {1, {5}},         {2, {3, 257}},     {2, {2, 4096}},
               {2, {2, 5000}}, {3, {4, 6, 70}}, {3, {2, 300, 5}}, {4, {2, 3, 4, 5}}, {2, {0, 4}}};
  for (size_t t = 0; t < dtypes; ++t) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
      tp_tensor_t *tensor = scaled(floating_dtypes[t], cases[c].ndim, cases[c].shape, 30);
      for (int32_t dim = 0; dim < (cases[c].ndim ? cases[c].ndim : 1); ++dim) check_softmax(tensor, dim);
      tp_tensor_release(tensor);
    }
    tp_tensor_t *base = scaled(floating_dtypes[t], 3, (int64_t[]){6, 20, 9}, 5);
    tp_tensor_t *sliced = tp_tensor_slice(base, 1, 1, 19, 2), *turned = tp_tensor_transpose(sliced, 0, 2);
    for (int32_t dim = 0; dim < 3; ++dim) check_softmax(turned, dim);
    tp_tensor_release(base);
    tp_tensor_release(sliced);
    tp_tensor_release(turned);
  }
}

/* Masked entries count nothing; a row of nothing but masked ones, or with a NaN, is NaN, as in torch. */
static void test_softmax_of_masks(void) {
  double values[] = {0, -INFINITY, 0, -INFINITY, -INFINITY, -INFINITY, NAN, 1,
                     2, INFINITY,  0, 0,         1e30,      -1e30,     1e30};
  static const double expected[] = {0.5,         0,           0.5,         (double)NAN, (double)NAN,
                                    (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN,
                                    0,           0,           0.5,         0,           0.5};
  tp_tensor_t *tensor = values_upload(TP_DTYPE_float32, 2, (int64_t[]){5, 3}, values);
  tp_tensor_t *turned = tp_tensor_transpose(tensor, 0, 1), *columns = tp_tensor_contiguous(turned);
  tp_tensor_t *by_rows = tp_softmax(tensor, 1, 0, NULL), *by_columns = tp_softmax(columns, 0, 0, NULL);
  double *rows = values_download(by_rows), *other = values_download(by_columns);
  for (int i = 0; i < 15; ++i) {
    if (i >= 9 && i < 12) continue; /* inf - inf */
    CHECK_CLOSE(rows[i], expected[i], 1e-7, i);
    CHECK_CLOSE(other[i % 3 * 5 + i / 3], expected[i], 1e-7, i);
  }
  CHECK(isnan(rows[9]) && isnan(other[3]));
  free(rows);
  free(other);
  tp_tensor_t *tensors[] = {tensor, turned, columns, by_rows, by_columns};
  for (size_t i = 0; i < 5; ++i) tp_tensor_release(tensors[i]);
}

static void check_layer_norm(int32_t dtype, int32_t ndim, const int64_t *shape, int32_t normalized,
                             double shift, bool with_weight, bool with_bias) {
  double eps = 1e-5;
  int64_t numel = 1, size = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  for (int32_t d = ndim - normalized; d < ndim; ++d) size *= shape[d];
  double *values, *weights = NULL, *biases = NULL;
  tp_tensor_release(values_random(dtype, ndim, shape, &values));
  for (int64_t i = 0; i < numel; ++i) values[i] = 2 * values[i] + shift;
  tp_tensor_t *tensor = values_upload(dtype, ndim, shape, values);
  const int64_t *tail = shape + ndim - normalized;
  tp_tensor_t *weight = with_weight ? values_random(dtype, normalized, tail, &weights) : NULL;
  tp_tensor_t *bias = with_bias ? values_random(dtype, normalized, tail, &biases) : NULL;
  tp_tensor_t *result = tp_layer_norm(tensor, normalized, weight, bias, eps, NULL);
  double *got = values_download(result);
  for (int64_t row = 0; row < numel / size; ++row) {
    const double *x = values + row * size;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size; ++i) mean += x[i];
    mean /= (double)size;
    for (int64_t i = 0; i < size; ++i) variance += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / sqrt(variance / (double)size + eps);
    for (int64_t i = 0; i < size; ++i) {
      double y = (x[i] - mean) * scale, w = weights ? weights[i] : 1, b = biases ? biases[i] : 0;
      double expected = y * w + b;
      /* The mean has float32's last digit wrong, which the scale makes larger. */
      double tolerance = 16 * 0x1p-24 * ((fabs(mean) * scale + fabs(y)) * fabs(w) + fabs(b)) +
                         values_epsilon(dtype) / 2 * fabs(expected) + 0x1p-25;
      CHECK_CLOSE(got[row * size + i], expected, tolerance, row * size + i);
    }
  }
  free(got);
  free(values);
  free(weights);
  free(biases);
  tp_tensor_release(tensor);
  tp_tensor_release(weight);
  tp_tensor_release(bias);
  tp_tensor_release(result);
}

static void test_layer_norm(size_t dtypes) {
  for (size_t t = 0; t < dtypes; ++t) {
    for (int32_t scales = 0; scales < 4; ++scales) {
      bool weight = scales & 1, bias = scales & 2;
      check_layer_norm(floating_dtypes[t], 2, (int64_t[]){7, 384}, 1, 0, weight, bias);
      check_layer_norm(floating_dtypes[t], 3, (int64_t[]){3, 5, 6}, 2, 0, weight, bias);
      check_layer_norm(floating_dtypes[t], 1, (int64_t[]){3}, 1, 0, weight, bias);
      check_layer_norm(floating_dtypes[t], 2, (int64_t[]){2, 4096}, 1, 0, weight, bias);
      check_layer_norm(floating_dtypes[t], 2, (int64_t[]){2, 9001}, 1, 0, weight, bias);
      check_layer_norm(floating_dtypes[t], 2, (int64_t[]){4, 1}, 1, 0, weight, bias);
    }
  }
  /* Far from zero the squares' difference would be lost; deviations from the mean are not. */
  check_layer_norm(TP_DTYPE_float32, 2, (int64_t[]){4, 768}, 1, 10000, true, true);
}

/* More rows than blocks: a block's shared memory serves one row after the other. */
static void test_many_rows(void) {
  int64_t rows = 20 * (int64_t)tp__device_properties(0)->multi_processor_count;
  tp_tensor_t *tensor = scaled(TP_DTYPE_float32, 2, (int64_t[]){rows, 45}, 3);
  check_softmax(tensor, 1);
  check_layer_norm(TP_DTYPE_float32, 2, (int64_t[]){rows, 45}, 1, 0, false, false);
  tp_tensor_release(tensor);
}

/* out: itself, poisoned and strided, of a higher dtype, a weight's memory. */
static void test_out(void) {
  int64_t shape[] = {6, 40};
  tp_tensor_t *tensor = scaled(TP_DTYPE_float16, 2, shape, 2),
              *weight = scaled(TP_DTYPE_float16, 1, shape + 1, 1);
  tp_tensor_t *soft = tp_softmax(tensor, 1, 0, NULL),
              *normal = tp_layer_norm(tensor, 1, weight, NULL, 1e-5, NULL);
  double *want_soft = values_download(soft), *want_normal = values_download(normal);
  for (int kind = 0; kind < 4; ++kind) {
    for (int normalize = 0; normalize < 2; ++normalize) {
      tp_tensor_t *operand = tp_tensor_to(tensor, TP_DTYPE_NONE, 0);
      tp_tensor_t *base = values_poisoned(TP_DTYPE_float16, 2, (int64_t[]){40, 6});
      tp_tensor_t *wide = values_poisoned(TP_DTYPE_float32, 2, shape);
      tp_tensor_t *out = kind == 0 ? tp_tensor_alias(operand)
                       : kind == 1 ? tp_tensor_transpose(base, 0, 1)
                       : kind == 2 ? tp_tensor_alias(wide)
                                   : values_poisoned(TP_DTYPE_float16, 2, shape);
      tp_tensor_t *result =
          normalize ? tp_layer_norm(operand, 1, weight, NULL, 1e-5, out) : tp_softmax(operand, 1, 0, out);
      CHECK(result == out);
      double *got = values_download(out);
      for (int i = 0; i < 240; ++i) CHECK_CLOSE(got[i], (normalize ? want_normal : want_soft)[i], 0, i);
      free(got);
      tp_tensor_release(result);
      tp_tensor_release(out);
      tp_tensor_release(operand);
      tp_tensor_release(base);
      tp_tensor_release(wide);
    }
  }
  free(want_soft);
  free(want_normal);
  tp_tensor_release(tensor);
  tp_tensor_release(weight);
  tp_tensor_release(soft);
  tp_tensor_release(normal);
}

static void test_refusals(void) {
  int64_t shape[] = {2, 3};
  tp_tensor_t *integers = values_random(TP_DTYPE_int64, 2, shape, NULL);
  tp_tensor_t *floats = values_random(TP_DTYPE_float32, 2, shape, NULL);
  tp_tensor_t *halves = values_random(TP_DTYPE_float16, 1, shape + 1, NULL);
  tp_tensor_t *pair = values_random(TP_DTYPE_float32, 1, shape, NULL);
  CHECK(!tp_softmax(integers, 0, 0, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_softmax(floats, 2, 0, NULL) && tp_error_status() == TP_INDEX);
  CHECK(!tp_softmax(floats, 0, 1, halves) && tp_error_status() == TP_SHAPE);
  CHECK(strcmp(tp_error_operation(), "log_softmax") == 0);
  CHECK(!tp_layer_norm(integers, 1, NULL, NULL, 1e-5, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_layer_norm(floats, 1, halves, NULL, 1e-5, NULL) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_layer_norm(floats, 1, NULL, pair, 1e-5, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_layer_norm(floats, 0, NULL, NULL, 1e-5, NULL) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_layer_norm(floats, 3, NULL, NULL, 1e-5, NULL) && tp_error_status() == TP_SHAPE);
  tp_tensor_t *tensors[] = {integers, floats, halves, pair};
  for (size_t i = 0; i < 4; ++i) tp_tensor_release(tensors[i]);
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_softmax(fibres ? 1 : 4);
    test_softmax_of_masks();
    test_many_rows();
    test_layer_norm(fibres ? 1 : 4);
    test_out();
  }
  test_refusals();
  return 0;
}
