/* Captures underway, and which requests are part of one: those on the stream where it began and on all that forked from
 * it, which CUDA tells by the number of the capture. Bodies of conditional nodes are captures of their own to CUDA, and
 * to the program a part of the outermost one. A capture that another library has begun is none of ours, and its streams
 * allocate as they always do. */
#include <stdlib.h>

#include "alloc.h"

struct tp__capture {
  tp_mempool_t *mempool;
  tp_stream_t *stream;  /* where it began */
  _Atomic uint64_t id;  /* 0 until somebody asked */
  tp__draws_t *draws;
  tp__failure_t failure; /* under the lock */
  tp__capture_t *outermost; /* of a body: what it is a part of */
  tp__capture_t *next;
};

_Atomic int32_t tp__captures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; the pools' lock is taken inside of it */
static tp__capture_t *captures;

static tp__capture_t *note(tp_mempool_t *mempool, tp_stream_t *stream, tp__capture_t *outermost) {
  tp__capture_t *capture = malloc(sizeof *capture);
  if (!capture) {
    tp__error_set(TP_HOST_MEMORY, "capture_begin", "no host memory to note a capture");
    return NULL;
  }
  tp__mempool_retain(mempool);
  tp__cache_suspend(); /* whose blocks know no capture */
  pthread_mutex_lock(&lock);
  *capture = (tp__capture_t){.mempool = mempool, .stream = stream, .outermost = outermost, .next = captures};
  captures = capture;
  atomic_fetch_add_explicit(&tp__captures, 1, memory_order_release);
  pthread_mutex_unlock(&lock);
  return capture;
}

tp__capture_t *tp__capture_begin(tp_mempool_t *mempool, tp_stream_t *stream) {
  tp__capture_t *capture = note(mempool, stream, NULL);
  if (!capture) return NULL;
  /* Whoever did not see it yet may be about to ask a stream how far it is, which would break its capture. */
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) {
    tp__heap_lock(tp__heap(device));
    tp__heap_unlock(tp__heap(device));
  }
  return capture;
}

tp__capture_t *tp__capture_begin_body(tp__capture_t *outermost, tp_stream_t *stream) {
  return note(outermost->mempool, stream, outermost);
}

void tp__capture_end(tp__capture_t *capture) {
  if (!capture || tp__device_is_inherited()) return;
  pthread_mutex_lock(&lock);
  tp__capture_t **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  bool last = atomic_fetch_sub_explicit(&tp__captures, 1, memory_order_release) == 1;
  pthread_mutex_unlock(&lock);
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

uint64_t tp__capture_id(tp__capture_t *capture) {
  uint64_t id = capture->id;
  if (!id) capture->id = id = tp__stream_capture(capture->stream);
  return id;
}

/* The capture of ours with CUDA's number, or NULL. Under the lock. */
static tp__capture_t *find(uint64_t id) {
  tp__capture_t *capture = captures;
  while (capture && tp__capture_id(capture) != id) capture = capture->next;
  return capture;
}

bool tp__capture_is_ours(uint64_t id) {
  pthread_mutex_lock(&lock);
  bool ours = find(id);
  pthread_mutex_unlock(&lock);
  return ours;
}

void tp__capture_set_draws(tp__capture_t *capture, tp__draws_t *draws) {
  pthread_mutex_lock(&lock);
  capture->draws = draws;
  pthread_mutex_unlock(&lock);
}

tp__draws_t *tp__capture_draws(const tp_stream_t *stream) {
  uint64_t id = tp__captures_underway() ? tp__stream_capture(stream) : 0;
  if (!id) return NULL;
  pthread_mutex_lock(&lock);
  const tp__capture_t *capture = find(id);
  tp__draws_t *draws = capture ? capture->draws : NULL;
  pthread_mutex_unlock(&lock);
  return draws;
}

void tp__capture_disown(tp__block_t *block) {
  tp__heap_t *heap = block->segment->heap;
  tp__heap_lock(heap);
  block->capture = 0;
  tp__heap_unlock(heap);
}

tp_stream_t *tp__capture_stream(const tp__capture_t *capture) { return capture->stream; }

tp__failure_t *tp__capture_failure(tp__capture_t *capture) { return &capture->failure; }

void tp__capture_each(void (*visit)(tp__capture_t *capture, void *context), void *context) {
  pthread_mutex_lock(&lock);
  for (tp__capture_t *capture = captures; capture; capture = capture->next) visit(capture, context);
  pthread_mutex_unlock(&lock);
}

void tp__capture_route(tp__request_t *request) {
  uint64_t id = tp__captures_underway() ? tp__stream_capture(request->stream) : 0;
  if (id) {
    pthread_mutex_lock(&lock);
    tp__capture_t *capture = find(id);
    if (capture) {
      request->mempool = capture->mempool;
      request->capture = tp__capture_id(capture->outermost ? capture->outermost : capture);
      tp__mempool_retain(request->mempool);
    }
    pthread_mutex_unlock(&lock);
  }
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
