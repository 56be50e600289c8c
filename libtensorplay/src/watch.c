/* Work that somebody wants to hear of before it is queued: the order checker, and captures of ours. A capture remembers
 * what its replays will touch, whether a body writes its predicate, and what its thread queued beside it, which no
 * replay repeats (docs/design/graphs.md, "Watching"). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

_Atomic int32_t tp__watchers;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and what is noted; order's is inside */
static tp__watch_t *watches;                             /* the youngest first */

void tp__watch_count(int32_t change) { atomic_fetch_add_explicit(&tp__watchers, change, memory_order_relaxed); }

void tp__watch_begin(tp__watch_t *watch, tp_stream_t *stream, tp__watch_t *around) {
  pthread_mutex_lock(&lock);
  *watch = (tp__watch_t){.capture = tp__stream_capture(stream), .around = around, .thread = pthread_self()};
  watch->next = watches;
  watches = watch;
  pthread_mutex_unlock(&lock);
  tp__watch_count(1);
}

void tp__watch_end(tp__watch_t *watch) {
  pthread_mutex_lock(&lock);
  tp__watch_t **link = &watches;
  while (*link && *link != watch) link = &(*link)->next;
  bool found = *link;
  if (found) *link = watch->next;
  pthread_mutex_unlock(&lock);
  if (found) tp__watch_count(-1);
}

void tp__watch_forget(tp__watch_t *watch) {
  free(watch->touches);
  *watch = (tp__watch_t){.capture = 0};
}

void tp__watch_move(tp__watch_t *watch, const tp_stream_t *stream) {
  pthread_mutex_lock(&lock);
  watch->capture = tp__stream_capture(stream);
  pthread_mutex_unlock(&lock);
}

/* Under the lock. NULL for none: one has none between the pieces of a body. */
static tp__watch_t *find(uint64_t capture) {
  tp__watch_t *watch = capture ? watches : NULL;
  while (watch && watch->capture != capture) watch = watch->next;
  return watch;
}

static tp__watch_t *outermost(tp__watch_t *watch) {
  while (watch->around) watch = watch->around;
  return watch;
}

/* ---- points of captures ---- */

uint64_t tp__watch_capture(const tp_stream_t *stream) {
  uint64_t capture = tp__stream_capture(stream);
  pthread_mutex_lock(&lock);
  bool found = find(capture);
  pthread_mutex_unlock(&lock);
  return found ? capture : 0;
}

tp_status_t tp__watch_check_wait(const tp_stream_t *stream, uint64_t capture, const char *operation) {
  uint64_t own = stream ? tp__stream_capture(stream) : 0;
  if (own == capture) return TP_OK;
  pthread_mutex_lock(&lock);
  tp__watch_t *there = find(capture), *here = find(own);
  bool has_ended = !there, are_parts = there && here && outermost(there) == outermost(here);
  pthread_mutex_unlock(&lock);
  if (are_parts)
    return tp__error_set(TP_STATE, operation,
                         "nothing waits across the border of a conditional node's body: the body begins behind all "
                         "that its stream holds, and the stream goes on behind the body, so let these wait instead");
  if (has_ended)
    return tp__error_set(TP_STATE, operation,
                         "the event was recorded in a capture, or in a part of a body, that has ended, and stands for "
                         "nothing since: record it again, or wait for the stream");
  return TP_OK;
}

void tp__watch_predicate(tp__watch_t *watch, const void *memory, size_t nbytes) {
  pthread_mutex_lock(&lock);
  watch->predicate = memory;
  watch->predicate_nbytes = nbytes;
  watch->is_written = false;
  pthread_mutex_unlock(&lock);
}

/* ---- noting, under the lock ---- */

/* The first touch of the list that lies at `memory` or behind it. */
static int32_t position(const tp__watch_t *watch, const void *memory) {
  int32_t low = 0, high = watch->touch_count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if ((uintptr_t)watch->touches[middle].memory < (uintptr_t)memory) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Into the list, which is kept by address; false without host memory. */
static bool add(tp__watch_t *watch, tp__touch_t touch) {
  int32_t i = position(watch, touch.memory);
  if (i < watch->touch_count && watch->touches[i].memory == touch.memory) {
    watch->touches[i].writes = watch->touches[i].writes || touch.writes;
    return true;
  }
  if (watch->touch_count == watch->touch_room) {
    int32_t room = watch->touch_room ? 2 * watch->touch_room : 16;
    tp__touch_t *grown = realloc(watch->touches, (size_t)room * sizeof *grown);
    if (!grown) return false;
    watch->touches = grown;
    watch->touch_room = room;
  }
  memmove(&watch->touches[i + 1], &watch->touches[i], (size_t)(watch->touch_count++ - i) * sizeof touch);
  watch->touches[i] = touch;
  return true;
}

bool tp__watch_writes(const tp__watch_t *watch, const void *memory, size_t nbytes) {
  for (int32_t i = position(watch, memory); i < watch->touch_count; i++) {
    if ((uintptr_t)watch->touches[i].memory - (uintptr_t)memory >= nbytes) break;
    if (watch->touches[i].writes) return true;
  }
  return false;
}

static void note_write(tp__watch_t *watch, const void *memory) {
  for (; watch; watch = watch->around) {
    size_t distance = (size_t)((uintptr_t)memory - (uintptr_t)watch->predicate);
    if (watch->predicate && distance < watch->predicate_nbytes) watch->is_written = true;
  }
}

/* Work of the capture, or of a body in it; false without host memory. */
static bool note(tp__watch_t *watch, int32_t count, const tp__touch_t *touches) {
  tp__watch_t *whole = outermost(watch);
  bool kept = true;
  for (int32_t i = 0; i < count; i++) {
    if (!touches[i].memory) continue;
    if (touches[i].writes) note_write(watch, touches[i].memory);
    if (touches[i].writes || tp__order_is_on())
      kept = add(whole, (tp__touch_t){tp__order_storage(touches[i].memory), touches[i].writes}) && kept;
  }
  return kept;
}

/* Work that no capture takes, by a thread that captures. What only reads changes nothing that a replay misses. */
static void note_beside(tp_stream_t *stream, int32_t count, const tp__touch_t *touches, const char *operation) {
  bool writes = false;
  for (int32_t i = 0; i < count; i++) writes = writes || (touches[i].memory && touches[i].writes);
  tp__watch_t *watch = watches;
  while (watch && !pthread_equal(watch->thread, pthread_self())) watch = watch->next;
  if (!watch || !writes) return;
  watch = outermost(watch);
  if (watch->beside_count++) return;
  watch->beside_stream = stream;
  watch->beside_operation = operation;
}

tp_status_t tp__watch_tell(tp_stream_t *stream, int32_t count, const tp__touch_t *touches, const char *operation) {
  TP_TRY(tp__order_check(stream, count, touches, operation)); /* what it refuses is not queued */
  uint64_t capture = tp__stream_capture(stream);
  bool kept = true;
  pthread_mutex_lock(&lock);
  tp__watch_t *watch = find(capture);
  if (watch) kept = note(watch, count, touches);
  if (!capture) note_beside(stream, count, touches, operation);
  pthread_mutex_unlock(&lock);
  return kept ? TP_OK : tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note what the graph uses");
}
