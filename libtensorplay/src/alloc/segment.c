/* Segments: regions obtained from the driver, and the only calls of cudaMalloc and cudaFree, or of what a
 * private pool has in their place. */
#include <stdlib.h>

#include "growing.h"

size_t tp__segment_size(size_t block_nbytes) {
  if (block_nbytes <= TP_SMALL_LIMIT) return TP_SMALL_SEGMENT;
  if (block_nbytes < TP_OWN_SEGMENT_LIMIT) return tp__settings()->large_segment_size;
  return tp__round_up(block_nbytes, TP_SEGMENT_UNIT);
}

void tp__segment_link(tp__heap_t *heap, tp__segment_t *segment) {
  segment->heap = heap;
  segment->next = heap->segments;
  if (segment->next) segment->next->previous = segment;
  heap->segments = segment;
  tp__stat_increase(heap->stats, TP_STAT_segment, segment->pool->class, 1);
  if (segment->oversize) tp__stat_increase_one(&heap->stats[TP_STAT_oversize_segments], 1);
  if (segment->pool->owner) segment->pool->owner->segments++;
}

void tp__segment_unlink(tp__heap_t *heap, tp__segment_t *segment) {
  if (segment->next) segment->next->previous = segment->previous;
  if (segment->previous) {
    segment->previous->next = segment->next;
  } else {
    heap->segments = segment->next;
  }
  tp__stat_decrease(heap->stats, TP_STAT_segment, segment->pool->class, 1);
  if (segment->oversize) tp__stat_decrease_one(&heap->stats[TP_STAT_oversize_segments], 1);
  if (segment->pool->owner) segment->pool->owner->segments--;
}

void tp__segment_count_obtained(tp__heap_t *heap, const tp__segment_t *segment, size_t nbytes) {
  heap->stats[TP_STAT_num_device_alloc]++;
  tp__stat_increase(heap->stats, TP_STAT_reserved_bytes, segment->pool->class, nbytes);
  if (segment->pool->owner) segment->pool->owner->reserved += nbytes;
}

void tp__segment_count_released(tp__heap_t *heap, const tp__segment_t *segment, size_t nbytes) {
  heap->stats[TP_STAT_num_device_free]++;
  tp__stat_decrease(heap->stats, TP_STAT_reserved_bytes, segment->pool->class, nbytes);
  if (segment->pool->owner) segment->pool->owner->reserved -= nbytes;
}

/* Other threads may allocate meanwhile; what is asked for counts towards the limit already. */
static cudaError_t ask_without_lock(tp__heap_t *heap, size_t nbytes, void **out) {
  int64_t origin = heap->trace.origin;
  heap->asked += nbytes;
  tp__heap_unlock(heap);
  cudaError_t error = cudaMalloc(out, nbytes);
  tp__heap_lock(heap);
  heap->asked -= nbytes;
  heap->trace.origin = origin;
  return error;
}

/* A private pool may have a source of its own. */
static cudaError_t ask(tp__heap_t *heap, const tp__private_pool_t *owner, size_t nbytes, tp_stream_t *stream,
                       void **out) {
  if (!owner && tp__settings()->release_lock_on_cudamalloc) return ask_without_lock(heap, nbytes, out);
  if (!owner || !owner->mempool->allocate) return cudaMalloc(out, nbytes);
  int32_t device = tp_stream_device(stream);
  *out = owner->mempool->allocate((ptrdiff_t)nbytes, device, tp__stream_cuda(stream));
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t give(const tp__segment_t *segment) {
  const tp__private_pool_t *owner = segment->pool->owner;
  const tp__block_t *first = segment->first;
  /* cudaFree waits for the device, so work that still uses the pieces is done before they go. */
  if (!owner || !owner->mempool->allocate) return cudaFree(first->address);
  cudaError_t error = cudaDeviceSynchronize();
  if (!error) {
    owner->mempool->release(first->address, (ptrdiff_t)segment->nbytes, tp_stream_device(first->stream),
                            tp__stream_cuda(first->stream));
  }
  return error;
}

tp_status_t tp__segment_obtain(tp__heap_t *heap, tp__pool_t *pool, size_t nbytes, tp_stream_t *stream,
                               tp__block_t **out_block, bool *out_refused) {
  const char *operation = "allocate";
  *out_refused = false;
  tp__segment_t *segment = calloc(1, sizeof *segment);
  tp__block_t *block = segment ? tp__block_new(heap) : NULL;
  if (!block) {
    free(segment);
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to describe %zu bytes", nbytes);
  }
  void *address = NULL;
  cudaError_t error = ask(heap, pool->owner, nbytes, stream, &address);
  if (error) {
    tp__block_delete(heap, block);
    free(segment);
    *out_refused = error == cudaErrorMemoryAllocation;
    if (!*out_refused) return tp__error_set_cuda(error, operation, "cudaMalloc");
    (void)cudaGetLastError(); /* there are further attempts to come */
    return TP_OUT_OF_MEMORY;
  }
  segment->pool = pool;
  segment->nbytes = nbytes;
  segment->first = block;
  segment->origin = heap->trace.origin;
  segment->oversize = nbytes >= tp__settings()->max_split_size;
  tp__segment_link(heap, segment);
  tp__segment_count_obtained(heap, segment, nbytes);
  block->address = address;
  block->nbytes = nbytes;
  block->segment = segment;
  block->stream = stream;
  tp__trace_segment(heap, TP_TRACE_segment_alloc, segment);
  tp__pool_insert(heap, block);
  *out_block = block;
  return TP_OK;
}

cudaError_t tp__segment_release(tp__heap_t *heap, tp__segment_t *segment, const char **out_call) {
  if (segment->grows_for) return tp__growing_release(heap, segment, out_call);
  *out_call = "cudaFree";
  cudaError_t error = give(segment);
  if (error) return error;
  tp__trace_segment(heap, TP_TRACE_segment_free, segment);
  tp__order_forget(segment->first->address, segment->nbytes);
  for (tp__block_t *block = segment->first; block;) {
    tp__block_t *next = block->next;
    tp__pool_remove(heap, block);
    tp__block_delete(heap, block);
    block = next;
  }
  tp__segment_unlink(heap, segment);
  tp__segment_count_released(heap, segment, segment->nbytes);
  free(segment);
  return cudaSuccess;
}

tp_status_t tp__segment_release_idle(tp__heap_t *heap, const char *operation) {
  for (tp__segment_t *segment = heap->segments; segment;) {
    tp__segment_t *next = segment->next;
    const char *call;
    bool goes = (segment->active == 0 || segment->grows_for) && !segment->pool->owner;
    cudaError_t error = goes ? tp__segment_release(heap, segment, &call) : cudaSuccess;
    if (error) return tp__error_set_cuda(error, operation, call);
    segment = next;
  }
  heap->most_active = (size_t)heap->stats[TP_STAT_active_bytes];
  return TP_OK;
}

size_t tp__segment_idle_nbytes(const tp__segment_t *segment) {
  if (segment->grows_for) return tp__idle_nbytes(segment);
  return segment->active == 0 ? segment->nbytes : 0;
}
