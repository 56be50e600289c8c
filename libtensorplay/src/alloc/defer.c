/* Blocks that were given back while other streams may still use them. At that moment an event is recorded on
 * each stream that was noted (record_stream); the block becomes free when all of them have passed, which
 * every allocation checks. Uses wait in one queue for each stream: events of a stream pass in order, so only
 * the first of a queue is asked.
 *
 * Everything that can fail happens when a use is noted: its record, its queue and its event exist before
 * the block is given back. While its stream is being captured an event cannot be recorded (mark.h); the use then waits
 * in its queue until the capture has ended, or orders the block's own stream behind it.
 *
 * Of an external stream, which may be gone, nothing is asked and nothing recorded. Its uses end once the whole device
 * was waited for: before the driver is asked for memory, when memory is short, or when the cache is emptied. */
#include <stdlib.h>

#include "../mark.h"
#include "past.h"

struct tp__use {
  tp__block_t *block;
  tp__use_queue_t *queue;
  tp__mark_t mark;
  tp__use_t *next; /* of the block's uses, later of the queue */
};

struct tp__use_queue {
  tp_stream_t *stream;
  tp__use_t *first;
  tp__use_t *last;
  int32_t unrecorded;
  tp__use_queue_t *next;
};

/* ---- noting a use ---- */

static tp__use_queue_t *find_queue(tp__heap_t *heap, tp_stream_t *stream) {
  tp__use_queue_t *queue = heap->queues;
  while (queue && queue->stream != stream) queue = queue->next;
  if (queue) return queue;
  queue = calloc(1, sizeof *queue);
  if (!queue) return NULL;
  queue->stream = stream;
  queue->next = heap->queues;
  return heap->queues = queue;
}

static tp__use_t *new_use(tp__heap_t *heap) {
  tp__use_t *use = heap->spare_uses;
  if (!use) return malloc(sizeof *use);
  heap->spare_uses = use->next;
  return use;
}

static void delete_use(tp__heap_t *heap, tp__use_t *use) {
  use->next = heap->spare_uses;
  heap->spare_uses = use;
}

tp_status_t tp__defer_note(tp__heap_t *heap, tp__block_t *block, tp_stream_t *stream) {
  if (stream == block->stream) return TP_OK;
  for (tp__use_t *use = block->uses; use; use = use->next) {
    if (use->queue->stream == stream) return TP_OK;
  }
  tp__use_queue_t *queue = find_queue(heap, stream);
  tp__use_t *use = queue ? new_use(heap) : NULL;
  if (!use) return tp__error_set(TP_HOST_MEMORY, "record_stream", "no host memory to note a stream");
  *use = (tp__use_t){.block = block, .queue = queue, .next = block->uses};
  tp_status_t status = tp__mark_take(stream, &use->mark);
  if (status) {
    delete_use(heap, use);
    return status;
  }
  block->uses = use;
  return TP_OK;
}

/* ---- waiting for uses ---- */

static bool is_recorded(const tp__use_t *use) { return tp__mark_is_recorded(&use->mark); }

/* Records what waits to be recorded, unless the stream is being captured. */
static void record_uses(tp__use_queue_t *queue) {
  for (tp__use_t *use = queue->first; use && queue->unrecorded > 0; use = use->next) {
    if (is_recorded(use)) continue;
    (void)tp__mark_set(&use->mark); /* where the context is lost, whoever waits next reports it */
    if (!is_recorded(use)) return;
    queue->unrecorded--;
  }
}

/* On the stream's own device, which the default stream needs. */
static void visit_and_record(tp__use_queue_t *queue) {
  int32_t before;
  if (tp__device_visit(tp_stream_device(queue->stream), &before)) record_uses(queue);
  tp__device_leave(before);
}

/* Uses in queues of that kind. */
static int32_t *count_of(tp__heap_t *heap, const tp__use_queue_t *queue) {
  return tp__stream_is_external(queue->stream) ? &heap->deferred_external : &heap->deferred;
}

static void append(tp__use_queue_t *queue, tp__use_t *use) {
  use->next = NULL;
  *(queue->first ? &queue->last->next : &queue->first) = use;
  queue->last = use;
}

static tp__use_t *take_first(tp__use_queue_t *queue) {
  tp__use_t *use = queue->first;
  queue->first = use->next;
  return use;
}

/* A use that is in no queue any more. */
static void finish(tp__heap_t *heap, tp__use_t *use) {
  tp__block_t *block = use->block;
  --*count_of(heap, use->queue);
  tp__mark_give(&use->mark);
  delete_use(heap, use);
  if (--block->pending_uses == 0) tp__heap_retire(heap, block, block->origin);
}

/* Finishes the uses that have passed; with wait, waits for them. */
static void finish_uses(tp__heap_t *heap, bool wait) {
  int32_t before; /* in a thread without a device, CUDA would start its device 0 for a query */
  bool entered = tp__device_visit(heap->device, &before);
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  for (tp__use_queue_t *queue = heap->queues; entered && queue; queue = queue->next) {
    if (tp__stream_is_external(queue->stream)) continue;
    if (queue->unrecorded > 0) visit_and_record(queue);
    while (queue->first && is_recorded(queue->first)) {
      if (tp__mark_ask(&queue->first->mark, wait)) {
        if (!is_recorded(queue->first)) queue->unrecorded++; /* of a capture that came and went unseen */
        break;
      }
      finish(heap, take_first(queue));
    }
  }
  tp__capture_restore(mode);
  tp__device_leave(before);
}

void tp__defer_block(tp__heap_t *heap, tp__block_t *block) {
  block->state = TP_BLOCK_PENDING;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  for (tp__use_t *use = block->uses; use;) {
    tp__use_t *next = use->next;
    tp__use_queue_t *queue = use->queue;
    append(queue, use);
    block->pending_uses++;
    ++*count_of(heap, queue);
    if (!tp__stream_is_external(queue->stream)) {
      queue->unrecorded++;
      visit_and_record(queue);
    }
    use = next;
  }
  block->uses = NULL;
  tp__capture_restore(mode);
}

void tp__defer_poll(tp__heap_t *heap) { finish_uses(heap, false); }

bool tp__defer_wait_external(tp__heap_t *heap) {
  if (!heap->deferred_external || tp__captures_underway()) return false;
  int32_t before;
  bool waited = tp__device_visit(heap->device, &before) && !cudaDeviceSynchronize();
  if (!waited) (void)cudaGetLastError(); /* a capture; or lost, which whoever waits next reports */
  for (tp__use_queue_t *queue = heap->queues; waited && queue; queue = queue->next) {
    while (tp__stream_is_external(queue->stream) && queue->first) finish(heap, take_first(queue));
  }
  tp__device_leave(before);
  return waited;
}

void tp__defer_wait(tp__heap_t *heap) {
  heap->stats[TP_STAT_num_sync_all_streams]++;
  tp__defer_wait_external(heap);
  finish_uses(heap, true);
}

/* ---- in a capture ---- */

/* Whether the use is work of the request's capture, which the request's stream may come after. */
static bool is_captured(const tp__use_t *use, const tp__request_t *request) {
  return !is_recorded(use) && use->block->capture == request->capture && use->block->stream == request->stream;
}

static bool has_captured(const tp__use_queue_t *queue, const tp__request_t *request) {
  if (queue->unrecorded == 0) return false;
  const tp__use_t *use = queue->first;
  while (use && !is_captured(use, request)) use = use->next;
  return use;
}

static void finish_captured(tp__heap_t *heap, tp__use_queue_t *queue, const tp__request_t *request) {
  tp__use_t *last = queue->last, *use;
  do {
    use = take_first(queue);
    if (is_captured(use, request)) {
      queue->unrecorded--;
      finish(heap, use);
    } else {
      append(queue, use);
    }
  } while (use != last);
}

void tp__defer_join(tp__heap_t *heap, const tp__request_t *request) {
  tp__past_t *past = NULL;
  for (tp__use_queue_t *queue = heap->queues; queue; queue = queue->next) {
    if (!has_captured(queue, request)) continue;
    if (!past && !(past = tp__past_new(request->stream))) return;
    if (tp__past_holds(past, queue->stream)) finish_captured(heap, queue, request);
  }
  tp__past_delete(past);
}
