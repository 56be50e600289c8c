/* The formulas of ops.def, each under its name: tp_<name>(x) and tp_<name>(a, b), over what is computed in: float
 * and double, int and long long (bool and the narrow integers are computed in them), complex numbers. Half types are
 * computed in float. Integers wrap, which needs unsigned arithmetic, since signed overflow has no meaning in C++.
 * Where a formula is more than plain arithmetic (NaN, division by zero, integer powers) it follows torch. */
#ifndef TP_OP_MATH_H
#define TP_OP_MATH_H

#include "element.h"

/* ---- the mathematical functions by the type of their arguments ---- */

#define TP_MATH_UNARY(name)                                     \
  TP_DEVICE float tp_m_##name(float x) { return name##f(x); }   \
  TP_DEVICE double tp_m_##name(double x) { return name(x); }
TP_MATH_UNARY(sqrt)
TP_MATH_UNARY(fabs)
TP_MATH_UNARY(exp)
TP_MATH_UNARY(exp2)
TP_MATH_UNARY(expm1)
TP_MATH_UNARY(log)
TP_MATH_UNARY(log2)
TP_MATH_UNARY(log10)
TP_MATH_UNARY(log1p)
TP_MATH_UNARY(sin)
TP_MATH_UNARY(cos)
TP_MATH_UNARY(tan)
TP_MATH_UNARY(asin)
TP_MATH_UNARY(acos)
TP_MATH_UNARY(atan)
TP_MATH_UNARY(sinh)
TP_MATH_UNARY(cosh)
TP_MATH_UNARY(tanh)
TP_MATH_UNARY(asinh)
TP_MATH_UNARY(acosh)
TP_MATH_UNARY(atanh)
TP_MATH_UNARY(erf)
TP_MATH_UNARY(erfc)
TP_MATH_UNARY(floor)
TP_MATH_UNARY(ceil)
TP_MATH_UNARY(rint)
TP_MATH_UNARY(trunc)
#undef TP_MATH_UNARY

#define TP_MATH_BINARY(name)                                                       \
  TP_DEVICE float tp_m_##name(float a, float b) { return name##f(a, b); }          \
  TP_DEVICE double tp_m_##name(double a, double b) { return name(a, b); }
TP_MATH_BINARY(pow)
TP_MATH_BINARY(fmod)
TP_MATH_BINARY(atan2)
TP_MATH_BINARY(hypot)
TP_MATH_BINARY(copysign)
TP_MATH_BINARY(fmax)
TP_MATH_BINARY(fmin)
#undef TP_MATH_BINARY

/* ---- integers ---- */

template <typename T>
struct tp_unsigned;
template <>
struct tp_unsigned<int> {
  using type = unsigned;
};
template <>
struct tp_unsigned<long long> {
  using type = unsigned long long;
};

template <typename T>
TP_DEVICE typename tp_unsigned<T>::type tp_bits(T x) {
  return static_cast<typename tp_unsigned<T>::type>(x);
}

/* ---- one operand ---- */

template <typename T>
TP_DEVICE T tp_neg(T x) {
  if constexpr (tp_is_floating<T>)
    return -x;
  else
    return static_cast<T>(0 - tp_bits(x));
}
template <typename Part>
TP_DEVICE tp_complex<Part> tp_neg(tp_complex<Part> x) {
  return {-x.re, -x.im};
}

template <typename T>
TP_DEVICE T tp_abs(T x) {
  if constexpr (tp_is_floating<T>)
    return tp_m_fabs(x);
  else
    return x < 0 ? tp_neg(x) : x;
}
template <typename Part>
TP_DEVICE Part tp_abs(tp_complex<Part> x) {
  return tp_m_hypot(x.re, x.im);
}

template <typename T>
TP_DEVICE T tp_conj(T x) {
  return x;
}
template <typename Part>
TP_DEVICE tp_complex<Part> tp_conj(tp_complex<Part> x) {
  return {x.re, -x.im};
}

template <typename T>
TP_DEVICE bool tp_logical_not(T x) {
  return x == 0;
}
template <typename Part>
TP_DEVICE bool tp_logical_not(tp_complex<Part> x) {
  return x.re == 0 && x.im == 0;
}

template <typename T>
TP_DEVICE T tp_relu(T x) {
  return x <= 0 ? 0 : x; /* NaN stays */
}

/* NaN has the sign 0. */
template <typename T>
TP_DEVICE T tp_sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

template <typename T>
TP_DEVICE bool tp_isnan(T x) {
  return x != x;
}

template <typename T>
TP_DEVICE bool tp_isinf(T x) {
  if constexpr (tp_is_floating<T>)
    return tp_m_fabs(x) == static_cast<T>(tp_infinity());
  else
    return false;
}

template <typename T>
TP_DEVICE bool tp_isfinite(T x) {
  return !tp_isnan(x) && !tp_isinf(x);
}

template <typename T>
TP_DEVICE bool tp_signbit(T x) {
  if constexpr (tp_is_floating<T>)
    return tp_m_copysign(static_cast<T>(1), x) < 0; /* of zero and NaN too */
  else
    return x < 0;
}

/* Integers are whole. */
#define TP_WHOLE(name, function)                          \
  template <typename T>                                   \
  TP_DEVICE T tp_##name(T x) {                            \
    if constexpr (tp_is_floating<T>)                      \
      return tp_m_##function(x);                          \
    else                                                  \
      return x;                                           \
  }
TP_WHOLE(floor, floor)
TP_WHOLE(ceil, ceil)
TP_WHOLE(round, rint) /* half to even */
TP_WHOLE(trunc, trunc)
#undef TP_WHOLE

template <typename T>
TP_DEVICE T tp_bitwise_not(T x) {
  return ~x;
}

/* From here on floating numbers only. */
#define TP_SAME_FORMULA(name)                  \
  template <typename T>                        \
  TP_DEVICE T tp_##name(T x) {                 \
    return tp_m_##name(x);                     \
  }
TP_SAME_FORMULA(sqrt)
TP_SAME_FORMULA(exp)
TP_SAME_FORMULA(exp2)
TP_SAME_FORMULA(expm1)
TP_SAME_FORMULA(log)
TP_SAME_FORMULA(log2)
TP_SAME_FORMULA(log10)
TP_SAME_FORMULA(log1p)
TP_SAME_FORMULA(sin)
TP_SAME_FORMULA(cos)
TP_SAME_FORMULA(tan)
TP_SAME_FORMULA(asin)
TP_SAME_FORMULA(acos)
TP_SAME_FORMULA(atan)
TP_SAME_FORMULA(sinh)
TP_SAME_FORMULA(cosh)
TP_SAME_FORMULA(tanh)
TP_SAME_FORMULA(asinh)
TP_SAME_FORMULA(acosh)
TP_SAME_FORMULA(atanh)
TP_SAME_FORMULA(erf)
TP_SAME_FORMULA(erfc)
#undef TP_SAME_FORMULA

template <typename T>
TP_DEVICE T tp_rsqrt(T x) {
  return 1 / tp_m_sqrt(x);
}

template <typename T>
TP_DEVICE T tp_reciprocal(T x) {
  return 1 / x;
}

template <typename T>
TP_DEVICE T tp_sigmoid(T x) {
  return 1 / (1 + tp_m_exp(-x));
}

template <typename T>
TP_DEVICE T tp_silu(T x) {
  return x / (1 + tp_m_exp(-x));
}

template <typename T>
TP_DEVICE T tp_frac(T x) {
  return x - tp_m_trunc(x);
}

/* x * P(X <= x) of a standard normal variable; 0.7071... is sqrt(1/2). */
template <typename T>
TP_DEVICE T tp_gelu(T x) {
  return static_cast<T>(0.5) * x * (1 + tp_m_erf(x * static_cast<T>(0.70710678118654752)));
}

/* Its approximation; 0.7978... is sqrt(2/pi). */
template <typename T>
TP_DEVICE T tp_gelu_tanh(T x) {
  T inner = x + static_cast<T>(0.044715) * x * x * x;
  return static_cast<T>(0.5) * x * (1 + tp_m_tanh(static_cast<T>(0.79788456080286536) * inner));
}

/* ---- two operands ---- */

#define TP_ARITHMETIC(name, op)                                  \
  template <typename T>                                          \
  TP_DEVICE T tp_##name(T a, T b) {                              \
    if constexpr (tp_is_floating<T>)                             \
      return a op b;                                             \
    else                                                         \
      return static_cast<T>(tp_bits(a) op tp_bits(b));           \
  }
TP_ARITHMETIC(add, +)
TP_ARITHMETIC(sub, -)
TP_ARITHMETIC(mul, *)
#undef TP_ARITHMETIC

template <typename Part>
TP_DEVICE tp_complex<Part> tp_add(tp_complex<Part> a, tp_complex<Part> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename Part>
TP_DEVICE tp_complex<Part> tp_sub(tp_complex<Part> a, tp_complex<Part> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename Part>
TP_DEVICE tp_complex<Part> tp_mul(tp_complex<Part> a, tp_complex<Part> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <typename T>
TP_DEVICE T tp_div(T a, T b) {
  return a / b;
}
/* Divided by the larger part of b first, so that nothing overflows that the quotient does not. */
template <typename Part>
TP_DEVICE tp_complex<Part> tp_div(tp_complex<Part> a, tp_complex<Part> b) {
  Part re = tp_m_fabs(b.re), im = tp_m_fabs(b.im);
  if (re == 0 && im == 0) return {a.re / re, a.im / im};
  bool by_re = re >= im;
  Part ratio = by_re ? b.im / b.re : b.re / b.im;
  Part scale = 1 / (by_re ? b.re + b.im * ratio : b.im + b.re * ratio);
  if (by_re) return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}

/* Integers divided by 0 give 0. The lowest number has no opposite, so -1 is no divisor for the GPU's and the
 * host's instructions either. */
template <typename T>
TP_DEVICE T tp_div_trunc(T a, T b) {
  if constexpr (tp_is_floating<T>)
    return tp_m_trunc(a / b);
  else
    return b == 0 ? 0 : b == -1 ? tp_neg(a) : a / b;
}

template <typename T>
TP_DEVICE T tp_fmod(T a, T b) {
  if constexpr (tp_is_floating<T>)
    return tp_m_fmod(a, b);
  else
    return b == 0 || b == -1 ? 0 : a % b;
}

/* What is left has the sign of b. */
template <typename T>
TP_DEVICE T tp_remainder(T a, T b) {
  T left = tp_fmod(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

template <typename T>
TP_DEVICE T tp_floor_divide(T a, T b) {
  if constexpr (tp_is_floating<T>) {
    if (b == 0) return a / b;
    T left = tp_m_fmod(a, b), quotient = (a - left) / b;
    if (left != 0 && (left < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return tp_m_copysign(static_cast<T>(0), a / b);
    T whole = tp_m_floor(quotient);
    return quotient - whole > static_cast<T>(0.5) ? whole + 1 : whole;
  } else {
    T left = tp_fmod(a, b);
    return tp_div_trunc(a, b) - (left != 0 && (left < 0) != (b < 0));
  }
}

/* Of integers by squaring. A negative exponent leaves a fraction, so 0, except for the bases 1 and -1. */
template <typename T>
TP_DEVICE T tp_pow(T base, T exponent) {
  if constexpr (tp_is_floating<T>) {
    return tp_m_pow(base, exponent);
  } else {
    if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent % 2 ? -1 : 1;
    T power = 1;
    for (; exponent; exponent /= 2) {
      if (exponent % 2) power = tp_mul(power, base);
      base = tp_mul(base, base);
    }
    return power;
  }
}

/* NaN wins. */
template <typename T>
TP_DEVICE T tp_maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
TP_DEVICE T tp_minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

/* NaN loses. */
template <typename T>
TP_DEVICE T tp_fmax(T a, T b) {
  if constexpr (tp_is_floating<T>)
    return tp_m_fmax(a, b);
  else
    return a > b ? a : b;
}
template <typename T>
TP_DEVICE T tp_fmin(T a, T b) {
  if constexpr (tp_is_floating<T>)
    return tp_m_fmin(a, b);
  else
    return a < b ? a : b;
}

/* Floating numbers only. */
template <typename T>
TP_DEVICE T tp_atan2(T a, T b) {
  return tp_m_atan2(a, b);
}
template <typename T>
TP_DEVICE T tp_hypot(T a, T b) {
  return tp_m_hypot(a, b);
}
template <typename T>
TP_DEVICE T tp_copysign(T a, T b) {
  return tp_m_copysign(a, b);
}

#define TP_COMPARISON(name, op)              \
  template <typename T>                      \
  TP_DEVICE bool tp_##name(T a, T b) {       \
    return a op b;                           \
  }
TP_COMPARISON(eq, ==)
TP_COMPARISON(ne, !=)
TP_COMPARISON(lt, <)
TP_COMPARISON(le, <=)
TP_COMPARISON(gt, >)
TP_COMPARISON(ge, >=)
#undef TP_COMPARISON

template <typename Part>
TP_DEVICE bool tp_eq(tp_complex<Part> a, tp_complex<Part> b) {
  return a.re == b.re && a.im == b.im;
}
template <typename Part>
TP_DEVICE bool tp_ne(tp_complex<Part> a, tp_complex<Part> b) {
  return !tp_eq(a, b);
}

template <typename T>
TP_DEVICE bool tp_logical_and(T a, T b) {
  return !tp_logical_not(a) && !tp_logical_not(b);
}
template <typename T>
TP_DEVICE bool tp_logical_or(T a, T b) {
  return !tp_logical_not(a) || !tp_logical_not(b);
}
template <typename T>
TP_DEVICE bool tp_logical_xor(T a, T b) {
  return tp_logical_not(a) != tp_logical_not(b);
}

/* Integers only. */
template <typename T>
TP_DEVICE T tp_bitwise_and(T a, T b) {
  return a & b;
}
template <typename T>
TP_DEVICE T tp_bitwise_or(T a, T b) {
  return a | b;
}
template <typename T>
TP_DEVICE T tp_bitwise_xor(T a, T b) {
  return a ^ b;
}

/* By a negative count, or by the width and more, everything is shifted out. Counts from a narrow type's width to
 * that of T give the same once the result is cut to it. */
template <typename T>
TP_DEVICE T tp_bitwise_left_shift(T a, T count) {
  constexpr T width = 8 * sizeof(T);
  return count < 0 || count >= width ? 0 : static_cast<T>(tp_bits(a) << count);
}
template <typename T>
TP_DEVICE T tp_bitwise_right_shift(T a, T count) {
  constexpr T most = 8 * sizeof(T) - 1;
  return a >> (count < 0 || count > most ? most : count);
}

#endif
