/* Gathering rows by index: index_select and embedding. */
#include "../../kernels/args_index.h"
#include "../../kernels/fault.h"
#include "../internal.h"

/* By the unit's size in bytes. */
static struct {
  size_t nbytes;
  tp__kernel_t kernel;
} gathers[] = {
    {16, TP_KERNEL_INIT("index", "tp_k_gather_16")}, {8, TP_KERNEL_INIT("index", "tp_k_gather_8")},
    {4, TP_KERNEL_INIT("index", "tp_k_gather_4")},   {2, TP_KERNEL_INIT("index", "tp_k_gather_2")},
    {1, TP_KERNEL_INIT("index", "tp_k_gather_1")},
};

static tp_status_t check_index(const tp_tensor_t *a, const tp_tensor_t *index, const char *operation) {
  if (index->device != a->device)
    return tp__error_set(TP_DEVICE, operation, "got operands on devices %d and %d", (int)a->device,
                         (int)index->device);
  if (index->dtype != TP_DTYPE_int32 && index->dtype != TP_DTYPE_int64)
    return tp__error_set(TP_DTYPE, operation, "got an index of dtype %s, expected int32 or int64",
                         tp__dtype_name(index->dtype));
  return TP_OK;
}

/* out (outer, index, inner) := a (outer, limit, inner) at index; all contiguous. */
static tp_status_t gather(const tp_tensor_t *a, const tp_tensor_t *index, tp_tensor_t *out, int64_t outer,
                          int64_t limit, int64_t inner, int32_t fault, const char *operation) {
  size_t width = (size_t)inner * tp__dtype_size(a->dtype);
  uintptr_t together = (uintptr_t)a->data | (uintptr_t)out->data | width;
  size_t i = 0;
  while (together % gathers[i].nbytes) ++i;
  tp_gather_args_t args = {.input = a->data,
                           .index = index->data,
                           .out = out->data,
                           .fault = tp__device_fault_word(a->device),
                           .outer = outer,
                           .count = index->numel,
                           .width = (int64_t)(width / gathers[i].nbytes),
                           .limit = limit,
                           .index_is_int64 = index->dtype == TP_DTYPE_int64,
                           .operation = fault};
  uint32_t grid = tp__launch_grid(outer * args.count * args.width, TP_GATHER_TILE);
  return tp__launch(&gathers[i].kernel, a->device, tp__stream_current(a->device), grid, 1, 1,
                    TP_BLOCK_THREADS, &args, operation);
}

/* Gathers along a's dimension dim into a fresh tensor of that shape. */
static tp_tensor_t *take(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index, int32_t ndim,
                         const int64_t *shape, int32_t fault, const char *operation) {
  tp_tensor_t *out = tp__tensor_new(a->dtype, a->device, ndim, shape, operation);
  if (!out || out->numel == 0) return out;
  int64_t outer = 1, inner = 1;
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (d < dim) outer *= a->shape[d];
    if (d > dim) inner *= a->shape[d];
  }
  tp_tensor_t *operand = tp_tensor_contiguous(a);
  tp_tensor_t *at = tp_tensor_contiguous(index);
  int64_t limit = a->ndim ? a->shape[dim] : 1;
  bool done = operand && at && !gather(operand, at, out, outer, limit, inner, fault, operation);
  tp_tensor_release(operand);
  tp_tensor_release(at);
  if (done) return out;
  tp_tensor_release(out);
  return NULL;
}

tp_tensor_t *tp_index_select(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index) {
  const char *operation = "index_select";
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0 || check_index(a, index, operation)) return NULL;
  if (index->ndim > 1 || (a->ndim == 0 && index->numel != 1)) {
    tp__error_set(TP_SHAPE, operation,
                  "got an index of %d dimensions and %lld elements into an operand of %d", (int)index->ndim,
                  (long long)index->numel, (int)a->ndim);
    return NULL;
  }
  int64_t shape[TP_MAX_NDIM];
  for (int32_t d = 0; d < a->ndim; ++d) shape[d] = d == dim ? index->numel : a->shape[d];
  return take(a, dim, index, a->ndim, shape, TP_FAULT_OP_INDEX_SELECT, operation);
}

tp_tensor_t *tp_embedding(const tp_tensor_t *weight, const tp_tensor_t *index) {
  const char *operation = "embedding";
  if (check_index(weight, index, operation)) return NULL;
  if (weight->ndim != 2 || index->ndim + 1 > TP_MAX_NDIM) {
    tp__error_set(TP_SHAPE, operation,
                  "got a weight of %d dimensions and an index of %d, expected 2 and at most %d",
                  (int)weight->ndim, (int)index->ndim, TP_MAX_NDIM - 1);
    return NULL;
  }
  int64_t shape[TP_MAX_NDIM];
  for (int32_t d = 0; d < index->ndim; ++d) shape[d] = index->shape[d];
  shape[index->ndim] = weight->shape[1];
  return take(weight, 0, index, index->ndim + 1, shape, TP_FAULT_OP_EMBEDDING, operation);
}
