/* History: a bounded ring of what happened to blocks and segments, one for each heap. While it is off, a note costs
 * one load. */
#include <stdlib.h>
#include <time.h>

#include "alloc.h"

enum {
  FIRST_ROOM = 1024,
  ALL_MODES = TP_HISTORY_ORIGINS | TP_HISTORY_ENTRIES | TP_HISTORY_FREES
#define TP_TRACE_ACTION(name) | TP_HISTORY_WITHOUT << TP_TRACE_##name
#include "trace.def"
#undef TP_TRACE_ACTION
};

static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER; /* who changes the two */
static _Atomic int32_t mode;
static _Atomic int64_t most_entries;

/* What is recorded: a sum of TP_HISTORY_*. */
static int32_t recorded(void) { return atomic_load_explicit(&mode, memory_order_relaxed); }

int64_t tp__trace_origin(int32_t wanted) { return recorded() & wanted ? tp__origin() : 0; }

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A ring that is full for the first time becomes larger; without host memory it starts to turn. */
static void grow(tp__trace_t *trace) {
  int64_t most = atomic_load_explicit(&most_entries, memory_order_relaxed);
  int64_t room = trace->room ? 2 * trace->room : FIRST_ROOM;
  if (room > most) room = most;
  tp_memory_entry_t *entries = realloc(trace->entries, (size_t)room * sizeof *entries);
  if (!entries) return;
  trace->entries = entries;
  trace->room = room;
}

static void note(tp__heap_t *heap, tp_memory_entry_t entry) {
  tp__trace_t *trace = &heap->trace;
  if (trace->noted == trace->room) grow(trace);
  if (trace->room == 0) return;
  entry.time_us = now_us();
  trace->entries[trace->noted++ % trace->room] = entry;
}

void tp__trace_note(tp__heap_t *heap, tp__action_t action, const tp__pool_t *pool, uintptr_t address, size_t nbytes,
                    const tp_stream_t *stream, int64_t origin) {
  if ((recorded() & (TP_HISTORY_ENTRIES | TP_HISTORY_WITHOUT << action)) != TP_HISTORY_ENTRIES) return;
  const tp__private_pool_t *owner = pool ? pool->owner : NULL;
  note(heap, (tp_memory_entry_t){.action = action,
                                 .address = (int64_t)address,
                                 .nbytes = (int64_t)nbytes,
                                 .stream = stream ? (int64_t)tp_stream_handle(stream) : 0,
                                 .pool = {owner ? owner->mempool->id[0] : 0, owner ? owner->mempool->id[1] : 0},
                                 .origin = origin});
}

void tp__trace_block(tp__heap_t *heap, tp__action_t action, const tp__block_t *block, int64_t origin) {
  tp__trace_note(heap, action, block->segment->pool, (uintptr_t)block->address, block->requested_nbytes, block->stream,
                 origin);
}

void tp__trace_segment(tp__heap_t *heap, tp__action_t action, const tp__segment_t *segment) {
  const tp__block_t *first = segment->first;
  tp__trace_note(heap, action, segment->pool, (uintptr_t)first->address, segment->nbytes, first->stream,
                 heap->trace.origin);
}

int64_t tp__trace_count(const tp__trace_t *trace) { return trace->noted < trace->room ? trace->noted : trace->room; }

void tp__trace_copy(const tp__trace_t *trace, tp_memory_entry_t *out) {
  int64_t count = tp__trace_count(trace);
  for (int64_t i = 0; i < count; i++) out[i] = trace->entries[(trace->noted - count + i) % trace->room];
}

static void forget(tp__heap_t *heap) {
  tp__heap_lock(heap);
  free(heap->trace.entries);
  heap->trace = (tp__trace_t){0};
  tp__heap_unlock(heap);
}

tp_status_t tp_memory_record_history(int32_t wanted, int64_t most) {
  const char *operation = "memory_record_history";
  TP_TRY(tp__device_check_process(operation));
  if (wanted & ~ALL_MODES) {
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got mode %d, expected a sum of TP_HISTORY_*", wanted);
  }
  if (most < 1) {
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got room for %lld entries, expected 1 or more",
                         (long long)most);
  }
  pthread_mutex_lock(&setting);
  /* What a thread takes from its cache passes no heap, so nobody could note it. */
  bool was_on = recorded() != 0;
  if (wanted && !was_on) tp__cache_suspend();
  atomic_store_explicit(&mode, 0, memory_order_relaxed);
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) forget(tp__heap(device));
  atomic_store_explicit(&most_entries, most, memory_order_relaxed);
  atomic_store_explicit(&mode, wanted, memory_order_relaxed);
  if (!wanted && was_on) tp__cache_resume();
  pthread_mutex_unlock(&setting);
  return TP_OK;
}
