/* Idle pages: whole pages of growing segments that free blocks cover. They can go back to the driver, or move to where
 * a request needs them, once no work uses them.
 *
 * How far a stream is, is known without waiting for it: a mark, an event, is recorded on it whenever a segment grows,
 * and when that has passed so has the work on every block that was freed before. Each free block knows since when it is
 * free. */
#include "growing.h"

static tp__idle_t whole_pages(tp__block_t *first, const char *end) {
  char *base = first->segment->first->address;
  size_t begin = tp__round_up((size_t)(first->address - base), TP_PAGE);
  size_t stop = (size_t)(end - base) / TP_PAGE * TP_PAGE;
  return (tp__idle_t){.first = first, .begin = base + begin, .nbytes = stop > begin ? stop - begin : 0};
}

tp__idle_t tp__idle_from(tp__block_t *first, tp__block_t **out_end) {
  const char *end = first->address;
  tp__block_t *block = first;
  for (; block && block->state == TP_BLOCK_FREE; block = block->next) end += block->nbytes;
  *out_end = block;
  return whole_pages(first, end);
}

size_t tp__idle_nbytes(const tp__segment_t *segment) {
  size_t nbytes = 0;
  for (tp__block_t *block = segment->first; block;) {
    if (block->state == TP_BLOCK_FREE) {
      nbytes += tp__idle_from(block, &block).nbytes;
    } else {
      block = block->next;
    }
  }
  return nbytes;
}

/* ---- which of them may move ---- */

/* External streams may be gone, and are not asked. */
static void look_at(const tp__heap_t *heap, tp__shelf_t *shelf) {
  if (tp__stream_is_external(shelf->stream)) return;
  if (tp__stream_is_capturing(shelf->stream)) {
    shelf->passed = 0;
  } else if (!cudaStreamQuery(tp__stream_cuda(shelf->stream))) {
    shelf->passed = heap->clock;
  } else {
    (void)cudaGetLastError(); /* not ready; or lost, which whoever waits next reports */
    if (!shelf->mark.event) {
      if (tp__mark_take(shelf->stream, &shelf->mark)) return;
    } else if (tp__mark_ask(&shelf->mark, false)) {
      return;
    } else if (shelf->passed < shelf->marked) {
      shelf->passed = shelf->marked;
    }
    shelf->marked = heap->clock;
    (void)tp__mark_set(&shelf->mark);
  }
}

void tp__idle_look(tp__heap_t *heap) {
  for (int class = TP_CLASS_LARGE; class <= TP_CLASS_SMALL; class++) {
    const tp__pool_t *pool = &heap->pools[class];
    for (int32_t id = 0; id < pool->room; id++) {
      if (pool->shelves[id]) look_at(heap, pool->shelves[id]);
    }
  }
}

/* Shelves of private pools are not looked at, so none of their blocks may: graphs work where they lie. */
static bool may_move(const tp__block_t *block, const tp__block_t *gap) {
  if (block->state != TP_BLOCK_FREE || block->freed >= tp__pool_shelf(block)->passed) return false;
  return !gap || (block->next != gap && block->previous != gap);
}

size_t tp__idle_movable(const tp__heap_t *heap, const tp__block_t *gap, tp__idle_t *out_most) {
  size_t nbytes = 0;
  *out_most = (tp__idle_t){.nbytes = 0};
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    for (tp__block_t *block = segment->grows_for ? segment->first : NULL; block; block = block->next) {
      if (!may_move(block, gap)) continue;
      tp__idle_t idle = whole_pages(block, block->address + block->nbytes);
      nbytes += idle.nbytes;
      if (idle.nbytes > out_most->nbytes) *out_most = idle;
    }
  }
  return nbytes;
}

/* ---- unmapping ---- */

/* The free block that begins at an address inside `block` or a follower, cut there; NULL without host memory. */
static tp__block_t *cut(tp__heap_t *heap, tp__block_t *block, const char *address) {
  while (block->address + block->nbytes <= address) block = block->next;
  if (block->address == address) return block;
  tp__pool_remove(heap, block);
  tp__block_t *rest = tp__block_split(heap, block, (size_t)(address - block->address));
  tp__pool_insert(heap, block);
  if (rest) tp__pool_insert(heap, rest);
  return rest;
}

/* Undoes a cut. */
static void join(tp__heap_t *heap, tp__block_t *block) {
  tp__pool_remove(heap, block);
  (void)tp__pool_insert_merged(heap, block);
}

/* Makes one gap of free blocks without memory, and of the gaps beside it. */
static void open_gap(tp__heap_t *heap, tp__block_t *gap, size_t nbytes) {
  const tp__segment_t *segment = gap->segment;
  tp__pool_remove(heap, gap);
  while (gap->nbytes < nbytes) {
    tp__pool_remove(heap, gap->next);
    tp__block_merge(heap, gap, gap->next);
  }
  gap->state = TP_BLOCK_GAP;
  gap->stream = segment->grows_for;
  if (gap->next && gap->next->state == TP_BLOCK_GAP) tp__block_merge(heap, gap, gap->next);
  if (gap->previous && gap->previous->state == TP_BLOCK_GAP) tp__block_merge(heap, gap->previous, gap);
}

cudaError_t tp__idle_unmap(tp__heap_t *heap, const tp__idle_t *idle, bool *out_done) {
  *out_done = false;
  tp__block_t *block = cut(heap, idle->first, idle->begin);
  if (!block) return cudaSuccess;
  char *end = idle->begin + idle->nbytes;
  tp__block_t *last = block;
  while (last->address + last->nbytes < end) last = last->next;
  bool whole = last->address + last->nbytes == end || cut(heap, last, end);
  cudaError_t error = whole ? tp__pages_unmap(idle->begin, idle->nbytes) : cudaSuccess;
  if (!whole || error) {
    if (last != block) join(heap, last);
    join(heap, block);
    return error;
  }
  tp__segment_t *segment = block->segment;
  segment->nbytes -= idle->nbytes;
  tp__segment_count_released(heap, segment, idle->nbytes);
  tp__trace_note(heap, TP_TRACE_segment_unmap, segment->pool, (uintptr_t)idle->begin, idle->nbytes,
                 segment->grows_for, heap->trace.origin);
  tp__order_forget(idle->begin, idle->nbytes);
  open_gap(heap, block, idle->nbytes);
  *out_done = true;
  return cudaSuccess;
}
