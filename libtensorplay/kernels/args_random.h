/* Arguments of kernels/random.cu (docs/design/random.md). */
#ifndef TP_ARGS_RANDOM_H
#define TP_ARGS_RANDOM_H

#include "args_layout.h"

/* Groups of one tile: four elements of up to 4 bytes, or two of 8, that share one Philox counter. */
#define TP_RANDOM_TILE 1024

/* Where a generator stands. */
typedef struct tp_generator_state {
  unsigned long long seed;
  unsigned long long offset; /* words drawn since it was seeded */
} tp_generator_state_t;

/* Moves a state that the device keeps: reads it, writes it as it was, and as it is so many words later. */
typedef struct tp_generator_args {
  tp_generator_state_t *source; /* NULL: state is what is read */
  tp_generator_state_t *target; /* NULL, or gets it as it was */
  tp_generator_state_t *next;   /* NULL, or gets it as it is later */
  tp_generator_state_t state;
  unsigned long long words;
} tp_generator_args_t;

typedef struct tp_random_args {
  void *out;
  const tp_generator_state_t *base; /* what the state of element 0 counts from; NULL: from nothing */
  tp_generator_state_t state;       /* of element 0; with a base its seed does not count */
  double low, span, below;    /* uniform; of a half type or float32 they are float32 numbers */
  double mean, std;           /* normal */
  int contiguous;             /* else elements lie where operand 1 of the layout, in C order, says */
  tp_layout_t layout;
} tp_random_args_t;

#endif
