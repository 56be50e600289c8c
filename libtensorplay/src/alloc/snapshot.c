/* A reading of all segments and blocks of a device, copied out at once under the heap's lock: its cost depends on how
 * many blocks there are, and not on what happened before. */
#include <stdlib.h>

#include "alloc.h"

static int64_t handle_of(const tp_stream_t *stream) { return (int64_t)tp_stream_handle(stream); }

static int64_t state_of(const tp__block_t *block) {
  switch (block->state) {
    case TP_BLOCK_LIVE:
      return TP_MEMORY_ALLOCATED;
    case TP_BLOCK_PENDING:
      return TP_MEMORY_PENDING_FREE;
    default:
      return TP_MEMORY_INACTIVE;
  }
}

static tp_memory_block_t describe_block(const tp__block_t *block) {
  int64_t state = state_of(block);
  return (tp_memory_block_t){
      .nbytes = (int64_t)block->nbytes,
      .requested_nbytes = state == TP_MEMORY_INACTIVE ? 0 : (int64_t)block->requested_nbytes,
      .stream = handle_of(block->stream),
      .state = state,
      .origin = state == TP_MEMORY_INACTIVE ? 0 : block->origin,
  };
}

static tp_memory_segment_t describe_segment(const tp__block_t *first) {
  const tp__segment_t *segment = first->segment;
  const tp__private_pool_t *owner = segment->pool->owner;
  return (tp_memory_segment_t){
      .pool = {owner ? owner->mempool->id[0] : 0, owner ? owner->mempool->id[1] : 0},
      .address = (int64_t)(uintptr_t)first->address,
      .stream = handle_of(first->stream),
      .is_large = segment->pool->class == TP_CLASS_LARGE,
      .is_expandable = segment->grows_for != NULL,
      .origin = segment->origin,
  };
}

/* Whether memory begins with the block: the segment, or a part of a growing one, whose gaps are left out. */
static bool is_first(const tp__block_t *block) {
  return block->state != TP_BLOCK_GAP && (!block->previous || block->previous->state == TP_BLOCK_GAP);
}

/* Room for so many: the arrays lie behind the structure. */
static tp_memory_snapshot_t *new_snapshot(int64_t segments, int64_t blocks, int64_t entries) {
  size_t nbytes = sizeof(tp_memory_snapshot_t) + (size_t)segments * sizeof(tp_memory_segment_t) +
                  (size_t)blocks * sizeof(tp_memory_block_t) + (size_t)entries * sizeof(tp_memory_entry_t);
  tp_memory_snapshot_t *snapshot = malloc(nbytes);
  if (!snapshot) {
    tp__error_set(TP_HOST_MEMORY, "memory_snapshot", "no host memory for %zu bytes", nbytes);
    return NULL;
  }
  *snapshot = (tp_memory_snapshot_t){.segments = (tp_memory_segment_t *)(snapshot + 1)};
  snapshot->blocks = (tp_memory_block_t *)(snapshot->segments + segments);
  snapshot->entries = (tp_memory_entry_t *)(snapshot->blocks + blocks);
  return snapshot;
}

static tp_memory_snapshot_t *take(const tp__heap_t *heap, bool with_entries) {
  int64_t segments = 0;
  int64_t blocks = 0;
  int64_t entries = with_entries ? tp__trace_count(&heap->trace) : 0;
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    for (const tp__block_t *block = segment->first; block; block = block->next) {
      segments += is_first(block);
      blocks += block->state != TP_BLOCK_GAP;
    }
  }
  tp_memory_snapshot_t *snapshot = new_snapshot(segments, blocks, entries);
  if (!snapshot) return NULL;
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    for (const tp__block_t *block = segment->first; block; block = block->next) {
      if (is_first(block)) snapshot->segments[snapshot->segment_count++] = describe_segment(block);
      if (block->state == TP_BLOCK_GAP) continue;
      tp_memory_segment_t *described = &snapshot->segments[snapshot->segment_count - 1];
      described->nbytes += (int64_t)block->nbytes;
      described->block_count++;
      snapshot->blocks[snapshot->block_count++] = describe_block(block);
    }
  }
  snapshot->entry_count = entries;
  if (entries) tp__trace_copy(&heap->trace, snapshot->entries);
  return snapshot;
}

tp_memory_snapshot_t *tp_memory_snapshot_take(int32_t device, int32_t with_entries) {
  device = tp__device_resolve(device, "memory_snapshot");
  if (device < 0 || tp__device_check_process("memory_snapshot")) return NULL;
  tp__heap_t *heap = tp__heap(device);
  int64_t origin = with_entries ? tp__trace_origin(TP_HISTORY_FREES) : 0;
  tp__cache_suspend(); /* cached blocks are free ones, and no block changes while it is read */
  tp__heap_lock(heap);
  if (with_entries) {
    size_t active = (size_t)heap->stats[TP_STAT_active_bytes];
    tp__trace_note(heap, TP_TRACE_snapshot, NULL, 0, active, NULL, origin);
  }
  tp_memory_snapshot_t *snapshot = take(heap, with_entries);
  tp__heap_unlock(heap);
  tp__cache_resume();
  return snapshot;
}

void tp_memory_snapshot_release(tp_memory_snapshot_t *snapshot) { free(snapshot); }
