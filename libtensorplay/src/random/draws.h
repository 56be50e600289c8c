/* Random numbers of graphs, for those who capture and replay (docs/design/random.md); in draws.c. */
#ifndef TP_DRAWS_H
#define TP_DRAWS_H

#include "../capture.h"

/* What one stream has drawn since a node that wrote the state. */
typedef struct tp__reader {
  tp_stream_t *stream;
  cudaGraphNode_t node; /* the last one that has drawn */
  struct tp__reader *next;
} tp__reader_t;

/* What a capture draws, or a conditional node's body in one. tp__capture_set_draws says so to those who draw. */
struct tp__draws {
  tp_stream_t *stream;       /* where the capture began; of a body: where its node is */
  tp__draws_t *around;       /* of a body: of the capture, or the body, that its node stands in */
  cudaGraphNode_t node;      /* of a body */
  uint64_t first, words;     /* drawn when it began, and by now, without what bodies in it draw */
  bool moves;                /* bodies in it have drawn; of a body: or it has */
  bool is_closed;            /* a body in it is open */
  bool is_late;              /* an else, since whose if other streams have drawn */
  cudaGraphNode_t body_node; /* of the last body in it, and the words drawn when that node was new */
  uint64_t body_first;
  /* What follows is not of bodies. */
  tp__block_t *state;        /* what kernels read; NULL before the first draw */
  cudaGraphNode_t setter;    /* sets it for a replay */
  cudaGraph_t graph;
  cudaGraphNode_t mover;     /* the last node that writes it: the setter, or one whose bodies draw */
  tp_stream_t *mover_stream;
  tp__reader_t *readers;     /* draws since then */
  bool is_broken;            /* a draw has failed in the middle */
};

/* A capture that begins on the stream, or a body whose node was added on it. */
void tp__draws_begin(tp__draws_t *draws, tp_stream_t *stream, tp__draws_t *around, cudaGraphNode_t node);
/* Captures what a body does last, on the stream inside of it. */
tp_status_t tp__draws_end_body(tp__draws_t *draws, tp_stream_t *inside, const char *operation);
/* Release functions: nothing more is drawn, of a body also after tp__draws_end_body; and nothing is replayed. */
void tp__draws_end(tp__draws_t *draws);
void tp__draws_forget(tp__draws_t *draws);
/* Before a graph is compiled. Status: STATE after a failure, OUT_OF_MEMORY. */
tp_status_t tp__draws_prepare(const tp__draws_t *draws, const char *operation);
/* Launches an executable graph, in which `setter` is draws->setter or its counterpart in a clone, so that it draws on
 * from where the generator stands. The device is entered. It may be queued, and what comes behind it fail. */
tp_status_t tp__draws_launch(const tp__draws_t *draws, cudaGraphExec_t exec, cudaGraphNode_t setter,
                             tp_stream_t *stream, bool *out_queued, const char *operation);

#endif
