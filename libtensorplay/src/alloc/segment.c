/* Segments: regions obtained from the driver, and the only calls of cudaMalloc and cudaFree. */
#include <stdlib.h>

#include "alloc.h"

static size_t round_up(size_t nbytes, size_t unit) { return (nbytes + unit - 1) / unit * unit; }

size_t tp__segment_size(size_t block_nbytes) {
  if (block_nbytes <= TP_SMALL_LIMIT) return TP_SMALL_SEGMENT;
  if (block_nbytes < TP_OWN_SEGMENT_LIMIT) return TP_LARGE_SEGMENT;
  return round_up(block_nbytes, TP_SEGMENT_UNIT);
}

static void link_segment(tp__heap_t *heap, tp__segment_t *segment) {
  segment->next = heap->segments;
  if (segment->next) segment->next->previous = segment;
  heap->segments = segment;
}

static void unlink_segment(tp__heap_t *heap, tp__segment_t *segment) {
  if (segment->next) segment->next->previous = segment->previous;
  if (segment->previous) {
    segment->previous->next = segment->next;
  } else {
    heap->segments = segment->next;
  }
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
  cudaError_t error = cudaMalloc(&address, nbytes);
  if (error) {
    tp__block_delete(heap, block);
    free(segment);
    *out_refused = error == cudaErrorMemoryAllocation;
    if (!*out_refused) return tp__error_set_cuda(error, operation, "cudaMalloc");
    (void)cudaGetLastError(); /* there are further attempts to come */
    return TP_OUT_OF_MEMORY;
  }
  segment->heap = heap;
  segment->pool = pool;
  segment->nbytes = nbytes;
  segment->first = block;
  segment->origin = heap->trace.origin;
  link_segment(heap, segment);
  heap->stats[TP_STAT_num_device_alloc]++;
  tp__stat_increase(heap->stats, TP_STAT_segment, pool->class, 1);
  tp__stat_increase(heap->stats, TP_STAT_reserved_bytes, pool->class, nbytes);
  block->address = address;
  block->nbytes = nbytes;
  block->segment = segment;
  block->stream = stream;
  tp__trace_segment(heap, TP_TRACE_segment_alloc, segment);
  tp__pool_insert(heap, block);
  *out_block = block;
  return TP_OK;
}

static tp_status_t release(tp__heap_t *heap, tp__segment_t *segment, const char *operation) {
  /* cudaFree waits for the device, so work that still uses the pieces is done before they go. */
  TP_TRY_CUDA(cudaFree(segment->first->address), operation);
  tp__trace_segment(heap, TP_TRACE_segment_free, segment);
  for (tp__block_t *block = segment->first; block;) {
    tp__block_t *next = block->next;
    tp__pool_remove(heap, block);
    tp__block_delete(heap, block);
    block = next;
  }
  unlink_segment(heap, segment);
  heap->stats[TP_STAT_num_device_free]++;
  tp__stat_decrease(heap->stats, TP_STAT_segment, segment->pool->class, 1);
  tp__stat_decrease(heap->stats, TP_STAT_reserved_bytes, segment->pool->class, segment->nbytes);
  free(segment);
  return TP_OK;
}

tp_status_t tp__segment_release_idle(tp__heap_t *heap, const char *operation) {
  for (tp__segment_t *segment = heap->segments; segment;) {
    tp__segment_t *next = segment->next;
    if (segment->active == 0) TP_TRY(release(heap, segment, operation));
    segment = next;
  }
  return TP_OK;
}
