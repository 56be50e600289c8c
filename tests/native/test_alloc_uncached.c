/* TENSORPLAY_NO_CUDA_MEMORY_CACHING: each block is an allocation of the driver, for tools that check memory. */
#include <stdlib.h>
#include <unistd.h>

#include "alloc_case.h"

static void test_every_block_is_the_drivers(void) {
  tp_stream_t *stream = tp_stream_default(0);
  static const size_t sizes[] = {1, 512, 5000, 3 * TP_MiB, 11 * TP_MiB + 1};
  int64_t asked = tp_emulated_call_count("cudaMalloc", -1), given = tp_emulated_call_count("cudaFree", -1);
  for (int i = 0; i < 5; i++) {
    tp__block_t *block = take(sizes[i], stream);
    size_t nbytes = (sizes[i] + 511) / 512 * 512;
    CHECK(block->nbytes == nbytes && block->segment->nbytes == nbytes);
    CHECK(CURRENT(reserved_bytes) == (int64_t)nbytes && CURRENT(allocated_bytes) == (int64_t)nbytes);
    drop(block);
    CHECK(CURRENT(reserved_bytes) == 0 && CURRENT(segment) == 0);
    CHECK(tp_emulated_call_count("cudaMalloc", -1) == asked + i + 1);
    CHECK(tp_emulated_call_count("cudaFree", -1) == given + i + 1);
  }
}

static void test_work_is_done_before_memory_goes(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(4096, owner);
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, block->address);
  drop(block);
  CHECK(CURRENT(active) == 1 && CURRENT(segment) == 1);
  CHECK_OK(tp_stream_synchronize(user));
  drop(take(1, owner)); /* looks at what has passed */
  CHECK(CURRENT(segment) == 0);
}

static void test_freeing_does_not_fail(void) {
  tp__block_t *block = take(4096, tp_stream_default(0));
  tp__error_clear();
  tp_emulated_fail("cudaFree", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  drop(block);
  CHECK(tp_error_status() == TP_OK && cudaPeekAtLastError() == cudaSuccess);
  CHECK(CURRENT(segment) == 1 && CURRENT(active) == 0);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(CURRENT(segment) == 0);
}

static void test_the_room_is_all_usable(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *block = take(200 * TP_MiB, stream);
  CHECK(!tp__alloc(100 * TP_MiB, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  validate_heap(0);
  drop(block);
  drop(take(250 * TP_MiB, stream));
}

int main(void) {
  if (!getenv("TENSORPLAY_NO_CUDA_MEMORY_CACHING")) {
    CHECK(setenv("TENSORPLAY_NO_CUDA_MEMORY_CACHING", "1", 1) == 0);
    execl("/proc/self/exe", "test_alloc_uncached", (char *)NULL);
    return 1;
  }
  clear();
  test_every_block_is_the_drivers();
  test_work_is_done_before_memory_goes();
  test_freeing_does_not_fail();
  test_the_room_is_all_usable();
  clear();
  return 0;
}
