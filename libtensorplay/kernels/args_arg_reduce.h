/* Arguments of kernels/arg_reduce.cu (docs/design/reductions.md). */
#ifndef TP_ARGS_ARG_REDUCE_H
#define TP_ARGS_ARG_REDUCE_H

#include "args_layout.h"

enum { TP_ARG_HIGHEST, TP_ARG_LOWEST };

/* One dimension is reduced. Where its elements are split among blocks, a first launch writes the best key and place
 * of each split, (splits, kept), and a second one compares these. */
typedef struct tp_arg_reduce_args {
  const void *input; /* NULL: the keys and places are compared */
  void *out;         /* long long, one place for each result; NULL: keys and places are wanted */
  void *keys, *places;
  tp_layout_t kept; /* operand 0: the result, in C order; 1: the input */
  long long size, stride;
  long long split; /* elements of one split */
  long long splits;
  int group; /* threads that share a split: a power of two */
  int op;    /* TP_ARG_* */
  int dtype;
} tp_arg_reduce_args_t;

#endif
