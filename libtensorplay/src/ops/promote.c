/* Promotion of dtypes: torch's rule, from promotion.def. */
#include "../internal.h"

/* Dtypes by their suffix. */
enum {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) OF_##suffix = code,
#include "../../kernels/dtypes.def"
#undef TP_DTYPE
};

static const int8_t table[TP_DTYPE_COUNT][TP_DTYPE_COUNT] = {
#define TP_PROMOTION(left, b8, i32, i64, f16, bf16, f32, u8, i8, i16, f64, c64, c128)                      \
  [OF_##left] = {OF_##b8, OF_##i32, OF_##i64, OF_##f16, OF_##bf16, OF_##f32, OF_##u8, OF_##i8, OF_##i16, \
                 OF_##f64, OF_##c64, OF_##c128},
#include "../promotion.def"
#undef TP_PROMOTION
};

int32_t tp__promote(int32_t a_dtype, bool a_weak, int32_t b_dtype, bool b_weak) {
  if (a_weak && !b_weak && tp__dtype_category(a_dtype) <= tp__dtype_category(b_dtype)) return b_dtype;
  if (b_weak && !a_weak && tp__dtype_category(b_dtype) <= tp__dtype_category(a_dtype)) return a_dtype;
  return table[a_dtype][b_dtype];
}
