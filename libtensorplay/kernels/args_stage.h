/* Arguments of kernels/stage.cu. */
#ifndef TP_ARGS_STAGE_H
#define TP_ARGS_STAGE_H

/* Bytes that one block copies at a time. */
#define TP_STAGE_TILE 16384
/* As many as one launch takes; with them the arguments are 2 KiB of the 4 that a kernel may have. */
#define TP_STAGE_PAIRS 64

/* out := source, nbytes > 0. */
typedef struct tp_stage_pair {
  void *out;
  const void *source;
  long long nbytes;
  int end;  /* the number of tiles of this pair and those before it */
  int unit; /* 16, 4 or 1: of bytes that are moved together; divides both addresses */
} tp_stage_pair_t;

/* Pairs, none of which writes what another one reads or writes. Their memory is told by the one who launches: it is
 * more than a table of accesses lists. */
typedef struct tp_stage_table {
  int count;
  tp_stage_pair_t pairs[TP_STAGE_PAIRS];
} tp_stage_table_t;

#endif
