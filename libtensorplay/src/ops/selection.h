/* What index tensors name of a tensor: which elements, in which shape (docs/design/indexing.md). */
#ifndef TP_SELECTION_H
#define TP_SELECTION_H

#include "../../kernels/args_index.h"
#include "../internal.h"

/* The element at a place of the selection's shape lies in `base` at that place, and `stride` times the index at that
 * place further. Nothing of it is counted: it lives as long as the tensors that it was made of. */
typedef struct tp__selection {
  tp_tensor_t base;     /* the tensor in the selection's shape, with stride 0 along the index's dimensions */
  tp_tensor_t index;    /* the index tensor in this shape, with stride 0 along the others */
  tp_tensor_t *offsets; /* owned: stands for several index tensors; or NULL */
  int64_t stride, limit;
  uintptr_t steps; /* bits of all strides that are part of the index */
  int64_t reach;   /* from the tensor's first element to its last */
  bool wraps;
  void *fault;       /* NULL: the index is already checked */
  int32_t operation; /* TP_FAULT_OP_* */
} tp__selection_t;

/* In index's shape: at each place the element of tensor at index along dim, at that very place along the others. */
void tp__selection_along(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t dim, const tp_tensor_t *index,
                         int32_t operation);
/* In tensor's shape with index's in the stead of dimension dim. */
void tp__selection_across(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t dim,
                          const tp_tensor_t *index, bool wraps, int32_t operation);
/* As NumPy indexes with one entry for each of the first n dimensions, NULL for a whole one. */
tp_status_t tp__selection_at(tp__selection_t *selection, const tp_tensor_t *tensor, int32_t n,
                             const tp_tensor_t *const *indices, int32_t operation, const char *name);
void tp__selection_release(tp__selection_t *selection);

/* out (contiguous, of the selection's shape) := the elements. */
tp_status_t tp__selection_read(const tp__selection_t *selection, tp_tensor_t *out, const char *name);
/* The elements of target, which the selection was made of, := source, broadcast to the selection's shape, or += it, as
 * tp__selection_add does. */
tp_status_t tp__selection_put(const tp__selection_t *selection, const tp_tensor_t *target, const tp_tensor_t *source,
                              bool accumulate, const char *name);
/* Checks what both kinds of put take. Status DEVICE, DTYPE, INVALID_ARGUMENT. */
tp_status_t tp__selection_check_put(const tp_tensor_t *target, const tp_tensor_t *source, const char *name);
/* The tensor with one more reference, or a copy where it shares target's memory: what can be read while target is
 * written. */
tp_tensor_t *tp__selection_operand(const tp_tensor_t *tensor, const tp_tensor_t *target);

/* Arguments of the kernels that take a tp_indexed_args_t; layout: operands as there. */
void tp__selection_args(const tp__selection_t *selection, const tp_tensor_t *plain, tp_indexed_args_t *args);
/* Offsets in elements from base, -1 for what is not valid, over the dimensions `dims` (bits): a fresh contiguous
 * tensor of one dimension, of dtype int32 or int64. */
tp_tensor_t *tp__selection_offsets(const tp__selection_t *selection, uint32_t dims, int32_t dtype, const char *name);

/* ---- accumulate.c ---- */
/* The elements += source, broadcast, with every place of the selection counted. The same sums in every run. numel > 0;
 * source lies apart from them. */
tp_status_t tp__selection_add(const tp__selection_t *selection, const tp_tensor_t *source, const char *name);

#endif
