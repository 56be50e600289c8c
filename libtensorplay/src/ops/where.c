/* where: a choice between two operands. */
#include "../../kernels/args_elementwise.h"
#include "../internal.h"

static const char operation[] = "where";
/* By the kind of dtype of the result. */
static tp__kernel_t kernels[] = {TP_KERNEL_INIT("elementwise", "tp_k_where_i64"),
                                 TP_KERNEL_INIT("elementwise", "tp_k_where_f32")};

static tp_status_t check(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b) {
  if (condition->dtype != TP_DTYPE_bool)
    return tp__error_set(TP_DTYPE, operation, "got a condition of dtype %s, expected bool",
                         tp__dtype_name(condition->dtype));
  if (condition->device != a->device || a->device != b->device)
    return tp__error_set(TP_DEVICE, operation, "got operands on the devices %d, %d and %d",
                         (int)condition->device, (int)a->device, (int)b->device);
  return TP_OK;
}

static tp_status_t launch(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b,
                          int32_t dtype, tp_tensor_t *target) {
  tp_strided_args_t args = {.out = target->data,
                            .operands = {condition->data, a->data, b->data},
                            .dtypes = {condition->dtype, a->dtype, b->dtype},
                            .out_dtype = target->dtype,
                            .round = dtype};
  const tp_tensor_t *tensors[] = {target, condition, a, b};
  tp__layout_make(&args.layout, target->ndim, target->shape, 4, tensors);
  return tp__launch_tiles(&kernels[tp__dtype_is_floating(dtype)], target->device, target->numel,
                          TP_STRIDED_TILE, &args, operation);
}

tp_tensor_t *tp_where(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b,
                      tp_tensor_t *out) {
  if (check(condition, a, b)) return NULL;
  int32_t ndim;
  int64_t shape[TP_MAX_NDIM];
  if (tp__check_broadcast(a->ndim, a->shape, b->ndim, b->shape, &ndim, shape, operation) ||
      tp__check_broadcast(ndim, shape, condition->ndim, condition->shape, &ndim, shape, operation))
    return NULL;
  int32_t dtype = tp__promote(a->dtype, a->ndim == 0, b->dtype, b->ndim == 0);
  tp_tensor_t *result = tp__check_out(out, dtype, a->device, ndim, shape, operation);
  if (!result || result->numel == 0) return result;
  bool direct = !out || !(tp__tensor_overlaps(out, condition) || tp__tensor_overlaps(out, a) ||
                          tp__tensor_overlaps(out, b));
  tp_tensor_t *target = tp__target_take(result, result->dtype, direct, operation);
  tp_status_t status = target ? launch(condition, a, b, dtype, target) : tp_error_status();
  return tp__target_finish(result, target, status);
}
