/* Elementwise operations of the pairs of op and dtype that have a kernel of their own (docs/design/kernels.md). */
#define TP_FAMILY "elementwise"
#include "flat.h"
#include "op_math.h"

#define TP_UNARY_KERNEL(name, suffix, dtype, T, Out) \
  TP_KERNEL(tp_k_##name##_##suffix, tp_flat_args_t) { tp_flat_write_unary<T, Out, tp_op_##name>(p); }
#define TP_UNARY(name, code, takes, rule, kernels)                                 \
  struct tp_op_##name {                                                            \
    template <typename T>                                                          \
    static __device__ __forceinline__ auto of(T x) { return tp_##name(x); }        \
  };                                                                               \
  TP_FLAT_##kernels(TP_UNARY_KERNEL, name)
#include "ops.def"

/* Comparisons (result bool) see a scalar as an element of the tensor's dtype. */
#define TP_BINARY_KERNEL(name, suffix, dtype, T, Out)                                    \
  TP_KERNEL(tp_k_##name##_##suffix, tp_flat_args_t) {                                    \
    tp_flat_write_binary<T, Out, tp_op_##name>(p, tp_same<Out, bool>::value);            \
  }
#define TP_BINARY(name, code, takes, rule, kernels)                                \
  struct tp_op_##name {                                                            \
    template <typename T>                                                          \
    static __device__ __forceinline__ auto of(T a, T b) { return tp_##name(a, b); } \
  };                                                                               \
  TP_FLAT_##kernels(TP_BINARY_KERNEL, name)
#include "ops.def"

#undef TP_FAMILY
