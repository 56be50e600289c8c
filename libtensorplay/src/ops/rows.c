/* Rows by index: index_select and embedding. */
#include "../../kernels/fault.h"
#include "selection.h"

static const tp__access_t accesses[] = {
    TP_WRITES(tp_rows_args_t, out), TP_READS(tp_rows_args_t, input), TP_READS(tp_rows_args_t, index.values),
    {0}};

/* By the unit's size in bytes. */
static struct {
  size_t nbytes;
  tp__kernel_t kernel;
} kernels[] = {
    {16, TP_KERNEL_INIT("index", "tp_k_rows_16", accesses)}, {8, TP_KERNEL_INIT("index", "tp_k_rows_8", accesses)},
    {4, TP_KERNEL_INIT("index", "tp_k_rows_4", accesses)},   {2, TP_KERNEL_INIT("index", "tp_k_rows_2", accesses)},
    {1, TP_KERNEL_INIT("index", "tp_k_rows_1", accesses)},
};

/* out (outer, index, inner) := a (outer, limit, inner) at index; all contiguous. */
static tp_status_t launch(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index, tp_tensor_t *out, bool wraps,
                          int32_t fault, const char *operation) {
  int64_t outer = 1, inner = 1;
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (d < dim) outer *= a->shape[d];
    if (d > dim) inner *= a->shape[d];
  }
  size_t width = (size_t)inner * tp__dtype_size(a->dtype);
  uintptr_t together = (uintptr_t)a->data | (uintptr_t)out->data | width;
  size_t i = 0;
  while (together % kernels[i].nbytes) ++i;
  tp_rows_args_t args = {.input = a->data,
                         .out = out->data,
                         .index = {.values = index->data,
                                   .fault = tp__device_fault_word(a->device),
                                   .limit = a->ndim ? a->shape[dim] : 1,
                                   .wraps = wraps,
                                   .is_int64 = index->dtype == TP_DTYPE_int64,
                                   .operation = fault},
                         .outer = outer,
                         .count = index->numel,
                         .width = (int64_t)(width / kernels[i].nbytes)};
  return tp__launch_tiles(&kernels[i].kernel, a->device, outer * args.count * args.width, TP_ROWS_TILE, &args,
                          operation);
}

/* Of a tensor that is not contiguous only the rows are read. */
static tp_status_t launch_strided(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index, tp_tensor_t *out,
                                  bool wraps, int32_t fault, const char *operation) {
  tp__selection_t selection;
  tp__selection_across(&selection, a, dim, index, wraps, fault);
  return tp__selection_read(&selection, out, operation);
}

tp_tensor_t *tp__rows_take(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index, int32_t ndim,
                           const int64_t *shape, bool wraps, int32_t fault, const char *operation) {
  tp_tensor_t *out = tp__tensor_new(a->dtype, a->device, ndim, shape, operation);
  if (!out || out->numel == 0) return out;
  tp_tensor_t *at = a->contiguous ? tp_tensor_contiguous(index) : tp__tensor_retain(index);
  tp_status_t status = !at             ? tp_error_status()
                       : a->contiguous ? launch(a, dim, at, out, wraps, fault, operation)
                                       : launch_strided(a, dim, at, out, wraps, fault, operation);
  tp_tensor_release(at);
  if (!status) return out;
  tp_tensor_release(out);
  return NULL;
}

tp_tensor_t *tp_index_select(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index) {
  const char *operation = "index_select";
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0 || tp__check_index(a, index, operation) || tp__check_room(a, dim, index, operation)) return NULL;
  if (index->ndim > 1 || (a->ndim == 0 && index->numel != 1)) {
    tp__error_set(TP_SHAPE, operation,
                  "got an index of %d dimensions and %lld elements into an operand of %d", (int)index->ndim,
                  (long long)index->numel, (int)a->ndim);
    return NULL;
  }
  int64_t shape[TP_MAX_NDIM];
  for (int32_t d = 0; d < a->ndim; ++d) shape[d] = d == dim ? index->numel : a->shape[d];
  return tp__rows_take(a, dim, index, a->ndim, shape, false, TP_FAULT_OP_INDEX_SELECT, operation);
}

tp_tensor_t *tp_embedding(const tp_tensor_t *weight, const tp_tensor_t *index) {
  const char *operation = "embedding";
  if (tp__check_index(weight, index, operation)) return NULL;
  if (weight->ndim != 2 || index->ndim + 1 > TP_MAX_NDIM) {
    tp__error_set(TP_SHAPE, operation,
                  "got a weight of %d dimensions and an index of %d, expected 2 and at most %d",
                  (int)weight->ndim, (int)index->ndim, TP_MAX_NDIM - 1);
    return NULL;
  }
  if (tp__check_room(weight, 0, index, operation)) return NULL;
  int64_t shape[TP_MAX_NDIM];
  for (int32_t d = 0; d < index->ndim; ++d) shape[d] = index->shape[d];
  shape[index->ndim] = weight->shape[1];
  return tp__rows_take(weight, 0, index, index->ndim + 1, shape, false, TP_FAULT_OP_EMBEDDING, operation);
}
