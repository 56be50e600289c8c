/* What the files of graph/ share. graph.c: the object and its end; capture.c: how a capture begins and ends; failure.c:
 * what broke it; conditional.c; piece.c: pieces of bodies; edges.c; replay.c; stage.c: replays that begin with copies;
 * dot.c. Calls inside the folder go from capture.c to conditional.c and on to piece.c, from these to failure.c, from
 * capture.c, piece.c and stage.c to edges.c, from stage.c to replay.c, and from all to graph.c. */
#ifndef TP_GRAPH_H
#define TP_GRAPH_H

#include <pthread.h>

#include "../alloc/capture.h"
#include "../random/draws.h"

typedef enum tp__graph_state {
  TP_GRAPH_EMPTY,     /* nothing was captured yet, or it was reset */
  TP_GRAPH_CAPTURING,
  TP_GRAPH_CAPTURED,
} tp__graph_state_t;

/* A conditional node. */
typedef struct tp__condition {
  tp_stream_t *stream;               /* where it stands */
  cudaGraphConditionalHandle handle; /* what it tests */
  cudaGraphNode_t node;
  cudaGraph_t body;                  /* this and the next are the node's */
  cudaGraph_t other_body;            /* of an if node: what is done when the first is not; NULL before CUDA 12.8 */
} tp__condition_t;

/* A body that is being captured, in pieces: a chain of graphs of their own, and between them the nodes of bodies that
 * stand in this one. */
typedef struct tp__body {
  struct tp__body *around; /* NULL: it stands in the graph itself */
  tp_stream_t *inside;     /* where the body is captured */
  tp__capture_t *capture;  /* of the piece that is underway; NULL while a body in this one is open */
  tp__watch_t watch;       /* this and the next are of all pieces */
  tp__draws_t draws;
  tp__condition_t condition;
  cudaGraph_t graph;       /* one of the two of the condition */
  cudaGraphNode_t last;    /* of it; NULL: nothing is there yet */
  bool is_set;             /* it sets the condition by itself */
  tp_tensor_t *predicate;  /* of a while node */
} tp__body_t;

/* An executable graph. CUDA runs its launches one after the other, whatever their streams. */
typedef struct tp__exec {
  cudaGraphExec_t cuda;
  cudaGraphNode_t setter; /* the draws' one, or its counterpart in a clone */
} tp__exec_t;

typedef struct tp__stage tp__stage_t;

struct tp_graph {
  pthread_mutex_t lock; /* of all that follows; CUDA's executable graph is not safe for two threads either */
  tp__graph_state_t state;
  int32_t device;         /* this and what follows are of the capture, and 0 or NULL before it */
  tp_stream_t *stream;    /* where it began */
  tp_mempool_t *mempool;  /* the graph is one of its users */
  tp__capture_t *capture; /* while it is underway */
  uint64_t id;            /* CUDA's number of it */
  uint32_t unknown;       /* tp__stream_unknown when it began */
  tp__watch_t watch;      /* of it */
  tp__hold_t *hold;       /* pinned memory of its copies */
  tp__draws_t draws;      /* of it, and of replays */
  tp__body_t *body;       /* the innermost open one */
  tp__condition_t last_if; /* of the first body that ended last, where it was an if node's */
  char broken[1024];      /* what has failed first in a body; "" while nothing has */
  cudaGraph_t graph;
  tp__exec_t exec;
  tp__stage_t *stage;     /* for tp_graph_stage_and_launch; NULL before its first use */
  tp_stream_t *last_stream;    /* of the last launch, or of what was queued for the next one, or one that waits for
                                  another library's; NULL before */
  const tp__exec_t *last_exec; /* that was launched; NULL: what was queued last is something else */
  _Atomic(tp__order_point_t *) last_point; /* the last launch */
};

/* ---- graph.c ---- */
/* Back to TP_GRAPH_EMPTY: gives up what the capture has made, which has ended. Under the lock; never fails. */
void tp__graph_discard(tp_graph_t *graph);

/* ---- edges.c ---- */
/* Makes edges between kernels of ours programmatic, in a graph that nothing is captured to. Nobody may ask CUDA for its
 * edges without their data from then on. After an error edges may be missing: the graph is not to be used. The device
 * is entered. */
tp_status_t tp__edges_hasten(cudaGraph_t graph, int32_t device, const char *operation);

/* ---- replay.c ---- */
/* Whether it can be launched on the stream, where NULL becomes the current one; enters the device. Status: STATE,
 * DEVICE. */
tp_status_t tp__graph_ready(const tp_graph_t *graph, tp_stream_t **stream, const char *operation);
/* What is queued on the stream next comes behind all launches of the graph so far: work, or a launch of `exec` if it is
 * not NULL. Status: STATE, CUDA. */
tp_status_t tp__graph_follow(tp_graph_t *graph, const tp__exec_t *exec, tp_stream_t *stream, const char *operation);
/* Launches one of its executable graphs, which touches all that, behind the former launches of both. */
tp_status_t tp__graph_launch(tp_graph_t *graph, tp__exec_t *exec, int32_t count, const tp__touch_t *touches,
                             tp_stream_t *stream, const char *operation);

/* ---- stage.c ---- */
/* Release function; NULL is allowed. */
void tp__stage_drop(tp__stage_t *stage);

/* ---- failure.c ---- */
/* From now on, failures that break the capture are noted. Before CUDA begins it. */
void tp__failure_begin(tp__capture_t *capture);
/* What is known of a capture before cudaStreamEndCapture, and only then. */
typedef struct tp__ending {
  const tp__capture_t *capture;
  const tp_stream_t *stream; /* where it began */
  tp__failure_t failure;
  char loose[512];           /* streams that are not joined, as text */
} tp__ending_t;
void tp__failure_look(tp__capture_t *capture, tp__ending_t *out);
/* Fills the slot with that, for an end that CUDA has refused. */
tp_status_t tp__failure_set(const tp__ending_t *ending, cudaError_t error, const char *operation);

/* ---- piece.c: under the lock; the device is entered ---- */
/* The body goes on: what its stream gets from now on is a piece. Status: HOST_MEMORY, CUDA. */
tp_status_t tp__piece_begin(tp_graph_t *graph, tp__body_t *body, const char *operation);
/* Ends the piece, and puts it behind what the body has. Status: STATE, HOST_MEMORY, CUDA. */
tp_status_t tp__piece_keep(tp_graph_t *graph, tp__body_t *body, const char *operation);
/* Ends the piece that is underway, if one is, for nothing; never fails. */
void tp__piece_drop(tp_graph_t *graph, tp__body_t *body);

/* ---- conditional.c ---- */
/* Whether all bodies have ended well. Under the lock. */
tp_status_t tp__bodies_check(const tp_graph_t *graph, const char *operation);
/* Ends those that are open, for nothing. Under the lock; never fails. */
void tp__bodies_abandon(tp_graph_t *graph);

#endif
