/* where: a choice between two operands. */
#include "../../kernels/args_elementwise.h"
#include "../internal.h"

static const char operation[] = "where";

static const tp__access_t accesses[] = {
    TP_WRITES(tp_where_args_t, out), TP_READS(tp_where_args_t, condition),
    TP_READS(tp_where_args_t, operands[0]), TP_READS(tp_where_args_t, operands[1]), {0}};

static tp__kernel_t kernels[] = TP_SIZE_KERNELS("where", "where", accesses);

static tp_status_t check(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b) {
  if (condition->dtype != TP_DTYPE_bool)
    return tp__error_set(TP_DTYPE, operation, "got a condition of dtype %s, expected bool",
                         tp__dtype_name(condition->dtype));
  TP_TRY(tp__check_devices(condition, a, operation));
  return tp__check_devices(a, b, operation);
}

/* All but the condition have the target's dtype. */
static tp_status_t launch(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b,
                          tp_tensor_t *target) {
  tp_where_args_t args = {
      .out = target->data, .condition = condition->data, .operands = {a->data, b->data}};
  const tp_tensor_t *tensors[] = {target, condition, a, b};
  uintptr_t addresses = 0;
  for (int32_t i = 0; i < 4; ++i) addresses |= (uintptr_t)tensors[i]->data;
  tp__layout_make(&args.layout, target->ndim, target->shape, 4, tensors);
  size_t size = tp__dtype_size(target->dtype);
  int64_t unit = 16 / (int64_t)size;
  bool aligned;
  args.units = tp__layout_units(&args.layout, 4, unit, &aligned);
  args.aligned = aligned && addresses % 16 == 0;
  int64_t units = args.units + (target->numel - args.units * unit);
  return tp__launch_tiles(&kernels[size], target->device, units, TP_UNITS_TILE, &args, operation);
}

static tp_tensor_t *as_dtype(const tp_tensor_t *operand, int32_t dtype) {
  return operand->dtype == dtype ? tp__tensor_retain(operand) : tp_tensor_to(operand, dtype, operand->device);
}

/* Operands of another dtype than the result are cast first. */
static tp_status_t choose(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b,
                          tp_tensor_t *target) {
  tp_tensor_t *x = as_dtype(a, target->dtype), *y = x ? as_dtype(b, target->dtype) : NULL;
  tp_status_t status = y ? launch(condition, x, y, target) : tp_error_status();
  tp_tensor_release(x);
  tp_tensor_release(y);
  return status;
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
  bool direct = result->dtype == dtype;
  if (out) {
    direct = direct && !tp__tensor_overlaps(out, condition) && !tp__tensor_overlaps(out, a) &&
             !tp__tensor_overlaps(out, b);
  }
  tp_tensor_t *target = tp__target_take(result, dtype, direct, operation);
  return tp__target_finish(result, target, target ? choose(condition, a, b, target) : tp_error_status());
}
