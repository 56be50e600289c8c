/* Tensors and views: description, ownership, what is refused, and dropping from many threads. */
#include <pthread.h>

#include "values.h"

/* Shape, strides and offset of a tensor made by `make`, which is then dropped. */
#define CHECK_VIEW(make, ndim_, offset_, ...)                                           \
  do {                                                                                  \
    static const int64_t expected_[][TP_MAX_NDIM] = {__VA_ARGS__};                      \
    tp_tensor_t *view_ = (make);                                                        \
    CHECK(view_ && tp_tensor_ndim(view_) == (ndim_));                                   \
    CHECK(tp_tensor_storage_offset(view_) == (offset_));                                \
    for (int32_t d_ = 0; d_ < (ndim_); ++d_) {                                          \
      CHECK(tp_tensor_shape(view_)[d_] == expected_[0][d_]);                            \
      CHECK(tp_tensor_strides(view_)[d_] == expected_[1][d_]);                          \
    }                                                                                   \
    tp_tensor_release(view_);                                                           \
  } while (0)

#define CHECK_REFUSED(make, status) CHECK(!(make) && tp_error_status() == (status))

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

static void test_description(void) {
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float16, TP_DEVICE_CURRENT, 3, SIZES(2, 3, 4));
  CHECK(a && tp_tensor_dtype(a) == TP_DTYPE_float16 && tp_tensor_device(a) == 0);
  CHECK(tp_tensor_numel(a) == 24 && tp_tensor_is_contiguous(a));
  CHECK(tp_tensor_storage_nbytes(a) == 48 && tp_tensor_data(a) % 512 == 0 && tp_tensor_data(a));
  tp_tensor_t *b = tp_tensor_slice(a, 0, 1, 2, 1), *c = tp_tensor_alias(a), *like = tp_tensor_empty_like(a);
  CHECK(tp_tensor_data(b) == tp_tensor_data(a) + 24 && tp_tensor_storage(b) == tp_tensor_storage(a));
  CHECK(c != a && tp_tensor_data(c) == tp_tensor_data(a));
  CHECK(tp_tensor_storage(like) != tp_tensor_storage(a) && tp_tensor_numel(like) == 24);
  tp_tensor_t *all[] = {a, b, c, like};
  for (int i = 0; i < 4; ++i) tp_tensor_release(all[i]);
  tp_tensor_release(NULL);

  tp_tensor_t *empty = tp_tensor_empty(TP_DTYPE_int64, 1, 2, SIZES(0, 5));
  CHECK(empty && tp_tensor_data(empty) == 0 && tp_tensor_storage_nbytes(empty) == 0);
  CHECK(tp_tensor_is_contiguous(empty) && tp_tensor_strides(empty)[0] == 5 && tp_tensor_device(empty) == 1);
  CHECK_OK(tp_tensor_fill_int(empty, 1));
  tp_tensor_release(empty);
  tp_tensor_t *scalar = tp_tensor_empty(TP_DTYPE_bool, 0, 0, NULL);
  CHECK(scalar && tp_tensor_numel(scalar) == 1 && tp_tensor_storage_nbytes(scalar) == 1);
  tp_tensor_release(scalar);
}

static void test_empty_refused(void) {
  int64_t before = tp_memory_stat(0, 0);
  const int64_t many[TP_MAX_NDIM + 1] = {1};
  CHECK_REFUSED(tp_tensor_empty(-1, 0, 1, SIZES(1)), TP_DTYPE);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_COUNT, 0, 1, SIZES(1)), TP_DTYPE);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_bool, 2, 1, SIZES(1)), TP_DEVICE);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_bool, 0, TP_MAX_NDIM + 1, many), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_bool, 0, 2, SIZES(3, -1)), TP_INVALID_ARGUMENT);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_bool, 0, 2, SIZES((int64_t)1 << 40, (int64_t)1 << 40)), TP_OVERFLOW);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_int64, 0, 1, SIZES((int64_t)1 << 60)), TP_OVERFLOW);
  CHECK_REFUSED(tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES((int64_t)1 << 45)), TP_OUT_OF_MEMORY);
  CHECK(tp_memory_stat(0, 0) == before);
}

static void test_views(void) {
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_int32, 0, 3, SIZES(2, 3, 4));
  CHECK_VIEW(tp_tensor_transpose(a, 0, -1), 3, 0, {4, 3, 2}, {1, 4, 12});
  CHECK_VIEW(tp_tensor_permute(a, 3, SIZES(2, 0, 1)), 3, 0, {4, 2, 3}, {1, 12, 4});
  CHECK_VIEW(tp_tensor_view(a, 2, SIZES(6, -1)), 2, 0, {6, 4}, {4, 1});
  CHECK_VIEW(tp_tensor_slice(a, 1, 1, 3, 1), 3, 4, {2, 2, 4}, {12, 4, 1});
  CHECK_VIEW(tp_tensor_slice(a, -1, 1, 4, 2), 3, 1, {2, 3, 2}, {12, 4, 2});
  CHECK_VIEW(tp_tensor_slice(a, 0, 2, 1, 1), 3, 24, {0, 3, 4}, {12, 4, 1});
  CHECK_VIEW(tp_tensor_slice(a, 0, 0, 2, INT64_MAX), 3, 0, {1, 3, 4}, {12, 4, 1});
  CHECK_VIEW(tp_tensor_select(a, 1, -1), 2, 8, {2, 4}, {12, 1});
  CHECK_VIEW(tp_tensor_unsqueeze(a, -1), 4, 0, {2, 3, 4, 1}, {12, 4, 1, 1});
  CHECK_VIEW(tp_tensor_unsqueeze(a, 1), 4, 0, {2, 1, 3, 4}, {12, 12, 4, 1});
  CHECK_VIEW(tp_tensor_squeeze(a, 0), 3, 0, {2, 3, 4}, {12, 4, 1});
  CHECK_VIEW(tp_tensor_as_strided(a, 2, SIZES(2, 2), SIZES(1, 20), 2), 2, 2, {2, 2}, {1, 20});
  tp_tensor_t *one = tp_tensor_slice(a, 1, 2, 3, 1);
  CHECK_VIEW(tp_tensor_squeeze(one, 1), 2, 8, {2, 4}, {12, 1});
  CHECK_VIEW(tp_tensor_expand(one, 4, SIZES(5, -1, 3, 4)), 4, 8, {5, 2, 3, 4}, {0, 12, 0, 1});
  CHECK_VIEW(tp_tensor_expand(one, 3, SIZES(2, 0, 4)), 3, 8, {2, 0, 4}, {12, 0, 1});
  tp_tensor_release(one);

  CHECK_REFUSED(tp_tensor_transpose(a, 0, 3), TP_INDEX);
  CHECK_REFUSED(tp_tensor_permute(a, 3, SIZES(0, 1, 1)), TP_INVALID_ARGUMENT);
  CHECK_REFUSED(tp_tensor_permute(a, 2, SIZES(0, 1)), TP_INVALID_ARGUMENT);
  CHECK_REFUSED(tp_tensor_view(a, 2, SIZES(5, -1)), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_view(a, 3, SIZES(-1, -1, 24)), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_view(a, 1, SIZES(23)), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_select(a, 0, 2), TP_INDEX);
  CHECK_REFUSED(tp_tensor_slice(a, 0, 0, 3, 1), TP_INDEX);
  CHECK_REFUSED(tp_tensor_unsqueeze(a, 4), TP_INDEX);
  CHECK_REFUSED(tp_tensor_expand(a, 3, SIZES(2, 3, 5)), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_expand(a, 2, SIZES(3, 4)), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_expand(a, 4, SIZES(-1, 2, 3, 4)), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_as_strided(a, 1, SIZES(2), SIZES(24), 0), TP_INDEX);
  CHECK_REFUSED(tp_tensor_as_strided(a, 1, SIZES(2), SIZES(1), -1), TP_INDEX);
  CHECK_REFUSED(tp_tensor_as_strided(a, 1, SIZES(2), SIZES(-1), 5), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_as_strided(a, 2, SIZES(INT64_MAX, 3), SIZES(3, INT64_MAX), 0), TP_INDEX);
  tp_tensor_release(a);
}

/* A view where the strides allow one, else a copy with the same elements. */
static void test_reshape(void) {
  tp_tensor_t *flat = tp_tensor_arange_int(0, 1, 24, TP_DTYPE_int32, 0);
  tp_tensor_t *a = tp_tensor_view(flat, 3, SIZES(2, 3, 4)), *turned = tp_tensor_permute(a, 3, SIZES(1, 0, 2));
  tp_tensor_t *part = tp_tensor_slice(a, 0, 0, 2, 1);
  CHECK_VIEW(tp_tensor_view(turned, 4, SIZES(3, 2, 2, 2)), 4, 0, {3, 2, 2, 2}, {4, 12, 2, 1});
  CHECK_VIEW(tp_tensor_view(turned, 5, SIZES(3, 1, 2, 4, 1)), 5, 0, {3, 1, 2, 4, 1}, {4, 24, 12, 1, 1});
  CHECK_REFUSED(tp_tensor_view(turned, 1, SIZES(24)), TP_STATE);
  tp_tensor_t *copy = tp_tensor_reshape(turned, 2, SIZES(-1, 8)), *view = tp_tensor_reshape(a, 1, SIZES(-1));
  CHECK(copy && tp_tensor_storage(copy) != tp_tensor_storage(a) && tp_tensor_is_contiguous(copy));
  CHECK(tp_tensor_shape(copy)[0] == 3 && tp_tensor_storage(view) == tp_tensor_storage(a));
  double *got = values_download(copy);
  for (int64_t i = 0; i < 24; ++i) CHECK_CLOSE(got[i], (double)(i / 8 * 4 + i / 4 % 2 * 12 + i % 4), 0, i);
  free(got);
  tp_tensor_t *same = tp_tensor_contiguous(a), *other = tp_tensor_contiguous(turned);
  CHECK(same == a && other != turned);
  tp_tensor_t *none = tp_tensor_slice(a, 0, 1, 1, 1);
  CHECK_VIEW(tp_tensor_view(none, 2, SIZES(7, 0)), 2, 12, {7, 0}, {1, 1});
  CHECK_REFUSED(tp_tensor_view(none, 2, SIZES(-1, 0)), TP_SHAPE);
  tp_tensor_t *all[] = {flat, a, turned, part, copy, view, same, other, none};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

/* The storage lives as long as one view of it. */
static void test_view_as_dtype(void) {
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float32, 0, 3, SIZES(2, 3, 4));
  CHECK_VIEW(tp_tensor_view_dtype(a, TP_DTYPE_int32), 3, 0, {2, 3, 4}, {12, 4, 1});
  CHECK_VIEW(tp_tensor_view_dtype(a, TP_DTYPE_int16), 3, 0, {2, 3, 8}, {24, 8, 1});
  CHECK_VIEW(tp_tensor_view_dtype(a, TP_DTYPE_complex64), 3, 0, {2, 3, 2}, {6, 2, 1});
  CHECK_VIEW(tp_tensor_view_dtype(a, TP_DTYPE_complex128), 3, 0, {2, 3, 1}, {3, 1, 1});
  tp_tensor_t *turned = tp_tensor_transpose(a, 0, 2), *end = tp_tensor_slice(a, 2, 2, 4, 1);
  CHECK_VIEW(tp_tensor_view_dtype(turned, TP_DTYPE_int32), 3, 0, {4, 3, 2}, {1, 4, 12});
  CHECK_REFUSED(tp_tensor_view_dtype(turned, TP_DTYPE_int16), TP_STATE); /* elements of the last one are apart */
  CHECK_VIEW(tp_tensor_view_dtype(end, TP_DTYPE_uint8), 3, 8, {2, 3, 8}, {48, 16, 1});
  CHECK_VIEW(tp_tensor_view_dtype(end, TP_DTYPE_int64), 3, 1, {2, 3, 1}, {6, 2, 1});
  tp_tensor_t *middle = tp_tensor_slice(a, 2, 1, 3, 1), *three = tp_tensor_slice(a, 2, 0, 3, 1);
  CHECK_REFUSED(tp_tensor_view_dtype(middle, TP_DTYPE_int64), TP_STATE); /* the offset is odd */
  CHECK_REFUSED(tp_tensor_view_dtype(three, TP_DTYPE_int64), TP_SHAPE);
  tp_tensor_t *odd = tp_tensor_as_strided(a, 2, SIZES(2, 2), SIZES(3, 1), 0);
  CHECK_REFUSED(tp_tensor_view_dtype(odd, TP_DTYPE_int64), TP_STATE); /* a stride is odd */
  tp_tensor_t *single = tp_tensor_as_strided(a, 2, SIZES(2, 1), SIZES(4, 2), 2);
  CHECK_VIEW(tp_tensor_view_dtype(single, TP_DTYPE_int16), 2, 4, {2, 2}, {8, 1});
  tp_tensor_t *one = tp_tensor_empty(TP_DTYPE_float32, 0, 0, NULL);
  CHECK_VIEW(tp_tensor_view_dtype(one, TP_DTYPE_int32), 0, 0, {0}, {0});
  CHECK_REFUSED(tp_tensor_view_dtype(one, TP_DTYPE_int16), TP_SHAPE);
  CHECK_REFUSED(tp_tensor_view_dtype(one, TP_DTYPE_COUNT), TP_DTYPE);
  tp_tensor_t *wide = tp_tensor_as_strided(a, 2, SIZES(INT64_MAX / 8, 4), SIZES(0, 1), 0);
  CHECK_REFUSED(tp_tensor_view_dtype(wide, TP_DTYPE_uint8), TP_OVERFLOW);
  tp_tensor_t *all[] = {a, turned, end, middle, three, odd, single, one, wide};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
}

static void test_lifetime(void) {
  tp_tensor_t *a = tp_tensor_arange_int(0, 1, 1000, TP_DTYPE_int32, 0);
  tp_tensor_t *view = tp_tensor_slice(a, 0, 500, 503, 1);
  int64_t held = tp_memory_stat(0, 0);
  tp_tensor_release(a);
  CHECK(tp_memory_stat(0, 0) == held);
  tp_tensor_t *other = values_poisoned(TP_DTYPE_int32, 1, SIZES(1000)); /* would overwrite a freed block */
  double *got = values_download(view);
  for (int64_t i = 0; i < 3; ++i) CHECK_CLOSE(got[i], (double)(500 + i), 0, i);
  free(got);
  tp_tensor_release(view);
  CHECK(tp_memory_stat(0, 0) == held);
  tp_tensor_release(other);
  CHECK(tp_memory_stat(0, 0) == held - 1);
}

static void test_record_stream(void) {
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_int32, 0, 1, SIZES(100));
  tp_tensor_t *none = tp_tensor_empty(TP_DTYPE_int32, 0, 1, SIZES(0));
  CHECK_OK(tp_tensor_record_stream(a, tp_stream_from_pool(0, 0)));
  CHECK_OK(tp_tensor_record_stream(none, tp_stream_from_pool(0, 0)));
  CHECK(tp_tensor_record_stream(a, tp_stream_default(1)) == TP_DEVICE);
  tp_tensor_release(a);
  tp_tensor_release(none);
}

static void test_overlap_of_itself(void) {
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_int32, 0, 1, SIZES(64));
  static const struct {
    int64_t shape[2], strides[2];
    bool overlaps;
  } cases[] = {{{4, 3}, {3, 1}, false}, {{4, 3}, {1, 4}, false}, {{4, 3}, {0, 1}, true},
               {{4, 3}, {2, 1}, true},
               {{4, 3}, {9, 2}, false}, {{1, 3}, {0, 1}, false}, {{0, 3}, {0, 1}, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    tp_tensor_t *view = tp_tensor_as_strided(a, 2, cases[i].shape, cases[i].strides, 0);
    CHECK(view && tp__tensor_overlaps_itself(view) == cases[i].overlaps);
    tp_tensor_release(view);
  }
  tp_tensor_release(a);
}

/* Made in one thread, viewed and dropped in all; descriptors move between the threads' lists. */
static void *drop_views(void *argument) {
  tp_tensor_t *shared = argument;
  for (int i = 0; i < 3000; ++i) {
    tp_tensor_t *view = tp_tensor_alias(shared), *part = tp_tensor_slice(view, 0, 1, 3, 1);
    tp_tensor_t *fresh = tp_tensor_empty_like(part);
    CHECK(view && part && fresh);
    tp_tensor_release(view);
    tp_tensor_release(part);
    tp_tensor_release(fresh);
  }
  tp_tensor_release(shared); /* the thread's own reference */
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[8];
  tp_tensor_t *shared = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(16));
  for (int i = 0; i < 8; ++i)
    CHECK(pthread_create(&threads[i], NULL, drop_views, tp__tensor_retain(shared)) == 0);
  tp_tensor_release(shared);
  for (int i = 0; i < 8; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
  values_start();
  test_description();
  test_empty_refused();
  test_views();
  test_reshape();
  test_view_as_dtype();
  test_lifetime();
  test_record_stream();
  test_overlap_of_itself();
  test_threads();
  for (int32_t device = 0; device < 2; ++device) CHECK(tp_memory_stat(device, 0) == 0); /* nothing is left */
  return 0;
}
