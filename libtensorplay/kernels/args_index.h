/* Arguments of kernels/index.cu. */
#ifndef TP_ARGS_INDEX_H
#define TP_ARGS_INDEX_H

#include "args.h"

/* Units of one tile. */
#define TP_GATHER_TILE 1024

/* out (outer, count, width) := input (outer, limit, width) at the `count` rows that index names; all
 * contiguous, sizes in units: 1, 2, 4, 8 or 16 bytes, as the kernel's name says. */
typedef struct tp_gather_args {
  const void *input;
  const void *index;
  void *out;
  void *fault; /* struct tp_fault of the device */
  long long outer, count, width, limit;
  int index_is_int64;
  int operation; /* TP_FAULT_OP_* */
} tp_gather_args_t;

#endif
