/* where: a choice between elements of every size, in every layout that chooses another way through memory. */
#include "values.h"

/* A view of a random tensor: of each dimension of the shape whose bit is set, begun `start` elements into the last. */
static tp_tensor_t *operand(int32_t dtype, int32_t ndim, const int64_t *shape, uint32_t dims, int64_t start,
                            bool reversed) {
  int64_t sizes[TP_MAX_NDIM], order[TP_MAX_NDIM];
  for (int32_t d = 0; d < ndim; ++d) {
    order[d] = reversed ? ndim - 1 - d : d;
    sizes[order[d]] = dims >> d & 1 ? shape[d] : 1;
  }
  sizes[ndim - 1] += start;
  tp_tensor_t *whole = values_random(dtype, ndim, sizes, NULL);
  tp_tensor_t *part = tp_tensor_slice(whole, ndim - 1, start, sizes[ndim - 1], 1);
  tp_tensor_t *view = tp_tensor_permute(part, ndim, order);
  CHECK(view);
  tp_tensor_release(whole);
  tp_tensor_release(part);
  return view;
}

/* Elements of the tensor broadcast to the shape. */
static double *broadcast(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape) {
  tp_tensor_t *wide = tp_tensor_expand(tensor, ndim, shape);
  double *values = values_download(wide);
  tp_tensor_release(wide);
  return values;
}

static void check_where(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b, int32_t ndim,
                        const int64_t *shape) {
  tp_tensor_t *y = tp_where(condition, a, b, NULL);
  int32_t dtype = tp__promote(a->dtype, a->ndim == 0, b->dtype, b->ndim == 0);
  CHECK(y && tp_tensor_dtype(y) == dtype && tp_tensor_is_contiguous(y));
  double *c = broadcast(condition, ndim, shape), *x = broadcast(a, ndim, shape), *z = broadcast(b, ndim, shape);
  double *got = values_download(y);
  for (int64_t i = 0; i < tp_tensor_numel(y); ++i)
    CHECK_CLOSE(got[i], values_rounded(dtype, c[i] != 0 ? x[i] : z[i]), 0, i);
  free(c);
  free(x);
  free(z);
  free(got);
  tp_tensor_release(y);
}

static void check_release(tp_tensor_t *condition, tp_tensor_t *a, tp_tensor_t *b, int32_t ndim,
                          const int64_t *shape) {
  check_where(condition, a, b, ndim, shape);
  tp_tensor_release(condition);
  tp_tensor_release(a);
  tp_tensor_release(b);
}

static void test_dtypes(void) {
  const int64_t shape[] = {4, 6};
  for (int32_t da = 0; da < TP_DTYPE_COUNT; ++da)
    for (int32_t db = 0; db < TP_DTYPE_COUNT; ++db)
      check_release(operand(TP_DTYPE_bool, 2, shape, 3, 0, false), operand(da, 1, shape + 1, 1, 0, false),
                    operand(db, 2, shape, 3, 0, false), 2, shape);
}

/* Runs with a rest, rows that vectors fit into and such that they do not, each operand whole, broadcast, misaligned
 * or turned. */
static void test_layouts(void) {
  static const int32_t dtypes[] = {TP_DTYPE_uint8, TP_DTYPE_float16, TP_DTYPE_float32, TP_DTYPE_int64,
                                   TP_DTYPE_complex128};
  static const int64_t shapes[][3] = {{3, 5, 32}, {2, 3, 7}, {1, 1, 5001}};
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s)
      for (int round = 0; round < 60; ++round) {
        uint32_t dims[3];
        for (int i = 0; i < 3; ++i) dims[i] = round ? (uint32_t)values_between(0, 8) : 7;
        dims[values_between(0, 3)] = 7;
        tp_tensor_t *tensors[3];
        for (int i = 0; i < 3; ++i)
          tensors[i] = operand(i ? dtypes[t] : (int32_t)TP_DTYPE_bool, 3, shapes[s], dims[i],
                               values_between(0, 3) == 0, values_between(0, 4) == 0);
        check_release(tensors[0], tensors[1], tensors[2], 3, shapes[s]);
      }
}

/* A number without dimensions is cast to the other operand's dtype, within its category. */
static void test_weak(void) {
  const int64_t shape[] = {9};
  tp_tensor_t *condition = values_random(TP_DTYPE_bool, 1, shape, NULL);
  tp_tensor_t *a = values_random(TP_DTYPE_float16, 1, shape, NULL);
  tp_tensor_t *one = values_random(TP_DTYPE_float32, 0, NULL, NULL);
  check_where(condition, a, one, 1, shape);
  check_where(condition, one, a, 1, shape);
  tp_tensor_t *all[] = {condition, a, one};
  for (int i = 0; i < 3; ++i) tp_tensor_release(all[i]);
}

/* Into out: of a wider dtype, with strides, and where it overlaps an operand in other places. */
static void test_out(void) {
  double *c, *x, *z;
  const int64_t shape[] = {12};
  tp_tensor_t *condition = values_random(TP_DTYPE_bool, 1, shape, &c);
  tp_tensor_t *a = values_random(TP_DTYPE_int32, 1, shape, &x), *b = values_random(TP_DTYPE_int16, 1, shape, &z);
  tp_tensor_t *wide = values_poisoned(TP_DTYPE_float64, 2, (int64_t[]){12, 2}), *out = tp_tensor_select(wide, 1, 1);
  CHECK(tp_where(condition, a, b, out) == out);
  double *got = values_download(out);
  for (int64_t i = 0; i < 12; ++i) CHECK_CLOSE(got[i], c[i] != 0 ? x[i] : z[i], 0, i);
  free(got);
  tp_tensor_release(out);
  tp_tensor_t *head = tp_tensor_slice(a, 0, 0, 11, 1), *tail = tp_tensor_slice(a, 0, 1, 12, 1);
  tp_tensor_t *flags = tp_tensor_slice(condition, 0, 0, 11, 1), *zero = tp_tensor_empty(TP_DTYPE_int32, 0, 0, NULL);
  CHECK_OK(tp_tensor_fill_int(zero, 0));
  CHECK(tp_where(flags, head, zero, tail) == tail);
  got = values_download(tail);
  for (int64_t i = 0; i < 11; ++i) CHECK_CLOSE(got[i], c[i] != 0 ? x[i] : 0, 0, i);
  free(got);
  tp_tensor_release(tail);
  tp_tensor_t *all[] = {condition, a, b, wide, out, head, tail, flags, zero};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tp_tensor_release(all[i]);
  free(c);
  free(x);
  free(z);
}

int main(void) {
  values_start();
  test_dtypes();
  test_layouts();
  test_weak();
  test_out();
  for (int32_t device = 0; device < 2; ++device) CHECK(tp_memory_stat(device, 0) == 0); /* nothing is left */
  return 0;
}
