/* Arguments of kernels/index.cu (docs/design/indexing.md). */
#ifndef TP_ARGS_INDEX_H
#define TP_ARGS_INDEX_H

#include "args_layout.h"

/* Units of one tile. */
#define TP_ROWS_TILE 1024

/* Places along one dimension, as a tensor holds them. */
typedef struct tp_index {
  const void *values;
  void *fault;      /* struct tp_fault of the device; NULL where the values have been checked */
  long long limit;  /* valid are 0 <= value < limit, */
  long long stride; /* from one place to the next */
  int wraps;        /* and then -limit <= value < 0 too, counted from the end */
  int is_int64;
  int operation; /* TP_FAULT_OP_* */
} tp_index_t;

/* out (outer, count, width) := input (outer, index.limit, width) at the `count` rows that index names; all
 * contiguous, sizes in units: 1, 2, 4, 8 or 16 bytes, as the kernel's name says. */
typedef struct tp_rows_args {
  const void *input;
  void *out;
  tp_index_t index;
  long long outer, count, width;
} tp_rows_args_t;

/* plain[i] := tensor[places[i] + index[i]], or the other way round. The index's stride is in bytes, all else in units.
 * Operands of the layout: C order, the tensor (a stride of 0 where the index moves), the index, plain. */
typedef struct tp_indexed_args {
  void *tensor;
  void *plain;
  tp_index_t index;
  tp_layout_t layout;
} tp_indexed_args_t;

/* out[i] := places[i] + the sum of indices[k][i] * stride, -1 where one is not valid. Operands of the layout: out,
 * the places, the indices. */
#define TP_OFFSETS_INDICES 2
typedef struct tp_offsets_args {
  void *out;
  int out_is_int64;
  int adds; /* to what is in out, in the stead of places[i] */
  int n;
  tp_index_t indices[TP_OFFSETS_INDICES];
  tp_layout_t layout;
} tp_offsets_args_t;

#endif
