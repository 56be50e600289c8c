/* Who looks at work before it is queued: the order checker, and captures of ours. A part of internal.h. */
#ifndef TP_WATCH_H
#define TP_WATCH_H

#include <pthread.h>

#include "types.h"

/* ---- order/clock.c: which work comes before which, for the order checker (docs/design/order.md) ---- */
extern _Atomic int32_t tp__order_mode; /* TP_ORDER_* */
static inline bool tp__order_is_on(void) {
  return atomic_load_explicit(&tp__order_mode, memory_order_relaxed) != TP_ORDER_OFF;
}
/* All of these do nothing while the checker is off. They are told of waits that were queued, or have ended: of a stream
 * for all that another holds, of a stream for an event, and of the program. The allocator's own waits are not told. */
void tp__order_wait(tp_stream_t *stream, tp_stream_t *other);
/* The same where a body of a conditional node begins or ends: each is a capture of its own, and in one order with the
 * outermost one, whose number is given. `stream` takes part in its capture by now. */
void tp__order_pass(tp_stream_t *stream, tp_stream_t *from, uint64_t outermost);
typedef struct tp__order_point tp__order_point_t; /* what an event stands for; NULL before it is recorded */
void tp__order_record(_Atomic(tp__order_point_t *) *point, tp_stream_t *stream);
void tp__order_wait_point(tp_stream_t *stream, _Atomic(tp__order_point_t *) *point);
void tp__order_reach_point(_Atomic(tp__order_point_t *) *point);
void tp__order_reach(tp_stream_t *stream);
void tp__order_reach_device(int32_t device);
void tp__order_drop(tp__order_point_t *point);

/* ---- order/access.c ---- */
/* Work that is about to be queued uses these storages; NULL is no memory. Status: ORDER, HOST_MEMORY. The replay of a
 * graph is one such piece of work on its stream. */
typedef struct tp__touch {
  const void *memory; /* any address inside */
  bool writes;
} tp__touch_t;
tp_status_t tp__order_check(tp_stream_t *stream, int32_t count, const tp__touch_t *touches, const char *operation);
/* Memory has an owner from here on, on whose stream it may be reused; NULL where the program waits before that. */
void tp__order_alloc(const void *memory, size_t nbytes, tp_stream_t *owner);
void tp__order_record_stream(const void *memory, tp_stream_t *stream);
void tp__order_free(const void *memory);
/* No work uses it any more. */
void tp__order_forget(const void *memory, size_t nbytes);
/* The capture that began on the stream has ended; of a body nothing is forgotten before the capture around it has. */
void tp__order_end_capture(const tp_stream_t *stream);
/* Where the storage begins that the address lies in; the address itself where none is known. */
const void *tp__order_storage(const void *memory);

/* ---- watch.c: who hears of work before it is queued (docs/design/graphs.md) ---- */
extern _Atomic int32_t tp__watchers; /* the order checker while it is on, and captures */
static inline bool tp__is_watched(void) { return atomic_load_explicit(&tp__watchers, memory_order_relaxed) > 0; }
/* Work that is about to be queued on the stream uses these storages. Everything that queues work says so before: by
 * tp__watch, or where a list would cost by tp__watch_tell if tp__is_watched. Status: ORDER, HOST_MEMORY; then the work
 * may not be queued. */
tp_status_t tp__watch_tell(tp_stream_t *stream, int32_t count, const tp__touch_t *touches, const char *operation);
static inline tp_status_t tp__watch(tp_stream_t *stream, int32_t count, const tp__touch_t *touches,
                                    const char *operation) {
  return tp__is_watched() ? tp__watch_tell(stream, count, touches, operation) : TP_OK;
}
/* One watcher more or less. */
void tp__watch_count(int32_t change);
/* What one capture has heard of, to be read while no thread queues work in it. */
typedef struct tp__watch {
  uint64_t capture;              /* CUDA's number of it */
  struct tp__watch *around;      /* of a conditional node's body: the capture, or the body, that it stands in */
  pthread_t thread;              /* that began it */
  struct tp__watch *next;
  const void *predicate;         /* memory of which is told whether it is written; NULL for none */
  size_t predicate_nbytes;
  bool is_written;
  tp__touch_t *touches;          /* what the outermost capture uses, bodies included, each address once: what it writes,
                                    and while the order checker is on, all, by storages */
  int32_t touch_count, touch_room;
  int64_t beside_count;          /* pieces of work of the thread, to write memory, that no capture took; the first: */
  tp_stream_t *beside_stream;
  const char *beside_operation;
} tp__watch_t;
/* From here to the end, work of the capture that the stream takes part in is noted. around: NULL unless it is a body,
 * which ends before what is around it. */
void tp__watch_begin(tp__watch_t *watch, tp_stream_t *stream, tp__watch_t *around);
/* Release functions. The second gives up what was noted, after the end. */
void tp__watch_end(tp__watch_t *watch);
void tp__watch_forget(tp__watch_t *watch);
/* The capture that was noted goes on as the one that the stream takes part in now. */
void tp__watch_move(tp__watch_t *watch, const tp_stream_t *stream);
/* The number of the capture that is noted and that the stream takes part in; 0 where there is none. */
uint64_t tp__watch_capture(const tp_stream_t *stream);
/* Whether the stream, or with NULL the host, may ask for a point of the capture with that number. Status: STATE; CUDA
 * is left to refuse what has to do with one capture, or with several that are not parts of one. */
tp_status_t tp__watch_check_wait(const tp_stream_t *stream, uint64_t capture, const char *operation);
/* Whether the outermost capture, or a body in it, writes there. */
bool tp__watch_writes(const tp__watch_t *watch, const void *memory, size_t nbytes);
/* From now on is_written tells whether work in the capture, or in bodies in it, writes there. */
void tp__watch_predicate(tp__watch_t *watch, const void *memory, size_t nbytes);

#endif
