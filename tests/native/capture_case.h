/* What the tests of the allocator in captures share. */
#ifndef TP_TESTS_CAPTURE_CASE_H
#define TP_TESTS_CAPTURE_CASE_H

#include "alloc_case.h"

static inline tp__capture_t *begin(tp_mempool_t *mempool, tp_stream_t *stream) {
  tp__capture_t *capture = tp__capture_begin(mempool, stream);
  CHECK(capture && tp__captures_underway());
  validate_heap(0);
  return capture;
}

static inline void end(tp__capture_t *capture) {
  tp__capture_end(capture);
  validate_heap(0);
}

static inline tp_mempool_t *make(void) {
  tp_mempool_t *mempool = tp_mempool_create(TP_MEMPOOL_OF_CAPTURE, NULL, NULL);
  CHECK(mempool);
  return mempool;
}

static inline tp__capture_t *begin_in(tp_mempool_t *mempool, tp_stream_t *stream, enum cudaStreamCaptureMode mode) {
  tp__capture_t *capture = begin(mempool, stream);
  CHECK(cudaStreamBeginCapture(tp__stream_cuda(stream), mode) == cudaSuccess);
  CHECK(tp__capture_id(capture) == tp__stream_capture(stream) && tp__capture_id(capture) != 0);
  return capture;
}

/* Fails where something broke the capture. */
static inline void end_graph(tp_stream_t *stream) {
  cudaGraph_t graph = NULL;
  CHECK(cudaStreamEndCapture(tp__stream_cuda(stream), &graph) == cudaSuccess && graph);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

static inline bool is_of(const tp__block_t *block, const tp_mempool_t *mempool) {
  return block->segment->pool->owner && block->segment->pool->owner->mempool == mempool;
}

#endif
