/* Captures underway: where they allocate, and what the rest of the library knows of each. */
#ifndef TP_CAPTURE_H
#define TP_CAPTURE_H

#include "../internal.h"

/* ---- capture.c ---- */

/* How many of ours are underway in the process. While there is one, no cached memory is given back, no stream is asked
 * how far it is, and no device is waited for as a whole. Seen by all who take a heap's lock after tp__capture_begin. */
extern _Atomic int32_t tp__captures;

static inline bool tp__captures_underway(void) {
  return atomic_load_explicit(&tp__captures, memory_order_acquire) > 0;
}

typedef struct tp__capture tp__capture_t;
/* Until its end, what is allocated on streams of the capture that begins on `stream` comes from the pool. Called before
 * cudaStreamBeginCapture, so that nothing escapes, and ended after cudaStreamEndCapture or when there was no beginning;
 * the capture is a user of the pool until then. Everything runs on: captures on other streams, other threads. NULL
 * with HOST_MEMORY. */
tp__capture_t *tp__capture_begin(tp_mempool_t *mempool, tp_stream_t *stream);
/* The same for a body of a conditional node, which is captured by itself: it allocates from the pool of the outermost
 * capture, and as a part of it. */
tp__capture_t *tp__capture_begin_body(tp__capture_t *outermost, tp_stream_t *stream);
/* Before such a capture ends: what streams that were forked in it have allocated, and given back or not, is from now on
 * used again in the order of the stream where it began. Theirs is at an end: next time they may be forked from work
 * that runs beside it. Status: HOST_MEMORY, CUDA. */
tp_status_t tp__capture_gather(tp__capture_t *capture, const char *operation);
/* Release function. */
void tp__capture_end(tp__capture_t *capture);
/* CUDA's number of the capture, which no other one of the process has; 0 before cudaStreamBeginCapture. */
uint64_t tp__capture_id(tp__capture_t *capture);
/* Whether it began with tp__capture_begin, and is underway. */
bool tp__capture_is_ours(uint64_t id);
/* What the capture, or the body of a conditional node, draws; NULL at first, and again before it is gone. */
typedef struct tp__draws tp__draws_t;
void tp__capture_set_draws(tp__capture_t *capture, tp__draws_t *draws);
/* That of the capture, or body, that the stream takes part in; NULL where it is none of ours. */
tp__draws_t *tp__capture_draws(const tp_stream_t *stream);
/* From now on a live block is no longer counted as one of its capture's. */
void tp__capture_disown(tp__block_t *block);
/* The first failure that broke a capture, for graph/failure.c; but for `owner` all zero until then. */
typedef struct tp__failure {
  const void *owner;  /* the thread that captures */
  const void *thread; /* where it happened, and its tp__error_number */
  uint64_t number;
  bool is_foreign;    /* a call of ours found the capture broken, by one that is not ours */
  char text[1024];
  char place[256];    /* its line of the program; "" where nobody told */
} tp__failure_t;
tp_stream_t *tp__capture_stream(const tp__capture_t *capture);
tp__failure_t *tp__capture_failure(tp__capture_t *capture);
/* Calls `visit` with each capture that is underway, under a lock in which no other of the library may be taken. */
void tp__capture_each(void (*visit)(tp__capture_t *capture, void *context), void *context);
/* How many blocks that were allocated in a capture still live, and their bytes. */
int64_t tp__capture_live_blocks(const tp_mempool_t *mempool, uint64_t id, size_t *out_nbytes);

#endif
