/* Some dimensions of a tensor apart from the others, for operations that work over dimensions. */
#include "../internal.h"

void tp__dims_take(tp_tensor_t *part, const tp_tensor_t *tensor, uint32_t dims) {
  *part = (tp_tensor_t){.ndim = 0, .numel = 1};
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (!((dims >> d) & 1)) continue;
    part->numel *= tensor->shape[d];
    part->shape[part->ndim] = tensor->shape[d];
    part->strides[part->ndim++] = tensor->strides[d];
  }
}

tp_status_t tp__dims_check_real(const tp_tensor_t *a, const char *operation) {
  if (tp__dtype_category(a->dtype) != TP_CATEGORY_COMPLEX) return TP_OK;
  return tp__error_set(TP_DTYPE, operation, "got dtype %s, expected one that is not complex",
                       tp__dtype_name(a->dtype));
}

tp_status_t tp__dims_check_filled(const tp_tensor_t *a, uint32_t dims, const char *operation) {
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (((dims >> d) & 1) && a->shape[d] == 0)
      return tp__error_set(TP_INDEX, operation, "got no elements in dimension %d, expected some", (int)d);
  }
  return TP_OK;
}

int32_t tp__dims_shape(const tp_tensor_t *a, uint32_t dims, bool keepdim, int64_t *out_shape) {
  int32_t ndim = 0;
  for (int32_t d = 0; d < a->ndim; ++d) {
    bool reduced = (dims >> d) & 1;
    if (!reduced || keepdim) out_shape[ndim++] = reduced ? 1 : a->shape[d];
  }
  return ndim;
}
