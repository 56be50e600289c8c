/* Elementwise operations of any op over any strides and dtypes: one kernel for each type that is computed in
 * (docs/design/kernels.md). Loads, stores and formulas are functions that are called: inlined, these kernels would cost
 * more to compile than all others of the library. */
#define TP_FAMILY "general"
#include "args_elementwise.h"
#include "op_math.h"
#include "units.h"

template <typename T>
using tp_general_unit = tp_unit<T, TP_GENERAL_UNIT>;

/* Which of the words of ops.def and dtypes.def are about what is computed in T: ops by what they take and by their
 * rule, dtypes of operands by their category. */
template <typename T>
struct tp_general_of {
  static constexpr bool floating = tp_is_floating<T>, complex = tp_is_complex<T>;
  static constexpr bool ALL = true, NUMBERS = true, REAL = !complex, REAL_NUMBERS = !complex;
  static constexpr bool BITS = !floating && !complex, INTEGERS = BITS, FLOATS = floating;
  static constexpr bool SAME = true, MAGNITUDE = true, FLOAT = floating || complex;
  static constexpr bool BOOL = true, INT = true, COMPLEX = complex;
};

/* The code of the dtype whose elements are T. */
template <typename T>
constexpr int tp_general_code() {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  if (tp_same<ctype, T>::value) return code;
#include "dtypes.def"
#undef TP_DTYPE
  return -1;
}

/* Whether an operand's units are vectors of T, which need no function that asks for dtypes. */
template <typename T>
TP_DEVICE bool tp_general_is_plain(const tp_general_args_t &p, int operand, int dtype) {
  return dtype == tp_general_code<T>() && p.round == dtype && p.aligned && p.layout.strides[operand][0] == 1;
}

template <typename T>
TP_DEVICE void tp_general_round(tp_general_unit<T> &x, int dtype) {
  for (int i = 0; i < TP_GENERAL_UNIT; ++i) x.at[i] = tp_round(x.at[i], dtype);
}

template <typename T>
TP_DEVICE_COLD tp_general_unit<T> tp_general_load(const void *base, int dtype, long long place, tp_access access,
                                                  int round) {
  tp_general_unit<T> x = {};
  switch (dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category)                                                   \
  case code:                                                                                                      \
    if constexpr (tp_general_of<T>::category) {                                                                   \
      auto elements = tp_unit_read<ctype, TP_GENERAL_UNIT>(static_cast<const ctype *>(base) + place, access);     \
      for (int i = 0; i < TP_GENERAL_UNIT; ++i) x.at[i] = tp_cast<T>(elements.at[i]);                             \
    }                                                                                                             \
    break;
#include "dtypes.def"
#undef TP_DTYPE
  }
  if (dtype != round) tp_general_round(x, round);
  return x;
}

template <typename T>
TP_DEVICE_COLD void tp_general_store(void *base, int dtype, long long place, tp_access access, int round,
                                     tp_general_unit<T> x) {
  if (dtype != round) tp_general_round(x, round);
  switch (dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category)                                   \
  case code: {                                                                                    \
    tp_unit<ctype, TP_GENERAL_UNIT> elements;                                                     \
    for (int i = 0; i < TP_GENERAL_UNIT; ++i) elements.at[i] = tp_cast<ctype>(x.at[i]);           \
    tp_unit_write(static_cast<ctype *>(base) + place, access, elements);                          \
    break;                                                                                        \
  }
#include "dtypes.def"
#undef TP_DTYPE
  }
}

template <typename T>
TP_DEVICE_COLD T tp_general_apply(int op, T a, T b) {
  switch (op) {
#define TP_UNARY(name, code, takes, rule, kernels)                                             \
  case code:                                                                                   \
    if constexpr (tp_general_of<T>::takes && tp_general_of<T>::rule) return tp_cast<T>(tp_##name(a)); \
    break;
#define TP_BINARY(name, code, takes, rule, kernels)                                               \
  case TP_GENERAL_BINARY + code:                                                                  \
    if constexpr (tp_general_of<T>::takes && tp_general_of<T>::rule) return tp_cast<T>(tp_##name(a, b)); \
    break;
#include "ops.def"
  }
  return a;
}

template <typename T>
TP_DEVICE T tp_general_scalar(const tp_general_args_t &p) {
  if constexpr (tp_is_complex<T>) {
    using Part = decltype(T().re);
    return {static_cast<Part>(p.scalar.as_float), static_cast<Part>(p.scalar.imaginary)};
  } else {
    T scalar = tp_is_floating<T> ? static_cast<T>(p.scalar.as_float) : static_cast<T>(p.scalar.as_int);
    return p.round_scalar ? tp_round(scalar, p.round) : scalar;
  }
}

template <typename T>
TP_DEVICE void tp_general(const tp_general_args_t &p) {
  void *out = tp_at<void>(p.out);
  const void *operands[] = {tp_at<void>(p.operands[0]), tp_at<void>(p.operands[1])};
  T scalar = tp_general_scalar<T>(p);
  bool plain[] = {tp_general_is_plain<T>(p, 0, p.out_dtype), tp_general_is_plain<T>(p, 1, p.dtypes[0]),
                  tp_general_is_plain<T>(p, 2, p.dtypes[1])};
  tp_for_units<TP_GENERAL_UNIT, 3>(p.layout, p.units, [&](const long long (&places)[3], bool single) {
    tp_general_unit<T> x[2];
    for (int k = 0; k < 2; ++k) {
      if (operands[k] && plain[1 + k] && !single)
        x[k] = tp_unit_read<T, TP_GENERAL_UNIT>(static_cast<const T *>(operands[k]) + places[1 + k], TP_ACCESS_ALIGNED);
      else if (operands[k])
        x[k] = tp_general_load<T>(operands[k], p.dtypes[k], places[1 + k],
                                  tp_access_of(p.layout, 1 + k, p.aligned, single), p.round);
      else
        for (int i = 0; i < TP_GENERAL_UNIT; ++i) x[k].at[i] = scalar;
    }
    for (int i = 0; i < TP_GENERAL_UNIT; ++i) {
      if (i == 0 || !single) x[0].at[i] = tp_general_apply(p.op, x[0].at[i], x[1].at[i]);
    }
    if (plain[0] && !single)
      return tp_unit_write(static_cast<T *>(out) + places[0], TP_ACCESS_ALIGNED, x[0]);
    tp_general_store(out, p.out_dtype, places[0], tp_access_of(p.layout, 0, p.aligned, single), p.round, x[0]);
  });
}

TP_KERNEL(tp_k_general_i64, tp_general_args_t) { tp_general<long long>(p); }
TP_KERNEL(tp_k_general_f32, tp_general_args_t) { tp_general<float>(p); }
TP_KERNEL(tp_k_general_f64, tp_general_args_t) { tp_general<double>(p); }
TP_KERNEL(tp_k_general_c64, tp_general_args_t) { tp_general<tp_complex64>(p); }
TP_KERNEL(tp_k_general_c128, tp_general_args_t) { tp_general<tp_complex128>(p); }

#undef TP_FAMILY
