/* Copies in every direction. */
#include "tp_emulated.h"
#include "values.h"

static void release_all(tp_tensor_t **tensors, size_t n) {
  for (size_t i = 0; i < n; ++i) tp_tensor_release(tensors[i]);
}

/* Every pair of dtypes, contiguous and not: the kernels for runs, for strides, and the plain copy. */
static void test_casts(void) {
  const int64_t shape[] = {5, 3};
  for (int32_t from = 0; from < TP_DTYPE_COUNT; ++from) {
    for (int32_t to = 0; to < TP_DTYPE_COUNT; ++to) {
      double *x, element[2], expected[15];
      tp_tensor_t *source = values_random(from, 2, shape, &x);
      tp_tensor_t *target = values_poisoned(to, 2, shape);
      CHECK_OK(tp_tensor_copy(target, source));
      for (int64_t i = 0; i < 15; ++i) expected[i] = values_encode(to, x[i], element);
      values_check(target, expected);
      tp_tensor_t *columns = tp_tensor_transpose(source, 0, 1), *copy = tp_tensor_to(columns, to, 0);
      CHECK(copy && tp_tensor_is_contiguous(copy));
      for (int64_t i = 0; i < 15; ++i) expected[i] = values_encode(to, x[i % 5 * 3 + i / 5], element);
      values_check(copy, expected);
      /* Into strides, with the source spread over a dimension. */
      tp_tensor_t *first = tp_tensor_select(source, 0, 0), *turned = tp_tensor_transpose(target, 0, 1);
      tp_tensor_t *column = tp_tensor_unsqueeze(first, 1);
      CHECK_OK(tp_tensor_copy(turned, column));
      for (int64_t i = 0; i < 15; ++i) expected[i] = values_encode(to, x[i % 3], element);
      values_check(target, expected);
      release_all((tp_tensor_t *[]){source, target, columns, copy, first, turned, column}, 7);
      free(x);
    }
  }
}

/* What a fraction becomes that an integer cannot hold: the nearest of int32 and int64, of which narrow ones wrap. Of
 * complex numbers the real part; a run and strides. */
static void test_casts_out_of_range(void) {
  static const int32_t sources[] = {TP_DTYPE_bfloat16, TP_DTYPE_float32, TP_DTYPE_float64, TP_DTYPE_complex64,
                                    TP_DTYPE_complex128};
  static const struct {
    int32_t dtype;
    double expected[7];
  } cases[] = {
      {TP_DTYPE_int32, {INT32_MAX, INT32_MIN, 0, 2, -2, INT32_MAX, 300}},
      {TP_DTYPE_int64, {0x1p63, -0x1p63, -0x1p63, 2, -2, 0x1p63, 300}},
      {TP_DTYPE_bool, {1, 1, 1, 1, 1, 1, 1}},
      {TP_DTYPE_uint8, {255, 0, 0, 2, 254, 255, 44}},
      {TP_DTYPE_int8, {-1, 0, 0, 2, -2, -1, 44}},
      {TP_DTYPE_int16, {-1, 0, 0, 2, -2, -1, 300}},
      {TP_DTYPE_float16, {INFINITY, -INFINITY, NAN, 2.5, -2.5, INFINITY, 300}},
  };
  const int64_t n = 7;
  for (size_t s = 0; s < sizeof sources / sizeof *sources; ++s) {
    double values[] = {1e20, -1e20, NAN, 2.5, -2.5, INFINITY, 300};
    tp_tensor_t *source = values_upload(sources[s], 1, &n, values);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
      tp_tensor_t *run = tp_tensor_to(source, cases[c].dtype, 0);
      tp_tensor_t *wide = values_poisoned(cases[c].dtype, 2, (int64_t[]){7, 2}), *column = tp_tensor_select(wide, 1, 1);
      CHECK_OK(tp_tensor_copy(column, source));
      values_check(run, cases[c].expected);
      values_check(column, cases[c].expected);
      release_all((tp_tensor_t *[]){run, wide, column}, 3);
    }
    tp_tensor_release(source);
  }
}

/* Bytes that are looked at as another dtype while they are cast into themselves. */
static void test_cast_of_the_same_bytes(void) {
  tp_tensor_t *whole = tp_tensor_arange_int(0, 1, 3000, TP_DTYPE_int32, 0);
  tp_tensor_t *floats = tp_tensor_view_dtype(whole, TP_DTYPE_float32);
  tp_tensor_t *halves = tp_tensor_view_dtype(whole, TP_DTYPE_int16);
  tp_tensor_t *low = tp_tensor_slice(halves, 0, 0, 3000, 1), *pairs = tp_tensor_view(halves, 2, (int64_t[]){3000, 2});
  tp_tensor_t *first = tp_tensor_select(pairs, 1, 0), *copy = tp_tensor_to(first, TP_DTYPE_int16, 0);
  CHECK_OK(tp_tensor_copy(floats, whole));
  double *got = values_download(floats);
  for (int64_t i = 0; i < 3000; ++i) CHECK_CLOSE(got[i], (double)i, 0, i);
  free(got);
  CHECK_OK(tp_tensor_copy(low, floats));
  got = values_download(low);
  for (int64_t i = 0; i < 3000; ++i) CHECK_CLOSE(got[i], (double)i, 0, i);
  free(got);
  got = values_download(copy);
  for (int64_t i = 0; i < 3000; ++i) CHECK_CLOSE(got[i], (double)i, 0, i);
  free(got);
  release_all((tp_tensor_t *[]){whole, floats, halves, low, pairs, first, copy}, 7);
}

/* More dimensions than the fast paths know, and indices that need the division by multiplication. */
static void test_many_dimensions(void) {
  const int64_t shape[] = {2, 3, 1, 4, 5, 2, 3}, dims[] = {6, 2, 4, 0, 5, 3, 1};
  int64_t numel = 720, steps[7], at[7];
  double *x;
  tp_tensor_t *source = values_random(TP_DTYPE_int64, 7, shape, &x);
  tp_tensor_t *turned = tp_tensor_permute(source, 7, dims), *copy = tp_tensor_contiguous(turned);
  CHECK(copy && copy != turned);
  for (int d = 0; d < 7; ++d) steps[d] = tp_tensor_strides(source)[dims[d]];
  double *got = values_download(copy);
  for (int64_t i = 0; i < numel; ++i) {
    int64_t rest = i, place = 0;
    for (int d = 6; d >= 0; --d) {
      at[d] = rest % shape[dims[d]];
      rest /= shape[dims[d]];
      place += at[d] * steps[d];
    }
    CHECK_CLOSE(got[i], x[place], 0, i);
  }
  release_all((tp_tensor_t *[]){source, turned, copy}, 3);
  free(got);
  free(x);
}

/* Contiguous copies of a part of a tensor in every order of its dimensions: in tiles, in wider elements, in vectors. */
static void check_orders(int32_t dtype, const int64_t *shape, int64_t start) {
  double *x;
  const int64_t numel = shape[0] * shape[1] * shape[2] * shape[3];
  const int64_t whole[] = {shape[0], shape[1], shape[2], shape[3] + start};
  tp_tensor_t *source = values_random(dtype, 4, whole, &x);
  tp_tensor_t *part = tp_tensor_slice(source, 3, start, whole[3], 1);
  for (int64_t order = 0; order < 256; ++order) {
    const int64_t dims[] = {order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6};
    if ((1 << dims[0] | 1 << dims[1] | 1 << dims[2] | 1 << dims[3]) != 15) continue;
    tp_tensor_t *turned = tp_tensor_permute(part, 4, dims), *copy = tp_tensor_to(turned, dtype, 0);
    double *got = values_download(copy);
    for (int64_t i = 0; i < numel; ++i) {
      int64_t rest = i, place = start;
      for (int d = 3; d >= 0; --d) {
        place += rest % shape[dims[d]] * tp_tensor_strides(source)[dims[d]];
        rest /= shape[dims[d]];
      }
      CHECK_CLOSE(got[i], x[place], 0, i);
    }
    free(got);
    release_all((tp_tensor_t *[]){turned, copy}, 2);
  }
  release_all((tp_tensor_t *[]){source, part}, 2);
  free(x);
}

static void test_orders(void) {
  static const int32_t dtypes[] = {TP_DTYPE_bool, TP_DTYPE_bfloat16, TP_DTYPE_float32, TP_DTYPE_int64,
                                   TP_DTYPE_complex128};
  static const int64_t shapes[][4] = {{2, 3, 70, 67}, {1, 1, 64, 128}, {2, 9, 4, 32}, {3, 17, 2, 20}};
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t)
      for (size_t s = 0; s < 4; ++s)
        for (int64_t start = 0; start < 2; ++start) check_orders(dtypes[t], shapes[s], start);
  }
  tp_emulated_set_fibres(0);
}

static void test_overlap(void) {
  tp_tensor_t *a = tp_tensor_arange_int(0, 1, 8, TP_DTYPE_int32, 0);
  tp_tensor_t *head = tp_tensor_slice(a, 0, 0, 7, 1), *tail = tp_tensor_slice(a, 0, 1, 8, 1);
  CHECK_OK(tp_tensor_copy(tail, head));
  values_check(a, (double[]){0, 0, 1, 2, 3, 4, 5, 6});
  CHECK_OK(tp_tensor_copy(head, tail));
  values_check(a, (double[]){0, 1, 2, 3, 4, 5, 6, 6});
  CHECK_OK(tp_tensor_copy(a, a));
  values_check(a, (double[]){0, 1, 2, 3, 4, 5, 6, 6});
  tp_tensor_t *square = tp_tensor_slice(a, 0, 0, 4, 1), *rows = tp_tensor_view(square, 2, (int64_t[]){2, 2});
  tp_tensor_t *columns = tp_tensor_transpose(rows, 0, 1);
  CHECK_OK(tp_tensor_copy(rows, columns));
  values_check(a, (double[]){0, 2, 1, 3, 4, 5, 6, 6});
  release_all((tp_tensor_t *[]){a, head, tail, square, rows, columns}, 6);
}

/* Both current streams are other than the default ones, and hold work: the copy must wait for the source's
 * and be waited for by the target's, for every seed. */
static void test_between_devices(void) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CHECK_OK(tp_device_synchronize(0));
    CHECK_OK(tp_device_synchronize(1));
    tp_emulated_set_seed(seed);
    tp_stream_t *streams[] = {tp_stream_from_pool(0, 0), tp_stream_from_pool(1, 0)};
    for (int d = 0; d < 2; ++d) CHECK_OK(tp_stream_set_current(streams[d]));
    const int64_t shape[] = {3, 4};
    tp_tensor_t *source = tp_tensor_empty(TP_DTYPE_float32, 0, 2, shape);
    tp_tensor_t *target = tp_tensor_empty(TP_DTYPE_int64, 1, 2, (int64_t[]){4, 3});
    tp_tensor_t *columns = tp_tensor_transpose(target, 0, 1);
    CHECK_OK(tp_tensor_fill_int(source, 7));
    CHECK_OK(tp_tensor_fill_int(target, 1));
    CHECK_OK(tp_tensor_copy(columns, source)); /* cast, sent, and spread over strides */
    CHECK_OK(tp_tensor_fill_int(source, 9));   /* after the copy, so it must not arrive */
    tp_tensor_t *back = tp_tensor_to(target, TP_DTYPE_NONE, 0);
    CHECK(back && tp_tensor_device(back) == 0);
    double *got = values_download(back);
    for (int64_t i = 0; i < 12; ++i) CHECK_CLOSE(got[i], 7, 0, i);
    free(got);
    /* Without temporaries: what the target's stream holds must not come after the copy. */
    tp_tensor_t *direct = tp_tensor_empty(TP_DTYPE_float32, 1, 2, shape);
    CHECK_OK(tp_tensor_fill_int(direct, 1));
    CHECK_OK(tp_tensor_copy(direct, source));
    got = values_download(direct);
    for (int64_t i = 0; i < 12; ++i) CHECK_CLOSE(got[i], 9, 0, i);
    free(got);
    release_all((tp_tensor_t *[]){source, target, columns, back, direct}, 5);
    for (int d = 0; d < 2; ++d) CHECK_OK(tp_stream_set_current(tp_stream_default(d)));
  }
  CHECK(tp_device_current() == 0);
}

/* The host may change its memory as soon as the call returns, pinned memory too. */
static void test_from_host(void) {
  float values[6] = {1, 2, 3, 4, 5, 6};
  float *pinned = NULL;
  CHECK(cudaHostAlloc((void **)&pinned, sizeof values, cudaHostAllocDefault) == cudaSuccess);
  memcpy(pinned, values, sizeof values);
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_stream_set_current(stream));
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float32, 0, 2, (int64_t[]){2, 3}), *b = tp_tensor_empty_like(a);
  tp_tensor_t *columns = tp_tensor_transpose(b, 0, 1);
  CHECK_OK(tp_tensor_copy_from_host(a, pinned, sizeof values));
  memset(pinned, 0, sizeof values);
  CHECK_OK(tp_tensor_copy_from_host(columns, values, sizeof values));
  memset(values, 0, sizeof values);
  values_check(a, (double[]){1, 2, 3, 4, 5, 6});
  values_check(columns, (double[]){1, 2, 3, 4, 5, 6});
  values_check(b, (double[]){1, 3, 5, 2, 4, 6});
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(tp_tensor_copy_from_host(a, values, 20) == TP_INVALID_ARGUMENT);
  CHECK(tp_tensor_copy_to_host(a, values, 28) == TP_INVALID_ARGUMENT);
  release_all((tp_tensor_t *[]){a, b, columns}, 3);
}

static void test_refused(void) {
  tp_tensor_t *three = values_poisoned(TP_DTYPE_int32, 1, (int64_t[]){3});
  tp_tensor_t *two = values_poisoned(TP_DTYPE_int32, 1, (int64_t[]){2});
  tp_tensor_t *row = tp_tensor_unsqueeze(three, 0), *one = values_poisoned(TP_DTYPE_int32, 1, (int64_t[]){1});
  tp_tensor_t *same = tp_tensor_expand(one, 1, (int64_t[]){3});
  CHECK(tp_tensor_copy(three, two) == TP_SHAPE);
  CHECK(tp_tensor_copy(three, row) == TP_SHAPE);
  CHECK(tp_tensor_copy(same, three) == TP_INVALID_ARGUMENT);
  CHECK(!tp_tensor_to(three, 17, 0) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_tensor_to(three, TP_DTYPE_NONE, 9) && tp_error_status() == TP_DEVICE);
  values_check(three, (double[]){117, 117, 117});
  release_all((tp_tensor_t *[]){three, two, row, one, same}, 5);
}

/* Every set of dimensions turned, of contiguous elements and of a part of a transposed tensor. */
static void check_flips(int32_t dtype) {
  const int64_t shape[] = {3, 1, 5, 4};
  double *x;
  tp_tensor_t *whole = values_random(dtype, 4, shape, &x), *turned = tp_tensor_transpose(whole, 0, 3);
  tp_tensor_t *part = tp_tensor_slice(turned, 2, 1, 4, 2);
  for (uint32_t dims = 0; dims < 16; ++dims) {
    for (int32_t t = 0; t < 2; ++t) {
      const tp_tensor_t *source = t ? part : whole;
      tp_tensor_t *flipped = tp_tensor_flip(source, dims);
      CHECK(flipped && tp_tensor_is_contiguous(flipped) && tp_tensor_storage(flipped) != tp_tensor_storage(source));
      double *got = values_download(flipped);
      for (int64_t i = 0; i < tp_tensor_numel(source); ++i) {
        int64_t rest = i, place = source->offset;
        for (int32_t d = 3; d >= 0; --d) {
          int64_t at = rest % source->shape[d];
          place += (dims >> d & 1 ? source->shape[d] - 1 - at : at) * source->strides[d];
          rest /= source->shape[d];
        }
        CHECK_CLOSE(got[i], x[place], 0, i);
      }
      free(got);
      tp_tensor_release(flipped);
    }
  }
  release_all((tp_tensor_t *[]){whole, turned, part}, 3);
  free(x);
}

static void test_flip(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) check_flips(dtype);
  tp_tensor_t *one = values_poisoned(TP_DTYPE_int32, 0, NULL), *none = tp_tensor_empty_1d(TP_DTYPE_int32, 0, 0);
  tp_tensor_t *same = tp_tensor_flip(one, 0), *still_none = tp_tensor_flip(none, 1);
  values_check(same, (double[]){117});
  CHECK(still_none && tp_tensor_numel(still_none) == 0);
  CHECK(!tp_tensor_flip(one, 1) && tp_error_status() == TP_INDEX);
  CHECK(!tp_tensor_flip(none, 2) && tp_error_status() == TP_INDEX);
  release_all((tp_tensor_t *[]){one, none, same, still_none}, 4);
}

int main(void) {
  values_start();
  test_casts();
  test_casts_out_of_range();
  test_cast_of_the_same_bytes();
  test_many_dimensions();
  test_orders();
  test_overlap();
  test_between_devices();
  test_from_host();
  test_refused();
  test_flip();
  for (int32_t device = 0; device < 2; ++device) CHECK(tp_memory_stat(device, 0) == 0); /* nothing is left */
  return 0;
}
