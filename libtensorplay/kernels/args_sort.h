/* Arguments of kernels/sort.cu (docs/design/reductions.md). */
#ifndef TP_ARGS_SORT_H
#define TP_ARGS_SORT_H

#include "args_layout.h"

/* The longest rows that are sorted by comparisons, and the places that a block has for them. */
#define TP_SORT_SHORT 1024
#define TP_SORT_SLOTS 2048
/* What a block sorts by digits: bytes of keys. */
#define TP_SORT_TILE_NBYTES 16384
#define TP_SORT_DIGIT_BITS 8
#define TP_SORT_DIGITS 256

/* Rows of elements along one dimension, wherever they lie. Keys have 32 or 64 bits as the kernel's name says, places
 * in temporary memory as many. */
typedef struct tp_sort_args {
  const void *input;
  void *out;        /* places, long long */
  tp_layout_t rows; /* operand 0: out, 1: the input */
  long long size, in_stride, out_stride;
  int dtype, descending;

  int slots;    /* short rows: size rounded up to a power of two */
  int key_bits; /* medium rows: to sort by, from the lowest on */

  /* Long rows: (rows, size). */
  void *keys, *places;           /* places NULL: of the first digit, 0, 1, 2, ... */
  void *next_keys, *next_places; /* NULL: of the last digit, whose order goes to out */
  void *counts;                 /* long long, (rows, digits, tiles): of elements, then their running totals */
  long long tiles;              /* of a row */
  int shift;                    /* of the digit in a key */
} tp_sort_args_t;

#endif
