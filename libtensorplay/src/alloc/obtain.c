/* How a request is served that finds no block in its stream's shelf, and in which order attempts are made when memory
 * is short: all of that order stands in obtain(); docs/design/allocator.md gives the reasons. */
#include "growing.h"

static const char operation[] = "allocate";

/* ---- taking over blocks of other streams ---- */

static bool is_idle(tp_stream_t *stream) {
  if (tp__stream_is_capturing(stream)) return false;
  cudaError_t error = cudaStreamQuery(tp__stream_cuda(stream));
  if (error) (void)cudaGetLastError(); /* not ready; or lost, which whoever waits next reports */
  return !error;
}

/* Makes `stream` wait for all that `other` holds now. */
static bool wait_for(tp__heap_t *heap, tp_stream_t *stream, tp_stream_t *other) {
  if (tp__stream_is_capturing(other)) return false;
  cudaEvent_t event;
  if (tp__event_pool_take(heap->device, &event)) return false;
  cudaError_t error = cudaEventRecord(event, tp__stream_cuda(other));
  if (!error) error = cudaStreamWaitEvent(tp__stream_cuda(stream), event, 0);
  if (error) (void)cudaGetLastError();
  tp__event_pool_give(heap->device, event);
  return !error;
}

/* The smallest fitting free block of another stream: of an idle one, or of any one behind an event. It then
 * belongs to the request's. NULL when there is none. */
static tp__block_t *take_over(tp__heap_t *heap, const tp__request_t *request, bool idle_only) {
  tp__pool_t *pool = request->pool;
  tp_stream_t *stream = request->stream;
  /* Private blocks stay with their streams; and whoever captures may begin to use a stream while it is looked at. */
  if (pool->owner || tp__captures_underway()) return NULL;
  tp__block_t *best = NULL;
  for (int32_t id = 0; id < pool->room; id++) {
    if (!pool->shelves[id] || pool->shelves[id]->stream == stream) continue;
    if (tp__stream_is_external(pool->shelves[id]->stream)) continue; /* its owner may have destroyed it */
    tp__block_t *block = tp__pool_find(pool, id, request->nbytes);
    if (!block || (best && best->nbytes <= block->nbytes)) continue;
    if (!idle_only || is_idle(block->stream)) best = block;
  }
  if (!best || (!idle_only && !wait_for(heap, stream, best->stream))) return NULL;
  tp__pool_remove(heap, best);
  best->stream = stream;
  best->freed = heap->clock; /* what the stream has passed says nothing of the other's work */
  return tp__pool_insert_merged(heap, best);
}

/* ---- the order of attempts ---- */

static size_t segment_size(const tp__request_t *request) {
  const tp__private_pool_t *owner = request->pool->owner;
  bool whole = owner && owner->mempool->flags & TP_MEMPOOL_NO_SPLIT;
  if (!owner && !tp__settings()->caching) return request->nbytes;
  return whole ? tp__round_up(request->nbytes, TP_SEGMENT_UNIT) : tp__segment_size(request->nbytes);
}

/* Whether the cache is worth giving back: not for a request that no device, or no limit, of this size would serve. */
static tp_status_t may_help(const tp__heap_t *heap, const tp__request_t *request, bool *out) {
  size_t free_nbytes, total, nbytes = segment_size(request);
  TP_TRY_CUDA(cudaMemGetInfo(&free_nbytes, &total), operation);
  *out = nbytes <= total && nbytes <= heap->limit;
  return TP_OK;
}

static tp__block_t *find_anywhere(tp__heap_t *heap, const tp__request_t *request) {
  tp__block_t *block = tp__pool_find(request->pool, tp__stream_id(request->stream), request->nbytes);
  return block ? block : take_over(heap, request, false);
}

/* *out_cause: why there is no room, a TP_SHORTAGE. */
static tp_status_t ask_driver(tp__heap_t *heap, const tp__request_t *request, tp__block_t **out,
                              bool *out_refused, int32_t *out_cause) {
  tp__place_t place;
  bool growing = tp__growing_serves(request);
  if (growing) place = tp__growing_find(heap, request);
  size_t nbytes = growing ? place.nbytes - place.moved : segment_size(request);
  size_t reserved = (size_t)heap->stats[TP_STAT_reserved_bytes] + heap->asked;
  bool within = reserved <= heap->limit && nbytes <= heap->limit - reserved;
  *out_cause = within ? TP_SHORTAGE_DEVICE : TP_SHORTAGE_LIMIT;
  *out_refused = !within;
  if (!within) return TP_OUT_OF_MEMORY;
  if (growing) return tp__growing_obtain(heap, request, place, out, out_refused);
  return tp__segment_obtain(heap, request->pool, nbytes, request->stream, out, out_refused);
}

/* The device is entered, capture rules are relaxed. The caller has looked through the blocks whose uses have passed and
 * through the stream's shelf: steps 1 and 2. */
static tp_status_t obtain(tp__heap_t *heap, const tp__request_t *request, tp__block_t **out) {
  if (!tp__pool_prepare(request->pool, request->stream)) {
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list the free blocks of a stream");
  }
  /* What a capture uses must not depend on other streams, and nothing that it used may be released. */
  bool capturing = tp__stream_is_capturing(request->stream);

  /* Still 2: what waits in the threads' caches, which so never cost memory of the driver; and in a capture for other
   * streams of it that have been joined. */
  tp__cache_drain(heap);
  if (request->capture) tp__defer_join(heap, request);
  if ((*out = tp__pool_find(request->pool, tp__stream_id(request->stream), request->nbytes))) return TP_OK;

  /* 3. A block of an idle stream: nothing has to wait for it. */
  if (!capturing && (*out = take_over(heap, request, true))) return TP_OK;

  /* 4. Blocks that external streams used: waiting for the device costs less than memory from the driver. */
  if (!capturing && !tp__captures_underway() && heap->deferred_external) {
    TP_TRY(tp__wait_note_locked(operation));
    if (tp__defer_wait_external(heap) && (*out = find_anywhere(heap, request))) return TP_OK;
  }

  /* 5. The driver, within the limit; above the threshold, old segments go first. */
  if (!tp__captures_underway()) TP_TRY(tp__collect_old(heap, operation));
  bool refused;
  int32_t cause;
  tp_status_t status = ask_driver(heap, request, out, &refused, &cause);
  if (!refused) return status;

  /* 6. A private pool that is there for this. */
  if (!capturing && !request->mempool && (*out = tp__private_pool_help(heap, request))) return TP_OK;

  bool worth_it = false;
  if (!capturing) TP_TRY(may_help(heap, request, &worth_it));
  if (worth_it) {
    /* 7. A block of a busy stream: this stream waits, the host does not. */
    if ((*out = take_over(heap, request, false))) return TP_OK;

    /* From here on the host waits. */
    TP_TRY(tp__wait_note_locked(operation));

    /* 8. Oversize segments, as many as are needed. */
    bool found = false;
    if (!tp__captures_underway())
      TP_TRY(tp__collect_oversize(heap, segment_size(request), operation, &found));
    if (found) {
      status = ask_driver(heap, request, out, &refused, &cause);
      if (!refused) return status;
    }

    /* 9. Blocks that other streams still use. */
    heap->stats[TP_STAT_num_alloc_retries]++;
    tp__defer_wait(heap);
    tp__cache_drain(heap);
    if ((*out = find_anywhere(heap, request))) return TP_OK;

    /* 10. The driver again, after everything cached went back to it; in a capture nothing does. */
    if (!tp__captures_underway()) {
      TP_TRY(tp__segment_release_idle(heap, operation));
      status = ask_driver(heap, request, out, &refused, &cause);
      if (!refused) return status;
    }
  }
  return tp__shortage_refuse(heap, request, cause, capturing);
}

tp__block_t *tp__obtain(tp__heap_t *heap, const tp__request_t *request) {
  heap->device = tp_stream_device(request->stream);
  if (tp__device_enter(heap->device, operation)) return NULL;
  tp__block_t *block = NULL;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  tp_status_t status = obtain(heap, request, &block);
  tp__capture_restore(mode);
  return status ? NULL : block;
}
