/* Elementwise operations: for each op and dtype a kernel over flat operands, and for each dtype to
 * compute in one kernel that takes any strides, dtypes and op (docs/design/kernels.md). */
#define TP_FAMILY "elementwise"
#include "flat.h"
#include "layout.h"
#include "op_math.h"

/* ---- flat ---- */

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

/* ---- any strides and dtypes, computed in T: float or long long ---- */

/* Which of the words of ops.def are about T. */
template <typename T>
struct tp_takes {
  static constexpr bool floating = tp_is_floating<T>, complex = tp_is_complex<T>;
  static constexpr bool ALL = true, NUMBERS = true, REAL = !complex, REAL_NUMBERS = !complex;
  static constexpr bool BITS = !floating && !complex, INTEGERS = BITS, FLOATS = floating;
  static constexpr bool SAME = true, MAGNITUDE = true, BOOL = true, FLOAT = floating || complex;
};

template <typename T>
TP_DEVICE T tp_unary_of(int op, T x) {
  switch (op) {
#define TP_UNARY(name, code, takes, rule, kernels)                                  \
  case code:                                                                        \
    if constexpr (tp_takes<T>::takes && tp_takes<T>::rule) return static_cast<T>(tp_##name(x));           \
    break;
#include "ops.def"
  }
  return x;
}

template <typename T>
TP_DEVICE T tp_binary_of(int op, T a, T b) {
  switch (op) {
#define TP_BINARY(name, code, takes, rule, kernels)                                 \
  case code:                                                                        \
    if constexpr (tp_takes<T>::takes && tp_takes<T>::rule) return static_cast<T>(tp_##name(a, b));        \
    break;
#include "ops.def"
  }
  return a;
}

template <typename T>
TP_DEVICE T tp_strided_scalar(const tp_strided_args_t &p) {
  T scalar = tp_same<T, float>::value ? static_cast<T>(p.scalar.as_float) : static_cast<T>(p.scalar.as_int);
  return p.round_scalar ? tp_round(scalar, p.round) : scalar;
}

/* Element `place` of operand i: `one` where the operand is the scalar (address NULL). */
template <typename T>
TP_DEVICE T tp_strided_element(const tp_strided_args_t &p, int i, const void *base, long long place, T one) {
  return base ? tp_round(tp_load<T>(base, p.dtypes[i], place), p.round) : one;
}

template <typename T>
TP_DEVICE void tp_strided_unary(const tp_strided_args_t &p) {
  void *out = tp_at<void>(p.out);
  const void *a = tp_at<void>(p.operands[0]);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2];
      tp_layout_places(p.layout, 0, first + i, places);
      T x = tp_strided_element<T>(p, 0, a, places[1], T());
      tp_store(out, p.out_dtype, places[0], tp_round(tp_unary_of(p.op, x), p.round));
    }
  }
}

template <typename T>
TP_DEVICE void tp_strided_binary(const tp_strided_args_t &p) {
  void *out = tp_at<void>(p.out);
  const void *a = tp_at<void>(p.operands[0]);
  const void *b = tp_at<void>(p.operands[1]);
  T scalar = tp_strided_scalar<T>(p);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[3];
      tp_layout_places(p.layout, 0, first + i, places);
      T x = tp_strided_element<T>(p, 0, a, places[1], scalar);
      T y = tp_strided_element<T>(p, 1, b, places[2], scalar);
      tp_store(out, p.out_dtype, places[0], tp_round(tp_binary_of(p.op, x, y), p.round));
    }
  }
}

template <typename T>
TP_DEVICE void tp_strided_where(const tp_strided_args_t &p) {
  void *out = tp_at<void>(p.out);
  const bool *condition = tp_at<bool>(p.operands[0]);
  const void *a = tp_at<void>(p.operands[1]);
  const void *b = tp_at<void>(p.operands[2]);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[4];
      tp_layout_places(p.layout, 0, first + i, places);
      T value = condition[places[1]] ? tp_strided_element<T>(p, 1, a, places[2], T())
                                     : tp_strided_element<T>(p, 2, b, places[3], T());
      tp_store(out, p.out_dtype, places[0], value);
    }
  }
}

#define TP_STRIDED_KERNELS(suffix, T)                                                  \
  TP_KERNEL(tp_k_unary_##suffix, tp_strided_args_t) { tp_strided_unary<T>(p); }        \
  TP_KERNEL(tp_k_binary_##suffix, tp_strided_args_t) { tp_strided_binary<T>(p); }      \
  TP_KERNEL(tp_k_where_##suffix, tp_strided_args_t) { tp_strided_where<T>(p); }

TP_STRIDED_KERNELS(f32, float)
TP_STRIDED_KERNELS(i64, long long)

#undef TP_FAMILY
