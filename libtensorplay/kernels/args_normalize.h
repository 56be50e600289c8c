/* Arguments of kernels/normalize.cu (docs/design/reductions.md). */
#ifndef TP_ARGS_NORMALIZE_H
#define TP_ARGS_NORMALIZE_H

#include "args.h"

/* Vectors of 16 bytes that a thread keeps of a row in registers; longer rows are read again. */
#define TP_NORMALIZE_VECTORS 4

/* Rows, one behind the other: how many, the threads that share one (a power of two), and whether every vector in
 * them is aligned. */
typedef struct tp_rows {
  long long count;
  int group;
  int aligned;
} tp_rows_t;

/* Columns of one tile of a softmax over a dimension that is not the last. */
#define TP_SOFTMAX_TILE 256

/* The elements are (outer, size, inner), contiguous; softmax runs over the middle. */
typedef struct tp_softmax_args {
  const void *input;
  void *out;
  long long outer, size, inner;
  int log;
  tp_rows_t rows; /* where inner is 1 */
} tp_softmax_args_t;

/* The elements are rows of `size`, contiguous. */
typedef struct tp_layer_norm_args {
  const void *input;
  const void *weight; /* size elements, or NULL */
  const void *bias;
  void *out;
  long long size;
  double eps;
  tp_rows_t rows;
} tp_layer_norm_args_t;

#endif
