/* Growing segments: one range of addresses for a pool and a stream, larger than the device, of which pages are mapped
 * where blocks need them and unmapped where whole pages are free. So a cache has no pieces that fit nobody.
 *
 * The blocks of such a segment cover all its addresses; those without memory are its gaps, whole pages each. Blocks
 * may change their stream as in other segments; gaps belong to the stream that the segment was made for. */
#include <stdlib.h>

#include "growing.h"

static const char operation[] = "allocate";

bool tp__growing_serves(const tp__request_t *request) {
  const tp__private_pool_t *owner = request->pool->owner;
  if (!tp__settings()->expandable_segments) return false;
  if (!owner) return tp__settings()->caching;
  return !owner->mempool->allocate && !(owner->mempool->flags & TP_MEMPOOL_NO_SPLIT);
}

static size_t round_up(size_t nbytes, size_t unit) { return (nbytes + unit - 1) / unit * unit; }

/* Of a segment that is made now. */
static size_t page_of(const tp__pool_t *pool) {
  return pool->class == TP_CLASS_SMALL ? TP_SMALL_SEGMENT
                                       : round_up(tp__settings()->large_segment_size, TP_SEGMENT_UNIT);
}

/* ---- where a request fits ---- */

/* Bytes of a neighbour that the request's block may begin or end with. One that is large enough was passed over. */
static size_t usable(const tp__block_t *block, const tp__request_t *request) {
  bool fits = block && block->state == TP_BLOCK_FREE && block->stream == request->stream;
  return fits && block->nbytes < request->nbytes ? block->nbytes : 0;
}

/* What has to be mapped of a gap for a request: its beginning, behind a free block; its end, before one; or all. */
static void look_at(tp__block_t *gap, const tp__request_t *request, tp__place_t *best) {
  size_t page = gap->segment->page, wanted = request->nbytes;
  size_t before = usable(gap->previous, request), after = usable(gap->next, request);
  size_t front = round_up(wanted - before, page), back = round_up(wanted - after, page);
  size_t nbytes = front <= back ? front : back;
  if (nbytes > gap->nbytes) {
    if (before + gap->nbytes + after < wanted) return;
    nbytes = gap->nbytes;
  }
  if (!best->gap || nbytes < best->nbytes) *best = (tp__place_t){gap, nbytes, nbytes < front};
}

tp__place_t tp__growing_find(const tp__heap_t *heap, const tp__request_t *request) {
  tp__place_t best = {0};
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    if (segment->pool != request->pool || segment->grows_for != request->stream) continue;
    for (tp__block_t *block = segment->first; block; block = block->next) {
      if (block->state == TP_BLOCK_GAP) look_at(block, request, &best);
    }
  }
  if (!best.gap) best.nbytes = round_up(request->nbytes, page_of(request->pool));
  return best;
}

/* ---- growing ---- */

/* A segment that is one gap. */
static tp_status_t reserve(tp__heap_t *heap, const tp__request_t *request, tp__segment_t **out, bool *out_refused) {
  size_t page = page_of(request->pool);
  size_t total = tp__device_properties(heap->device)->total_memory, nbytes = round_up(total + total / 8, page);
  *out_refused = request->nbytes > nbytes;
  if (*out_refused) return TP_OUT_OF_MEMORY;
  tp__segment_t *segment = calloc(1, sizeof *segment);
  tp__block_t *gap = segment ? tp__block_new(heap) : NULL;
  if (!gap) {
    free(segment);
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to describe %zu bytes", nbytes);
  }
  tp_status_t status = tp__pages_reserve(heap->device, nbytes, &gap->address, operation, out_refused);
  if (status) {
    tp__block_delete(heap, gap);
    free(segment);
    return status;
  }
  gap->nbytes = nbytes;
  gap->segment = segment;
  gap->stream = request->stream;
  gap->state = TP_BLOCK_GAP;
  segment->pool = request->pool;
  segment->origin = heap->trace.origin;
  segment->page = page;
  segment->grows_for = request->stream;
  segment->first = gap;
  tp__segment_link(heap, segment);
  *out = segment;
  return TP_OK;
}

static void note(tp__heap_t *heap, tp__action_t action, const tp__segment_t *segment, const char *begin,
                 size_t nbytes) {
  tp__trace_note(heap, action, segment->pool, (uintptr_t)begin, nbytes, segment->grows_for, heap->trace.origin);
}

/* Maps memory in a gap; the free block that it then is, with its free neighbours. */
static tp_status_t fill(tp__heap_t *heap, const tp__place_t *place, tp__block_t **out, bool *out_refused) {
  tp__block_t *gap = place->gap, *part = gap;
  tp__segment_t *segment = gap->segment;
  if (place->nbytes < gap->nbytes) {
    tp__block_t *rest =
        tp__block_split(heap, gap, place->at_end ? gap->nbytes - place->nbytes : place->nbytes);
    if (!rest) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to describe %zu bytes", place->nbytes);
    if (place->at_end) part = rest;
  }
  tp_status_t status =
      tp__pages_map(heap->device, part->address, part->nbytes, segment->page, operation, out_refused);
  if (status) {
    if (gap->next && gap->next->state == TP_BLOCK_GAP) tp__block_merge(heap, gap, gap->next); /* no longer split */
    return status;
  }
  segment->nbytes += part->nbytes;
  tp__segment_count_obtained(heap, segment, part->nbytes);
  note(heap, TP_TRACE_segment_map, segment, part->address, part->nbytes);
  *out = tp__pool_insert_merged(heap, part);
  return TP_OK;
}

/* Gives the addresses of a segment without memory back. */
static cudaError_t drop(tp__heap_t *heap, tp__segment_t *segment) {
  cudaError_t error = tp__pages_free(segment->first->address, segment->first->nbytes);
  if (error) return error;
  tp__block_delete(heap, segment->first);
  tp__segment_unlink(heap, segment);
  free(segment);
  return cudaSuccess;
}

tp_status_t tp__growing_obtain(tp__heap_t *heap, const tp__request_t *request, tp__place_t place, tp__block_t **out,
                               bool *out_refused) {
  *out_refused = false;
  if (place.nbytes > page_of(request->pool)) {
    /* Page after page, until the driver refuses one, takes milliseconds: it says beforehand what it has. */
    size_t free_nbytes, total;
    TP_TRY_CUDA(cudaMemGetInfo(&free_nbytes, &total), operation);
    *out_refused = place.nbytes > free_nbytes;
    if (*out_refused) return TP_OUT_OF_MEMORY;
  }
  tp__segment_t *fresh = NULL;
  if (!place.gap) {
    TP_TRY(reserve(heap, request, &fresh, out_refused));
    place.gap = fresh->first;
  }
  tp_status_t status = fill(heap, &place, out, out_refused);
  if (status && fresh) (void)drop(heap, fresh); /* else it is used, or dropped, another time */
  return status;
}

/* ---- unmapping ---- */

/* The whole pages of the free blocks that follow each other from `first`; *out_end is what comes behind them. */
static size_t whole_pages(tp__block_t *first, char **out_begin, tp__block_t **out_end) {
  size_t page = first->segment->page;
  char *base = first->segment->first->address;
  tp__block_t *block = first;
  char *end = first->address;
  for (; block && block->state == TP_BLOCK_FREE; block = block->next) end += block->nbytes;
  *out_end = block;
  *out_begin = base + round_up((size_t)(first->address - base), page);
  char *last = base + (size_t)(end - base) / page * page;
  return last > *out_begin ? (size_t)(last - *out_begin) : 0;
}

size_t tp__growing_idle_nbytes(const tp__segment_t *segment) {
  size_t nbytes = 0;
  for (tp__block_t *block = segment->first; block;) {
    char *begin;
    if (block->state == TP_BLOCK_FREE) {
      nbytes += whole_pages(block, &begin, &block);
    } else {
      block = block->next;
    }
  }
  return nbytes;
}

/* Waits for the work that may still use a run of free blocks, since cuMemUnmap waits for nothing, unlike cudaFree: what
 * their streams hold. Where these cannot be asked the device is waited for: external streams may have been destroyed,
 * and graphs run with private blocks on any stream. *out_done is false when a capture forbids it. */
static cudaError_t wait_for(const tp__block_t *block, bool *out_done) {
  bool device = block->segment->pool->owner;
  *out_done = false;
  for (; block && block->state == TP_BLOCK_FREE; block = block->next) {
    if (tp__stream_is_external(block->stream)) {
      device = true;
    } else if (tp__stream_is_capturing(block->stream)) {
      return cudaSuccess;
    } else {
      cudaError_t error = cudaStreamSynchronize(tp__stream_cuda(block->stream));
      if (error) return error;
    }
  }
  cudaError_t error = device ? cudaDeviceSynchronize() : cudaSuccess;
  *out_done = !error;
  if (error != cudaErrorStreamCaptureUnsupported) return error;
  (void)cudaGetLastError();
  return cudaSuccess;
}

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

/* Unmaps so many bytes from `begin` on, inside the free blocks from `first` on. */
static cudaError_t empty(tp__heap_t *heap, tp__block_t *first, char *begin, size_t nbytes) {
  tp__segment_t *segment = first->segment;
  tp__block_t *block = cut(heap, first, begin);
  if (!block) return cudaSuccess; /* without host memory it stays as it is */
  tp__block_t *last = block;
  while (last->address + last->nbytes < begin + nbytes) last = last->next;
  bool whole = last->address + last->nbytes == begin + nbytes || cut(heap, last, begin + nbytes);
  cudaError_t error = whole ? tp__pages_unmap(begin, nbytes) : cudaSuccess;
  if (!whole || error) {
    if (last != block) join(heap, last);
    join(heap, block);
    return error;
  }
  segment->nbytes -= nbytes;
  tp__segment_count_released(heap, segment, nbytes);
  note(heap, TP_TRACE_segment_unmap, segment, begin, nbytes);
  tp__order_forget(begin, nbytes);
  open_gap(heap, block, nbytes);
  return cudaSuccess;
}

cudaError_t tp__growing_release(tp__heap_t *heap, tp__segment_t *segment, const char **out_call) {
  for (tp__block_t *block = segment->first, *next; block; block = next) {
    next = block->next;
    if (block->state != TP_BLOCK_FREE) continue;
    char *begin;
    size_t nbytes = whole_pages(block, &begin, &next);
    if (nbytes == 0) continue;
    if (next && next->state == TP_BLOCK_GAP) next = next->next; /* it may become part of ours */
    bool done;
    *out_call = "cudaStreamSynchronize";
    cudaError_t error = wait_for(block, &done);
    if (!error && done) {
      *out_call = "cuMemUnmap";
      error = empty(heap, block, begin, nbytes);
    }
    if (error) return error;
  }
  *out_call = "cuMemAddressFree";
  return segment->nbytes > 0 ? cudaSuccess : drop(heap, segment);
}

/* ---- peers ---- */

tp_status_t tp__growing_share(tp__heap_t *heap, const char *for_operation) {
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    for (const tp__block_t *block = segment->grows_for ? segment->first : NULL; block;) {
      char *begin = block->address;
      size_t nbytes = 0;
      for (; block && block->state != TP_BLOCK_GAP; block = block->next) nbytes += block->nbytes;
      if (nbytes > 0) TP_TRY_CUDA(tp__pages_share(heap->device, begin, nbytes), for_operation);
      while (block && block->state == TP_BLOCK_GAP) block = block->next;
    }
  }
  return TP_OK;
}
