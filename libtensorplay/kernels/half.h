/* Conversions of half types. On the host CUDA's own have branches and take nanoseconds; these have
 * none, so that loops over them become vectors, and give the same bits for every argument. */
#ifndef TP_HALF_H
#define TP_HALF_H

#include "kernel.h"

#ifdef __CUDACC__

TP_DEVICE float tp_from_half(__half x) { return __half2float(x); }
TP_DEVICE float tp_from_bfloat16(__nv_bfloat16 x) { return __bfloat162float(x); }
TP_DEVICE __half tp_to_half(float x) { return __float2half(x); }
TP_DEVICE __nv_bfloat16 tp_to_bfloat16(float x) { return __float2bfloat16(x); }

#else

template <typename To, typename From>
TP_DEVICE To tp_bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits as another type");
  To to;
  memcpy(static_cast<void *>(&to), &from, sizeof to);
  return to;
}

TP_DEVICE float tp_from_half(__half x) {
  unsigned bits = tp_bits_as<unsigned short>(x), magnitude = bits & 0x7fffu;
  /* A product moves the exponent from bias 15 to 127; it is exact for subnormal numbers too. */
  unsigned number = tp_bits_as<unsigned>(tp_bits_as<float>(magnitude << 13) * 0x1p112f);
  unsigned infinite = magnitude == 0x7c00u ? 0x7f800000u : number;
  return tp_bits_as<float>(magnitude > 0x7c00u ? 0x7fffffffu : infinite | (bits & 0x8000u) << 16);
}

TP_DEVICE float tp_from_bfloat16(__nv_bfloat16 x) {
  return tp_bits_as<float>(static_cast<unsigned>(tp_bits_as<unsigned short>(x)) << 16);
}

TP_DEVICE __half tp_to_half(float x) {
  unsigned bits = tp_bits_as<unsigned>(x), magnitude = bits & 0x7fffffffu;
  /* Rounding to even: the bit that stays last decides ties; a carry runs into the exponent. */
  unsigned normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  /* A sum with 1/2 leaves a subnormal half, rounded, in the last bits. */
  unsigned subnormal = tp_bits_as<unsigned>(tp_bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  unsigned large = magnitude > 0x7f800000u ? 0x7fffu : 0x7c00u;
  unsigned result = magnitude < (113u << 23) ? subnormal : magnitude < 0x47800000u ? normal : large;
  /* NaN has no sign, as CUDA has it. */
  unsigned sign = magnitude > 0x7f800000u ? 0 : bits >> 16 & 0x8000u;
  return tp_bits_as<__half>(static_cast<unsigned short>(result | sign));
}

TP_DEVICE __nv_bfloat16 tp_to_bfloat16(float x) {
  unsigned bits = tp_bits_as<unsigned>(x);
  unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  unsigned result = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded;
  return tp_bits_as<__nv_bfloat16>(static_cast<unsigned short>(result));
}

#endif
#endif
