/* The allocator and streams: each has its own blocks, idle ones may be taken over, recorded uses are waited
 * for, captures are left alone. The threads' caches are out of the way. */
#include "alloc_case.h"

static void test_streams_have_their_own_blocks(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, first);
  char *address = block->address;
  keep_busy(first, address);
  drop(block);
  tp__block_t *other = take(1000, second); /* the first stream is busy: the driver is asked */
  CHECK(CURRENT(segment) == 2 && other->address != address);
  tp__block_t *again = take(1000, first); /* its own order makes it safe at once */
  CHECK(again->address == address);
  drop(other);
  drop(again);
  clear();
}

static void test_blocks_of_idle_streams_are_taken_over(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp__block_t *kept = take(1000, first);
  tp__block_t *block = take(1000, second); /* out of the rest of the first one's segment */
  CHECK(block->segment == kept->segment && block->stream == second);
  CHECK(CURRENT(segment) == 1 && STAT(num_device_alloc, CURRENT) > 0);
  drop(kept);
  drop(block); /* not merged: its neighbour belongs to another stream */
  CHECK(CURRENT(inactive_split) == 2);
  clear(); /* but the segment as a whole goes back */
}

/* ---- other streams that use a block ---- */

static void test_recorded_streams_keep_a_block(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(4 * TP_MiB, owner);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, owner)); /* nothing to note */
  CHECK(!block->uses);
  CHECK_OK(tp__alloc_record_stream(block, user));
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, address);
  drop(block);
  CHECK(CURRENT(allocation) == 0 && CURRENT(active) == 1 && CURRENT(active_bytes) == 4 * (int64_t)TP_MiB);
  tp__block_t *other = take(4 * TP_MiB, owner);
  CHECK(other->address != address);
  CHECK_OK(tp_stream_synchronize(user));
  tp__block_t *again = take(4 * TP_MiB, owner); /* the very next allocation has it */
  CHECK(again->address == address && CURRENT(active) == 2);
  drop(other);
  drop(again);
  clear();
}

static void test_recording_makes_no_events_for_long(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  int64_t made = 0;
  for (int i = 0; i < 100; i++) {
    tp__block_t *block = take(1000, owner);
    CHECK_OK(tp__alloc_record_stream(block, user));
    drop(block);
    if (i % 10 == 9) CHECK_OK(tp_stream_synchronize(user));
    if (i == 19) made = tp_emulated_call_count("cudaEventCreateWithFlags", -1);
  }
  CHECK(tp_emulated_call_count("cudaEventCreateWithFlags", -1) == made);
  CHECK(tp_emulated_call_count("cudaEventDestroy", -1) == 0);
  clear();
}

static void test_streams_of_another_device(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_default(1);
  void *memory = tp_memory_alloc(512, user);
  tp__block_t *block = take(1000, owner);
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, memory);
  CHECK_OK(tp__device_enter(0, "test"));
  drop(block);
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0); /* a release leaves it alone */
  drop(take(1000, owner));
  CHECK(CURRENT(active) == 1);
  CHECK_OK(tp_stream_synchronize(user));
  drop(take(1000, owner));
  CHECK(CURRENT(active) == 0);
  tp_memory_free(memory);
  CHECK_OK(tp_memory_empty_cache(1));
  clear();
}

static void test_empty_cache_waits_for_recorded_streams(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, owner);
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, block->address);
  drop(block);
  tp__block_t *kept = take(2 * TP_MiB, owner);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(CURRENT(active) == 1 && CURRENT(segment) == 1 && CURRENT(reserved_bytes) == 20 * (int64_t)TP_MiB);
  CHECK(tp_stream_query(user) == 1);
  drop(kept);
  clear();
}

/* Fills a block on `owner`, reads it on `reader` behind that, gives it back, and writes over it as soon as an
 * allocation on `writer` has it. What was read must not depend on which stream the device runs first. */
static void overwrite_after_reading(tp_stream_t *owner, tp_stream_t *reader, tp_stream_t *writer,
                                    size_t nbytes) {
  enum { READ = 4096 };
  cudaStream_t read = tp__stream_cuda(reader);
  unsigned char *seen;
  CHECK(cudaHostAlloc((void **)&seen, READ, cudaHostAllocDefault) == cudaSuccess);
  tp__block_t *block = take(nbytes, owner);
  CHECK(cudaMemsetAsync(block->address, 7, nbytes, tp__stream_cuda(owner)) == cudaSuccess);
  CHECK_OK(tp_stream_wait_stream(reader, owner));
  CHECK(cudaMemcpyAsync(seen, block->address, READ, cudaMemcpyDeviceToHost, read) == cudaSuccess);
  CHECK_OK(tp__alloc_record_stream(block, reader));
  drop(block);
  tp__block_t *other = take(nbytes, writer);
  CHECK(cudaMemsetAsync(other->address, 9, nbytes, tp__stream_cuda(writer)) == cudaSuccess);
  CHECK_OK(tp_device_synchronize(0));
  for (int i = 0; i < READ; i++) CHECK(seen[i] == 7);
  drop(other);
  CHECK(cudaFreeHost(seen) == cudaSuccess);
  clear();
}

static void test_contents_survive_until_they_are_read(void) {
  tp_stream_t *streams[3];
  for (int i = 0; i < 3; i++) streams[i] = tp_stream_from_pool(0, 0);
  for (uint64_t seed = 0; seed < 40; seed++) {
    static const size_t sizes[] = {4 * TP_KiB, 200 * TP_MiB}; /* the second leaves no room for another */
    tp_emulated_set_seed(seed);
    overwrite_after_reading(streams[0], streams[1], streams[seed % 2 ? 0 : 2], sizes[seed % 20 == 0]);
    tp_emulated_set_seed(seed);
    overwrite_after_reading(streams[0], streams[0], streams[2], sizes[seed % 20 == 1]);
  }
}

static void test_a_stream_of_another_library_may_be_gone(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0);
  cudaStream_t first, second;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) == cudaSuccess);
  tp_stream_t *user = tp_stream_external(0, (uintptr_t)first);
  tp__block_t *block = take(30 * TP_MiB, owner);
  char *address = block->address;
  CHECK(user && cudaMemsetAsync(address, 1, 512, first) == cudaSuccess);
  CHECK_OK(tp__alloc_record_stream(block, user));
  CHECK(cudaStreamDestroy(first) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess); /* the same handle, maybe */
  int64_t records = tp_emulated_call_count("cudaEventRecord", -1);
  int64_t waits = tp_emulated_call_count("cudaDeviceSynchronize", -1);
  drop(block);
  tp__block_t *small = take(1000, tp_stream_external(0, (uintptr_t)second));
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records && CURRENT(active) == 1);
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", -1) == waits + 1); /* the one thing that is sure */
  tp__block_t *again = take(30 * TP_MiB, owner);
  CHECK(again->address == address);
  drop(again);
  drop(small);
  CHECK_OK(tp_device_synchronize(0));
  CHECK(cudaStreamDestroy(second) == cudaSuccess && cudaPeekAtLastError() == cudaSuccess);
  clear();
}

/* ---- captures, told by cudaStreamIsCapturing ---- */

/* The nth question from now whether a stream is captured is answered as CUDA answers for the default stream
 * while a stream that waits for it is captured. */
static void pretend_capture(int64_t nth) {
  int32_t error = tp_emulated_error_code("cudaErrorStreamCaptureUnsupported");
  CHECK(tp_emulated_fail("cudaStreamIsCapturing", nth, error) == 0);
}

static void test_no_event_is_recorded_in_a_capture(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, owner);
  CHECK_OK(tp__alloc_record_stream(block, user));
  int64_t records = tp_emulated_call_count("cudaEventRecord", -1);
  int64_t queries = tp_emulated_call_count("cudaEventQuery", -1);
  pretend_capture(1);
  drop(block);
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records && cudaPeekAtLastError() == cudaSuccess);
  pretend_capture(1);
  tp__block_t *during = take(1000, owner);
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records);
  CHECK(tp_emulated_call_count("cudaEventQuery", -1) == queries && CURRENT(active) == 2);
  tp__block_t *after = take(1000, owner); /* the capture has ended */
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == records + 1);
  CHECK_OK(tp_stream_synchronize(user));
  drop(during);
  drop(after);
  drop(take(1000, owner));
  CHECK(CURRENT(active) == 0);
  clear();
}

static void test_a_capture_takes_nothing_over_and_releases_nothing(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  drop(take(30 * TP_MiB, first));
  pretend_capture(1);
  tp__block_t *block = take(30 * TP_MiB, second); /* the first stream is idle, but this one is captured */
  CHECK(CURRENT(segment) == 2);
  pretend_capture(1);
  CHECK(!tp__alloc(220 * TP_MiB, second));
  CHECK(tp_error_status() == TP_OUT_OF_MEMORY && strstr(tp_error_text(), "during a capture"));
  tp_memory_shortage_t found;
  CHECK_OK(tp_memory_shortage(&found));
  CHECK(found.is_capturing && CURRENT(segment) == 2);
  drop(block);
  clear();
}

static void test_a_captured_stream_is_not_queried(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  drop(take(30 * TP_MiB, first));
  int64_t queries = tp_emulated_call_count("cudaStreamQuery", -1);
  pretend_capture(2); /* the second question is about the first stream */
  tp__block_t *block = take(30 * TP_MiB, second);
  CHECK(tp_emulated_call_count("cudaStreamQuery", -1) == queries && CURRENT(segment) == 2);
  drop(block);
  clear();
}

static void test_a_use_that_cannot_be_noted(void) {
  enum { COUNT = 100 }; /* more than the events that are pooled by now */
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *blocks[COUNT];
  int refused = 0;
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = take(512, owner);
    CHECK(tp_emulated_fail("cudaEventCreateWithFlags", 1, cudaErrorMemoryAllocation) == 0);
    tp_status_t status = tp__alloc_record_stream(blocks[i], user);
    CHECK(!status == !!blocks[i]->uses);
    refused += status == TP_OUT_OF_MEMORY;
  }
  CHECK(refused > 0);
  for (int i = 0; i < COUNT; i++) drop(blocks[i]);
  clear();
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  tp__cache_suspend();
  test_streams_have_their_own_blocks();
  test_blocks_of_idle_streams_are_taken_over();
  test_recorded_streams_keep_a_block();
  test_recording_makes_no_events_for_long();
  test_streams_of_another_device();
  test_empty_cache_waits_for_recorded_streams();
  test_contents_survive_until_they_are_read();
  test_a_stream_of_another_library_may_be_gone();
  test_no_event_is_recorded_in_a_capture();
  test_a_capture_takes_nothing_over_and_releases_nothing();
  test_a_captured_stream_is_not_queried();
  test_a_use_that_cannot_be_noted();
  return 0;
}
