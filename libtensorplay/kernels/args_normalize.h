/* Arguments of kernels/normalize.cu (docs/design/reductions.md). */
#ifndef TP_ARGS_NORMALIZE_H
#define TP_ARGS_NORMALIZE_H

#include "args.h"

/* Elements of a row that a block keeps in shared memory as float32; longer rows are read again. */
#define TP_NORMALIZE_KEPT 4096

/* Columns of one tile of a softmax over a dimension that is not the last. */
#define TP_SOFTMAX_TILE 256

/* The elements are (outer, size, inner), contiguous; softmax runs over the middle. */
typedef struct tp_softmax_args {
  const void *input;
  void *out;
  long long outer, size, inner;
  int log;
} tp_softmax_args_t;

/* The elements are (rows, size), contiguous. */
typedef struct tp_layer_norm_args {
  const void *input;
  const void *weight; /* size elements, or NULL */
  const void *bias;
  void *out;
  long long rows, size;
  float eps;
} tp_layer_norm_args_t;

#endif
