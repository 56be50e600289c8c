/* Arguments of kernels/stage.cu. */
#ifndef TP_ARGS_STAGE_H
#define TP_ARGS_STAGE_H

/* Bytes that one block copies at a time. */
#define TP_STAGE_TILE 16384
/* As many as one launch takes. */
#define TP_STAGE_PAIRS 64

/* out := source, the bytes of whole tiles and of a last one. */
typedef struct tp_stage_pair {
  void *out;
  const void *source;
  int end;  /* the number of tiles of this pair and those before it */
  int rest; /* bytes in its last tile, 1 to TP_STAGE_TILE */
} tp_stage_pair_t;

/* Pairs, none of which writes what another one reads or writes. Their memory is told by the one who launches: it is
 * more than a table of accesses lists. Each size has a kernel, since CUDA takes longer over longer arguments: a larger
 * table may be given to the kernel of a smaller one, if that has room for its pairs. */
#define TP_STAGE_TABLE(name, room) \
  typedef struct name {            \
    int count;                     \
    tp_stage_pair_t pairs[room];   \
  } name##_t
TP_STAGE_TABLE(tp_stage_table_8, 8);
TP_STAGE_TABLE(tp_stage_table_32, 32);
TP_STAGE_TABLE(tp_stage_table, TP_STAGE_PAIRS);

#endif
