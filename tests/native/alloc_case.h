/* What the allocator's tests share: taking and dropping blocks with a check of the whole heap after each
 * step, a clean heap between cases, a busy stream. Device 0 has 256 MiB. */
#ifndef TP_TESTS_ALLOC_CASE_H
#define TP_TESTS_ALLOC_CASE_H

#include <string.h>

#include "tp_emulated.h"
#include "validate_heap.h"

#define STAT(name, figure) tp_memory_stat(0, TP_STAT_##name + TP_FIGURE_##figure)
#define CURRENT(name) STAT(name, CURRENT)

static inline tp__block_t *take(size_t nbytes, tp_stream_t *stream) {
  tp__block_t *block = tp__alloc(nbytes, stream);
  CHECK(block);
  validate_heap(0);
  return block;
}

static inline void drop(tp__block_t *block) {
  tp__alloc_free(block);
  validate_heap(0);
}

/* The heap as it was at first, but for peaks and sums. */
static inline void clear(void) {
  tp_emulated_reset();
  CHECK(tp_emulated_set_capacity(0, 256 * TP_MiB) == 0);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_memory_empty_cache(0));
  validate_heap(0);
  CHECK(CURRENT(active) == 0 && CURRENT(reserved_bytes) == 0 && CURRENT(segment) == 0);
  CHECK_OK(tp_memory_reset_peak_stats(0));
  CHECK(tp_emulated_used(0) == 0);
}

/* Puts work on a stream that stays there until somebody waits for it. */
static inline void keep_busy(tp_stream_t *stream, void *memory) {
  CHECK_OK(tp__device_enter(tp_stream_device(stream), "test"));
  CHECK(tp_emulated_hold(tp_stream_device(stream), tp_stream_handle(stream)) == 0);
  CHECK(cudaMemsetAsync(memory, 1, 512, tp__stream_cuda(stream)) == cudaSuccess);
}

#endif
