/* Elements that come from numbers. */
#include <math.h>

#include "../kernels/args_copy.h"
#include "../kernels/args_elementwise.h"
#include "internal.h"

static tp__kernel_t fill_kernels[TP_DTYPE_COUNT] = {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  [TP_DTYPE_##name] = TP_KERNEL_INIT("fill", "tp_k_fill_" #suffix),
#include "../kernels/dtypes.def"
#undef TP_DTYPE
};
static tp__kernel_t arange_float = TP_KERNEL_INIT("fill", "tp_k_arange_float");
static tp__kernel_t arange_int = TP_KERNEL_INIT("fill", "tp_k_arange_int");

/* As a cast on the device: truncated, kept to the range, NaN as the GPU's instructions have it. */
static int64_t int_of_double(double value, int32_t dtype) {
  if (dtype == TP_DTYPE_bool) return value != 0;
  if (dtype == TP_DTYPE_int32) {
    if (isnan(value)) return 0;
    return value >= 0x1p31 ? INT32_MAX : value < -0x1p31 ? INT32_MIN : (int64_t)value;
  }
  if (isnan(value)) return INT64_MIN;
  return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

/* target is contiguous and has elements. */
static tp_status_t fill_run(tp_tensor_t *target, tp_scalar_t value) {
  static const char operation[] = "fill";
  size_t size = tp__dtype_size(target->dtype);
  size_t nbytes = (size_t)target->numel * size;
  bool zero = tp__dtype_is_floating(target->dtype) ? value.as_float == 0 && !signbit(value.as_float)
                                                   : value.as_int == 0;
  if (zero || target->dtype == TP_DTYPE_bool) {
    TP_TRY(tp__device_enter(target->device, operation));
    cudaStream_t stream = tp__stream_cuda(tp__stream_current(target->device));
    TP_TRY_CUDA(cudaMemsetAsync(target->data, !zero, nbytes, stream), operation);
    return TP_OK;
  }
  tp_flat_args_t args = {.out = target->data,
                         .aligned = (uintptr_t)target->data % 16 == 0,
                         .tile = tp__layout_tile(target->numel, size),
                         .numel = target->numel,
                         .scalar = value};
  return tp__launch_tiles(&fill_kernels[target->dtype], target->device, target->numel, args.tile, &args,
                          operation);
}

static tp_status_t fill(tp_tensor_t *tensor, tp_scalar_t value) {
  if (tensor->numel == 0) return TP_OK;
  if (tensor->contiguous) return fill_run(tensor, value);
  /* One element, copied everywhere: strides are the copy's business. */
  tp_tensor_t *one = tp__tensor_new(tensor->dtype, tensor->device, 0, NULL, "fill");
  if (!one) return tp_error_status();
  tp_status_t status = fill_run(one, value);
  if (!status) status = tp__copy_same_device(tensor, one, "fill");
  tp_tensor_release(one);
  return status;
}

tp_status_t tp_tensor_fill_float(tp_tensor_t *tensor, double value) {
  tp_scalar_t scalar = {0};
  if (tp__dtype_is_floating(tensor->dtype))
    scalar.as_float = (float)value;
  else
    scalar.as_int = int_of_double(value, tensor->dtype);
  return fill(tensor, scalar);
}

tp_status_t tp_tensor_fill_int(tp_tensor_t *tensor, int64_t value) {
  tp_scalar_t scalar = {0};
  if (tp__dtype_is_floating(tensor->dtype))
    scalar.as_float = (float)value;
  else if (tensor->dtype == TP_DTYPE_bool)
    scalar.as_int = value != 0;
  else
    scalar.as_int = tensor->dtype == TP_DTYPE_int32 ? (int32_t)value : value;
  return fill(tensor, scalar);
}

static tp_tensor_t *arange(tp__kernel_t *kernel, tp_arange_args_t *args, int64_t numel, int32_t dtype,
                           int32_t device) {
  tp_tensor_t *out = tp_tensor_empty(dtype, device, 1, &numel);
  if (!out || numel == 0) return out;
  args->out = out->data;
  args->numel = numel;
  args->out_dtype = dtype;
  if (tp__launch_tiles(kernel, out->device, numel, TP_COPY_TILE, args, "arange")) {
    tp_tensor_release(out);
    return NULL;
  }
  return out;
}

tp_tensor_t *tp_tensor_arange_float(double start, double step, int64_t numel, int32_t dtype, int32_t device) {
  tp_arange_args_t args = {.float_start = start, .float_step = step};
  return arange(&arange_float, &args, numel, dtype, device);
}

tp_tensor_t *tp_tensor_arange_int(int64_t start, int64_t step, int64_t numel, int32_t dtype, int32_t device) {
  tp_arange_args_t args = {.int_start = start, .int_step = step};
  return arange(&arange_int, &args, numel, dtype, device);
}
