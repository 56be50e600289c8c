/* The dtype codes as an enumeration, for C and for kernels. */
#ifndef TP_DTYPE_CODES_H
#define TP_DTYPE_CODES_H

enum {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) TP_DTYPE_##name = code,
#include "dtypes.def"
#undef TP_DTYPE
  TP_DTYPE_COUNT = 0
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) +1
#include "dtypes.def"
#undef TP_DTYPE
};

#endif
