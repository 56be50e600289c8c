/* Arguments of kernels/scan.cu (docs/design/reductions.md). */
#ifndef TP_ARGS_SCAN_H
#define TP_ARGS_SCAN_H

#include "args.h"

/* Elements that a block treats at once, in units that one thread adds up. */
#define TP_SCAN_TILE 2048
#define TP_SCAN_UNIT 8
/* Columns of one tile. */
#define TP_SCAN_COLUMNS 256

enum { TP_SCAN_SUM, TP_SCAN_PRODUCT };

/* The elements are (outer, size, inner), contiguous; the totals run along the middle. What they are held in, the
 * wide type: long long, double or complex128. */
typedef struct tp_scan_args {
  const void *input;
  void *out;    /* NULL: only the totals of the splits are wanted */
  void *totals; /* wide, (outer, inner, splits), NULL where there is one split: written without out, else the running
                   totals of the splits, to begin with */
  long long outer, size, inner;
  long long split; /* elements of one split along the middle */
  long long splits;
  int op; /* TP_SCAN_* */
  int in_dtype, out_dtype;
} tp_scan_args_t;

#endif
