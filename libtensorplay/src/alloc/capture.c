/* Memory of captures: requests on the stream where one of ours began, and on all that forked from it, which CUDA tells
 * by the number of the capture, go to its pool. A capture that another library has begun is none of ours, and its
 * streams allocate as they always do. */
#include <stdlib.h>

#include "alloc.h"

static tp__capture_t *begin(tp_mempool_t *mempool, tp_stream_t *stream, tp__capture_t *outermost) {
  tp__capture_t *capture = malloc(sizeof *capture);
  if (!capture) {
    tp__error_set(TP_HOST_MEMORY, "capture_begin", "no host memory to note a capture");
    return NULL;
  }
  *capture = (tp__capture_t){.mempool = mempool, .stream = stream, .outermost = outermost};
  tp__mempool_retain(mempool);
  tp__cache_suspend(); /* whose blocks know no capture */
  tp__capture_add(capture);
  return capture;
}

tp__capture_t *tp__capture_begin(tp_mempool_t *mempool, tp_stream_t *stream) {
  tp__capture_t *capture = begin(mempool, stream, NULL);
  if (!capture) return NULL;
  /* Whoever did not see it yet may be about to ask a stream how far it is, which would break its capture. */
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) {
    tp__heap_lock(tp__heap(device));
    tp__heap_unlock(tp__heap(device));
  }
  return capture;
}

tp__capture_t *tp__capture_begin_body(tp__capture_t *outermost, tp_stream_t *stream) {
  return begin(outermost->mempool, stream, outermost);
}

void tp__capture_end(tp__capture_t *capture) {
  if (!capture || tp__device_is_inherited()) return;
  bool last = tp__capture_remove(capture);
  tp__hold_t *untaken = NULL;
  if (capture->id) tp__hold_take(capture->id, &untaken);
  tp__hold_drop(untaken);
  tp__cache_resume();
  tp__order_end_capture(capture->stream);
  tp__mempool_drop(capture->mempool);
  free(capture);
  for (int32_t device = 0; last && device < TP_MAX_DEVICES; device++) {
    if (!tp_device_is_started(device)) continue;
    tp__heap_t *heap = tp__heap(device); /* what could not go back in the meantime */
    tp__heap_lock(heap);
    tp__private_pool_settle_all(heap);
    tp__heap_unlock(heap);
  }
}

/* A request on a stream of the capture with CUDA's number. */
typedef struct wanted {
  uint64_t id;
  tp__request_t *request;
} wanted_t;

static void route(tp__capture_t *capture, void *context) {
  const wanted_t *wanted = context;
  tp__request_t *request = wanted->request;
  if (request->mempool || tp__capture_id(capture) != wanted->id) return;
  request->mempool = capture->mempool;
  request->capture = tp__capture_id(capture->outermost ? capture->outermost : capture);
  tp__mempool_retain(request->mempool);
}

void tp__capture_route(tp__request_t *request) {
  wanted_t wanted = {.request = request};
  if (tp__captures_underway()) wanted.id = tp__stream_capture(request->stream);
  if (wanted.id) tp__capture_each(route, &wanted);
  if (!request->mempool && tp__route.pool) request->mempool = tp__mempool_current(tp_stream_device(request->stream));
}

/* The block becomes `stream`'s, whose work comes behind all that was captured with it so far. A live one may be used on
 * its former stream once more. The next one to look at, or NULL with *status set. */
static tp__block_t *hand_over(tp__heap_t *heap, tp__block_t *block, tp_stream_t *stream, tp_status_t *status) {
  tp_stream_t *former = block->stream;
  if (block->state == TP_BLOCK_FREE) tp__pool_remove(heap, block);
  block->stream = stream;
  if (block->state == TP_BLOCK_FREE) return tp__pool_insert_merged(heap, block)->next;
  if (block->state == TP_BLOCK_LIVE) *status = tp__defer_note(heap, block, former);
  return block->next;
}

static tp_status_t gather_segment(tp__heap_t *heap, tp__segment_t *segment, tp_stream_t *stream, uint64_t id,
                                  const char *operation) {
  tp_status_t status = TP_OK;
  if (!tp__pool_prepare(segment->pool, stream))
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note what the body has allocated");
  for (tp__block_t *block = segment->first; block && !status;) {
    bool forked = block->stream != stream && tp__stream_capture(block->stream) == id;
    block = forked ? hand_over(heap, block, stream, &status) : block->next;
  }
  if (segment->grows_for && tp__stream_capture(segment->grows_for) == id) segment->grows_for = stream;
  return status;
}

tp_status_t tp__capture_gather(tp__capture_t *capture, const char *operation) {
  tp__heap_t *heap = tp__heap(tp_stream_device(capture->stream));
  tp_status_t status = TP_OK;
  uint64_t id = tp__capture_id(capture);
  tp__heap_lock(heap);
  for (tp__segment_t *segment = heap->segments; segment && !status; segment = segment->next) {
    const tp__private_pool_t *owner = segment->pool->owner;
    if (owner && owner->mempool == capture->mempool)
      status = gather_segment(heap, segment, capture->stream, id, operation);
  }
  tp__heap_unlock(heap);
  return status;
}

void tp__capture_disown(tp__block_t *block) {
  tp__heap_t *heap = block->segment->heap;
  tp__heap_lock(heap);
  block->capture = 0;
  tp__heap_unlock(heap);
}

int64_t tp__capture_live_blocks(const tp_mempool_t *mempool, uint64_t id, size_t *out_nbytes) {
  int64_t count = 0;
  *out_nbytes = 0;
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) {
    if (!tp_device_is_started(device)) continue;
    tp__heap_t *heap = tp__heap(device);
    tp__heap_lock(heap);
    for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
      if (!segment->pool->owner || segment->pool->owner->mempool != mempool) continue;
      for (const tp__block_t *block = segment->first; block; block = block->next) {
        if (block->state != TP_BLOCK_LIVE || block->capture != id) continue;
        count++;
        *out_nbytes += block->nbytes;
      }
    }
    tp__heap_unlock(heap);
  }
  return count;
}
