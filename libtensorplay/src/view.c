/* Views: other shapes and strides over the same storage. Nothing here touches a device. */
#include "internal.h"

tp_tensor_t *tp_tensor_alias(const tp_tensor_t *tensor) {
  return tp__tensor_view(tensor, tensor->ndim, tensor->shape, tensor->strides, tensor->offset);
}

tp_tensor_t *tp_tensor_permute(const tp_tensor_t *tensor, int32_t ndim, const int64_t *dims) {
  static const char operation[] = "permute";
  int64_t shape[TP_MAX_NDIM], strides[TP_MAX_NDIM];
  if (ndim != tensor->ndim) {
    tp__error_set(TP_INVALID_ARGUMENT, operation, "got %d dimensions for a tensor with %d", (int)ndim,
                  (int)tensor->ndim);
    return NULL;
  }
  uint32_t seen = 0;
  for (int32_t d = 0; d < ndim; ++d) {
    int64_t from = dims[d] < 0 ? dims[d] + ndim : dims[d];
    if (from < 0 || from >= ndim || seen >> from & 1) {
      tp__error_set(TP_INVALID_ARGUMENT, operation, "got dimension %lld at position %d, expected each of %d once",
                    (long long)dims[d], (int)d, (int)ndim);
      return NULL;
    }
    seen |= (uint32_t)1 << from;
    shape[d] = tensor->shape[from];
    strides[d] = tensor->strides[from];
  }
  return tp__tensor_view(tensor, ndim, shape, strides, tensor->offset);
}

tp_tensor_t *tp_tensor_transpose(const tp_tensor_t *tensor, int32_t dim0, int32_t dim1) {
  static const char operation[] = "transpose";
  if ((dim0 = tp__check_dim(dim0, tensor->ndim, operation)) < 0) return NULL;
  if ((dim1 = tp__check_dim(dim1, tensor->ndim, operation)) < 0) return NULL;
  int64_t dims[TP_MAX_NDIM];
  for (int32_t d = 0; d < tensor->ndim; ++d) dims[d] = d == dim0 ? dim1 : d == dim1 ? dim0 : d;
  return tp_tensor_permute(tensor, tensor->ndim, dims);
}

/* Replaces one -1 by the size that gives numel elements, and compares the number of elements. */
static tp_status_t complete_shape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape,
                                  int64_t *out_shape, const char *operation) {
  int32_t deduced = -1;
  int64_t known = 1;
  bool empty = false, overflow = false;
  for (int32_t d = 0; d < ndim; ++d) {
    out_shape[d] = shape[d];
    if (shape[d] == -1 && deduced < 0) {
      deduced = d;
    } else if (shape[d] < 0) {
      return tp__error_set(TP_SHAPE, operation,
                           "got size %lld in dimension %d, expected 0 or more, or -1 once",
                           (long long)shape[d], (int)d);
    } else if (shape[d] == 0) {
      empty = true;
    } else {
      overflow |= __builtin_mul_overflow(known, shape[d], &known);
    }
  }
  if (empty) known = 0;
  bool fits = !overflow || empty;
  if (deduced >= 0) {
    fits = fits && known != 0 && tensor->numel % known == 0;
    if (fits) out_shape[deduced] = tensor->numel / known;
  } else {
    fits = fits && known == tensor->numel;
  }
  if (fits) return TP_OK;
  return tp__error_set(TP_SHAPE, operation, "the shape does not hold the tensor's %lld elements",
                       (long long)tensor->numel);
}

static tp_status_t check_ndim(int32_t ndim, const char *operation) {
  if (ndim >= 0 && ndim <= TP_MAX_NDIM) return TP_OK;
  return tp__error_set(TP_SHAPE, operation, "got %d dimensions, expected 0 to %d", (int)ndim, TP_MAX_NDIM);
}

/* Cuts the tensor's dimensions into runs that lie one after the other, and the new shape into pieces that
 * each fill a run: torch's computeStride. The tensor is not contiguous, so it has a dimension. */
static bool strides_of_shape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape,
                             int64_t *strides) {
  int32_t to = ndim - 1;
  int64_t step = tensor->strides[tensor->ndim - 1];
  int64_t run = 1, filled = 1;
  for (int32_t from = tensor->ndim - 1; from >= 0; --from) {
    run *= tensor->shape[from];
    bool ends = from == 0 || (tensor->shape[from - 1] != 1 && tensor->strides[from - 1] != run * step);
    if (!ends) continue;
    while (to >= 0 && (filled < run || shape[to] == 1)) {
      strides[to] = filled * step;
      filled *= shape[to--];
    }
    if (filled != run) return false;
    if (from > 0) {
      step = tensor->strides[from - 1];
      run = filled = 1;
    }
  }
  return to < 0;
}

tp_status_t tp__view_of_shape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape,
                              int64_t *out_shape, tp_tensor_t **out_view, const char *operation) {
  int64_t strides[TP_MAX_NDIM];
  *out_view = NULL;
  TP_TRY(check_ndim(ndim, operation));
  TP_TRY(complete_shape(tensor, ndim, shape, out_shape, operation));
  if (tensor->contiguous) { /* an empty tensor too: its strides do not matter */
    if (tp__contiguous_strides(ndim, out_shape, strides) < 0)
      return tp__error_set(TP_OVERFLOW, operation, "a stride with more than 63 bits");
  } else if (!strides_of_shape(tensor, ndim, out_shape, strides)) {
    return TP_OK;
  }
  *out_view = tp__tensor_view(tensor, ndim, out_shape, strides, tensor->offset);
  return *out_view ? TP_OK : tp_error_status();
}

tp_tensor_t *tp_tensor_view(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape) {
  int64_t complete[TP_MAX_NDIM];
  tp_tensor_t *view;
  if (tp__view_of_shape(tensor, ndim, shape, complete, &view, "view")) return NULL;
  if (!view)
    tp__error_set(TP_STATE, "view", "the tensor's strides allow no view of this shape; reshape copies");
  return view;
}

tp_tensor_t *tp_tensor_expand(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape) {
  static const char operation[] = "expand";
  int64_t sizes[TP_MAX_NDIM], strides[TP_MAX_NDIM];
  if (check_ndim(ndim, operation)) return NULL;
  int32_t added = ndim - tensor->ndim;
  if (added < 0) {
    tp__error_set(TP_SHAPE, operation, "got %d sizes for a tensor with %d dimensions", (int)ndim,
                  (int)tensor->ndim);
    return NULL;
  }
  for (int32_t d = 0; d < ndim; ++d) {
    int64_t own = d < added ? 1 : tensor->shape[d - added];
    bool keeps = d >= added && (shape[d] == -1 || shape[d] == own);
    if (!keeps && (own != 1 || shape[d] < 0)) {
      tp__error_set(TP_SHAPE, operation, "got size %lld in dimension %d, expected %lld", (long long)shape[d],
                    (int)d, (long long)own);
      return NULL;
    }
    sizes[d] = keeps ? own : shape[d];
    strides[d] = keeps ? tensor->strides[d - added] : 0;
  }
  return tp__tensor_view(tensor, ndim, sizes, strides, tensor->offset);
}

/* The tensor without dimension dim (size 1 or chosen), or with another size and stride there. */
static tp_tensor_t *without_dim(const tp_tensor_t *tensor, int32_t dim, int64_t offset) {
  int64_t shape[TP_MAX_NDIM], strides[TP_MAX_NDIM];
  int32_t n = 0;
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    if (d == dim) continue;
    shape[n] = tensor->shape[d];
    strides[n++] = tensor->strides[d];
  }
  return tp__tensor_view(tensor, n, shape, strides, offset);
}

static bool has_dims(const tp_tensor_t *tensor, const char *operation) {
  if (tensor->ndim) return true;
  tp__error_set(TP_INDEX, operation, "got a tensor without dimensions");
  return false;
}

tp_tensor_t *tp_tensor_slice(const tp_tensor_t *tensor, int32_t dim, int64_t start, int64_t stop,
                             int64_t step) {
  static const char operation[] = "slice";
  if (!has_dims(tensor, operation) || (dim = tp__check_dim(dim, tensor->ndim, operation)) < 0) return NULL;
  if (start < 0 || start > tensor->shape[dim] || stop < 0 || stop > tensor->shape[dim] || step < 1) {
    tp__error_set(TP_INDEX, operation, "got %lld:%lld:%lld in a dimension of size %lld", (long long)start,
                  (long long)stop, (long long)step, (long long)tensor->shape[dim]);
    return NULL;
  }
  int64_t shape[TP_MAX_NDIM], strides[TP_MAX_NDIM];
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    shape[d] = tensor->shape[d];
    strides[d] = tensor->strides[d];
  }
  shape[dim] = stop > start ? (stop - start - 1) / step + 1 : 0;
  int64_t offset = tensor->offset + start * strides[dim];
  /* A step beyond the dimension leaves one element, whose stride is never used. */
  if (__builtin_mul_overflow(strides[dim], step, &strides[dim])) strides[dim] = tensor->strides[dim];
  return tp__tensor_view(tensor, tensor->ndim, shape, strides, offset);
}

tp_tensor_t *tp_tensor_select(const tp_tensor_t *tensor, int32_t dim, int64_t index) {
  static const char operation[] = "select";
  if (!has_dims(tensor, operation) || (dim = tp__check_dim(dim, tensor->ndim, operation)) < 0) return NULL;
  int64_t size = tensor->shape[dim];
  if (index < -size || index >= size) {
    tp__error_set(TP_INDEX, operation, "got index %lld in dimension %d of size %lld", (long long)index,
                  (int)dim, (long long)size);
    return NULL;
  }
  if (index < 0) index += size;
  return without_dim(tensor, dim, tensor->offset + index * tensor->strides[dim]);
}

tp_tensor_t *tp_tensor_unsqueeze(const tp_tensor_t *tensor, int32_t dim) {
  static const char operation[] = "unsqueeze";
  if (check_ndim(tensor->ndim + 1, operation) || (dim = tp__check_dim(dim, tensor->ndim + 1, operation)) < 0)
    return NULL;
  int64_t shape[TP_MAX_NDIM], strides[TP_MAX_NDIM];
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    int32_t to = d < dim ? d : d + 1;
    shape[to] = tensor->shape[d];
    strides[to] = tensor->strides[d];
  }
  shape[dim] = 1;
  strides[dim] = dim < tensor->ndim ? tensor->shape[dim] * tensor->strides[dim] : 1;
  return tp__tensor_view(tensor, tensor->ndim + 1, shape, strides, tensor->offset);
}

tp_tensor_t *tp_tensor_squeeze(const tp_tensor_t *tensor, int32_t dim) {
  if ((dim = tp__check_dim(dim, tensor->ndim, "squeeze")) < 0) return NULL;
  if (tensor->ndim == 0 || tensor->shape[dim] != 1) return tp_tensor_alias(tensor);
  return without_dim(tensor, dim, tensor->offset);
}

tp_tensor_t *tp_tensor_as_strided(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape,
                                  const int64_t *strides, int64_t offset) {
  static const char operation[] = "as_strided";
  if (check_ndim(ndim, operation)) return NULL;
  int64_t last = offset;
  bool empty = false, overflow = false;
  for (int32_t d = 0; d < ndim; ++d) {
    if (shape[d] < 0 || strides[d] < 0) {
      tp__error_set(TP_SHAPE, operation, "got size %lld and stride %lld in dimension %d, expected 0 or more",
                    (long long)shape[d], (long long)strides[d], (int)d);
      return NULL;
    }
    empty |= shape[d] == 0;
    int64_t reach = 0;
    if (shape[d]) overflow |= __builtin_mul_overflow(shape[d] - 1, strides[d], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  int64_t room = (int64_t)(tensor->storage->nbytes / tp__dtype_size(tensor->dtype));
  if (offset < 0 || (!empty && (overflow || last >= room))) {
    tp__error_set(TP_INDEX, operation, "got offset %lld and last element %lld in a storage of %lld elements",
                  (long long)offset, (long long)last, (long long)room);
    return NULL;
  }
  return tp__tensor_view(tensor, ndim, shape, strides, offset);
}

/* Shape and strides in elements that are `grown` times as large, or of which each old one makes `cut`; one of both
 * is 1. */
static tp_status_t resized(const tp_tensor_t *tensor, int64_t grown, int64_t cut, int64_t *shape, int64_t *strides,
                           const char *operation) {
  int32_t last = tensor->ndim - 1;
  if (last < 0) return tp__error_set(TP_SHAPE, operation, "got a tensor without dimensions");
  if (tensor->shape[last] % grown)
    return tp__error_set(TP_SHAPE, operation, "got %lld elements in the last dimension, expected a multiple of %lld",
                         (long long)tensor->shape[last], (long long)grown);
  bool adjacent = tensor->contiguous || tensor->shape[last] == 1 || tensor->strides[last] == 1;
  bool fits = tensor->offset % grown == 0 && adjacent;
  for (int32_t d = 0; d < last; ++d) {
    fits = fits && (tensor->contiguous || tensor->strides[d] % grown == 0);
    shape[d] = tensor->shape[d];
    /* Only a stride that is never used can leave the range. */
    (void)__builtin_mul_overflow(tensor->strides[d] / grown, cut, &strides[d]);
  }
  if (!fits)
    return tp__error_set(TP_STATE, operation, "strides or offset are no multiples of %lld elements, or the last "
                         "dimension's elements are not adjacent", (long long)grown);
  strides[last] = 1;
  if (__builtin_mul_overflow(tensor->shape[last] / grown, cut, &shape[last]) ||
      (tensor->contiguous && tp__contiguous_strides(tensor->ndim, shape, strides) < 0))
    return tp__error_set(TP_OVERFLOW, operation, "more elements than 63 bits count");
  return TP_OK;
}

tp_tensor_t *tp_tensor_view_dtype(const tp_tensor_t *tensor, int32_t dtype) {
  static const char operation[] = "view";
  if (dtype < 0 || dtype >= TP_DTYPE_COUNT) {
    tp__error_set(TP_DTYPE, operation, "got dtype %d, expected 0 to %d", (int)dtype, TP_DTYPE_COUNT - 1);
    return NULL;
  }
  int64_t from = (int64_t)tp__dtype_size(tensor->dtype), to = (int64_t)tp__dtype_size(dtype);
  int64_t shape[TP_MAX_NDIM], strides[TP_MAX_NDIM];
  /* What a view takes from its base. */
  const tp_tensor_t base = {.dtype = dtype, .device = tensor->device, .storage = tensor->storage};
  if (from == to) return tp__tensor_view(&base, tensor->ndim, tensor->shape, tensor->strides, tensor->offset);
  int64_t grown = to > from ? to / from : 1, cut = from > to ? from / to : 1;
  if (resized(tensor, grown, cut, shape, strides, operation)) return NULL;
  return tp__tensor_view(&base, tensor->ndim, shape, strides, tensor->offset / grown * cut);
}
