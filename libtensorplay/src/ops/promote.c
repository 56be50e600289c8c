/* Promotion of dtypes: torch's rule, from promotion.def. */
#include "../internal.h"

static const int8_t table[TP_DTYPE_COUNT][TP_DTYPE_COUNT] = {
#define TP_PROMOTION(left, with_bool, with_int32, with_int64, with_float16, with_bfloat16, with_float32) \
  [TP_DTYPE_##left] = {                                                                                 \
      [TP_DTYPE_bool] = TP_DTYPE_##with_bool,         [TP_DTYPE_int32] = TP_DTYPE_##with_int32,         \
      [TP_DTYPE_int64] = TP_DTYPE_##with_int64,       [TP_DTYPE_float16] = TP_DTYPE_##with_float16,     \
      [TP_DTYPE_bfloat16] = TP_DTYPE_##with_bfloat16, [TP_DTYPE_float32] = TP_DTYPE_##with_float32},
#include "../promotion.def"
#undef TP_PROMOTION
};

int32_t tp__promote(int32_t a_dtype, bool a_weak, int32_t b_dtype, bool b_weak) {
  if (a_weak && !b_weak && tp__dtype_category(a_dtype) <= tp__dtype_category(b_dtype)) return b_dtype;
  if (b_weak && !a_weak && tp__dtype_category(b_dtype) <= tp__dtype_category(a_dtype)) return a_dtype;
  return table[a_dtype][b_dtype];
}
