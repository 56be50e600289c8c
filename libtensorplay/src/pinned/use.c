/* Copies from and to pinned memory, which use their block until they have run. An event is recorded behind each copy,
 * at once: so of a stream nothing is asked later, and an external one may be gone by then. A block has one use for
 * each stream, whose event stands for the stream's last copy. In a capture the graph holds the block (hold.c).
 *
 * A block that is given back waits for its uses. They wait in one queue for each stream, so that a slow stream holds up
 * nothing but what it uses itself; a queue is asked from its first use on. */
#include <stdlib.h>

#include "../mark.h"
#include "pinned.h"

struct tp__pinned_use {
  tp__pinned_block_t *block;
  tp__pinned_queue_t *queue;
  tp__mark_t passed;
  _Atomic bool copied; /* false where the first copy failed */
  tp__pinned_use_t *next; /* of the block's, later of the queue */
};

struct tp__pinned_queue {
  tp_stream_t *stream;
  tp__pinned_use_t *first;
  tp__pinned_use_t *last;
  tp__pinned_queue_t *next;
};

/* ---- noting a use, under the lock ---- */

static tp__pinned_queue_t *find_queue(tp_stream_t *stream) {
  tp__pinned_queue_t *queue = tp__pinned.queues;
  while (queue && queue->stream != stream) queue = queue->next;
  if (queue) return queue;
  queue = calloc(1, sizeof *queue);
  if (!queue) return NULL;
  queue->stream = stream;
  queue->next = tp__pinned.queues;
  return tp__pinned.queues = queue;
}

static tp_status_t note(tp__pinned_block_t *block, tp_stream_t *stream, tp__pinned_use_t **out,
                        const char *operation) {
  for (tp__pinned_use_t *use = block->uses; use; use = use->next) {
    if (use->queue->stream != stream) continue;
    *out = use;
    return TP_OK;
  }
  tp__pinned_queue_t *queue = find_queue(stream);
  tp__pinned_use_t *use = queue ? malloc(sizeof *use) : NULL;
  if (!use) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note a stream");
  *use = (tp__pinned_use_t){.block = block, .queue = queue, .next = block->uses};
  tp_status_t status = tp__mark_take(stream, &use->passed);
  if (status) {
    free(use);
    return status;
  }
  *out = block->uses = use;
  return TP_OK;
}

static void delete_use(tp__pinned_use_t *use) {
  tp__mark_give(&use->passed);
  free(use);
}

/* ---- copies ---- */

static bool is_live(const tp__pinned_block_t *block) { return block && block->state == TP_PINNED_LIVE; }

bool tp__pinned_serves(const void *memory, size_t nbytes) {
  pthread_mutex_lock(&tp__pinned.lock);
  bool serves = is_live(tp__pinned_find(memory, nbytes));
  pthread_mutex_unlock(&tp__pinned.lock);
  return serves;
}

tp_status_t tp__pinned_copy(void *target, const void *source, size_t nbytes, enum cudaMemcpyKind kind,
                            tp_stream_t *stream, bool *out_served, const char *operation) {
  const void *host = kind == cudaMemcpyHostToDevice ? source : target;
  tp__pinned_use_t *use = NULL;
  uint64_t capture = tp__stream_capture(stream);
  tp_status_t status = TP_OK;
  pthread_mutex_lock(&tp__pinned.lock);
  tp__pinned_block_t *block = tp__pinned_find(host, nbytes);
  *out_served = is_live(block);
  if (*out_served) status = capture ? tp__hold_add(capture, block, operation) : note(block, stream, &use, operation);
  pthread_mutex_unlock(&tp__pinned.lock);
  if (status || !*out_served) return status;
  cudaStream_t cuda = tp__stream_cuda(stream);
  TP_TRY(tp__watch(stream, 2, (tp__touch_t[]){{target, true}, {source, false}}, operation));
  TP_TRY_CUDA(cudaMemcpyAsync(target, source, nbytes, kind, cuda), operation);
  if (!use) return TP_OK;
  cudaError_t error = tp__mark_set(&use->passed);
  if (error) {
    status = tp__error_set_cuda(error, operation, "cudaEventRecord");
    (void)cudaStreamSynchronize(cuda); /* else nobody knew when the copy has run */
    return status;
  }
  atomic_store_explicit(&use->copied, true, memory_order_relaxed);
  return tp__settle(stream, operation);
}

/* ---- waiting for uses, under the lock ---- */

void tp__pinned_retire(tp__pinned_block_t *block) {
  for (tp__pinned_use_t *use = block->uses, *next; use; use = next) {
    next = use->next;
    if (!atomic_load_explicit(&use->copied, memory_order_relaxed)) {
      delete_use(use);
      continue;
    }
    tp__pinned_queue_t *queue = use->queue;
    use->next = NULL;
    *(queue->first ? &queue->last->next : &queue->first) = use;
    queue->last = use;
    block->pending_uses++;
    tp__pinned.pending++;
  }
  block->uses = NULL;
  block->state = TP_PINNED_PENDING;
  tp__pinned_shelve_unused(block);
}

void tp__pinned_shelve_unused(tp__pinned_block_t *block) {
  if (block->state == TP_PINNED_PENDING && !block->pending_uses && !block->holds) tp__pinned_shelve(block);
}

static void finish_first(tp__pinned_queue_t *queue) {
  tp__pinned_use_t *use = queue->first;
  tp__pinned_block_t *block = use->block;
  queue->first = use->next;
  tp__pinned.pending--;
  delete_use(use);
  block->pending_uses--;
  tp__pinned_shelve_unused(block);
}

void tp__pinned_settle(bool wait) {
  if (!tp__pinned_waits()) return;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  for (tp__pinned_queue_t *queue = tp__pinned.queues; queue; queue = queue->next) {
    int32_t before; /* in a thread without a device, CUDA would start its device 0 for a query */
    if (!queue->first || !tp__device_visit(tp_stream_device(queue->stream), &before)) continue;
    while (queue->first && !tp__mark_ask(&queue->first->passed, wait)) finish_first(queue);
    tp__device_leave(before);
  }
  tp__hold_settle(wait);
  tp__capture_restore(mode);
}
