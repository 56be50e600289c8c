/* Arguments of kernels/condition.cu. */
#ifndef TP_ARGS_CONDITION_H
#define TP_ARGS_CONDITION_H

/* The condition of a node of a graph (cudaGraphConditionalHandle) := what the predicate, one bool, holds. */
typedef struct tp_condition_args {
  unsigned long long condition;
  const void *predicate;
} tp_condition_args_t;

#endif
