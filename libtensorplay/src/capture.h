/* Captures underway, and what the library knows of each. How one begins and ends stands in alloc/capture.c for memory,
 * in graph/capture.c for CUDA. */
#ifndef TP_CAPTURE_H
#define TP_CAPTURE_H

#include "internal.h"

/* How many of ours are underway in the process. While there is one, no cached memory is given back, no stream is asked
 * how far it is, and no device is waited for as a whole. Seen by all who take a heap's lock after tp__capture_begin. */
extern _Atomic int32_t tp__captures;

static inline bool tp__captures_underway(void) {
  return atomic_load_explicit(&tp__captures, memory_order_acquire) > 0;
}

/* The first failure that broke a capture, for graph/failure.c; but for `owner` all zero until then. */
typedef struct tp__failure {
  const void *owner;  /* the thread that captures */
  const void *thread; /* where it happened, and its tp__error_number */
  uint64_t number;
  bool is_foreign;    /* a call of ours found the capture broken, by one that is not ours */
  char text[1024];
  char place[256];    /* its line of the program; "" where nobody told */
} tp__failure_t;

typedef struct tp__draws tp__draws_t;

typedef struct tp__capture {
  tp_mempool_t *mempool;         /* where it allocates */
  tp_stream_t *stream;           /* where it began */
  _Atomic uint64_t id;           /* 0 until somebody asked */
  struct tp__capture *outermost; /* of a body: what it is a part of */
  tp__draws_t *draws;            /* this and what follows are under the lock */
  tp__failure_t failure;
  struct tp__capture *next;
} tp__capture_t;

/* Into and out of the list of those underway; whether it was the last one. */
void tp__capture_add(tp__capture_t *capture);
bool tp__capture_remove(tp__capture_t *capture);
/* CUDA's number of the capture, which no other one of the process has; 0 before cudaStreamBeginCapture. */
uint64_t tp__capture_id(tp__capture_t *capture);
/* Whether it began with tp__capture_begin, and is underway. */
bool tp__capture_is_ours(uint64_t id);
/* What the capture, or the body of a conditional node, draws; NULL at first, and again before it is gone. */
void tp__capture_set_draws(tp__capture_t *capture, tp__draws_t *draws);
/* That of the capture, or body, that the stream takes part in; NULL where it is none of ours. */
tp__draws_t *tp__capture_draws(const tp_stream_t *stream);
/* Calls `visit` with each capture that is underway, under a lock in which only that of private pools may be taken. */
void tp__capture_each(void (*visit)(tp__capture_t *capture, void *context), void *context);

#endif
