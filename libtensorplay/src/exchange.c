/* Tensors over memory of other libraries. */
#include "internal.h"

static const char operation[] = "from_memory";

/* Elements from the first to behind the last one, numel > 0; -1 when 63 bits do not count their bytes. */
static int64_t extent(int32_t dtype, int32_t ndim, const int64_t *shape, const int64_t *strides) {
  int64_t reach = 0, nbytes;
  for (int32_t d = 0; d < ndim; ++d) {
    int64_t step;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &step)) return -1;
    if (__builtin_add_overflow(reach, step, &reach)) return -1;
  }
  if (__builtin_add_overflow(reach, 1, &reach)) return -1;
  return __builtin_mul_overflow(reach, (int64_t)tp__dtype_size(dtype), &nbytes) ? -1 : reach;
}

static tp_status_t check_shape(int32_t dtype, int32_t ndim, const int64_t *shape, bool *out_empty) {
  if (dtype < 0 || dtype >= TP_DTYPE_COUNT)
    return tp__error_set(TP_DTYPE, operation, "got dtype %d, expected 0 to %d", (int)dtype, TP_DTYPE_COUNT - 1);
  if (ndim < 0 || ndim > TP_MAX_NDIM)
    return tp__error_set(TP_SHAPE, operation, "got %d dimensions, expected 0 to %d", (int)ndim, TP_MAX_NDIM);
  for (int32_t d = 0; d < ndim; ++d) {
    if (shape[d] < 0)
      return tp__error_set(TP_INVALID_ARGUMENT, operation, "got size %lld in dimension %d, expected 0 or more",
                           (long long)shape[d], (int)d);
    *out_empty |= shape[d] == 0;
  }
  return TP_OK;
}

static tp_status_t check_strides(int32_t dtype, int32_t ndim, const int64_t *shape, const int64_t *strides) {
  for (int32_t d = 0; d < ndim; ++d) {
    if (shape[d] > 1 && strides[d] < 0)
      return tp__error_set(TP_EXCHANGE, operation, "got stride %lld in dimension %d, expected 0 or more: copy it first",
                           (long long)strides[d], (int)d);
  }
  if (extent(dtype, ndim, shape, strides) < 0)
    return tp__error_set(TP_OVERFLOW, operation, "a tensor that reaches over more than %td bytes of %s", PTRDIFF_MAX,
                         tp__dtype_name(dtype));
  return TP_OK;
}

/* The device on which the address lies; `device` is what the lender says, or TP_DEVICE_CURRENT. */
static tp_status_t locate(uintptr_t data, int32_t dtype, int32_t *device) {
  if (data % tp__dtype_size(dtype))
    return tp__error_set(TP_EXCHANGE, operation, "got the address %#zx, expected a multiple of the %zu bytes of %s",
                         (size_t)data, tp__dtype_size(dtype), tp__dtype_name(dtype));
  struct cudaPointerAttributes attributes;
  TP_TRY_CUDA(cudaPointerGetAttributes(&attributes, (const void *)data), operation);
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
    return tp__error_set(TP_EXCHANGE, operation,
                         "got the address %#zx, expected memory of a CUDA device of this process", (size_t)data);
  if (*device == TP_DEVICE_CURRENT) *device = attributes.device;
  if (*device != attributes.device && attributes.type == cudaMemoryTypeDevice)
    return tp__error_set(TP_DEVICE, operation, "got memory of cuda:%d, expected it on cuda:%d", attributes.device,
                         (int)*device);
  return TP_OK;
}

tp_tensor_t *tp_tensor_from_memory(uintptr_t data, int32_t dtype, int32_t device, int32_t ndim, const int64_t *shape,
                                   const int64_t *strides, tp_release_t release, void *context) {
  bool empty = false;
  int64_t steps[TP_MAX_NDIM];
  if (check_shape(dtype, ndim, shape, &empty)) return NULL;
  if (!strides || empty) {
    (void)tp__contiguous_strides(ndim, shape, steps); /* what overflows reaches too far, too */
    strides = steps;
  }
  if (!empty && check_strides(dtype, ndim, shape, strides)) return NULL;
  int32_t resolved = tp__device_resolve(device, operation);
  if (resolved < 0 || tp__device_enter(resolved, operation)) return NULL;
  if (!empty) {
    if (locate(data, dtype, &device) || tp__device_enter(device, operation)) return NULL;
    resolved = device;
  }
  tp__storage_t *storage = tp__descriptor_take_storage(operation);
  if (!storage) return NULL;
  *storage = (tp__storage_t){.device = resolved};
  if (!empty) {
    storage->data = (void *)data;
    storage->nbytes = (size_t)extent(dtype, ndim, shape, strides) * tp__dtype_size(dtype);
  }
  tp_tensor_t whole = {.dtype = dtype, .device = resolved, .storage = storage};
  tp_tensor_t *tensor = tp__tensor_view(&whole, ndim, shape, strides, 0); /* the one reference to the storage */
  storage->foreign = tensor ? tp__foreign_new(resolved, release, context, operation) : NULL;
  if (storage->foreign) {
    if (!empty) tp__order_alloc(storage->data, storage->nbytes, tp__stream_current(resolved));
    return tensor;
  }
  if (tensor) tp__descriptor_give_tensor(tensor);
  tp__descriptor_give_storage(storage);
  return NULL;
}
