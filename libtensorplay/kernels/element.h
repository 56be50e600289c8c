/* Elements of every dtype: casts between them, loads and stores by dtype code. */
#ifndef TP_ELEMENT_H
#define TP_ELEMENT_H

#include "half.h"

template <typename A, typename B>
struct tp_same {
  static constexpr bool value = false;
};
template <typename A>
struct tp_same<A, A> {
  static constexpr bool value = true;
};

/* A complex number, its parts in the order of memory. */
template <typename Part>
struct alignas(2 * sizeof(Part)) tp_complex {
  Part re, im;
};
using tp_complex64 = tp_complex<float>;
using tp_complex128 = tp_complex<double>;

/* ---- widening: what an element is computed in, without loss ---- */

TP_DEVICE long long tp_wide(bool x) { return x; }
TP_DEVICE int tp_wide(unsigned char x) { return x; }
TP_DEVICE int tp_wide(signed char x) { return x; }
TP_DEVICE int tp_wide(short x) { return x; }
TP_DEVICE int tp_wide(int x) { return x; }
TP_DEVICE long long tp_wide(long long x) { return x; }
TP_DEVICE float tp_wide(float x) { return x; }
TP_DEVICE double tp_wide(double x) { return x; }
TP_DEVICE float tp_wide(__half x) { return tp_from_half(x); }
TP_DEVICE float tp_wide(__nv_bfloat16 x) { return tp_from_bfloat16(x); }
template <typename Part>
TP_DEVICE tp_complex<Part> tp_wide(tp_complex<Part> x) {
  return x;
}

/* ---- kinds of what is computed in ---- */

template <typename T>
constexpr bool tp_is_floating = tp_same<T, float>::value || tp_same<T, double>::value;
template <typename T>
constexpr bool tp_is_complex = tp_same<T, tp_complex64>::value || tp_same<T, tp_complex128>::value;
template <typename T>
constexpr bool tp_is_narrow =
    tp_same<T, unsigned char>::value || tp_same<T, signed char>::value || tp_same<T, short>::value;

/* ---- floating to integer: truncates, keeps to the range, NaN as the GPU's instructions have it ---- */

template <typename To, typename From>
TP_DEVICE To tp_truncate(From x, To lowest, To highest, To nan) {
#ifdef __CUDACC__
  /* The instruction makes the lowest number of a double that is NaN, and 0 of a float. */
  if (tp_same<From, double>::value && tp_same<To, int>::value && x != x) return nan;
  return static_cast<To>(x);
#else
  /* The first value beyond highest is a power of two, which both floating types hold. */
  if (x != x) return nan;
  if (x >= -static_cast<From>(lowest)) return highest;
  return x < static_cast<From>(lowest) ? lowest : static_cast<To>(x);
#endif
}

/* ---- casts between element types: of complex numbers the real part ---- */

template <typename To, typename From>
TP_DEVICE To tp_cast(From from) {
  auto x = tp_wide(from);
  using Wide = decltype(x);
  constexpr bool floating = tp_is_floating<Wide>;
  if constexpr (tp_same<To, From>::value) {
    return from;
  } else if constexpr (tp_is_complex<To>) {
    using Part = decltype(To().re);
    if constexpr (tp_is_complex<Wide>)
      return {static_cast<Part>(x.re), static_cast<Part>(x.im)};
    else
      return {static_cast<Part>(x), 0};
  } else if constexpr (tp_is_complex<Wide>) {
    if constexpr (tp_same<To, bool>::value)
      return x.re != 0 || x.im != 0;
    else
      return tp_cast<To>(x.re);
  } else if constexpr (tp_same<To, bool>::value) {
    return x != 0;
  } else if constexpr (tp_same<To, int>::value && floating) {
    constexpr int lowest = -2147483647 - 1;
    return tp_truncate<int>(x, lowest, 2147483647, 0);
  } else if constexpr (tp_same<To, long long>::value && floating) {
    constexpr long long lowest = -9223372036854775807LL - 1;
    return tp_truncate<long long>(x, lowest, 9223372036854775807LL, lowest);
  } else if constexpr (floating && tp_is_narrow<To>) {
    return static_cast<To>(tp_cast<long long>(x)); /* wraps */
  } else if constexpr (tp_same<To, __half>::value) {
    return tp_to_half(static_cast<float>(x));
  } else if constexpr (tp_same<To, __nv_bfloat16>::value) {
    return tp_to_bfloat16(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

/* ---- by dtype code; the branch is the same for all threads ---- */

/* base: an address that tp_at has translated. */
template <typename From>
TP_DEVICE void tp_store(void *base, int dtype, long long index, From value) {
  switch (dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category)    \
  case code:                                                       \
    static_cast<ctype *>(base)[index] = tp_cast<ctype>(value);     \
    break;
#include "dtypes.def"
#undef TP_DTYPE
  }
}

/* The value as an element of the dtype would hold it, one whose elements are computed in T. */
template <typename T>
TP_DEVICE T tp_round(T value, int dtype) {
  if constexpr (tp_same<T, float>::value) {
    if (dtype == TP_DTYPE_float16) return tp_wide(tp_cast<__half>(value));
    if (dtype == TP_DTYPE_bfloat16) return tp_wide(tp_cast<__nv_bfloat16>(value));
  } else if constexpr (tp_same<T, long long>::value) {
    if (dtype == TP_DTYPE_bool) return value != 0;
    if (dtype == TP_DTYPE_uint8) return static_cast<unsigned char>(value);
    if (dtype == TP_DTYPE_int8) return static_cast<signed char>(value);
    if (dtype == TP_DTYPE_int16) return static_cast<short>(value);
    if (dtype == TP_DTYPE_int32) return static_cast<int>(value);
  }
  return value;
}

#endif
