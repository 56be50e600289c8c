/* Elements as unsigned numbers of their own size, in the order of sorting: NaN above all numbers and equal to itself,
 * -0 equal to 0 (docs/design/reductions.md). */
#ifndef TP_KEY_H
#define TP_KEY_H

#include "element.h"

template <int SIZE>
struct tp_key_of_size;
template <>
struct tp_key_of_size<1> {
  typedef unsigned char type;
};
template <>
struct tp_key_of_size<2> {
  typedef unsigned short type;
};
template <>
struct tp_key_of_size<4> {
  typedef unsigned type;
};
template <>
struct tp_key_of_size<8> {
  typedef unsigned long long type;
};
template <typename T>
using tp_key_t = typename tp_key_of_size<sizeof(T)>::type;

template <typename T>
constexpr bool tp_has_fractions = tp_is_floating<decltype(tp_wide(T()))>;

/* The bits of infinity: a magnitude above them is NaN. */
template <typename T>
constexpr unsigned long long tp_infinity_bits = 0x7ff0000000000000ull;
template <>
constexpr unsigned long long tp_infinity_bits<float> = 0x7f800000u;
template <>
constexpr unsigned long long tp_infinity_bits<__half> = 0x7c00u;
template <>
constexpr unsigned long long tp_infinity_bits<__nv_bfloat16> = 0x7f80u;

template <typename T>
constexpr tp_key_t<T> tp_key_of_nan = static_cast<tp_key_t<T>>(~0ull);

template <typename T>
TP_DEVICE tp_key_t<T> tp_key(T x) {
  typedef tp_key_t<T> key;
  constexpr key sign = static_cast<key>(1ull << (8 * sizeof(T) - 1));
  key bits;
  memcpy(&bits, &x, sizeof x);
  if constexpr (tp_has_fractions<T>) {
    key magnitude = static_cast<key>(bits & ~sign);
    if (magnitude > static_cast<key>(tp_infinity_bits<T>)) return tp_key_of_nan<T>;
    if (magnitude == 0) return sign;
    return static_cast<key>(bits & sign ? ~bits : bits | sign);
  } else {
    constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
    return static_cast<key>(is_signed ? bits ^ sign : bits);
  }
}

#endif
