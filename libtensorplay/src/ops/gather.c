/* gather and scatter: an index for each element, along one dimension. */
#include "../../kernels/fault.h"
#include "selection.h"

/* Sizes of the index that other may not be exceeded by, but along dim (-1: along none). A tensor without dimensions
 * counts as one of one element, and an index without elements names nothing. */
static tp_status_t check_fits(const tp_tensor_t *other, const tp_tensor_t *index, int32_t dim, const char *operation) {
  if (index->numel == 0) return TP_OK;
  int32_t ndim = index->ndim ? index->ndim : 1;
  bool fits = ndim == (other->ndim ? other->ndim : 1);
  for (int32_t d = 0; fits && d < ndim; ++d)
    fits = d == dim || (index->ndim ? index->shape[d] : 1) <= (other->ndim ? other->shape[d] : 1);
  return fits ? TP_OK : tp__error_set(TP_SHAPE, operation, "got an index that is larger than an operand, or of another "
                                                           "number of dimensions");
}

tp_tensor_t *tp_gather(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index) {
  const char *operation = "gather";
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0 || tp__check_index(a, index, operation) || check_fits(a, index, dim, operation) ||
      tp__check_room(a, dim, index, operation))
    return NULL;
  tp_tensor_t *out = tp__tensor_new(a->dtype, a->device, index->ndim, index->shape, operation);
  if (!out || out->numel == 0) return out;
  tp__selection_t selection;
  tp__selection_along(&selection, a, dim, index, TP_FAULT_OP_GATHER);
  if (!tp__selection_read(&selection, out, operation)) return out;
  tp_tensor_release(out);
  return NULL;
}

/* The part of source that index has places for. */
static tp_tensor_t *part_of(const tp_tensor_t *source, const tp_tensor_t *index) {
  int64_t strides[TP_MAX_NDIM] = {0};
  for (int32_t d = 0; d < index->ndim && d < source->ndim; ++d) strides[d] = source->strides[d];
  return tp__tensor_view(source, index->ndim, index->shape, strides, source->offset);
}

tp_status_t tp_scatter(tp_tensor_t *target, int32_t dim, const tp_tensor_t *index, const tp_tensor_t *source,
                       int32_t accumulate) {
  const char *operation = "scatter_";
  dim = tp__check_dim(dim, target->ndim, operation);
  if (dim < 0) return tp_error_status();
  TP_TRY(tp__check_index(target, index, operation));
  TP_TRY(tp__selection_check_put(target, source, operation));
  TP_TRY(check_fits(target, index, dim, operation));
  TP_TRY(check_fits(source, index, -1, operation));
  TP_TRY(tp__check_room(target, dim, index, operation));
  if (index->numel == 0) return TP_OK;
  tp_tensor_t *at = tp__selection_operand(index, target), *part = part_of(source, index);
  tp_status_t status = at && part ? TP_OK : tp_error_status();
  if (!status) {
    tp__selection_t selection;
    tp__selection_along(&selection, target, dim, at, TP_FAULT_OP_SCATTER);
    status = tp__selection_put(&selection, target, part, accumulate, operation);
  }
  tp_tensor_release(at);
  tp_tensor_release(part);
  return status;
}
