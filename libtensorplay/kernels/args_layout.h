/* Where the elements of up to four operands lie: what kernels for strided operands get. Made by
 * src/layout.c. */
#ifndef TP_ARGS_LAYOUT_H
#define TP_ARGS_LAYOUT_H

#include "args.h"

#define TP_LAYOUT_OPERANDS 4

/* Elements of a tile in kernels for strided operands. */
#define TP_STRIDED_TILE 1024

/* Units of a tile in the loops of units.h. */
#define TP_UNITS_TILE 512

/* Division of a number below 2^31 by `size` as a product: q = (n + ((n * multiplier) >> 32)) >> shift. */
typedef struct tp_divisor {
  unsigned size;
  unsigned multiplier;
  unsigned shift;
} tp_divisor_t;

/* Dimension 0 is the innermost. Strides count elements; operand 0 is the one that is written. */
typedef struct tp_layout {
  long long numel;
  long long sizes[TP_ARGS_NDIM];
  long long strides[TP_LAYOUT_OPERANDS][TP_ARGS_NDIM];
  tp_divisor_t divisors[TP_ARGS_NDIM]; /* set when narrow */
  int ndim;
  int narrow; /* every index fits in 31 bits */
} tp_layout_t;

/* A narrow layout of few dimensions, small enough to be an argument of every launch. */
#define TP_PLACES_NDIM 4
#define TP_PLACES_OPERANDS 3
typedef struct tp_places {
  int ndim; /* 0: every operand is one run */
  tp_divisor_t divisors[TP_PLACES_NDIM];
  int strides[TP_PLACES_OPERANDS][TP_PLACES_NDIM];
} tp_places_t;

#endif
