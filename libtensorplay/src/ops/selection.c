/* What index tensors name of a tensor: made of one or several of them, read and written. */
#include "selection.h"

#include "../../kernels/fault.h"

static const tp__access_t read_accesses[] = {
    TP_WRITES(tp_indexed_args_t, plain), TP_READS(tp_indexed_args_t, tensor),
    TP_READS(tp_indexed_args_t, index.values), {0}};
static const tp__access_t write_accesses[] = {
    TP_WRITES(tp_indexed_args_t, tensor), TP_READS(tp_indexed_args_t, plain),
    TP_READS(tp_indexed_args_t, index.values), {0}};
static const tp__access_t offsets_accesses[] = {
    TP_WRITES(tp_offsets_args_t, out), TP_READS(tp_offsets_args_t, indices[0].values),
    TP_READS(tp_offsets_args_t, indices[1].values), {0}};

/* By the unit's size in bytes. */
static tp__kernel_t readers[] = TP_SIZE_KERNELS("index", "read", read_accesses);
static tp__kernel_t writers[] = TP_SIZE_KERNELS("index", "write", write_accesses);
static tp__kernel_t offsets_kernel = TP_KERNEL_INIT("index", "tp_k_offsets", offsets_accesses);

/* ---- making one ---- */

static void add_dim(tp__selection_t *selection, int64_t size, int64_t base_stride, int64_t index_stride) {
  int32_t d = selection->base.ndim++;
  selection->index.ndim = selection->base.ndim;
  selection->base.shape[d] = selection->index.shape[d] = size;
  selection->base.strides[d] = base_stride;
  selection->index.strides[d] = index_stride;
  /* `check_count` refuses too many. */
  selection->base.numel = (int64_t)((uint64_t)selection->base.numel * (uint64_t)size);
}

static void start(tp__selection_t *selection, const tp_tensor_t *tensor, const tp_tensor_t *index,
                  int32_t operation) {
  *selection = (tp__selection_t){
      .base = {.dtype = tensor->dtype, .device = tensor->device, .data = tensor->data, .numel = 1},
      .operation = operation};
  for (int32_t d = 0; d < tensor->ndim; ++d) selection->reach += (tensor->shape[d] - 1) * tensor->strides[d];
  if (!index) return;
  selection->index.dtype = index->dtype;
  selection->index.data = index->data;
}

/* One index tensor along one dimension. */
static void move_along(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t dim) {
  selection->stride = tensor->ndim ? tensor->strides[dim] : 0;
  selection->limit = tensor->ndim ? tensor->shape[dim] : 1;
  selection->steps = (uintptr_t)selection->stride;
  selection->fault = tp__device_fault_word(tensor->device);
}

void tp__selection_along(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t dim, const tp_tensor_t *index,
                         int32_t operation) {
  start(selection, tensor, index, operation);
  move_along(selection, tensor, dim);
  for (int32_t d = 0; d < index->ndim; ++d)
    add_dim(selection, index->shape[d], d == dim ? 0 : tensor->strides[d], index->strides[d]);
}

void tp__selection_across(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t dim,
                          const tp_tensor_t *index, bool wraps, int32_t operation) {
  start(selection, tensor, index, operation);
  move_along(selection, tensor, dim);
  selection->wraps = wraps;
  for (int32_t d = 0; d < dim; ++d) add_dim(selection, tensor->shape[d], tensor->strides[d], 0);
  for (int32_t d = 0; d < index->ndim; ++d) add_dim(selection, index->shape[d], 0, index->strides[d]);
  for (int32_t d = dim + 1; d < tensor->ndim; ++d) add_dim(selection, tensor->shape[d], tensor->strides[d], 0);
}

void tp__selection_release(tp__selection_t *selection) { tp_tensor_release(selection->offsets); }

/* ---- several index tensors ---- */

/* Refuses a selection whose elements no tensor could have. */
static tp_status_t check_count(const tp__selection_t *selection, const char *name) {
  const tp_tensor_t *base = &selection->base;
  int64_t strides[TP_MAX_NDIM], numel = tp__contiguous_strides(base->ndim, base->shape, strides);
  if (numel >= 0 && numel <= INT64_MAX / (int64_t)tp__dtype_size(base->dtype)) return TP_OK;
  return tp__error_set(TP_OVERFLOW, name, "got an index of more than %lld bytes", (long long)INT64_MAX);
}

/* out := places of base, or what it holds when adds, and up to TP_OFFSETS_INDICES indices. */
static tp_status_t launch_offsets(tp_tensor_t *out, const tp_tensor_t *base, bool adds, int32_t n,
                                  const tp_index_t *indices, const tp_tensor_t *const *tensors, const char *name) {
  tp_offsets_args_t args = {.out = out->data, .out_is_int64 = out->dtype == TP_DTYPE_int64, .adds = adds, .n = n};
  const tp_tensor_t *operands[2 + TP_OFFSETS_INDICES] = {out, base};
  for (int32_t k = 0; k < n; ++k) {
    args.indices[k] = indices[k];
    operands[2 + k] = tensors[k];
  }
  tp__layout_make(&args.layout, out->ndim, out->shape, 2 + TP_OFFSETS_INDICES, operands);
  return tp__launch_tiles(&offsets_kernel, out->device, out->numel, TP_STRIDED_TILE, &args, name);
}

/* The index tensors, and the dimensions that they index. */
typedef struct entries {
  int32_t n;
  int32_t dims[TP_MAX_NDIM];
  const tp_tensor_t *tensors[TP_MAX_NDIM];
  bool together; /* their dimensions are neighbours */
  int32_t ndim;  /* of all of them, broadcast */
  int64_t shape[TP_MAX_NDIM];
} entries_t;

static tp_status_t collect(entries_t *entries, const tp_tensor_t *tensor, int32_t n, const tp_tensor_t *const *indices,
                           const char *name) {
  *entries = (entries_t){.together = true};
  if (n > tensor->ndim)
    return tp__error_set(TP_INDEX, name, "got %d entries for %d dimensions", (int)n, (int)tensor->ndim);
  bool empty = false, none = false;
  for (int32_t d = 0; d < n; ++d) {
    if (!indices[d]) continue;
    TP_TRY(tp__check_index(tensor, indices[d], name));
    TP_TRY(tp__check_broadcast(entries->ndim, entries->shape, indices[d]->ndim, indices[d]->shape, &entries->ndim,
                               entries->shape, name));
    if (entries->n) entries->together &= entries->dims[entries->n - 1] == d - 1;
    none |= tensor->shape[d] == 0;
    entries->dims[entries->n] = d;
    entries->tensors[entries->n++] = indices[d];
  }
  if (!entries->n) return tp__error_set(TP_INVALID_ARGUMENT, name, "got no index");
  if (entries->ndim + tensor->ndim - entries->n > TP_MAX_NDIM)
    return tp__error_set(TP_SHAPE, name, "got %d dimensions for the result, expected at most %d",
                         (int)(entries->ndim + tensor->ndim - entries->n), TP_MAX_NDIM);
  for (int32_t d = 0; d < entries->ndim; ++d) empty |= entries->shape[d] == 0;
  if (none && !empty) return tp__error_set(TP_INDEX, name, "got an index into a dimension of size 0");
  return TP_OK;
}

/* All entries as one tensor of offsets. */
static tp_status_t join(tp__selection_t *selection, const tp_tensor_t *tensor, const entries_t *entries,
                        const char *name) {
  tp_tensor_t *offsets = tp__tensor_new(TP_DTYPE_int64, tensor->device, entries->ndim, entries->shape, name);
  if (!offsets) return tp_error_status();
  tp_status_t status = TP_OK;
  for (int32_t first = 0; first < entries->n && !status; first += TP_OFFSETS_INDICES) {
    tp_index_t indices[TP_OFFSETS_INDICES];
    int32_t count = 0;
    for (; count < TP_OFFSETS_INDICES && first + count < entries->n; ++count) {
      const tp_tensor_t *values = entries->tensors[first + count];
      int32_t dim = entries->dims[first + count];
      indices[count] = (tp_index_t){.values = values->data,
                                    .fault = tp__device_fault_word(tensor->device),
                                    .limit = tensor->shape[dim],
                                    .stride = tensor->strides[dim],
                                    .wraps = true,
                                    .is_int64 = values->dtype == TP_DTYPE_int64,
                                    .operation = selection->operation};
      selection->steps |= (uintptr_t)tensor->strides[dim];
    }
    status = launch_offsets(offsets, NULL, first > 0, count, indices, entries->tensors + first, name);
  }
  if (status) {
    tp_tensor_release(offsets);
    return status;
  }
  selection->offsets = offsets;
  selection->index.dtype = TP_DTYPE_int64;
  selection->index.data = offsets->data;
  selection->stride = 1;
  selection->limit = INT64_MAX;
  return TP_OK;
}

static void add_whole_dims(tp__selection_t *selection, const tp_tensor_t *tensor, const entries_t *entries,
                           int32_t first, int32_t end) {
  for (int32_t d = first, k = 0; d < end; ++d) {
    while (k < entries->n && entries->dims[k] < d) ++k;
    if (k == entries->n || entries->dims[k] != d) add_dim(selection, tensor->shape[d], tensor->strides[d], 0);
  }
}

tp_status_t tp__selection_at(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t n,
                             const tp_tensor_t *const *indices, int32_t operation, const char *name) {
  entries_t entries;
  TP_TRY(collect(&entries, tensor, n, indices, name));
  /* An index in the tensor's own memory is read before that may be written. */
  if (entries.n == 1 && !tp__tensor_shares(entries.tensors[0], tensor)) {
    tp__selection_across(selection, tensor, entries.dims[0], entries.tensors[0], true, operation);
    return check_count(selection, name);
  }
  int64_t strides[TP_MAX_NDIM];
  (void)tp__contiguous_strides(entries.ndim, entries.shape, strides); /* too many elements are counted below */
  start(selection, tensor, NULL, operation);
  int32_t place = entries.together ? entries.dims[0] : 0;
  add_whole_dims(selection, tensor, &entries, 0, place);
  for (int32_t d = 0; d < entries.ndim; ++d) add_dim(selection, entries.shape[d], 0, strides[d]);
  add_whole_dims(selection, tensor, &entries, place, tensor->ndim);
  TP_TRY(check_count(selection, name));
  /* Without elements no index is looked at. */
  return selection->base.numel ? join(selection, tensor, &entries, name) : TP_OK;
}

/* ---- using one ---- */

static tp_index_t index_of(const tp__selection_t *selection, int64_t unit) {
  return (tp_index_t){.values = selection->index.data,
                      .fault = selection->fault,
                      .limit = selection->limit,
                      .stride = selection->stride * unit,
                      .wraps = selection->wraps,
                      .is_int64 = selection->index.dtype == TP_DTYPE_int64,
                      .operation = selection->operation};
}

void tp__selection_args(const tp__selection_t *selection, const tp_tensor_t *plain, tp_indexed_args_t *args) {
  const tp_tensor_t *base = &selection->base;
  tp_tensor_t order = {.ndim = base->ndim};
  for (int32_t d = 0; d < base->ndim; ++d) order.shape[d] = base->shape[d];
  (void)tp__contiguous_strides(base->ndim, base->shape, order.strides); /* the caller has counted the elements */
  args->tensor = base->data;
  args->plain = plain->data;
  args->index = index_of(selection, (int64_t)tp__dtype_size(base->dtype));
  tp__layout_make(&args->layout, base->ndim, base->shape, 4,
                  (const tp_tensor_t *[]){&order, base, &selection->index, plain});
}

/* Adjacent elements that one index names are moved as wider ones. */
static tp_status_t move(const tp__selection_t *selection, const tp_tensor_t *plain, tp__kernel_t *kernels,
                        const char *name) {
  tp_indexed_args_t args;
  tp__selection_args(selection, plain, &args);
  size_t size = tp__dtype_size(selection->base.dtype);
  uintptr_t places = (uintptr_t)args.tensor | (uintptr_t)args.plain | selection->steps * size;
  size = tp__layout_widen(&args.layout, 4, 1 << 0 | 1 << 1 | 1 << 3, places, size, 16);
  return tp__launch_tiles(&kernels[size], selection->base.device, args.layout.numel, TP_STRIDED_TILE, &args, name);
}

tp_status_t tp__selection_read(const tp__selection_t *selection, tp_tensor_t *out, const char *name) {
  tp_tensor_t plain = selection->base; /* out may have another shape with the same elements */
  plain.data = out->data;
  (void)tp__contiguous_strides(plain.ndim, plain.shape, plain.strides);
  return move(selection, &plain, readers, name);
}

tp_status_t tp__selection_check_put(const tp_tensor_t *target, const tp_tensor_t *source, const char *name) {
  TP_TRY(tp__check_devices(target, source, name));
  if (source->dtype != target->dtype)
    return tp__error_set(TP_DTYPE, name, "got a source of dtype %s for a target of dtype %s",
                         tp__dtype_name(source->dtype), tp__dtype_name(target->dtype));
  return tp__check_target(target, name);
}

tp_status_t tp__selection_put(const tp__selection_t *selection, const tp_tensor_t *target, const tp_tensor_t *source,
                              bool accumulate, const char *name) {
  if (selection->base.numel == 0) return TP_OK;
  tp_tensor_t *apart = tp__selection_operand(source, target);
  if (!apart) return tp_error_status();
  tp_status_t status =
      accumulate ? tp__selection_add(selection, apart, name) : move(selection, apart, writers, name);
  tp_tensor_release(apart);
  return status;
}

tp_tensor_t *tp__selection_operand(const tp_tensor_t *tensor, const tp_tensor_t *target) {
  if (!tp__tensor_shares(tensor, target)) return tp__tensor_retain(tensor);
  return tp_tensor_to(tensor, TP_DTYPE_NONE, tensor->device);
}

tp_tensor_t *tp__selection_offsets(const tp__selection_t *selection, uint32_t dims, int32_t dtype, const char *name) {
  tp_tensor_t base = {0}, index = {0};
  int64_t numel = 1;
  for (int32_t d = 0; d < selection->base.ndim; ++d) {
    if (!(dims >> d & 1)) continue;
    base.shape[base.ndim] = index.shape[base.ndim] = selection->base.shape[d];
    base.strides[base.ndim] = selection->base.strides[d];
    index.strides[base.ndim++] = selection->index.strides[d];
    numel *= selection->base.shape[d];
  }
  index.ndim = base.ndim;
  tp_tensor_t *offsets = tp__tensor_new(dtype, selection->base.device, 1, &numel, name);
  if (!offsets) return NULL;
  tp_tensor_t out = {.ndim = base.ndim, .dtype = dtype, .device = offsets->device, .numel = numel,
                     .data = offsets->data};
  for (int32_t d = 0; d < base.ndim; ++d) out.shape[d] = base.shape[d];
  (void)tp__contiguous_strides(out.ndim, out.shape, out.strides);
  tp_index_t indices[] = {index_of(selection, 1)};
  if (!launch_offsets(&out, &base, false, 1, indices, (const tp_tensor_t *[]){&index}, name)) return offsets;
  tp_tensor_release(offsets);
  return NULL;
}
