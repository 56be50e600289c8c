/* A place in a stream's work for which the library waits: an event that is recorded behind what the stream holds. Never
 * while the stream is being captured, for an event of a capture can never be asked; and should a capture have it all
 * the same, it is recorded anew. */
#ifndef TP_MARK_H
#define TP_MARK_H

#include "internal.h"

typedef struct tp__mark {
  tp_stream_t *stream;
  cudaEvent_t event;
  _Atomic bool recorded;
} tp__mark_t;

/* ---- mark.c: where nothing else is said, the stream's device is entered and capture rules are relaxed ---- */

/* Status: HOST_MEMORY, CUDA. Enters the device. */
tp_status_t tp__mark_take(tp_stream_t *stream, tp__mark_t *out);
/* Release function. */
void tp__mark_give(tp__mark_t *mark);
/* Records it, unless the stream is being captured, then or by the time it is done: `recorded` tells. CUDA's error is
 * returned, and cleared. */
cudaError_t tp__mark_set(tp__mark_t *mark);
/* Whether the stream has come past it; with wait, waits for that. cudaErrorNotReady: not yet, or not recorded, which is
 * tried again here. Another error: the context is lost, which whoever waits next reports. */
cudaError_t tp__mark_ask(tp__mark_t *mark, bool wait);

static inline bool tp__mark_is_recorded(const tp__mark_t *mark) {
  return atomic_load_explicit(&mark->recorded, memory_order_relaxed);
}

#endif
