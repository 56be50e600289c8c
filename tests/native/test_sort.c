/* Sorting: every dtype and layout, sizes around tiles, the order of equal elements, of NaN and of both zeros. */
#include "tp_emulated.h"
#include "values.h"

/* Whether x belongs before y. */
static bool precedes(double x, double y, bool descending) {
  if (descending) return precedes(y, x, false);
  return isnan(y) ? !isnan(x) : x < y;
}

/* Checks tp_argsort along dim, where values are the tensor's elements in C order: each place once, no element before
 * one that precedes it, and places of equal ones rising. */
static void check(const tp_tensor_t *tensor, const double *values, int32_t dim, bool descending) {
  int64_t size = tensor->ndim ? tensor->shape[dim] : 1, inner = 1;
  for (int32_t d = dim + 1; d < tensor->ndim; ++d) inner *= tensor->shape[d];
  tp_tensor_t *result = tp_argsort(tensor, dim - (tensor->ndim ? tensor->ndim : 1), descending);
  CHECK(result && result->dtype == TP_DTYPE_int64 && result->contiguous && result->numel == tensor->numel);
  double *got = values_download(result);
  char *seen = malloc((size_t)size + 1);
  for (int64_t start = 0; start < tensor->numel; ++start) {
    if (start / inner % size) continue;
    memset(seen, 0, (size_t)size);
    for (int64_t i = 0; i < size; ++i) {
      int64_t place = (int64_t)got[start + i * inner];
      CHECK(place >= 0 && place < size && !seen[place]);
      seen[place] = 1;
      if (i == 0) continue;
      int64_t before = (int64_t)got[start + (i - 1) * inner];
      double x = values[start + before * inner], y = values[start + place * inner];
      CHECK(precedes(x, y, descending) || (!precedes(y, x, descending) && before < place));
    }
  }
  free(seen);
  free(got);
  tp_tensor_release(result);
}

static void check_all(const tp_tensor_t *tensor, const double *values) {
  for (int32_t dim = 0; dim < (tensor->ndim ? tensor->ndim : 1); ++dim) {
    check(tensor, values, dim, false);
    check(tensor, values, dim, true);
  }
}

/* Numbers with many equal ones among them, NaN, infinities and zeros among fractions. */
static void check_random(int32_t dtype, int32_t ndim, const int64_t *shape) {
  double *values;
  tp_tensor_t *tensor = values_random(dtype, ndim, shape, &values);
  if (tp__dtype_is_floating(dtype)) {
    static const double special[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, 1};
    for (int64_t i = 0; i < tensor->numel; ++i)
      if (values_between(0, 4) == 0) values[i] = special[values_between(0, 6)];
    tp_tensor_release(tensor);
    tensor = values_upload(dtype, ndim, shape, values);
  }
  check_all(tensor, values);
  free(values);
  tp_tensor_release(tensor);
}

static void test_dtypes(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    if (tp__dtype_category(dtype) == TP_CATEGORY_COMPLEX) continue;
    check_random(dtype, 0, NULL);
    check_random(dtype, 3, (int64_t[]){4, 33, 7});
    check_random(dtype, 2, (int64_t[]){2, 5000});
    check_random(dtype, 2, (int64_t[]){3, 0});
  }
}

/* Around powers of two, what is sorted by comparisons, in one block, and the tiles of longer rows. */
static void test_sizes(void) {
  static const int64_t edges[] = {2, 32, 256, 1024, 2048, 4096, 8192};
  for (size_t e = 0; e < sizeof edges / sizeof *edges; ++e) {
    for (int64_t size = edges[e] - 1; size <= edges[e] + 1; ++size) {
      check_random(TP_DTYPE_float32, 2, (int64_t[]){3, size});
      check_random(TP_DTYPE_float64, 2, (int64_t[]){2, size});
      check_random(TP_DTYPE_int16, 2, (int64_t[]){size, 2});
    }
  }
  check_random(TP_DTYPE_float64, 1, (int64_t[]){50001});
  check_random(TP_DTYPE_bool, 1, (int64_t[]){300001}); /* counts whose running totals are split */
}

/* All bits of integers. */
static void test_wide_integers(void) {
  enum { ROWS = 2, SIZE = 3000 };
  int64_t numbers[ROWS * SIZE], places[ROWS * SIZE];
  for (int i = 0; i < ROWS * SIZE; ++i) numbers[i] = (int64_t)values_bits() >> values_between(0, 40);
  numbers[7] = INT64_MIN;
  numbers[8] = INT64_MAX;
  tp_tensor_t *tensor = tp_tensor_empty(TP_DTYPE_int64, 0, 2, (int64_t[]){ROWS, SIZE});
  CHECK_OK(tp_tensor_copy_from_host(tensor, numbers, sizeof numbers));
  tp_tensor_t *result = tp_argsort(tensor, 1, 0);
  CHECK(result);
  CHECK_OK(tp_tensor_copy_to_host(result, places, sizeof places));
  for (int i = 1; i < ROWS * SIZE; ++i) {
    const int64_t *row = numbers + i / SIZE * SIZE;
    CHECK(i % SIZE == 0 || row[places[i - 1]] <= row[places[i]]);
  }
  tp_tensor_release(result);
  tp_tensor_release(tensor);
}

static void test_layouts(void) {
  tp_tensor_t *base = values_random(TP_DTYPE_float16, 3, (int64_t[]){6, 13, 70}, NULL);
  tp_tensor_t *one = tp_tensor_slice(base, 1, 5, 6, 1);
  tp_tensor_t *views[] = {tp_tensor_permute(base, 3, (int64_t[]){2, 0, 1}), tp_tensor_slice(base, 2, 1, 69, 3),
                          tp_tensor_expand(one, 3, (int64_t[]){6, 40, 70}),
                          tp_tensor_expand(one, 3, (int64_t[]){6, 3000, 70})};
  for (size_t v = 0; v < 4; ++v) {
    double *values = values_download(views[v]);
    check(views[v], values, 1, v % 2);
    check(views[v], values, 2, true);
    free(values);
    tp_tensor_release(views[v]);
  }
  tp_tensor_release(one);
  tp_tensor_release(base);
}

static void test_refusals(void) {
  tp_tensor_t *floats = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, 3}, NULL);
  tp_tensor_t *complex = tp_tensor_to(floats, TP_DTYPE_complex64, 0);
  CHECK(!tp_argsort(floats, 2, 0) && tp_error_status() == TP_INDEX);
  CHECK(!tp_argsort(complex, 0, 0) && tp_error_status() == TP_DTYPE);
  tp_tensor_release(complex);
  tp_tensor_release(floats);
}

int main(void) {
  values_start();
  test_dtypes();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_sizes();
    test_wide_integers();
    test_layouts();
  }
  test_refusals();
  return 0;
}
