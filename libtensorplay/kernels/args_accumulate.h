/* Arguments of kernels/accumulate.cu; those of tp_k_add_* are tp_indexed_args_t (docs/design/indexing.md). */
#ifndef TP_ARGS_ACCUMULATE_H
#define TP_ARGS_ACCUMULATE_H

#include "args_index.h"

/* Keys that one thread goes through, and elements of a tile. */
#define TP_RUNS_CHUNK 32
#define TP_RUNS_TILE 256

/* Rows of values, in the order of their keys: the sum of those of equal keys is added to the row of target at that
 * key (a place; negative: none). The first and the last key of each chunk are left to the next launch, which gets
 * them and their sums as keys and values, until one chunk holds all. */
typedef struct tp_runs_args {
  void *target;
  const void *values; /* (count, width), of the target's dtype; where order is NULL, of the one it is summed in */
  const void *keys;
  const void *order;  /* long long: the number of the j-th key and row in order; NULL: j */
  void *out_keys;     /* long long, two for each chunk; NULL: one chunk holds all */
  void *out_sums;     /* rows of the dtype that is summed in, as many */
  long long count, width;
  int keys_are_int64;
  tp_layout_t row; /* operand 1: the target's elements of one row */
} tp_runs_args_t;

#endif
