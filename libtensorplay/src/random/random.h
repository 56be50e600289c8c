/* What the files of random/ share; docs/design/random.md explains the whole.
 *
 *   generator      where a device's generator stands
 *   draws          numbers that captures draw, and replays
 *   distributions  fills */
#ifndef TP_RANDOM_H
#define TP_RANDOM_H

#include <pthread.h>

#include "../../kernels/args_random.h"
#include "draws.h"

/* The numbers of one fill. */
typedef struct tp__draw {
  tp_stream_t *stream;
  uint64_t words;                   /* how many, a multiple of 4 */
  const tp_generator_state_t *base; /* where they begin, as tp_random_args_t has it */
  tp_generator_state_t state;
  tp__block_t *copy;                /* of the base, or NULL */
  tp__draws_t *draws;               /* of the capture, or the body, that the stream takes part in, or NULL */
} tp__draw_t;

/* ---- generator.c ---- */

typedef struct tp__generator {
  pthread_mutex_t lock;        /* of all that follows; held while work that moves the place is queued */
  tp_generator_state_t state;  /* while it stands on the host */
  bool is_on_device;           /* it stands at its place */
  tp_generator_state_t *place; /* of the device; NULL until it is needed, then kept */
  cudaEvent_t used;            /* recorded behind the last work on the place */
  bool is_used;                /* there was some */
} tp__generator_t;

tp__generator_t *tp__generator_lock(int32_t device);
void tp__generator_unlock(tp__generator_t *generator);
/* Takes a draw's numbers from the generator, outside of captures. */
tp_status_t tp__generator_take(tp__draw_t *draw, const char *operation);
/* Makes its place. */
tp_status_t tp__generator_prepare(int32_t device, const char *operation);
/* Under the lock: the stream comes behind all work on the place so far; and the stream's work so far is such. */
tp_status_t tp__generator_wait(const tp__generator_t *generator, tp_stream_t *stream, const char *operation);
tp_status_t tp__generator_note(tp__generator_t *generator, tp_stream_t *stream, const char *operation);
/* Queues the kernel that moves a state; may be called under locks. */
tp_status_t tp__generator_move(const tp_generator_args_t *args, tp_stream_t *stream, const char *operation);
/* The same as a node's parameters. `list` is what they point to. */
tp_status_t tp__generator_params(const tp_generator_args_t *args, int32_t device, void *list[1],
                                 struct cudaKernelNodeParams *out, const char *operation);

/* ---- draws.c ---- */
/* In front of and behind a fill's launch, whose status it hands on. */
tp_status_t tp__draw_begin(tp__draw_t *draw, const char *operation);
tp_status_t tp__draw_end(tp__draw_t *draw, tp_status_t status, const char *operation);

#endif
