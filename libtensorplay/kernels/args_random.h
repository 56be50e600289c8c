/* Arguments of kernels/random.cu (docs/design/random.md). */
#ifndef TP_ARGS_RANDOM_H
#define TP_ARGS_RANDOM_H

#include "args_layout.h"

/* Groups of one tile: four elements of up to 4 bytes, or two of 8, that share one Philox counter. */
#define TP_RANDOM_TILE 1024

typedef struct tp_random_args {
  void *out;
  unsigned long long seed;
  unsigned long long counter; /* of element 0 */
  double low, span, below;    /* uniform; of a half type or float32 they are float32 numbers */
  double mean, std;           /* normal */
  int contiguous;             /* else elements lie where operand 1 of the layout, in C order, says */
  tp_layout_t layout;
} tp_random_args_t;

#endif
