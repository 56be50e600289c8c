/* Tensors: making, dropping and describing them. Views are made in view.c. */
#include "internal.h"

static const struct {
  const char *name;
  size_t size; /* bytes */
  int32_t category;
} dtypes[TP_DTYPE_COUNT] = {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  [TP_DTYPE_##name] = {#name, itemsize, TP_CATEGORY_##category},
#include "../kernels/dtypes.def"
#undef TP_DTYPE
};

size_t tp__dtype_size(int32_t dtype) { return dtypes[dtype].size; }

const char *tp__dtype_name(int32_t dtype) {
  return dtype >= 0 && dtype < TP_DTYPE_COUNT ? dtypes[dtype].name : "an unknown dtype";
}

int32_t tp__dtype_category(int32_t dtype) { return dtypes[dtype].category; }

bool tp__dtype_is_floating(int32_t dtype) { return dtypes[dtype].category == TP_CATEGORY_FLOAT; }

int32_t tp__dtype_real(int32_t dtype) {
  if (dtypes[dtype].category != TP_CATEGORY_COMPLEX) return dtype;
  return dtype == TP_DTYPE_complex64 ? TP_DTYPE_float32 : TP_DTYPE_float64;
}

int64_t tp__contiguous_strides(int32_t ndim, const int64_t *shape, int64_t *out_strides) {
  int64_t step = 1;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    out_strides[d] = step;
    if (shape[d] > 1 && __builtin_mul_overflow(step, shape[d], &step)) return -1;
  }
  return step;
}

static tp__storage_t *storage_new(int32_t device, size_t nbytes, const char *operation) {
  tp__storage_t *storage = tp__descriptor_take_storage(operation);
  if (!storage) return NULL;
  atomic_init(&storage->references, 1);
  storage->device = device;
  storage->nbytes = nbytes;
  storage->block = NULL;
  storage->foreign = NULL;
  storage->data = NULL;
  if (nbytes) {
    storage->block = tp__alloc(nbytes, tp__stream_current(device));
    if (!storage->block) {
      tp__descriptor_give_storage(storage);
      return NULL;
    }
    storage->data = tp__alloc_address(storage->block);
  }
  return storage;
}

/* True when the caller held the last reference. One owner needs no atomic read-modify-write. */
static bool drop(_Atomic int32_t *references) {
  if (atomic_load_explicit(references, memory_order_acquire) == 1) return true;
  return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

tp_tensor_t *tp__tensor_new(int32_t dtype, int32_t device, int32_t ndim, const int64_t *shape,
                            const char *operation) {
  if (tp__device_enter(device, operation)) return NULL;
  tp_tensor_t *tensor = tp__descriptor_take_tensor(operation);
  if (!tensor) return NULL;
  /* Bytes are counted without sizes of 0, as strides are. */
  int64_t numel = tp__contiguous_strides(ndim, shape, tensor->strides), nbytes;
  if (numel < 0 || __builtin_mul_overflow(numel, (int64_t)dtypes[dtype].size, &nbytes)) {
    tp__descriptor_give_tensor(tensor);
    tp__error_set(TP_OVERFLOW, operation, "a shape with more than %td bytes of %s", PTRDIFF_MAX,
                  dtypes[dtype].name);
    return NULL;
  }
  for (int32_t d = 0; d < ndim; ++d) {
    tensor->shape[d] = shape[d];
    if (shape[d] == 0) numel = nbytes = 0;
  }
  tensor->storage = storage_new(device, (size_t)nbytes, operation);
  if (!tensor->storage) {
    tp__descriptor_give_tensor(tensor);
    return NULL;
  }
  atomic_init(&tensor->references, 1);
  tensor->dtype = dtype;
  tensor->device = device;
  tensor->ndim = ndim;
  tensor->contiguous = true;
  tensor->numel = numel;
  tensor->offset = 0;
  tensor->data = tensor->storage->data;
  return tensor;
}

static bool strides_are_contiguous(int32_t ndim, const int64_t *shape, const int64_t *strides) {
  int64_t step = 1;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    if (shape[d] == 1) continue;
    if (strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

tp_tensor_t *tp__tensor_view(const tp_tensor_t *base, int32_t ndim, const int64_t *shape,
                             const int64_t *strides, int64_t offset) {
  tp_tensor_t *view = tp__descriptor_take_tensor("view");
  if (!view) return NULL;
  int64_t numel = 1;
  bool empty = false, overflow = false;
  for (int32_t d = 0; d < ndim; ++d) {
    view->shape[d] = shape[d];
    view->strides[d] = strides[d];
    empty |= shape[d] == 0;
    if (shape[d] > 1) overflow |= __builtin_mul_overflow(numel, shape[d], &numel);
  }
  if (overflow && !empty) {
    tp__descriptor_give_tensor(view);
    tp__error_set(TP_OVERFLOW, "view", "a shape with more than %lld elements", (long long)INT64_MAX);
    return NULL;
  }
  atomic_init(&view->references, 1);
  view->dtype = base->dtype;
  view->device = base->device;
  view->ndim = ndim;
  view->numel = empty ? 0 : numel;
  view->contiguous = empty || strides_are_contiguous(ndim, shape, strides);
  view->offset = offset;
  view->storage = base->storage;
  atomic_fetch_add_explicit(&view->storage->references, 1, memory_order_relaxed);
  char *data = base->storage->data;
  view->data = data ? data + (size_t)offset * dtypes[base->dtype].size : NULL;
  return view;
}

tp_tensor_t *tp__tensor_retain(const tp_tensor_t *tensor) {
  tp_tensor_t *retained = (tp_tensor_t *)tensor; /* only its count changes */
  atomic_fetch_add_explicit(&retained->references, 1, memory_order_relaxed);
  return retained;
}

/* First and last byte of the elements, numel > 0. */
static void extent(const tp_tensor_t *tensor, const char **out_first, const char **out_last) {
  int64_t reach = 0;
  for (int32_t d = 0; d < tensor->ndim; ++d) reach += (tensor->shape[d] - 1) * tensor->strides[d];
  *out_first = tensor->data;
  *out_last = *out_first + (size_t)(reach + 1) * dtypes[tensor->dtype].size - 1;
}

static bool same_elements(const tp_tensor_t *a, const tp_tensor_t *b) {
  if (a->data != b->data || a->dtype != b->dtype || a->ndim != b->ndim) return false;
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (a->shape[d] != b->shape[d]) return false;
    if (a->shape[d] > 1 && a->strides[d] != b->strides[d]) return false;
  }
  return true;
}

static bool meet(const tp_tensor_t *a, const tp_tensor_t *b) {
  const char *a_first, *a_last, *b_first, *b_last;
  extent(a, &a_first, &a_last);
  extent(b, &b_first, &b_last);
  return a_first <= b_last && b_first <= a_last;
}

bool tp__tensor_has_shape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape) {
  if (tensor->ndim != ndim) return false;
  for (int32_t d = 0; d < ndim; ++d) {
    if (tensor->shape[d] != shape[d]) return false;
  }
  return true;
}

bool tp__tensor_shares(const tp_tensor_t *a, const tp_tensor_t *b) {
  if (a->storage == b->storage) return true;
  /* What another library lends may be lent twice, or have been ours before. */
  return (a->storage->foreign || b->storage->foreign) && a->numel && b->numel && meet(a, b);
}

bool tp__tensor_meets(const tp_tensor_t *a, const tp_tensor_t *b) {
  return tp__tensor_shares(a, b) && a->numel && b->numel && meet(a, b);
}

bool tp__tensor_overlaps(const tp_tensor_t *a, const tp_tensor_t *b) {
  return tp__tensor_meets(a, b) && !same_elements(a, b);
}

bool tp__tensor_overlaps_itself(const tp_tensor_t *tensor) {
  if (tensor->contiguous || tensor->numel == 0) return false;
  /* Strides that each step over all smaller ones cannot meet; others are taken to overlap. */
  int32_t order[TP_MAX_NDIM], n = 0;
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (tensor->shape[d] < 2) continue;
    int32_t at = n++;
    for (; at > 0 && tensor->strides[order[at - 1]] > tensor->strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  int64_t reach = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (tensor->strides[order[i]] <= reach) return true;
    reach += (tensor->shape[order[i]] - 1) * tensor->strides[order[i]];
  }
  return false;
}

tp_tensor_t *tp_tensor_empty(int32_t dtype, int32_t device, int32_t ndim, const int64_t *shape) {
  static const char operation[] = "empty";
  if (dtype < 0 || dtype >= TP_DTYPE_COUNT) {
    tp__error_set(TP_DTYPE, operation, "got dtype %d, expected 0 to %d", (int)dtype, TP_DTYPE_COUNT - 1);
    return NULL;
  }
  if (ndim < 0 || ndim > TP_MAX_NDIM) {
    tp__error_set(TP_SHAPE, operation, "got %d dimensions, expected 0 to %d", (int)ndim, TP_MAX_NDIM);
    return NULL;
  }
  for (int32_t d = 0; d < ndim; ++d) {
    if (shape[d] >= 0) continue;
    tp__error_set(TP_INVALID_ARGUMENT, operation, "got size %lld in dimension %d, expected 0 or more",
                  (long long)shape[d], (int)d);
    return NULL;
  }
  device = tp__device_resolve(device, operation);
  return device < 0 ? NULL : tp__tensor_new(dtype, device, ndim, shape, operation);
}

tp_tensor_t *tp_tensor_empty_1d(int32_t dtype, int32_t device, int64_t numel) {
  return tp_tensor_empty(dtype, device, 1, &numel);
}

tp_tensor_t *tp_tensor_empty_like(const tp_tensor_t *like) {
  return tp__tensor_new(like->dtype, like->device, like->ndim, like->shape, "empty_like");
}

void tp_tensor_release(tp_tensor_t *tensor) {
  if (!tensor || !drop(&tensor->references)) return;
  tp__storage_t *storage = tensor->storage;
  if (drop(&storage->references)) {
    if (storage->block) tp__alloc_free(storage->block);
    if (storage->foreign) {
      tp__order_forget(storage->data, storage->nbytes);
      tp__foreign_drop(storage->foreign);
    }
    tp__descriptor_give_storage(storage);
  }
  tp__descriptor_give_tensor(tensor);
}

int32_t tp_tensor_dtype(const tp_tensor_t *tensor) { return tensor->dtype; }
int32_t tp_tensor_device(const tp_tensor_t *tensor) { return tensor->device; }
int32_t tp_tensor_ndim(const tp_tensor_t *tensor) { return tensor->ndim; }
const int64_t *tp_tensor_shape(const tp_tensor_t *tensor) { return tensor->shape; }
const int64_t *tp_tensor_strides(const tp_tensor_t *tensor) { return tensor->strides; }
int64_t tp_tensor_numel(const tp_tensor_t *tensor) { return tensor->numel; }
int64_t tp_tensor_storage_offset(const tp_tensor_t *tensor) { return tensor->offset; }
int32_t tp_tensor_is_contiguous(const tp_tensor_t *tensor) { return tensor->contiguous; }
uintptr_t tp_tensor_data(const tp_tensor_t *tensor) { return tensor->numel ? (uintptr_t)tensor->data : 0; }
uintptr_t tp_tensor_storage(const tp_tensor_t *tensor) { return (uintptr_t)tensor->storage; }
size_t tp_tensor_storage_nbytes(const tp_tensor_t *tensor) { return tensor->storage->nbytes; }

tp_status_t tp_tensor_record_stream(tp_tensor_t *tensor, tp_stream_t *stream) {
  const char *operation = "record_stream";
  int32_t device = tp_stream_device(stream);
  if (device != tensor->device)
    return tp__error_set(TP_DEVICE, operation, "got a stream of device %d for a tensor on device %d", (int)device,
                         (int)tensor->device);
  TP_TRY(tp__device_check_process(operation));
  if (tensor->storage->foreign) return tp__foreign_record_stream(tensor->storage->foreign, stream);
  return tensor->storage->block ? tp__alloc_record_stream(tensor->storage->block, stream) : TP_OK;
}
