/* Arguments of kernels/copy.cu and kernels/fill.cu. */
#ifndef TP_ARGS_COPY_H
#define TP_ARGS_COPY_H

#include "args_layout.h"

/* Elements of a tile in the kernels that cast or fill a run of elements. */
#define TP_COPY_TILE 4096

/* out[i] := source[i], both runs of elements; aligned: from addresses that are multiples of 16. */
typedef struct tp_cast_args {
  void *out;
  const void *source;
  long long numel;
  int out_dtype;
  int aligned;
} tp_cast_args_t;

/* As tp_cast_args_t with any strides: operand 0 is out, operand 1 the source. The dtypes are not read by
 * the kernels that move elements as they are. */
typedef struct tp_copy_args {
  tp_layout_t layout;
  void *out;
  const void *source;
  int out_dtype;
  int source_dtype;
} tp_copy_args_t;

/* Rows and columns of a tile of the kernels that turn. */
#define TP_TURN_TILE 64

/* out[r * out_stride + c] := source[c * source_stride + r] for r < height, c < width, at each of the `outer`
 * places: operand 0 is out, operand 1 the source. Elements as they are. */
typedef struct tp_turn_args {
  void *out;
  const void *source;
  long long width, height, outer;
  int out_stride, source_stride; /* the layout is narrow */
  tp_places_t places;
} tp_turn_args_t;

/* head bytes from out on, so many vectors of 16 bytes at multiples of 16, tail bytes := the pattern, which
 * begins anew at each multiple of 16. tile: vectors. */
typedef struct tp_fill_args {
  void *out;
  long long vectors;
  int head, tail;
  int tile;
  unsigned long long pattern[2];
} tp_fill_args_t;

/* out[i] := start + i * step, in double or long long, cast to out_dtype. */
typedef struct tp_arange_args {
  void *out;
  long long numel;
  int out_dtype;
  double float_start, float_step;
  long long int_start, int_step;
} tp_arange_args_t;

#endif
