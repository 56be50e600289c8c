/* Checks that views, copies and operations share. They refuse; the words for people who use Python are
 * chosen there (docs/design/layout.md), so these texts are short. */
#include "internal.h"

int32_t tp__check_dim(int32_t dim, int32_t ndim, const char *operation) {
  int32_t range = ndim ? ndim : 1;
  if (dim >= -range && dim < range) return dim < 0 ? dim + range : dim;
  tp__error_set(TP_INDEX, operation, "got dimension %d, expected %d to %d", (int)dim, (int)-range,
                (int)range - 1);
  return -1;
}

tp_status_t tp__check_broadcast(int32_t a_ndim, const int64_t *a_shape, int32_t b_ndim,
                                const int64_t *b_shape, int32_t *out_ndim, int64_t *out_shape,
                                const char *operation) {
  int32_t ndim = a_ndim > b_ndim ? a_ndim : b_ndim;
  for (int32_t d = ndim - 1, a = a_ndim - 1, b = b_ndim - 1; d >= 0; --d, --a, --b) {
    int64_t a_size = a >= 0 ? a_shape[a] : 1;
    int64_t b_size = b >= 0 ? b_shape[b] : 1;
    if (a_size != b_size && a_size != 1 && b_size != 1)
      return tp__error_set(TP_SHAPE, operation,
                           "got sizes %lld and %lld in dimension %d, expected equal ones or 1",
                           (long long)a_size, (long long)b_size, (int)d);
    out_shape[d] = a_size == 1 ? b_size : a_size;
  }
  *out_ndim = ndim;
  return TP_OK;
}

tp_status_t tp__check_devices(const tp_tensor_t *a, const tp_tensor_t *b, const char *operation) {
  if (a->device == b->device) return TP_OK;
  return tp__error_set(TP_DEVICE, operation, "got operands on devices %d and %d", (int)a->device, (int)b->device);
}

tp_status_t tp__check_floating(const tp_tensor_t *tensor, const char *operation) {
  if (tp__dtype_is_floating(tensor->dtype)) return TP_OK;
  return tp__error_set(TP_DTYPE, operation, "got dtype %s, expected a floating one", tp__dtype_name(tensor->dtype));
}

tp_status_t tp__check_target(const tp_tensor_t *target, const char *operation) {
  if (!tp__tensor_overlaps_itself(target)) return TP_OK;
  return tp__error_set(TP_INVALID_ARGUMENT, operation,
                       "got a target whose elements share memory, as expand makes them");
}

tp_status_t tp__check_index(const tp_tensor_t *tensor, const tp_tensor_t *index, const char *operation) {
  TP_TRY(tp__check_devices(tensor, index, operation));
  if (index->dtype != TP_DTYPE_int32 && index->dtype != TP_DTYPE_int64)
    return tp__error_set(TP_DTYPE, operation, "got an index of dtype %s, expected int32 or int64",
                         tp__dtype_name(index->dtype));
  return TP_OK;
}

tp_status_t tp__check_room(const tp_tensor_t *tensor, int32_t dim, const tp_tensor_t *index, const char *operation) {
  if (index->numel == 0 || tensor->ndim == 0 || tensor->shape[dim] != 0) return TP_OK;
  return tp__error_set(TP_INDEX, operation, "got an index into a dimension of size 0");
}

tp_tensor_t *tp__check_out(tp_tensor_t *out, int32_t dtype, int32_t device, int32_t ndim,
                           const int64_t *shape, const char *operation) {
  if (!out) return tp__tensor_new(dtype, device, ndim, shape, operation);
  if (out->device != device) {
    tp__error_set(TP_DEVICE, operation, "got out on device %d, expected %d", (int)out->device, (int)device);
    return NULL;
  }
  if (tp__dtype_category(out->dtype) < tp__dtype_category(dtype)) {
    tp__error_set(TP_DTYPE, operation, "got out of dtype %s for a result of dtype %s",
                  tp__dtype_name(out->dtype), tp__dtype_name(dtype));
    return NULL;
  }
  if (!tp__tensor_has_shape(out, ndim, shape)) {
    tp__error_set(TP_SHAPE, operation, "got out of another shape than the result");
    return NULL;
  }
  if (tp__check_target(out, operation)) return NULL;
  return tp__tensor_retain(out);
}
