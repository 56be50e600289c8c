/* Idle segments that go back to the driver before all of them have to. */
#include "alloc.h"

/* Segments that grow have no age and no size of their own: their pages go back when all that is idle does. */
static bool is_idle(const tp__segment_t *segment) {
  return segment->active == 0 && !segment->pool->owner && !segment->grows_for;
}

static tp_status_t release(tp__heap_t *heap, tp__segment_t *segment, const char *operation) {
  const char *call;
  cudaError_t error = tp__segment_release(heap, segment, &call);
  return error ? tp__error_set_cuda(error, operation, call) : TP_OK;
}

/* Giving back waits for the device, which covers the order of all streams. During captures nothing goes back: what
 * becomes idle then stays in the cache. */
void tp__collect_idle(tp__heap_t *heap, tp__segment_t *segment) {
  segment->idle_since = heap->clock;
  if (tp__settings()->caching || tp__captures_underway()) return;
  int32_t before;
  const char *call;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  if (tp__device_visit(heap->device, &before) && tp__segment_release(heap, segment, &call)) {
    (void)cudaGetLastError(); /* it stays in the cache, since freeing never fails */
  }
  tp__capture_restore(mode);
  tp__device_leave(before);
}

tp_status_t tp__collect_old(tp__heap_t *heap, const char *operation) {
  double threshold = tp__settings()->garbage_collection_threshold;
  if (threshold == 0) return TP_OK;
  size_t most = tp__device_properties(heap->device)->total_memory;
  if (heap->limit < most) most = heap->limit;
  while ((double)heap->stats[TP_STAT_reserved_bytes] > threshold * (double)most) {
    tp__segment_t *oldest = NULL;
    for (tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
      if (!is_idle(segment) || segment->pool->class != TP_CLASS_LARGE) continue;
      if (!oldest || segment->idle_since < oldest->idle_since) oldest = segment;
    }
    if (!oldest) return TP_OK;
    TP_TRY(tp__wait_note_locked(operation));
    TP_TRY(release(heap, oldest, operation));
  }
  return TP_OK;
}

/* The smallest idle segment of at least nbytes, else the largest one, of those that have at least `least`. */
static tp__segment_t *choose(const tp__heap_t *heap, size_t least, size_t nbytes) {
  tp__segment_t *best = NULL;
  for (tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    if (!is_idle(segment) || segment->nbytes < least) continue;
    bool is_better = !best || (best->nbytes < nbytes ? segment->nbytes > best->nbytes
                                                     : segment->nbytes >= nbytes && segment->nbytes < best->nbytes);
    if (is_better) best = segment;
  }
  return best;
}

tp_status_t tp__collect_oversize(tp__heap_t *heap, size_t nbytes, const char *operation, bool *out_found) {
  size_t total = 0, least = tp__settings()->max_split_size;
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    if (is_idle(segment) && segment->nbytes >= least) total += segment->nbytes;
  }
  *out_found = total >= nbytes;
  while (*out_found && nbytes > 0) {
    tp__segment_t *segment = choose(heap, least, nbytes);
    nbytes -= segment->nbytes < nbytes ? segment->nbytes : nbytes;
    TP_TRY(release(heap, segment, operation));
  }
  return TP_OK;
}
