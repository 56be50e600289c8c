/* Arguments of kernels/elementwise.cu. */
#ifndef TP_ARGS_ELEMENTWISE_H
#define TP_ARGS_ELEMENTWISE_H

#include "args_layout.h"

/* The kernels for flat operands (runs of elements of one dtype), one for each op and dtype:
 *
 *     X(op, suffix, dtype, element type, element type of the result)
 *
 * one list for each word that ops.def has in its last column. What is not listed goes through the kernels that take
 * any op: each pair of op and dtype that is listed here costs size and time to compile. */
#define TP_FLAT_NONE(X, op)
#define TP_FLAT_FLOATS(X, op)                              \
  X(op, f16, float16, __half, __half)                      \
  X(op, bf16, bfloat16, __nv_bfloat16, __nv_bfloat16)      \
  X(op, f32, float32, float, float)
#define TP_FLAT_NUMBERS(X, op)                             \
  TP_FLAT_FLOATS(X, op)                                    \
  X(op, i32, int32, int, int)                              \
  X(op, i64, int64, long long, long long)
#define TP_FLAT_COMPARED(X, op)                            \
  X(op, b8, bool, bool, bool)                              \
  X(op, f32, float32, float, bool)                         \
  X(op, i64, int64, long long, bool)

/* Bytes of one operand in a tile of a flat kernel: one vector for each thread of a block, and several where
 * more than this many tiles fill every device. */
#define TP_FLAT_TILE_NBYTES (16 * TP_BLOCK_THREADS)
#define TP_FLAT_TILES_MANY 8192
#define TP_FLAT_TILE_FACTOR 4

/* A number beside tensors; each kernel takes the parts of its kind. */
typedef struct tp_scalar {
  double as_float;
  double imaginary;
  long long as_int;
} tp_scalar_t;

/* Operand i is the scalar (step -1), or lies as places says, whose operand 0 is out. Without dimensions there it
 * is a run of elements (step 1) or one element for all (step 0); with dimensions its step is the stride of
 * dimension 0 in elements. aligned: every vector of a run lies at an address that it may have (16 bytes, or as
 * many elements of a narrower result); no step is above 1 then. */
typedef struct tp_flat_args {
  void *out;
  const void *operands[2];
  int steps[2];
  int aligned;
  int tile; /* elements */
  long long numel;
  tp_scalar_t scalar;
  tp_places_t places;
} tp_flat_args_t;

/* Elements of a unit of the kernels that take any op and dtypes. */
#define TP_GENERAL_UNIT 4
/* Their op is a code of TP_UNARY, or this much more than one of TP_BINARY. */
#define TP_GENERAL_BINARY 256

/* Any strides and dtypes: operand 0 of the layout is out; the scalar stands where an address is NULL. Elements and
 * results are rounded to dtype `round` (TP_DTYPE_*), the scalar only when round_scalar is set. The first `units` units
 * are adjacent in each operand, or one element of it; aligned: units may be moved as vectors. */
typedef struct tp_general_args {
  tp_layout_t layout;
  void *out;
  const void *operands[2];
  int dtypes[2];
  int out_dtype;
  int op;
  int round;
  int round_scalar;
  int aligned;
  long long units;
  tp_scalar_t scalar;
} tp_general_args_t;

/* A choice between elements of one size: operands 1 to 3 of the layout are the condition and what is chosen from. The
 * first `units` units are vectors of 16 bytes of each operand, or one element of it. */
typedef struct tp_where_args {
  tp_layout_t layout;
  void *out;
  const void *condition;
  const void *operands[2];
  int aligned;
  long long units;
} tp_where_args_t;

#endif
