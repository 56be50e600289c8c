/* The allocator beside captures: what stands still while one is underway, and what returns at its end. */
#include <pthread.h>

#include "capture_case.h"

static void test_other_streams_allocate_as_always(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin(mempool, stream);
  CHECK(tp_mempool_use_count(mempool) == 2 && tp__capture_id(capture) == 0);
  tp__block_t *block = take(1000, other);
  CHECK(!block->segment->pool->owner && block->capture == 0 && tp_mempool_use_count(mempool) == 2);
  size_t nbytes;
  CHECK(tp__capture_live_blocks(mempool, 1, &nbytes) == 0 && nbytes == 0);
  end(capture);
  CHECK(!tp__captures_underway() && tp_mempool_use_count(mempool) == 1);
  drop(block);
  tp_mempool_release(mempool);
  clear();
}

static void test_no_cached_memory_goes_back(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  drop(take(30 * TP_MiB, other));
  tp__capture_t *first = begin(mempool, stream), *second = begin(mempool, other);
  int64_t frees = tp_emulated_call_count("cudaFree", -1), queries = tp_emulated_call_count("cudaStreamQuery", -1);
  int64_t waits = tp_emulated_call_count("cudaDeviceSynchronize", -1);
  CHECK_OK(tp_memory_empty_cache(0));
  tp__block_t *block = take(30 * TP_MiB, tp_stream_default(0)); /* not that of the idle stream */
  CHECK(CURRENT(segment) == 2);
  CHECK(!tp__alloc(210 * TP_MiB, tp_stream_default(0)) && tp_error_status() == TP_OUT_OF_MEMORY);
  end(first);
  CHECK_OK(tp_memory_empty_cache(0)); /* the other one is still underway */
  CHECK(tp_emulated_call_count("cudaFree", -1) == frees && tp_emulated_call_count("cudaStreamQuery", -1) == queries);
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", -1) == waits);
  end(second);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(CURRENT(segment) == 1);
  drop(block);
  tp_mempool_release(mempool);
  clear();
}

/* So an allocation is not refused for a wait either. */
static void test_nobody_waits_for_uses_of_external_streams(void) {
  cudaStream_t theirs;
  CHECK_OK(tp__device_enter(0, "test"));
  CHECK(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking) == cudaSuccess);
  tp_mempool_t *mempool = make();
  tp__block_t *used = take(1000, tp_stream_default(0));
  CHECK_OK(tp__alloc_record_stream(used, tp_stream_external(0, (uintptr_t)theirs)));
  drop(used);
  tp__capture_t *capture = begin(mempool, tp_stream_from_pool(0, 0));
  int64_t waits = tp_emulated_call_count("cudaDeviceSynchronize", -1);
  CHECK_OK(tp_wait_set_debug_mode(TP_WAIT_REFUSED));
  tp__block_t *block = take(30 * TP_MiB, tp_stream_default(0));
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", -1) == waits);
  CHECK_OK(tp_wait_set_debug_mode(TP_WAIT_SILENT));
  end(capture);
  drop(block);
  tp_mempool_release(mempool);
  clear();
  CHECK(cudaStreamDestroy(theirs) == cudaSuccess);
}

static void test_a_pool_that_nobody_needs_goes_when_captures_have_ended(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_mempool_t *captured = make(), *dropped = make();
  tp_mempool_scope_t *scope = tp_mempool_enter(dropped, 0);
  tp__block_t *block = take(1000, stream), *own = take(30 * TP_MiB, stream);
  tp__capture_t *capture = begin(captured, stream);
  tp_mempool_leave(scope);
  tp_mempool_release(dropped);
  drop(block);
  CHECK(CURRENT(segment) == 2);
  end(capture);
  CHECK(CURRENT(segment) == 1 && CURRENT(reserved_bytes) == 30 * (int64_t)TP_MiB); /* the live block's */
  drop(own);
  CHECK(CURRENT(segment) == 0);
  tp_mempool_release(captured);
  clear();
}

static void test_a_capture_keeps_its_pool(void) {
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin(mempool, tp_stream_from_pool(0, 0));
  tp_mempool_release(mempool); /* as when the graph is dropped in its own capture */
  CHECK(tp_mempool_use_count(mempool) == 1);
  end(capture);
  CHECK(tp_mempool_list(0, 0, NULL) == 0);
  tp__capture_end(NULL);
  clear();
}

static void test_threads_caches_are_out_of_the_way(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  tp__block_t *kept = take(1000, stream);
  drop(take(1000, stream));
  tp__capture_t *capture = begin(mempool, stream);
  CHECK(CURRENT(active) == 1);
  tp__block_t *block = take(1000, stream);
  CHECK(block->segment == kept->segment);
  drop(block);
  CHECK(!block->cached);
  end(capture);
  drop(kept);
  tp_mempool_release(mempool);
  clear();
}

/* ---- a capture that begins while an event is being recorded ---- */

static void fail(const char *function, int64_t nth, int32_t error) {
  CHECK(tp_emulated_fail(function, nth, error) == 0);
}

static void test_an_event_that_a_capture_has_is_recorded_anew(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, owner);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, user));
  int64_t records = tp_emulated_call_count("cudaEventRecord", -1);
  int64_t queries = tp_emulated_call_count("cudaEventQuery", -1);
  fail("cudaStreamIsCapturing", 2, tp_emulated_error_code("cudaErrorStreamCaptureUnsupported"));
  drop(block); /* the second question, after the record, is answered with yes */
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records + 1);
  CHECK(tp_emulated_call_count("cudaEventQuery", -1) == queries && CURRENT(active) == 1);
  tp__block_t *other = take(1000, owner); /* the capture has ended */
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records + 2 && other->address != address);
  CHECK_OK(tp_stream_synchronize(user));
  tp__block_t *again = take(1000, owner);
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records + 2 && again->address == address);
  drop(other);
  drop(again);
  clear();
}

/* By the error with which CUDA refuses its event: while the capture is underway, and once it has ended. */
static void check_event_of_a_capture_that_was_not_seen(cudaError_t error) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, owner);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, user));
  drop(block);
  int64_t records = tp_emulated_call_count("cudaEventRecord", -1);
  fail("cudaEventQuery", 1, error);
  tp__block_t *other = take(1000, owner); /* the block is still waited for */
  CHECK(other->address != address && CURRENT(active) == 2 && cudaPeekAtLastError() == cudaSuccess);
  drop(take(1000, owner)); /* records anew */
  CHECK_OK(tp_stream_synchronize(user));
  tp__block_t *again = take(1000, owner);
  CHECK(again->address == address && tp_emulated_call_count("cudaEventRecord", -1) == records + 1);
  drop(other);
  drop(again);
  clear();
}

static void test_an_event_of_a_capture_that_was_not_seen(void) {
  check_event_of_a_capture_that_was_not_seen(cudaErrorCapturedEvent);
  check_event_of_a_capture_that_was_not_seen(cudaErrorInvalidValue);
}

/* ---- captures that CUDA has underway ---- */

static void test_streams_of_a_capture_allocate_from_its_pool(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *fork = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin_in(mempool, stream, cudaStreamCaptureModeGlobal);
  tp__block_t *eager = take(1000, fork);
  CHECK(!is_of(eager, mempool) && eager->capture == 0);
  tp__block_t *first = take(1000, stream);
  CHECK_OK(tp_stream_wait_stream(fork, stream));
  tp__block_t *forked = take(1000, fork);
  CHECK(is_of(first, mempool) && is_of(forked, mempool) && forked->capture == tp__capture_id(capture));
  size_t nbytes;
  CHECK(tp__capture_live_blocks(mempool, tp__capture_id(capture), &nbytes) == 2);
  CHECK(nbytes == first->nbytes + forked->nbytes);
  char *address = first->address;
  drop(first);
  first = take(1000, stream); /* whose order the capture has */
  CHECK(first->address == address && tp__capture_live_blocks(mempool, tp__capture_id(capture), &nbytes) == 2);
  CHECK_OK(tp_stream_wait_stream(stream, fork));
  uint64_t id = tp__capture_id(capture);
  end_graph(stream);
  end(capture);
  drop(forked);
  CHECK(tp__capture_live_blocks(mempool, id, &nbytes) == 1 && nbytes == first->nbytes);
  drop(first);
  drop(eager);
  tp_mempool_release(mempool);
  CHECK(tp_mempool_list(0, 0, NULL) == 0);
  clear();
}

static void test_a_capture_of_another_library_is_left_alone(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *own = tp_stream_from_pool(0, 0);
  CHECK(cudaStreamBeginCapture(tp__stream_cuda(stream), cudaStreamCaptureModeGlobal) == cudaSuccess);
  tp__block_t *block = take(1000, stream);
  CHECK(!block->segment->pool->owner && block->capture == 0);
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin_in(mempool, own, cudaStreamCaptureModeGlobal);
  tp__block_t *other = take(1000, stream), *captured = take(1000, own);
  CHECK(!other->segment->pool->owner && other->capture == 0 && is_of(captured, mempool));
  end_graph(own);
  end(capture);
  end_graph(stream);
  drop(block);
  drop(other);
  drop(captured);
  tp_mempool_release(mempool);
  clear();
}

static void test_a_recorded_stream_of_a_capture_is_waited_for_after_it(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *fork = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin_in(mempool, stream, cudaStreamCaptureModeGlobal);
  CHECK_OK(tp_stream_wait_stream(fork, stream));
  tp__block_t *block = take(1000, stream);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, fork));
  int64_t queries = tp_emulated_call_count("cudaEventQuery", -1);
  drop(block);
  tp__block_t *next = take(1000, stream);
  CHECK(next->address != address && CURRENT(active) == 2);
  CHECK_OK(tp_stream_wait_stream(stream, fork));
  CHECK(tp_emulated_call_count("cudaEventQuery", -1) == queries);
  end_graph(stream);
  end(capture);
  drop(next);
  drop(take(2 * TP_MiB, stream)); /* no thread's cache has it: records the event */
  CHECK_OK(tp_stream_synchronize(fork));
  drop(take(2 * TP_MiB, stream));
  CHECK(CURRENT(active) == 0);
  tp_mempool_release(mempool);
  clear();
}

static void *allocate_eagerly(void *mempool) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  CHECK_OK(tp__device_enter(0, "test"));
  tp__block_t *small = take(1000, stream), *large = take(30 * TP_MiB, stream);
  CHECK(!is_of(small, mempool) && !is_of(large, mempool) && small->capture == 0);
  CHECK_OK(tp__alloc_record_stream(large, user));
  drop(large);
  drop(small);
  drop(take(30 * TP_MiB, stream)); /* looks how far the other stream is */
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(!tp__alloc(1024 * TP_MiB, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  void *pinned = tp_pinned_alloc(1000);
  CHECK(pinned);
  tp_pinned_free(pinned);
  tp_event_t *events[40];
  for (int i = 0; i < 40; i++) {
    CHECK(events[i] = tp_event_create(0));
    CHECK_OK(tp_event_record(events[i], stream));
  }
  for (int i = 0; i < 40; i++) tp_event_release(events[i]);
  CHECK(tp_stream_from_pool(0, -1) && CURRENT(reserved_bytes) > 0);
  CHECK_OK(tp__device_enter(1, "test")); /* its first start */
  tp__block_t *elsewhere = tp__alloc(1000, tp_stream_from_pool(1, 0));
  CHECK(elsewhere && !is_of(elsewhere, mempool));
  tp__alloc_free(elsewhere);
  return NULL;
}

static void test_other_threads_do_not_break_a_global_capture(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin_in(mempool, stream, cudaStreamCaptureModeGlobal);
  tp__block_t *block = take(1000, stream);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, allocate_eagerly, mempool) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  drop(block);
  end_graph(stream);
  end(capture);
  tp_mempool_release(mempool);
  clear();
}

static void *capture_alone(void *barrier) {
  CHECK_OK(tp__device_enter(0, "test"));
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make();
  tp__capture_t *capture = begin_in(mempool, stream, cudaStreamCaptureModeGlobal);
  (void)pthread_barrier_wait(barrier); /* both are underway */
  for (int i = 0; i < 100; i++) {
    tp__block_t *block = take(1000 + (size_t)i * 10000, stream);
    CHECK(is_of(block, mempool) && block->capture == tp__capture_id(capture));
    drop(block);
  }
  (void)pthread_barrier_wait(barrier);
  end_graph(stream);
  end(capture);
  tp_mempool_release(mempool);
  return NULL;
}

static void test_captures_of_two_threads_have_a_pool_each(void) {
  pthread_barrier_t barrier;
  pthread_t threads[2];
  CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, capture_alone, &barrier) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(pthread_barrier_destroy(&barrier) == 0 && tp_mempool_list(0, 0, NULL) == 0);
  clear();
}

int main(void) {
  CHECK_OK(tp__device_enter(0, "test"));
  clear();
  test_other_streams_allocate_as_always();
  test_no_cached_memory_goes_back();
  test_nobody_waits_for_uses_of_external_streams();
  test_a_pool_that_nobody_needs_goes_when_captures_have_ended();
  test_a_capture_keeps_its_pool();
  test_threads_caches_are_out_of_the_way();
  test_streams_of_a_capture_allocate_from_its_pool();
  test_a_capture_of_another_library_is_left_alone();
  test_a_recorded_stream_of_a_capture_is_waited_for_after_it();
  test_other_threads_do_not_break_a_global_capture();
  test_captures_of_two_threads_have_a_pool_each();
  tp__cache_suspend(); /* whose blocks would be taken first */
  test_an_event_that_a_capture_has_is_recorded_anew();
  test_an_event_of_a_capture_that_was_not_seen();
  tp__cache_resume();
  return 0;
}
