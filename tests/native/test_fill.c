/* Fills and sequences. */
#include "values.h"

/* Contiguous and not, more elements than one round of the grid. */
static void test_fill(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    for (int64_t value = 0; value < 3; ++value) {
      double expected = values_rounded(dtype, (double)value);
      tp_tensor_t *whole = values_poisoned(dtype, 2, (int64_t[]){70001, 3});
      tp_tensor_t *column = tp_tensor_select(whole, 1, 1), *end = tp_tensor_slice(whole, 0, 1, 70001, 1);
      double *got = values_download(whole), poison = got[0];
      free(got);
      CHECK_OK(tp_tensor_fill_int(column, value));
      got = values_download(whole);
      for (int64_t i = 0; i < 210003; ++i) CHECK_CLOSE(got[i], i % 3 == 1 ? expected : poison, 0, i);
      free(got);
      CHECK_OK(tp_tensor_fill_float(end, (double)value));
      got = values_download(whole);
      for (int64_t i = 3; i < 210003; ++i) CHECK_CLOSE(got[i], expected, 0, i);
      CHECK_CLOSE(got[0], poison, 0, 0);
      free(got);
      tp_tensor_release(whole);
      tp_tensor_release(column);
      tp_tensor_release(end);
    }
  }
}

/* Every element from which a run may start, up to a few vectors long: nothing outside is touched. */
static void test_runs(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    const int64_t room = 70;
    for (int64_t start = 0; start < 17; ++start) {
      for (int64_t length = 1; length < 36; length += 1 + length / 8) {
        tp_tensor_t *whole = values_poisoned(dtype, 1, &room);
        tp_tensor_t *part = tp_tensor_slice(whole, 0, start, start + length, 1);
        double *got = values_download(whole), poison = got[0], expected = values_rounded(dtype, 2.5);
        free(got);
        CHECK_OK(tp_tensor_fill_float(part, 2.5));
        got = values_download(whole);
        for (int64_t i = 0; i < room; ++i)
          CHECK_CLOSE(got[i], i >= start && i < start + length ? expected : poison, 0, i);
        free(got);
        tp_tensor_release(whole);
        tp_tensor_release(part);
      }
    }
  }
}

/* Random numbers of every size, and those between which rounding decides: a fill is the cast of one element. */
static void test_fill_is_a_cast(void) {
  const double special[] = {65519, 65520, 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 2049, 2051, 0x1.01p0, 1e39, -1e20, NAN,
                            INFINITY, -0.0, 300.5, -1.5};
  enum { SPECIAL = sizeof special / sizeof *special };
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    for (int32_t i = 0; i < 200; ++i) {
      double value = i < SPECIAL ? special[i] : ldexp((double)(int64_t)values_bits(), (int)values_between(-100, 10));
      tp_tensor_t *number = tp_tensor_empty(TP_DTYPE_float64, 0, 0, NULL), *filled = tp_tensor_empty(dtype, 0, 0, NULL);
      CHECK_OK(tp_tensor_copy_from_host(number, &value, sizeof value));
      tp_tensor_t *cast = tp_tensor_to(number, dtype, 0);
      CHECK_OK(tp_tensor_fill_float(filled, value));
      double *expected = values_download(cast), *got = values_download(filled);
      CHECK_CLOSE(got[0], expected[0], 0, i);
      CHECK(isnan(got[0]) || signbit(got[0]) == signbit(expected[0]));
      free(expected);
      free(got);
      tp_tensor_release(number);
      tp_tensor_release(filled);
      tp_tensor_release(cast);
    }
  }
  tp_tensor_t *narrow = values_poisoned(TP_DTYPE_int32, 0, NULL);
  CHECK_OK(tp_tensor_fill_int(narrow, ((int64_t)1 << 32) + 5));
  values_check(narrow, (double[]){5});
  tp_tensor_release(narrow);
}

static void test_complex(void) {
  tp_tensor_t *numbers = values_poisoned(TP_DTYPE_complex64, 1, (int64_t[]){3});
  tp_tensor_t *parts = tp_tensor_view_dtype(numbers, TP_DTYPE_float32);
  CHECK_OK(tp_tensor_fill_complex(numbers, 1.5, -2));
  values_check(parts, (double[]){1.5, -2, 1.5, -2, 1.5, -2});
  tp_tensor_t *flags = values_poisoned(TP_DTYPE_bool, 0, NULL), *whole = values_poisoned(TP_DTYPE_int16, 0, NULL);
  CHECK_OK(tp_tensor_fill_float(flags, 0));
  CHECK_OK(tp_tensor_fill_complex(flags, 0, 1));
  values_check(flags, (double[]){1});
  CHECK_OK(tp_tensor_fill_complex(whole, 3.5, 0));
  values_check(whole, (double[]){3});
  CHECK(tp_tensor_fill_complex(whole, 4, 1) == TP_INVALID_ARGUMENT);
  CHECK(tp_tensor_fill_complex(parts, 4, NAN) == TP_INVALID_ARGUMENT);
  values_check(whole, (double[]){3});
  tp_tensor_release(numbers);
  tp_tensor_release(parts);
  tp_tensor_release(flags);
  tp_tensor_release(whole);
}

static void test_arange(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    tp_tensor_t *ints = tp_tensor_arange_int(-3, 2, 5000, dtype, 0);
    tp_tensor_t *floats = tp_tensor_arange_float(0.25, -0.125, 300, dtype, 0);
    int32_t category = tp__dtype_category(dtype);
    if (category != TP_CATEGORY_INT && category != TP_CATEGORY_FLOAT) {
      CHECK(!ints && !floats && tp_error_status() == TP_DTYPE);
      continue;
    }
    double *got = values_download(ints);
    for (int64_t i = 0; i < 5000; ++i) CHECK_CLOSE(got[i], values_rounded(dtype, (double)(-3 + 2 * i)), 0, i);
    free(got);
    got = values_download(floats);
    for (int64_t i = 0; i < 300; ++i) CHECK_CLOSE(got[i], values_rounded(dtype, 0.25 - 0.125 * (double)i), 0, i);
    free(got);
    tp_tensor_release(ints);
    tp_tensor_release(floats);
  }
  tp_tensor_t *none = tp_tensor_arange_int(0, 1, 0, TP_DTYPE_int32, 0);
  CHECK(none && tp_tensor_numel(none) == 0);
  tp_tensor_release(none);
}

int main(void) {
  values_start();
  test_fill();
  test_runs();
  test_fill_is_a_cast();
  test_complex();
  test_arange();
  CHECK(tp_memory_stat(0, 0) == 0); /* nothing is left */
  return 0;
}
