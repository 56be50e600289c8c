/* DLPack 1.x, both ways: https://dmlc.github.io/dlpack/latest/c_api.html. The structures are the standard's. */
#include <stdlib.h>

#include "internal.h"

enum { MAJOR = 1, MINOR = 1 };
enum { DEVICE_CUDA = 2, DEVICE_CUDA_MANAGED = 13 };
enum { CODE_INT = 0, CODE_UINT = 1, CODE_FLOAT = 2, CODE_BFLOAT = 4, CODE_COMPLEX = 5, CODE_BOOL = 6 };

typedef struct dl_tensor {
  void *data;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape;
  int64_t *strides; /* elements; NULL for C order */
  uint64_t byte_offset;
} dl_tensor_t;

typedef struct unversioned {
  dl_tensor_t tensor;
  void *context;
  void (*deleter)(struct unversioned *self);
} unversioned_t;

typedef struct versioned {
  struct { uint32_t major, minor; } version;
  void *context;
  void (*deleter)(struct versioned *self);
  uint64_t flags;
  dl_tensor_t tensor;
} versioned_t;

/* ---- dtypes ---- */

static uint8_t code_of(int32_t dtype) {
  if (dtype == TP_DTYPE_uint8) return CODE_UINT;
  if (dtype == TP_DTYPE_bfloat16) return CODE_BFLOAT;
  static const uint8_t codes[] = {[TP_CATEGORY_BOOL] = CODE_BOOL, [TP_CATEGORY_INT] = CODE_INT,
                                  [TP_CATEGORY_FLOAT] = CODE_FLOAT, [TP_CATEGORY_COMPLEX] = CODE_COMPLEX};
  return codes[tp__dtype_category(dtype)];
}

static int32_t dtype_of(const dl_tensor_t *tensor, const char *operation) {
  for (int32_t dtype = 0; tensor->dtype.lanes == 1 && dtype < TP_DTYPE_COUNT; ++dtype) {
    if (tensor->dtype.code == code_of(dtype) && tensor->dtype.bits == 8 * tp__dtype_size(dtype)) return dtype;
  }
  return tp__error_set(TP_DTYPE, operation,
                       "got a dtype of code %d, %d bits and %d lanes, expected one that a tensor has",
                       tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
}

/* ---- out ---- */

static void delete_unversioned(unversioned_t *self) {
  tp_tensor_release(self->context);
  free(self);
}

static void delete_versioned(versioned_t *self) {
  tp_tensor_release(self->context);
  free(self);
}

/* Shape and strides are the tensor's own, which never change. */
static dl_tensor_t describe(tp_tensor_t *tensor) {
  return (dl_tensor_t){
      .data = (void *)tp_tensor_data(tensor),
      .device = {DEVICE_CUDA, tensor->device},
      .ndim = tensor->ndim,
      .dtype = {code_of(tensor->dtype), (uint8_t)(8 * tp__dtype_size(tensor->dtype)), 1},
      .shape = tensor->shape,
      .strides = tensor->strides,
  };
}

/* The consumer's stream sees what the current one holds, and the memory is not used again before the consumer's
 * work is done. */
static tp_status_t order(tp_tensor_t *tensor, tp_stream_t *consumer, const char *operation) {
  if (!consumer) return TP_OK;
  tp_stream_t *current = tp__stream_current(tensor->device);
  if (current != consumer && consumer == tp_stream_default(tensor->device) && tp__stream_is_capturing(current))
    return tp__error_set(TP_STATE, operation,
                         "the default stream cannot wait for a stream that is being captured: give stream= as that "
                         "stream's number, or -1 for no order");
  TP_TRY(tp_stream_wait_stream(consumer, current));
  return tp_tensor_record_stream(tensor, consumer);
}

void *tp_dlpack_export(tp_tensor_t *tensor, tp_stream_t *consumer, int32_t is_versioned, uint64_t flags) {
  static const char operation[] = "__dlpack__";
  void *managed = malloc(is_versioned ? sizeof(versioned_t) : sizeof(unversioned_t));
  if (!managed) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a description");
    return NULL;
  }
  if (order(tensor, consumer, operation)) {
    free(managed);
    return NULL;
  }
  tp_tensor_t *kept = tp__tensor_retain(tensor);
  if (is_versioned)
    *(versioned_t *)managed = (versioned_t){.version = {MAJOR, MINOR}, .context = kept, .deleter = delete_versioned,
                                            .flags = flags, .tensor = describe(kept)};
  else
    *(unversioned_t *)managed =
        (unversioned_t){.tensor = describe(kept), .context = kept, .deleter = delete_unversioned};
  return managed;
}

/* ---- in ---- */

static void release_unversioned(void *managed) {
  unversioned_t *self = managed;
  if (self->deleter) self->deleter(self);
}

static void release_versioned(void *managed) {
  versioned_t *self = managed;
  if (self->deleter) self->deleter(self);
}

void tp_dlpack_release(void *managed, int32_t is_versioned) {
  if (managed) (is_versioned ? release_versioned : release_unversioned)(managed);
}

/* What this library lent comes back as another handle to the same storage. */
static tp_tensor_t *own(void *managed, int32_t is_versioned) {
  if (is_versioned ? ((versioned_t *)managed)->deleter != delete_versioned
                   : ((unversioned_t *)managed)->deleter != delete_unversioned)
    return NULL;
  tp_tensor_t *tensor = is_versioned ? ((versioned_t *)managed)->context : ((unversioned_t *)managed)->context;
  free(managed);
  return tensor;
}

tp_tensor_t *tp_dlpack_import(void *managed, int32_t is_versioned, uint64_t *out_flags) {
  static const char operation[] = "from_dlpack";
  const versioned_t *self = managed;
  if (is_versioned && self->version.major != MAJOR) {
    tp__error_set(TP_EXCHANGE, operation, "got DLPack %u.%u, expected %d", self->version.major, self->version.minor,
                  MAJOR);
    return NULL;
  }
  *out_flags = is_versioned ? self->flags : 0;
  tp_tensor_t *tensor = own(managed, is_versioned);
  if (tensor) return tensor;
  const dl_tensor_t *source = is_versioned ? &self->tensor : &((unversioned_t *)managed)->tensor;
  if (source->device.type != DEVICE_CUDA && source->device.type != DEVICE_CUDA_MANAGED) {
    tp__error_set(TP_EXCHANGE, operation, "got memory of DLPack's device type %d, expected %d (CUDA)",
                  (int)source->device.type, DEVICE_CUDA);
    return NULL;
  }
  int32_t dtype = dtype_of(source, operation);
  if (dtype < 0) return NULL;
  int32_t device = source->device.type == DEVICE_CUDA ? source->device.id : TP_DEVICE_CURRENT;
  return tp_tensor_from_memory((uintptr_t)source->data + source->byte_offset, dtype, device, source->ndim,
                               source->shape, source->strides, is_versioned ? release_versioned : release_unversioned,
                               managed);
}
