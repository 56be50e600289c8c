/* The memory section of tensorplay.h, but for the statistics: raw blocks by address, the cache as a whole,
 * and the driver's view of the device. */
#include "alloc.h"

void *tp_memory_alloc(size_t nbytes, tp_stream_t *stream) {
  const char *operation = "memory_alloc";
  if (!stream) {
    tp__error_set(TP_INVALID_ARGUMENT, operation, "got NULL, expected a stream");
    return NULL;
  }
  if (nbytes == 0) {
    tp__error_clear();
    return NULL;
  }
  if (tp__device_check_process(operation)) return NULL;
  tp__block_t *block = tp__alloc(nbytes, stream);
  if (!block) return NULL;
  if (!tp__address_insert(block)) {
    tp__alloc_free(block);
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list the block");
    return NULL;
  }
  return tp__alloc_address(block);
}

void tp_memory_free(void *address) {
  tp__block_t *block = tp__device_is_inherited() ? NULL : tp__address_remove(address);
  if (block) tp__alloc_free(block);
}

/* Whether there is something to give back: cudaFree waits for the device. */
static bool waits_to_release(const tp__heap_t *heap) {
  if (heap->deferred > 0 || heap->deferred_external > 0) return true;
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    if (tp__segment_idle_nbytes(segment) > 0) return true;
  }
  return false;
}

/* Under the heap's lock. */
static tp_status_t release_cache(tp__heap_t *heap, const char *operation) {
  if (tp__captures_underway()) return TP_OK;
  TP_TRY(tp__device_enter(heap->device, operation));
  tp__cache_drain(heap);
  if (waits_to_release(heap)) TP_TRY(tp__wait_note_locked(operation));
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  if (heap->deferred > 0 || heap->deferred_external > 0) tp__defer_wait(heap);
  tp__cache_drain(heap);
  tp_status_t status = tp__segment_release_idle(heap, operation);
  tp__private_pool_settle_all(heap);
  tp__capture_restore(mode);
  return status;
}

tp_status_t tp_memory_empty_cache(int32_t device) {
  device = tp__device_resolve(device, "memory_empty_cache");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_empty_cache"));
  tp__foreign_poll(); /* what other libraries lend is theirs to empty */
  tp__heap_t *heap = tp__heap(device);
  int64_t origin = tp__trace_origin(TP_HISTORY_FREES);
  tp__heap_lock(heap);
  heap->trace.origin = origin;
  tp_status_t status = heap->segments ? release_cache(heap, "memory_empty_cache") : TP_OK;
  tp__heap_unlock(heap);
  TP_TRY(status);
  return tp__wait_tell_owed();
}

tp_status_t tp_memory_set_limit(int32_t device, size_t nbytes) {
  device = tp__device_resolve(device, "memory_set_limit");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_set_limit"));
  tp__heap_t *heap = tp__heap(device);
  tp__heap_lock(heap);
  heap->limit = nbytes;
  tp__heap_unlock(heap);
  return TP_OK;
}

tp_status_t tp_memory_get_limit(int32_t device, size_t *out_nbytes) {
  device = tp__device_resolve(device, "memory_get_limit");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_get_limit"));
  tp__heap_t *heap = tp__heap(device);
  tp__heap_lock(heap);
  *out_nbytes = heap->limit;
  tp__heap_unlock(heap);
  return TP_OK;
}

tp_status_t tp_memory_get_info(int32_t device, size_t *out_free, size_t *out_total) {
  const char *operation = "memory_get_info";
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  TP_TRY(tp__device_enter(device, operation));
  TP_TRY_CUDA(cudaMemGetInfo(out_free, out_total), operation);
  return TP_OK;
}
