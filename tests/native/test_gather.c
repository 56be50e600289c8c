/* gather and scatter: every dtype, layouts, sums, overlap and faults. */
#include "tp_emulated.h"
#include "values.h"

/* Small numbers, whose sums every dtype holds. */
static tp_tensor_t *small(int32_t dtype, int32_t ndim, const int64_t *shape) {
  int64_t numel = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  double *values = malloc((size_t)(numel + 1) * sizeof *values);
  for (int64_t i = 0; i < numel; ++i) values[i] = (double)values_between(0, 3);
  tp_tensor_t *tensor = values_upload(dtype, ndim, shape, values);
  free(values);
  return tensor;
}

/* Each along dim once when `once`, else any. */
static tp_tensor_t *index_of(int32_t dtype, int32_t ndim, const int64_t *shape, int32_t dim, int64_t limit, bool once) {
  int64_t numel = 1, inner = 1, first = values_between(0, limit);
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  for (int32_t d = dim + 1; d < ndim; ++d) inner *= shape[d];
  double *values = malloc((size_t)(numel + 1) * sizeof *values);
  for (int64_t i = 0; i < numel; ++i)
    values[i] = (double)(once ? (first + i / inner % shape[dim]) % limit : values_between(0, limit));
  tp_tensor_t *tensor = values_upload(dtype, ndim, shape, values);
  free(values);
  return tensor;
}

/* The place in C order of `shape` that the i-th of index's elements names. */
static int64_t place_of(const tp_tensor_t *index, const double *at, int64_t i, int32_t dim, const int64_t *shape) {
  int64_t place = 0, step = 1, rest = i;
  for (int32_t d = index->ndim - 1; d >= 0; --d) {
    int64_t here = rest % index->shape[d];
    rest /= index->shape[d];
    place += (d == dim ? (int64_t)at[i] : here) * step;
    step *= shape[d];
  }
  return place;
}

static void check_gather(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index) {
  double *values = values_download(a), *at = values_download(index);
  tp_tensor_t *result = tp_gather(a, dim, index);
  CHECK(result && result->dtype == a->dtype && result->ndim == index->ndim && result->numel == index->numel);
  double *got = values_download(result);
  for (int64_t i = 0; i < index->numel; ++i)
    CHECK_CLOSE(got[i], values[place_of(index, at, i, dim, a->shape)], 0, i);
  free(values);
  free(at);
  free(got);
  tp_tensor_release(result);
}

static void check_scatter(tp_tensor_t *target, int32_t dim, const tp_tensor_t *index, const tp_tensor_t *source,
                          bool accumulate) {
  double *expected = values_download(target), *at = values_download(index), *from = values_download(source);
  for (int64_t i = 0; i < index->numel; ++i) {
    double *to = &expected[place_of(index, at, i, dim, target->shape)];
    int64_t step = 1, place = 0, rest = i;
    for (int32_t d = index->ndim - 1; d >= 0; --d) {
      place += rest % index->shape[d] * step;
      rest /= index->shape[d];
      step *= source->shape[d];
    }
    *to = values_rounded(target->dtype, accumulate ? *to + from[place] : from[place]);
  }
  CHECK_OK(tp_scatter(target, dim, index, source, accumulate));
  double *got = values_download(target);
  for (int64_t i = 0; i < target->numel; ++i) CHECK_CLOSE(got[i], expected[i], 0, i);
  free(expected);
  free(at);
  free(from);
  free(got);
}

static const int64_t shape[] = {5, 7, 12};
static const int64_t part[] = {4, 7, 8};

static void test_layouts(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    for (int32_t dim = 0; dim < 3; ++dim) {
      int32_t index_dtype = values_bits() & 1 ? TP_DTYPE_int64 : TP_DTYPE_int32;
      tp_tensor_t *plain = small(dtype, 3, shape), *other = small(dtype, 3, (int64_t[]){12, 14, 5});
      tp_tensor_t *turned = tp_tensor_permute(other, 3, (int64_t[]){2, 1, 0});
      tp_tensor_t *cut = tp_tensor_slice(turned, 1, 1, 14, 2);
      tp_tensor_t *any = index_of(index_dtype, 3, part, dim, shape[dim], false);
      tp_tensor_t *once = index_of(index_dtype, 3, part, dim, shape[dim], true);
      tp_tensor_t *row = index_of(index_dtype, 3, (int64_t[]){1, 7, 1}, dim, shape[dim], false);
      tp_tensor_t *wide = tp_tensor_expand(row, 3, part);
      const tp_tensor_t *sources[] = {cut, plain};
      tp_tensor_t *targets[] = {plain, cut};
      for (int t = 0; t < 2; ++t) {
        check_gather(targets[t], dim, any);
        check_gather(targets[t], dim, wide);
        check_scatter(targets[t], dim, once, sources[t], false);
        check_scatter(targets[t], dim, any, sources[t], true);
        check_scatter(targets[t], dim, wide, sources[t], true);
      }
      tp_tensor_t *tensors[] = {plain, other, turned, cut, any, once, row, wide};
      for (size_t t = 0; t < 8; ++t) tp_tensor_release(tensors[t]);
    }
  }
}

/* Tensors without dimensions count as one element; an index without elements does nothing. */
static void test_edges(void) {
  tp_tensor_t *scalar = small(TP_DTYPE_float32, 0, NULL), *one = small(TP_DTYPE_float32, 1, (int64_t[]){1});
  tp_tensor_t *zeros = index_of(TP_DTYPE_int64, 1, (int64_t[]){3}, 0, 1, false);
  tp_tensor_t *zero = tp_tensor_select(zeros, 0, 0);
  tp_tensor_t *results[] = {tp_gather(scalar, 0, zero), tp_gather(scalar, -1, zeros), tp_gather(one, 0, zero)};
  CHECK(results[0] && results[0]->ndim == 0 && results[1] && results[1]->numel == 3 && results[2]);
  CHECK_OK(tp_scatter(scalar, 0, zero, one, 0));
  CHECK_OK(tp_scatter(one, 0, zero, scalar, 1));
  tp_tensor_t *none = tp_tensor_empty(TP_DTYPE_int64, 0, 2, (int64_t[]){0, 9});
  tp_tensor_t *matrix = small(TP_DTYPE_float32, 2, shape), *empty = tp_gather(matrix, 1, none);
  CHECK(empty && empty->ndim == 2 && empty->shape[1] == 9);
  CHECK_OK(tp_scatter(matrix, 0, none, scalar, 1));
  CHECK_OK(tp_device_synchronize(0));
  tp_tensor_t *tensors[] = {scalar, one, zeros, zero, none, matrix, empty, results[0], results[1], results[2]};
  for (size_t t = 0; t < 10; ++t) tp_tensor_release(tensors[t]);
}

/* Index and source in the target's own memory are read as they were before. */
static void test_overlap(void) {
  for (int accumulate = 0; accumulate < 2; ++accumulate) {
    double values[] = {3, 2, 1, 0, 4};
    tp_tensor_t *x = values_upload(TP_DTYPE_int64, 1, (int64_t[]){5}, values);
    CHECK_OK(tp_scatter(x, 0, x, x, accumulate));
    double *got = values_download(x);
    for (int i = 0; i < 5; ++i) CHECK_CLOSE(got[(int)values[i]], values[i] + accumulate * values[(int)values[i]], 0, i);
    free(got);
    tp_tensor_release(x);
  }
}

/* What a bad index names is read as 0 and not written, all else is; the next wait says so once. */
static void test_faults(void) {
  static const double bad[] = {-1, 12, -13, 1e6, 2147483647, -2147483648.0};
  for (size_t b = 0; b < sizeof bad / sizeof *bad; ++b) {
    for (int what = 0; what < 4; ++what) { /* gather; scatter, sums of integers and of floats */
      int32_t dtype = what == 2 ? TP_DTYPE_int16 : TP_DTYPE_float32;
      tp_tensor_t *x = small(dtype, 1, (int64_t[]){12}), *source = small(dtype, 1, (int64_t[]){3});
      tp_tensor_t *index = values_upload(TP_DTYPE_int64, 1, (int64_t[]){3}, (double[]){1, bad[b], 11});
      double *before = values_download(x), *from = values_download(source);
      tp_tensor_t *result = what ? NULL : tp_gather(x, 0, index);
      if (what) CHECK_OK(tp_scatter(x, 0, index, source, what > 1));
      CHECK(tp_device_synchronize(0) == TP_INDEX);
      CHECK(strcmp(tp_error_operation(), what ? "scatter_" : "gather") == 0 && strstr(tp_error_text(), "size 12"));
      CHECK_OK(tp_device_synchronize(0));
      double *got = values_download(what ? x : result);
      for (int i = 0; i < 12; ++i) {
        int named = i == 1 ? 0 : i == 11 ? 2 : -1;
        if (what) CHECK_CLOSE(got[i], named < 0 ? before[i] : from[named] + (what > 1 ? before[i] : 0), 0, i);
      }
      if (!what) CHECK(got[0] == before[1] && got[1] == 0 && got[2] == before[11]);
      free(before);
      free(from);
      free(got);
      tp_tensor_t *tensors[] = {x, source, index, result};
      for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
    }
  }
}

static void test_refusals(void) {
  tp_tensor_t *x = small(TP_DTYPE_float32, 2, shape), *half = small(TP_DTYPE_float16, 2, shape);
  tp_tensor_t *index = index_of(TP_DTYPE_int64, 2, (int64_t[]){5, 8}, 1, 5, false);
  tp_tensor_t *far = tp_tensor_empty(TP_DTYPE_float32, 1, 2, shape);
  tp_tensor_t *flat = index_of(TP_DTYPE_int64, 1, shape, 0, 5, false), *row = tp_tensor_slice(x, 0, 0, 1, 1);
  tp_tensor_t *wide = tp_tensor_expand(row, 2, shape), *fits = tp_tensor_slice(index, 1, 0, 7, 1);
  CHECK(!tp_gather(x, 0, index) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_gather(x, 2, index) && tp_error_status() == TP_INDEX);
  CHECK(!tp_gather(x, 0, x) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_gather(x, 0, flat) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_gather(far, 0, index) && tp_error_status() == TP_DEVICE);
  CHECK(tp_scatter(x, 1, index, x, 0) == TP_SHAPE);
  CHECK(tp_scatter(x, 0, fits, half, 0) == TP_DTYPE);
  CHECK(tp_scatter(x, 0, fits, row, 0) == TP_SHAPE);
  CHECK(tp_scatter(x, 0, fits, far, 0) == TP_DEVICE);
  CHECK(tp_scatter(wide, 0, fits, x, 1) == TP_INVALID_ARGUMENT);
  tp_tensor_t *tensors[] = {x, half, index, far, flat, row, wide, fits};
  for (size_t t = 0; t < 8; ++t) tp_tensor_release(tensors[t]);
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_layouts();
    test_edges();
    test_overlap();
    test_faults();
  }
  test_refusals();
  return 0;
}
