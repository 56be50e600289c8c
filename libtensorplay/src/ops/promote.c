/* Promotion of dtypes: torch's rule, from promotion.def, and the default dtype. */
#include <stdatomic.h>

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
  if (a_weak != b_weak) {
    const int32_t strong = a_weak ? b_dtype : a_dtype, weak = a_weak ? a_dtype : b_dtype;
    if (tp__dtype_category(weak) <= tp__dtype_category(strong)) return strong;
    /* Of complex numbers beside fractions only the category counts, not the size. */
    if (tp__dtype_is_floating(strong)) return table[strong][OF_c64];
  }
  return table[a_dtype][b_dtype];
}

static _Atomic int32_t default_dtype = TP_DTYPE_float32;

int32_t tp__dtype_default(void) { return atomic_load_explicit(&default_dtype, memory_order_relaxed); }

tp_status_t tp_dtype_set_default(int32_t dtype) {
  if (dtype < 0 || dtype >= TP_DTYPE_COUNT || !tp__dtype_is_floating(dtype))
    return tp__error_set(TP_DTYPE, "set_default_dtype", "got dtype code %d, expected a floating one", (int)dtype);
  atomic_store_explicit(&default_dtype, dtype, memory_order_relaxed);
  return TP_OK;
}
