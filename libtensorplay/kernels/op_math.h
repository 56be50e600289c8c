/* The formulas of ops.def, each under its name: tp_<name>(x) and tp_<name>(a, b). Half types are computed
 * in float, bool in long long. The templates are for integers: results that leave the range wrap, which
 * needs unsigned arithmetic, since signed overflow has no meaning in C++. Where a formula is more than
 * plain arithmetic (NaN, integer powers) it follows torch. */
#ifndef TP_OP_MATH_H
#define TP_OP_MATH_H

#include "element.h"

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
  return static_cast<T>(0 - tp_bits(x));
}
TP_DEVICE float tp_neg(float x) { return -x; }

template <typename T>
TP_DEVICE T tp_abs(T x) {
  return x < 0 ? tp_neg(x) : x;
}
TP_DEVICE float tp_abs(float x) { return fabsf(x); }

template <typename T>
TP_DEVICE T tp_relu(T x) {
  return x <= 0 ? 0 : x; /* NaN stays */
}

template <typename T>
TP_DEVICE bool tp_logical_not(T x) {
  return x == 0;
}

TP_DEVICE float tp_sqrt(float x) { return sqrtf(x); }
TP_DEVICE float tp_rsqrt(float x) { return 1.0f / sqrtf(x); }
TP_DEVICE float tp_exp(float x) { return expf(x); }
TP_DEVICE float tp_log(float x) { return logf(x); }
TP_DEVICE float tp_tanh(float x) { return tanhf(x); }
TP_DEVICE float tp_erf(float x) { return erff(x); }
TP_DEVICE float tp_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
TP_DEVICE float tp_reciprocal(float x) { return 1.0f / x; }
TP_DEVICE float tp_sin(float x) { return sinf(x); }
TP_DEVICE float tp_cos(float x) { return cosf(x); }

/* x * P(X <= x) of a standard normal variable; 0.7071... is sqrt(1/2). */
TP_DEVICE float tp_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

/* Its approximation; 0.7978... is sqrt(2/pi). */
TP_DEVICE float tp_gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}

/* ---- two operands ---- */

template <typename T>
TP_DEVICE T tp_add(T a, T b) {
  return static_cast<T>(tp_bits(a) + tp_bits(b));
}
TP_DEVICE float tp_add(float a, float b) { return a + b; }

template <typename T>
TP_DEVICE T tp_sub(T a, T b) {
  return static_cast<T>(tp_bits(a) - tp_bits(b));
}
TP_DEVICE float tp_sub(float a, float b) { return a - b; }

template <typename T>
TP_DEVICE T tp_mul(T a, T b) {
  return static_cast<T>(tp_bits(a) * tp_bits(b));
}
TP_DEVICE float tp_mul(float a, float b) { return a * b; }

TP_DEVICE float tp_div(float a, float b) { return a / b; }

/* By squaring. A negative exponent leaves a fraction, so 0, except for the bases 1 and -1. */
template <typename T>
TP_DEVICE T tp_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent % 2 ? -1 : 1;
  T power = 1;
  for (; exponent; exponent /= 2) {
    if (exponent % 2) power = tp_mul(power, base);
    base = tp_mul(base, base);
  }
  return power;
}
TP_DEVICE float tp_pow(float a, float b) { return powf(a, b); }

/* NaN wins. */
template <typename T>
TP_DEVICE T tp_maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
TP_DEVICE T tp_minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
TP_DEVICE bool tp_eq(T a, T b) {
  return a == b;
}
template <typename T>
TP_DEVICE bool tp_ne(T a, T b) {
  return a != b;
}
template <typename T>
TP_DEVICE bool tp_lt(T a, T b) {
  return a < b;
}
template <typename T>
TP_DEVICE bool tp_le(T a, T b) {
  return a <= b;
}
template <typename T>
TP_DEVICE bool tp_gt(T a, T b) {
  return a > b;
}
template <typename T>
TP_DEVICE bool tp_ge(T a, T b) {
  return a >= b;
}
template <typename T>
TP_DEVICE bool tp_logical_and(T a, T b) {
  return a != 0 && b != 0;
}
template <typename T>
TP_DEVICE bool tp_logical_or(T a, T b) {
  return a != 0 || b != 0;
}

#endif
