/* Layouts: the fewest dimensions that describe an elementwise operation (docs/design/kernels.md). */
#include "../kernels/args_elementwise.h"
#include "internal.h"

_Static_assert(TP_ARGS_NDIM == TP_MAX_NDIM, "kernels take every number of dimensions that tensors have");

typedef struct dim {
  int64_t size;
  int64_t strides[TP_LAYOUT_OPERANDS];
} dim_t;

/* Strides of a tensor as if it had the broadcast shape's dimensions. */
static int64_t broadcast_stride(const tp_tensor_t *tensor, int32_t ndim, int32_t d) {
  int32_t own = tensor ? d - (ndim - tensor->ndim) : -1;
  return own < 0 || tensor->shape[own] == 1 ? 0 : tensor->strides[own];
}

/* a belongs outside b: compared by the written operand first, the others decide ties. */
static bool is_outer(const dim_t *a, const dim_t *b, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    if (a->strides[i] != b->strides[i]) return a->strides[i] > b->strides[i];
  }
  return false;
}

static bool continues(const dim_t *outer, const dim_t *inner, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    if (outer->strides[i] != inner->strides[i] * inner->size) return false;
  }
  return true;
}

static tp_divisor_t divisor_of(uint32_t size) {
  tp_divisor_t divisor = {.size = size};
  while (((uint64_t)1 << divisor.shift) < size) ++divisor.shift;
  uint64_t excess = ((uint64_t)1 << divisor.shift) - size;
  divisor.multiplier = (uint32_t)((excess << 32) / size + 1);
  return divisor;
}

void tp__layout_make(tp_layout_t *layout, int32_t ndim, const int64_t *shape, int32_t n,
                     const tp_tensor_t *const *tensors) {
  dim_t dims[TP_MAX_NDIM];
  int32_t count = 0;
  layout->numel = 1;
  /* Innermost first; insertion keeps the C order of dimensions that compare equal. */
  for (int32_t d = ndim - 1; d >= 0; --d) {
    layout->numel *= shape[d];
    if (shape[d] == 1) continue;
    dim_t dim = {.size = shape[d]};
    for (int32_t i = 0; i < n; ++i) dim.strides[i] = broadcast_stride(tensors[i], ndim, d);
    int32_t at = count++;
    for (; at > 0 && is_outer(&dims[at - 1], &dim, n); --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  int32_t merged = 0;
  for (int32_t d = 0; d < count; ++d) {
    if (merged > 0 && continues(&dims[d], &dims[merged - 1], n))
      dims[merged - 1].size *= dims[d].size;
    else
      dims[merged++] = dims[d];
  }
  layout->ndim = merged;
  bool narrow = layout->numel <= INT32_MAX;
  for (int32_t i = 0; i < n; ++i) {
    int64_t reach = 0;
    for (int32_t d = 0; d < merged; ++d) {
      layout->strides[i][d] = dims[d].strides[i];
      reach += (dims[d].size - 1) * dims[d].strides[i];
    }
    narrow = narrow && reach <= INT32_MAX;
  }
  layout->narrow = narrow;
  for (int32_t d = 0; d < merged; ++d) {
    layout->sizes[d] = dims[d].size;
    if (narrow) layout->divisors[d] = divisor_of((uint32_t)dims[d].size);
  }
}

int32_t tp__layout_step(const tp_layout_t *layout, int32_t operand) {
  if (layout->ndim == 0) return 1;
  int64_t stride = layout->strides[operand][0];
  return layout->ndim == 1 && (stride == 0 || stride == 1) ? (int32_t)stride : -1;
}

int32_t tp__layout_tile(int64_t numel, size_t itemsize) {
  int32_t tile = (int32_t)(TP_FLAT_TILE_NBYTES / itemsize);
  return numel / tile > TP_FLAT_TILES_MANY ? tile * TP_FLAT_TILE_FACTOR : tile;
}

size_t tp__layout_widen(tp_layout_t *layout, int32_t n, uint32_t moved, uintptr_t addresses, size_t size,
                        size_t most) {
  if (layout->ndim == 0) return size;
  uintptr_t all = addresses | (uintptr_t)layout->sizes[0] * size;
  for (int32_t i = 0; i < n; ++i) {
    bool moves = moved >> i & 1;
    if (layout->strides[i][0] != (moves ? 1 : 0)) return size;
    for (int32_t d = 1; moves && d < layout->ndim; ++d) all |= (uintptr_t)layout->strides[i][d] * size;
  }
  int64_t factor = 1;
  for (; size < most && all % (2 * size) == 0; size *= 2) factor *= 2;
  layout->sizes[0] /= factor;
  layout->numel /= factor;
  if (layout->narrow) layout->divisors[0] = divisor_of((uint32_t)layout->sizes[0]);
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t d = 1; (moved >> i & 1) && d < layout->ndim; ++d) layout->strides[i][d] /= factor;
  }
  return size;
}

int64_t tp__layout_units(const tp_layout_t *layout, int32_t n, int64_t unit, bool *out_aligned) {
  *out_aligned = false;
  if (layout->ndim == 0 || layout->strides[0][0] != 1) return 0;
  if (layout->ndim > 1 && layout->sizes[0] % unit) return 0;
  bool aligned = true;
  for (int32_t i = 0; i < n; ++i) {
    if (layout->strides[i][0] == 0) continue;
    if (layout->strides[i][0] != 1) return 0;
    for (int32_t d = 1; d < layout->ndim; ++d) aligned = aligned && layout->strides[i][d] % unit == 0;
  }
  *out_aligned = aligned;
  return layout->numel / unit;
}

bool tp__layout_has_vectors(const tp_layout_t *layout, int32_t n, int64_t vector) {
  bool aligned;
  return tp__layout_units(layout, n, vector, &aligned) * vector == layout->numel && aligned;
}

bool tp__layout_places(const tp_layout_t *layout, int32_t n, tp_places_t *places) {
  if (!layout->narrow || layout->ndim > TP_PLACES_NDIM || n > TP_PLACES_OPERANDS) return false;
  *places = (tp_places_t){.ndim = layout->ndim};
  for (int32_t d = 0; d < layout->ndim; ++d) {
    places->divisors[d] = divisor_of((uint32_t)layout->sizes[d]);
    for (int32_t i = 0; i < n; ++i) places->strides[i][d] = (int32_t)layout->strides[i][d];
  }
  return true;
}
