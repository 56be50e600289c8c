/* Sums by index: runs of every length, how exact they are, the same bits in every run. */
#include "tp_emulated.h"
#include "values.h"

/* `count` rows of `width` elements, added to `places` rows, of which few are often the target. */
static void check_sums(int32_t dtype, int64_t count, int64_t width, int64_t places) {
  double *values, *at = malloc((size_t)count * sizeof *at);
  for (int64_t i = 0; i < count; ++i)
    at[i] = (double)(values_bits() & 1 ? values_between(0, places) : values_between(0, places < 3 ? places : 3));
  tp_tensor_t *source = values_random(dtype, 2, (int64_t[]){count, width}, &values);
  tp_tensor_t *index = values_upload(TP_DTYPE_int64, 1, &count, at);
  size_t numel = (size_t)(places * width);
  double *sums = calloc(numel, sizeof *sums), *sizes = calloc(numel, sizeof *sizes), *got = NULL;
  for (int64_t i = 0; i < count * width; ++i) {
    sums[(int64_t)at[i / width] * width + i % width] += values[i];
    sizes[(int64_t)at[i / width] * width + i % width] += fabs(values[i]);
  }
  for (int run = 0; run < 2; ++run) {
    tp_tensor_t *target = tp_tensor_empty(dtype, 0, 2, (int64_t[]){places, width});
    CHECK(target);
    CHECK_OK(tp_tensor_fill_int(target, 0));
    CHECK_OK(tp_index_put(target, 1, (const tp_tensor_t *[]){index}, source, 1));
    double *again = values_download(target);
    if (run) CHECK(memcmp(got, again, numel * sizeof *got) == 0);
    free(got);
    got = again;
    tp_tensor_release(target);
  }
  bool half = dtype == TP_DTYPE_float16 || dtype == TP_DTYPE_bfloat16;
  double step = half ? 0x1p-23 : values_epsilon(dtype);
  for (size_t i = 0; i < numel; ++i)
    CHECK_CLOSE(got[i], sums[i], 8 * step * sizes[i] + values_epsilon(dtype) / 2 * fabs(sums[i]), i);
  free(values);
  free(at);
  free(sums);
  free(sizes);
  free(got);
  tp_tensor_release(source);
  tp_tensor_release(index);
}

/* Around the chunks of 32 and of 32 * 16 keys, and far beyond. */
static void test_runs(void) {
  static const int32_t dtypes[] = {TP_DTYPE_float16, TP_DTYPE_bfloat16,  TP_DTYPE_float32,
                                   TP_DTYPE_float64, TP_DTYPE_complex64, TP_DTYPE_complex128};
  static const int64_t counts[] = {1, 31, 32, 33, 511, 512, 513, 9000};
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t) {
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
      check_sums(dtypes[t], counts[c], 1, 1);
      check_sums(dtypes[t], counts[c], 5, 40);
    }
  }
}

/* -0 + -0 is -0, and an infinite sum is one. */
static void test_special_values(void) {
  for (int64_t count = 1; count < 100; count += 40) {
    double values[100] = {0}, at[100] = {0};
    for (int64_t i = 0; i < count; ++i) values[i] = -0.0;
    tp_tensor_t *target = values_upload(TP_DTYPE_float32, 1, (int64_t[]){1}, (double[]){-0.0});
    tp_tensor_t *index = values_upload(TP_DTYPE_int32, 1, &count, at);
    tp_tensor_t *zeros = values_upload(TP_DTYPE_float32, 1, &count, values);
    CHECK_OK(tp_scatter(target, 0, index, zeros, 1));
    double *got = values_download(target);
    CHECK(got[0] == 0 && signbit(got[0]));
    free(got);
    for (int64_t i = 0; i < count; ++i) values[i] = 3e38;
    tp_tensor_t *large = values_upload(TP_DTYPE_float32, 1, &count, values);
    CHECK_OK(tp_scatter(target, 0, index, large, 1));
    got = values_download(target);
    CHECK(count == 1 ? got[0] == large->numel * values[0] : isinf(got[0]));
    free(got);
    tp_tensor_t *tensors[] = {target, index, zeros, large};
    for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
  }
}

/* Narrow integers share words with their neighbours, and wrap without touching these. */
static void test_narrow_integers(void) {
  static const int32_t dtypes[] = {TP_DTYPE_uint8, TP_DTYPE_int8, TP_DTYPE_int16, TP_DTYPE_bool};
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t) {
    enum { COUNT = 3000, PLACES = 13 };
    double values[COUNT], at[COUNT], expected[PLACES] = {0};
    for (int i = 0; i < COUNT; ++i) {
      values[i] = (double)values_between(-40, 40);
      at[i] = (double)values_between(0, PLACES);
    }
    tp_tensor_t *base = tp_tensor_empty(dtypes[t], 0, 1, (int64_t[]){PLACES + 2});
    CHECK_OK(tp_tensor_fill_int(base, 0));
    tp_tensor_t *target = tp_tensor_slice(base, 0, 1, PLACES + 1, 1);
    tp_tensor_t *index = values_upload(TP_DTYPE_int64, 1, (int64_t[]){COUNT}, at);
    tp_tensor_t *source = values_upload(dtypes[t], 1, (int64_t[]){COUNT}, values);
    for (int i = 0; i < COUNT; ++i) expected[(int)at[i]] = values_rounded(dtypes[t], expected[(int)at[i]] + values[i]);
    CHECK_OK(tp_scatter(target, 0, index, source, 1));
    double *got = values_download(base);
    CHECK(got[0] == 0 && got[PLACES + 1] == 0);
    for (int i = 0; i < PLACES; ++i) CHECK_CLOSE(got[i + 1], expected[i], 0, i);
    free(got);
    tp_tensor_t *tensors[] = {base, target, index, source};
    for (size_t i = 0; i < 4; ++i) tp_tensor_release(tensors[i]);
  }
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_runs();
    test_special_values();
    test_narrow_integers();
  }
  return 0;
}
