/* The allocator: how a request is served, and in which order attempts are made when memory is short. All of
 * that order stands in obtain(); docs/design/allocator.md gives the reasons. */
#include "alloc.h"

#include <stdio.h>

/* Sizes above this cannot be rounded up and counted in 64 bits. */
#define MAX_NBYTES ((size_t)INT64_MAX / TP_SEGMENT_UNIT * TP_SEGMENT_UNIT)

static const char operation[] = "allocate";

static tp__heap_t heaps[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER, .random = 0x9E3779B9u},
};

tp__heap_t *tp__heap(int32_t device) { return &heaps[device]; }

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
 * belongs to `stream`. NULL when there is none. */
static tp__block_t *take_over(tp__heap_t *heap, tp__size_class_t class, size_t nbytes, tp_stream_t *stream,
                              bool idle_only) {
  tp__pool_t *pool = &heap->pools[class];
  tp__block_t *best = NULL;
  for (int32_t id = 0; id < pool->room; id++) {
    if (!pool->shelves[id] || pool->shelves[id]->stream == stream) continue;
    if (tp__stream_is_external(pool->shelves[id]->stream)) continue; /* its owner may have destroyed it */
    tp__block_t *block = tp__pool_find(pool, id, nbytes);
    if (!block || (best && best->nbytes <= block->nbytes)) continue;
    if (!idle_only || is_idle(block->stream)) best = block;
  }
  if (!best || (!idle_only && !wait_for(heap, stream, best->stream))) return NULL;
  tp__pool_remove(heap, best);
  best->stream = stream;
  return tp__pool_insert_merged(heap, best);
}

/* ---- when there is no room ---- */

typedef struct size_text {
  char text[48];
} size_text_t;

static size_text_t size_text(size_t nbytes) {
  size_text_t out;
  if (nbytes >= TP_GiB) {
    snprintf(out.text, sizeof out.text, "%.2f GiB", (double)nbytes / (double)TP_GiB);
  } else if (nbytes >= TP_MiB) {
    snprintf(out.text, sizeof out.text, "%.2f MiB", (double)nbytes / (double)TP_MiB);
  } else if (nbytes >= TP_KiB) {
    snprintf(out.text, sizeof out.text, "%.2f KiB", (double)nbytes / (double)TP_KiB);
  } else {
    snprintf(out.text, sizeof out.text, "%zu bytes", nbytes);
  }
  return out;
}

/* What a refused request and its heap look like. */
typedef struct shortage {
  size_t nbytes;
  size_t total, free, others;   /* of the device; used by others */
  size_t allocated, reserved;
  size_t largest, returnable;   /* of what is reserved */
  size_t pending;               /* given back, but used by streams that are being captured */
  bool capturing;
} shortage_t;

static const char *advice(const shortage_t *self) {
  size_t cached = self->reserved - self->allocated;
  if (self->nbytes > self->total) {
    return "The request is larger than the device: split it, or use another device.";
  }
  if (self->capturing) {
    return "Cached memory is not given back during a capture: empty the cache before the capture begins.";
  }
  if (self->pending >= self->nbytes) {
    return "Streams that are being captured still use memory that was given back: end the capture first.";
  }
  if (cached >= self->nbytes) {
    return "The cached memory would be enough but lies in pieces: allocate the largest tensors first, or "
           "free the small ones between the pieces.";
  }
  if (self->others > self->allocated) {
    return "Most of the device is used by other processes or libraries: end them, or use another device.";
  }
  return "Tensors of this process hold most of it: drop some, or use smaller batches or a smaller dtype.";
}

static tp_status_t refuse(tp__heap_t *heap, size_t nbytes, bool capturing) {
  shortage_t self = {.nbytes = nbytes, .capturing = capturing};
  heap->stats[TP_STAT_num_ooms]++;
  TP_TRY_CUDA(cudaMemGetInfo(&self.free, &self.total), operation);
  const int64_t *stats = heap->stats;
  self.allocated = (size_t)stats[TP_STAT_allocated_bytes];
  self.reserved = (size_t)stats[TP_STAT_reserved_bytes];
  self.pending = (size_t)stats[TP_STAT_active_bytes] - self.allocated;
  self.largest = tp__pool_largest_free(heap);
  self.returnable = tp__segment_idle_nbytes(heap);
  size_t known = self.free + self.reserved;
  self.others = self.total > known ? self.total - known : 0;
  return tp__error_set(
      TP_OUT_OF_MEMORY, operation,
      "cuda:%d has no room for %s (%zu bytes). The device has %s, of which %s are free, %s are reserved here "
      "and %s are used by others. Of the reserved, %s are allocated, the largest free block has %s and %s "
      "can be returned to the driver. %s",
      heap->device, size_text(nbytes).text, nbytes, size_text(self.total).text, size_text(self.free).text,
      size_text(self.reserved).text, size_text(self.others).text, size_text(self.allocated).text,
      size_text(self.largest).text, size_text(self.returnable).text, advice(&self));
}

/* ---- the order of attempts ---- */

static tp_status_t device_total(size_t *out_total) {
  size_t free_nbytes;
  TP_TRY_CUDA(cudaMemGetInfo(&free_nbytes, out_total), operation);
  return TP_OK;
}

static tp__block_t *find_anywhere(tp__heap_t *heap, tp__size_class_t class, size_t nbytes,
                                  tp_stream_t *stream) {
  tp__block_t *block = tp__pool_find(&heap->pools[class], tp__stream_id(stream), nbytes);
  return block ? block : take_over(heap, class, nbytes, stream, false);
}

/* A free block in the stream's shelf for a request that found none there. The device is entered, capture
 * rules are relaxed. */
static tp_status_t obtain(tp__heap_t *heap, tp__size_class_t class, size_t nbytes, tp_stream_t *stream,
                          tp__block_t **out) {
  if (!tp__pool_prepare(&heap->pools[class], stream)) {
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list the free blocks of a stream");
  }
  /* What a capture uses must not depend on other streams, and nothing that it used may be released. */
  bool capturing = tp__stream_is_capturing(stream);

  /* 1. A block of an idle stream: nothing has to wait for it. */
  if (!capturing && (*out = take_over(heap, class, nbytes, stream, true))) return TP_OK;

  /* 2. Blocks that external streams used: waiting for the device costs less than memory from the driver. */
  if (!capturing && tp__defer_wait_external(heap) && (*out = find_anywhere(heap, class, nbytes, stream)))
    return TP_OK;

  /* 3. The driver. */
  size_t segment_nbytes = tp__segment_size(nbytes);
  bool refused;
  tp_status_t status = tp__segment_obtain(heap, class, segment_nbytes, stream, out, &refused);
  if (!refused) return status;

  size_t total;
  TP_TRY(device_total(&total));
  if (!capturing && segment_nbytes <= total) {
    /* 4. A block of a busy stream: this stream waits, the host does not. */
    if ((*out = take_over(heap, class, nbytes, stream, false))) return TP_OK;

    /* 5. Blocks that other streams still use: the host waits. */
    heap->stats[TP_STAT_num_alloc_retries]++;
    tp__defer_wait(heap);
    if ((*out = find_anywhere(heap, class, nbytes, stream))) return TP_OK;

    /* 6. The driver again, after everything cached went back to it. */
    TP_TRY(tp__segment_release_idle(heap, operation));
    status = tp__segment_obtain(heap, class, segment_nbytes, stream, out, &refused);
    if (!refused) return status;
  }
  return refuse(heap, nbytes, capturing);
}

static tp__block_t *enter_and_obtain(tp__heap_t *heap, tp__size_class_t class, size_t nbytes,
                                     tp_stream_t *stream) {
  heap->device = tp_stream_device(stream);
  if (tp__device_enter(heap->device, operation)) return NULL;
  tp__block_t *block = NULL;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  tp_status_t status = obtain(heap, class, nbytes, stream, &block);
  tp__capture_restore(mode);
  return status ? NULL : block;
}

/* ---- allocating and freeing ---- */

/* Takes a block out of its shelf, without the part of it that is worth keeping for others. */
static void activate(tp__heap_t *heap, tp__block_t *block, size_t nbytes, size_t requested_nbytes) {
  tp__size_class_t class = block->segment->class;
  size_t smallest_rest = class == TP_CLASS_SMALL ? TP_BLOCK_UNIT : TP_LARGE_REST_LIMIT + TP_BLOCK_UNIT;
  tp__pool_remove(heap, block);
  if (block->nbytes - nbytes >= smallest_rest) {
    /* Without host memory for the rest's record the block is handed out whole. */
    tp__block_t *rest = tp__block_split(heap, block, nbytes);
    if (rest) tp__pool_insert(heap, rest);
  }
  block->state = TP_BLOCK_LIVE;
  block->requested_nbytes = requested_nbytes;
  block->segment->active++;
  tp__stat_increase(heap->stats, TP_STAT_allocation, class, 1);
  tp__stat_increase(heap->stats, TP_STAT_allocated_bytes, class, block->nbytes);
  tp__stat_increase(heap->stats, TP_STAT_requested_bytes, class, requested_nbytes);
  tp__stat_increase(heap->stats, TP_STAT_active, class, 1);
  tp__stat_increase(heap->stats, TP_STAT_active_bytes, class, block->nbytes);
}

void tp__heap_retire(tp__heap_t *heap, tp__block_t *block) {
  tp__size_class_t class = block->segment->class;
  block->segment->active--;
  tp__stat_decrease(heap->stats, TP_STAT_active, class, 1);
  tp__stat_decrease(heap->stats, TP_STAT_active_bytes, class, block->nbytes);
  tp__pool_insert_merged(heap, block);
}

tp__block_t *tp__alloc(size_t nbytes, tp_stream_t *stream) {
  if (nbytes > MAX_NBYTES) {
    tp__error_set(TP_OVERFLOW, operation, "got %zu bytes, expected at most %zu", nbytes, MAX_NBYTES);
    return NULL;
  }
  size_t block_nbytes = (nbytes + TP_BLOCK_UNIT - 1) / TP_BLOCK_UNIT * TP_BLOCK_UNIT;
  tp__size_class_t class = block_nbytes <= TP_SMALL_LIMIT ? TP_CLASS_SMALL : TP_CLASS_LARGE;
  tp__heap_t *heap = &heaps[tp_stream_device(stream)];
  pthread_mutex_lock(&heap->lock);
  if (heap->deferred > 0) tp__defer_poll(heap);
  tp__block_t *block = tp__pool_find(&heap->pools[class], tp__stream_id(stream), block_nbytes);
  if (!block) block = enter_and_obtain(heap, class, block_nbytes, stream);
  if (block) activate(heap, block, block_nbytes, nbytes);
  pthread_mutex_unlock(&heap->lock);
  return block;
}

void *tp__alloc_address(const tp__block_t *block) { return block->address; }

void tp__alloc_free(tp__block_t *block) {
  if (tp__device_is_inherited()) return;
  tp__heap_t *heap = block->segment->heap;
  tp__size_class_t class = block->segment->class;
  pthread_mutex_lock(&heap->lock);
  tp__stat_decrease(heap->stats, TP_STAT_allocation, class, 1);
  tp__stat_decrease(heap->stats, TP_STAT_allocated_bytes, class, block->nbytes);
  tp__stat_decrease(heap->stats, TP_STAT_requested_bytes, class, block->requested_nbytes);
  if (block->uses) {
    tp__defer_block(heap, block);
  } else {
    tp__heap_retire(heap, block);
  }
  pthread_mutex_unlock(&heap->lock);
}

tp_status_t tp__alloc_record_stream(tp__block_t *block, tp_stream_t *stream) {
  tp__heap_t *heap = block->segment->heap;
  pthread_mutex_lock(&heap->lock);
  tp_status_t status = tp__defer_note(heap, block, stream);
  pthread_mutex_unlock(&heap->lock);
  return status;
}
