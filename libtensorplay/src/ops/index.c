/* Indexing with tensors of integers: a[i, j] and a[i, j] = values. */
#include "../../kernels/fault.h"
#include "selection.h"

tp_tensor_t *tp_index(const tp_tensor_t *a, int32_t n, const tp_tensor_t *const *indices) {
  const char *operation = "index";
  tp__selection_t selection;
  if (tp__selection_at(&selection, a, n, indices, TP_FAULT_OP_INDEX, operation)) return NULL;
  const tp_tensor_t *shape = &selection.base;
  if (!selection.offsets) { /* One index tensor, or no elements. */
    int32_t dim = 0;
    while (!indices[dim]) ++dim;
    return tp__rows_take(a, dim, indices[dim], shape->ndim, shape->shape, true, TP_FAULT_OP_INDEX, operation);
  }
  tp_tensor_t *out = tp__tensor_new(a->dtype, a->device, shape->ndim, shape->shape, operation);
  if (out && out->numel && tp__selection_read(&selection, out, operation)) {
    tp_tensor_release(out);
    out = NULL;
  }
  tp__selection_release(&selection);
  return out;
}

/* Whether a shape broadcasts to the selection's without changing it. */
static tp_status_t check_values(const tp__selection_t *selection, const tp_tensor_t *values, const char *operation) {
  const tp_tensor_t *shape = &selection->base;
  int32_t lead = shape->ndim - values->ndim;
  bool fits = lead >= 0;
  for (int32_t d = 0; fits && d < values->ndim; ++d)
    fits = values->shape[d] == 1 || values->shape[d] == shape->shape[lead + d];
  return fits ? TP_OK : tp__error_set(TP_SHAPE, operation, "the values do not broadcast to what is indexed");
}

tp_status_t tp_index_put(tp_tensor_t *target, int32_t n, const tp_tensor_t *const *indices, const tp_tensor_t *values,
                         int32_t accumulate) {
  const char *operation = "index_put_";
  TP_TRY(tp__selection_check_put(target, values, operation));
  tp__selection_t selection;
  TP_TRY(tp__selection_at(&selection, target, n, indices, TP_FAULT_OP_INDEX_PUT, operation));
  tp_status_t status = check_values(&selection, values, operation);
  if (!status) status = tp__selection_put(&selection, target, values, accumulate, operation);
  tp__selection_release(&selection);
  return status;
}
