/* Growing segments: one range of addresses for a pool and a stream, larger than the device, of which pages are mapped
 * where blocks need them and unmapped where whole pages are free. So a cache has no pieces that fit nobody.
 *
 * The blocks of such a segment cover all its addresses; those without memory are its gaps, whole pages each. Blocks
 * may change their stream as in other segments; gaps belong to the stream that the segment was made for. */
#include <stdlib.h>

#include "growing.h"

static const char operation[] = "allocate";

/* A heap holds so much more than was ever active before idle pages move in the place of fresh memory. */
#define SPARE_PART 24
#define SPARE_NBYTES (16 * TP_MiB)

#define ASKED_NBYTES (20 * TP_MiB) /* of more than that the driver is asked whether it has them */

bool tp__growing_serves(const tp__request_t *request) {
  const tp__private_pool_t *owner = request->pool->owner;
  if (!tp__settings()->expandable_segments) return false;
  if (!owner) return tp__settings()->caching;
  return !owner->mempool->allocate && !(owner->mempool->flags & TP_MEMPOOL_NO_SPLIT);
}

/* ---- where a request fits ---- */

/* Bytes of a neighbour that the request's block may begin or end with. One that is large enough was passed over. */
static size_t usable(const tp__block_t *block, const tp__request_t *request) {
  bool fits = block && block->state == TP_BLOCK_FREE && block->stream == request->stream;
  return fits && block->nbytes < request->nbytes ? block->nbytes : 0;
}

/* What has to be mapped of a gap for a request: its beginning, behind a free block; its end, before one; or all. */
static void look_at(tp__block_t *gap, const tp__request_t *request, tp__place_t *best) {
  size_t wanted = request->nbytes;
  size_t before = usable(gap->previous, request), after = usable(gap->next, request);
  size_t front = tp__round_up(wanted - before, TP_PAGE), back = tp__round_up(wanted - after, TP_PAGE);
  size_t nbytes = front <= back ? front : back;
  if (nbytes > gap->nbytes) {
    if (before + gap->nbytes + after < wanted) return;
    nbytes = gap->nbytes;
  }
  if (best->gap && best->nbytes <= nbytes) return;
  *best = (tp__place_t){.gap = gap, .nbytes = nbytes, .at_end = nbytes < front};
}

/* By how much the heap would hold more than it should if all of the place were mapped anew. */
static size_t excess(const tp__heap_t *heap, const tp__request_t *request, size_t nbytes) {
  size_t most = (size_t)heap->stats[TP_STAT_active_bytes] + request->nbytes;
  if (most < heap->most_active) most = heap->most_active;
  size_t bound = most + most / SPARE_PART + SPARE_NBYTES;
  if (bound > heap->limit) bound = heap->limit;
  size_t reserved = (size_t)heap->stats[TP_STAT_reserved_bytes] + heap->asked + nbytes;
  size_t found = reserved > bound ? tp__round_up(reserved - bound, TP_PAGE) : 0;
  return found < nbytes ? found : nbytes;
}

/* In captures no page moves. */
static size_t movable(tp__heap_t *heap, const tp__request_t *request, const tp__block_t *gap) {
  if (tp__captures_underway() || tp__stream_is_capturing(request->stream)) return 0;
  tp__idle_look(heap);
  tp__idle_t most;
  return tp__idle_movable(heap, gap, &most);
}

tp__place_t tp__growing_find(tp__heap_t *heap, const tp__request_t *request) {
  tp__place_t best = {0};
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    if (segment->pool != request->pool || segment->grows_for != request->stream) continue;
    for (tp__block_t *block = segment->first; block; block = block->next) {
      if (block->state == TP_BLOCK_GAP) look_at(block, request, &best);
    }
  }
  if (!best.gap) best.nbytes = tp__round_up(request->nbytes, TP_PAGE);
  best.movable = movable(heap, request, best.gap);
  best.moved = excess(heap, request, best.nbytes);
  if (best.moved > best.movable) best.moved = best.movable;
  return best;
}

/* ---- growing ---- */

/* A segment that is one gap. */
static tp_status_t reserve(tp__heap_t *heap, const tp__request_t *request, tp__segment_t **out, bool *out_refused) {
  size_t total = tp__device_properties(heap->device)->total_memory, nbytes = tp__round_up(total + total / 8, TP_PAGE);
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
  segment->grows_for = request->stream;
  segment->first = gap;
  tp__segment_link(heap, segment);
  *out = segment;
  return TP_OK;
}

/* Unmaps idle pages that are mapped at another place as well; without success that place is unmapped again. */
static tp_status_t leave(tp__heap_t *heap, const tp__idle_t *source, char *address) {
  bool done;
  cudaError_t error = tp__idle_unmap(heap, source, &done);
  if (done) return TP_OK;
  (void)tp__pages_unmap(address, source->nbytes);
  if (error) return tp__error_set_cuda(error, operation, "cuMemUnmap");
  return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to describe %zu bytes", source->nbytes);
}

/* Maps memory in so much of a place, beside its free block: fresh, or idle pages from elsewhere. *out is the free block
 * that it then is, with its free neighbours; the rest of the gap remains of the place. */
static tp_status_t fill(tp__heap_t *heap, tp__place_t *place, size_t nbytes, const tp__idle_t *source,
                        tp__block_t **out, bool *out_refused) {
  tp__block_t *gap = place->gap, *part = gap, *rest = NULL;
  tp__segment_t *segment = gap->segment;
  if (nbytes < gap->nbytes) {
    rest = tp__block_split(heap, gap, place->at_end ? gap->nbytes - nbytes : nbytes);
    if (!rest) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to describe %zu bytes", nbytes);
    if (place->at_end) part = rest;
  }
  tp_status_t status = tp__pages_map(heap->device, part->address, nbytes, source ? source->begin : NULL, operation,
                                     out_refused);
  if (!status && source) status = leave(heap, source, part->address);
  if (status) {
    if (rest) tp__block_merge(heap, gap, rest);
    return status;
  }
  place->gap = place->at_end ? gap : rest;
  place->nbytes -= nbytes;
  segment->nbytes += nbytes;
  tp__segment_count_obtained(heap, segment, nbytes);
  tp__trace_note(heap, TP_TRACE_segment_map, segment->pool, (uintptr_t)part->address, nbytes, segment->grows_for,
                 heap->trace.origin);
  *out = tp__pool_insert_merged(heap, part);
  return TP_OK;
}

/* Brings the idle pages that the place is to have, from where most of them lie first. */
static tp_status_t move(tp__heap_t *heap, tp__place_t *place, tp__block_t **out, bool *out_refused) {
  while (place->moved > 0) {
    tp__idle_t source;
    (void)tp__idle_movable(heap, place->gap, &source);
    size_t nbytes = source.nbytes < place->moved ? source.nbytes : place->moved;
    source.begin += source.nbytes - nbytes; /* the end: a block that shrinks stays where it is */
    source.nbytes = nbytes;
    TP_TRY(fill(heap, place, nbytes, &source, out, out_refused));
    place->moved -= nbytes;
  }
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
  size_t wanted = place.nbytes - place.moved;
  if (wanted > ASKED_NBYTES) {
    /* Page after page, until the driver refuses one, takes milliseconds: it says beforehand what it has. */
    size_t free_nbytes, total;
    TP_TRY_CUDA(cudaMemGetInfo(&free_nbytes, &total), operation);
    if (wanted > free_nbytes) place.moved += tp__round_up(wanted - free_nbytes, TP_PAGE);
    *out_refused = place.moved > place.movable;
    if (*out_refused) return TP_OUT_OF_MEMORY;
  }
  tp__segment_t *fresh = NULL;
  if (!place.gap) {
    TP_TRY(reserve(heap, request, &fresh, out_refused));
    place.gap = fresh->first;
  }
  tp_status_t status = move(heap, &place, out, out_refused);
  if (!status && place.nbytes > 0) status = fill(heap, &place, place.nbytes, NULL, out, out_refused);
  if (status && fresh && fresh->nbytes == 0) (void)drop(heap, fresh); /* else it is used, or dropped, another time */
  return status;
}

/* ---- giving back ---- */

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

cudaError_t tp__growing_release(tp__heap_t *heap, tp__segment_t *segment, const char **out_call) {
  for (tp__block_t *block = segment->first, *next; block; block = next) {
    next = block->next;
    if (block->state != TP_BLOCK_FREE) continue;
    tp__idle_t idle = tp__idle_from(block, &next);
    if (idle.nbytes == 0) continue;
    if (next && next->state == TP_BLOCK_GAP) next = next->next; /* it may become part of ours */
    bool done;
    *out_call = "cudaStreamSynchronize";
    cudaError_t error = wait_for(block, &done);
    if (!error && done) {
      *out_call = "cuMemUnmap";
      error = tp__idle_unmap(heap, &idle, &done); /* without host memory they stay */
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
