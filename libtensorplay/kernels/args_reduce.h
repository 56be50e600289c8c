/* Arguments of kernels/reduce.cu (docs/design/reductions.md). */
#ifndef TP_ARGS_REDUCE_H
#define TP_ARGS_REDUCE_H

#include "args_layout.h"

/* What the kernels know of the operations. A mean is a sum that is divided; any and all of bool are the
 * highest and the lowest. Products take int64 and float64 only. */
enum { TP_FOLD_SUM, TP_FOLD_HIGHEST, TP_FOLD_LOWEST, TP_FOLD_PRODUCT };

/* The element types that are reduced, X(dtype, suffix, element type). Other dtypes are cast to one of these first. */
#define TP_REDUCE_SOURCES(X)        \
  X(bool, b8, bool)                 \
  X(int32, i32, int)                \
  X(int64, i64, long long)          \
  X(float16, f16, __half)           \
  X(bfloat16, bf16, __nv_bfloat16)  \
  X(float32, f32, float)            \
  X(float64, f64, double)

/* As out_dtype: totals as they are, double for floating input and long long for the others. */
#define TP_REDUCE_TOTALS (-1)

typedef struct tp_reduce_args {
  const void *input;
  void *out;           /* kept elements, or splits times kept totals, split by split */
  tp_layout_t kept;    /* operand 1: the input, in C order of the result */
  tp_layout_t reduced; /* operand 0: the input, in its own best order */
  long long split;     /* reduced elements of one split */
  long long splits;
  int group;      /* threads that share a result: a power of two */
  int packed;     /* columns form: a thread folds the results of an aligned vector of 16 bytes */
  double divisor; /* a floating total is divided by it at the end */
  int fold;       /* TP_FOLD_* */
  int out_dtype;  /* TP_DTYPE_<name> or TP_REDUCE_TOTALS */
} tp_reduce_args_t;

#endif
