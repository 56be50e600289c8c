/* index_select and embedding: every dtype and width, and faults. */
#include "tp_emulated.h"
#include "values.h"

/* a (outer, limit, inner) at index along the middle. */
static void check_select(const tp_tensor_t *tensor, int32_t dim, const tp_tensor_t *index) {
  double *values = values_download(tensor), *at = values_download(index);
  int64_t outer = 1, inner = 1, limit = tensor->ndim ? tensor->shape[dim] : 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (d < dim) outer *= tensor->shape[d];
    if (d > dim) inner *= tensor->shape[d];
  }
  tp_tensor_t *result = tp_index_select(tensor, dim, index);
  CHECK(result && result->ndim == tensor->ndim && result->dtype == tensor->dtype);
  CHECK(tensor->ndim == 0 || result->shape[dim] == index->numel);
  double *got = values_download(result);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < index->numel; ++i)
      for (int64_t j = 0; j < inner; ++j)
        CHECK_CLOSE(got[(o * index->numel + i) * inner + j], values[(o * limit + (int64_t)at[i]) * inner + j],
                    0, j);
  free(got);
  free(values);
  free(at);
  tp_tensor_release(result);
}

static tp_tensor_t *indices(int32_t dtype, int64_t n, int64_t limit) {
  double *values = malloc((size_t)(n + 1) * sizeof *values);
  for (int64_t i = 0; i < n; ++i) values[i] = (double)values_between(0, limit);
  tp_tensor_t *tensor = values_upload(dtype, 1, &n, values);
  free(values);
  return tensor;
}

static void test_select(void) {
  static const int64_t shapes[][3] = {{3, 40, 16}, {1, 500, 1}, {7, 5, 3}, {2, 9, 6}, {4, 3, 1000}};
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s) {
      tp_tensor_t *tensor = values_random(dtype, 3, shapes[s], NULL);
      tp_tensor_t *turned = tp_tensor_permute(tensor, 3, (int64_t[]){1, 2, 0});
      tp_tensor_t *cut = tp_tensor_slice(tensor, 0, 1, shapes[s][0], 1); /* begins at an odd address */
      for (int32_t dim = 0; dim < 3; ++dim) {
        for (int wide = 0; wide < 2; ++wide) {
          int32_t index_dtype = wide ? TP_DTYPE_int64 : TP_DTYPE_int32;
          tp_tensor_t *index = indices(index_dtype, 10, shapes[s][dim]);
          check_select(tensor, dim, index);
          tp_tensor_release(index);
          index = indices(index_dtype, 10, turned->shape[dim]);
          tp_tensor_t *odd = tp_tensor_slice(index, 0, 1, 10, 2), *one = tp_tensor_select(index, 0, 3);
          check_select(turned, dim, odd);
          check_select(turned, dim, one);
          if (cut->numel && dim > 0) {
            tp_tensor_t *inside = indices(index_dtype, 4, cut->shape[dim]);
            check_select(cut, dim, inside);
            tp_tensor_release(inside);
          }
          tp_tensor_release(index);
          tp_tensor_release(odd);
          tp_tensor_release(one);
        }
      }
      tp_tensor_release(tensor);
      tp_tensor_release(turned);
      tp_tensor_release(cut);
    }
  }
  tp_tensor_t *scalar = values_random(TP_DTYPE_float32, 0, NULL, NULL), *zero = indices(TP_DTYPE_int64, 1, 1);
  check_select(scalar, 0, zero);
  tp_tensor_release(scalar);
  tp_tensor_release(zero);
}

static void test_embedding(void) {
  double *values;
  tp_tensor_t *weight = values_random(TP_DTYPE_float16, 2, (int64_t[]){50, 24}, &values);
  tp_tensor_t *flat = indices(TP_DTYPE_int64, 12, 50), *index = tp_tensor_view(flat, 3, (int64_t[]){2, 3, 2});
  tp_tensor_t *result = tp_embedding(weight, index);
  CHECK(result && result->ndim == 4 && result->shape[0] == 2 && result->shape[2] == 2 &&
        result->shape[3] == 24);
  double *got = values_download(result), *at = values_download(flat);
  for (int64_t i = 0; i < 12 * 24; ++i) CHECK_CLOSE(got[i], values[(int64_t)at[i / 24] * 24 + i % 24], 0, i);
  free(got);
  free(at);
  free(values);
  tp_tensor_release(result);
  tp_tensor_release(weight);
  tp_tensor_release(flat);
  tp_tensor_release(index);
}

/* The row of a bad index is zero, the others are right; the next wait reports the first fault once. */
static void check_fault(double bad, int32_t dtype, bool embedding) {
  double *values, at[] = {1, bad, 2};
  tp_tensor_t *weight = values_random(TP_DTYPE_float32, 2, (int64_t[]){4, 5}, &values);
  tp_tensor_t *index = values_upload(dtype, 1, (int64_t[]){3}, at);
  tp_tensor_t *result = embedding ? tp_embedding(weight, index) : tp_index_select(weight, 0, index);
  CHECK(result); /* the call itself succeeds: only the device sees the fault */
  CHECK(tp_device_synchronize(0) == TP_INDEX);
  CHECK(strcmp(tp_error_operation(), embedding ? "embedding" : "index_select") == 0);
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)bad);
  CHECK(strstr(tp_error_text(), number) && strstr(tp_error_text(), "4"));
  CHECK_OK(tp_device_synchronize(0));
  double *got = values_download(result);
  for (int i = 0; i < 15; ++i) CHECK_CLOSE(got[i], i / 5 == 1 ? 0 : values[(i < 5 ? 5 : 10) + i % 5], 0, i);
  free(got);
  free(values);
  tp_tensor_release(weight);
  tp_tensor_release(index);
  tp_tensor_release(result);
}

static void test_faults(void) {
  static const double bad[] = {-1, 4, 5, -5, 1000000, 2147483647, -2147483648.0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    for (int embedding = 0; embedding < 2; ++embedding) {
      check_fault(bad[i], TP_DTYPE_int64, embedding);
      check_fault(bad[i], TP_DTYPE_int32, embedding);
    }
  }
  check_fault(0x1p62, TP_DTYPE_int64, true);
  /* Nothing can be valid in a tensor without rows. */
  tp_tensor_t *none = tp_tensor_empty(TP_DTYPE_float32, 0, 2, (int64_t[]){0, 3});
  tp_tensor_t *index = indices(TP_DTYPE_int64, 2, 1);
  CHECK(!tp_index_select(none, 0, index) && tp_error_status() == TP_INDEX);
  CHECK(!tp_embedding(none, index) && tp_error_status() == TP_INDEX);
  tp_tensor_release(none);
  tp_tensor_release(index);
}

static void test_refusals(void) {
  int64_t shape[] = {2, 3};
  tp_tensor_t *floats = values_random(TP_DTYPE_float32, 2, shape, NULL);
  tp_tensor_t *cube = values_random(TP_DTYPE_float32, 3, (int64_t[]){2, 2, 2}, NULL);
  tp_tensor_t *index = indices(TP_DTYPE_int64, 3, 2), *table = tp_tensor_view(index, 2, (int64_t[]){3, 1});
  tp_tensor_t *far = tp_tensor_empty(TP_DTYPE_int64, 1, 1, shape);
  CHECK(!tp_index_select(floats, 0, floats) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_index_select(floats, 2, index) && tp_error_status() == TP_INDEX);
  CHECK(!tp_index_select(floats, 0, table) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_index_select(floats, 0, far) && tp_error_status() == TP_DEVICE);
  CHECK(!tp_embedding(cube, index) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_embedding(floats, floats) && tp_error_status() == TP_DTYPE);
  tp_tensor_t *tensors[] = {floats, cube, index, table, far};
  for (size_t i = 0; i < 5; ++i) tp_tensor_release(tensors[i]);
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_select();
    test_embedding();
    test_faults();
  }
  test_refusals();
  return 0;
}
