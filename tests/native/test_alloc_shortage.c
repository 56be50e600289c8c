/* The allocator when memory is short: the order of attempts, what the error says, failing drivers. */
#include "alloc_case.h"

static void expect_shortage(size_t nbytes, const char *text) {
  int64_t failures = STAT(num_ooms, CURRENT);
  CHECK(!tp__alloc(nbytes, tp_stream_default(0)));
  CHECK(tp_error_status() == TP_OUT_OF_MEMORY && strstr(tp_error_text(), text));
  CHECK(tp_error_cuda_code() == cudaErrorMemoryAllocation && cudaPeekAtLastError() == cudaSuccess);
  CHECK(STAT(num_ooms, CURRENT) == failures + 1);
  validate_heap(0);
}

static void test_the_cache_is_released_before_giving_up(void) {
  tp_stream_t *stream = tp_stream_default(0);
  int64_t retries = STAT(num_alloc_retries, CURRENT);
  tp__block_t *blocks[8];
  for (int i = 0; i < 8; i++) blocks[i] = take(30 * TP_MiB, stream);
  for (int i = 0; i < 8; i++) drop(blocks[i]);
  tp__block_t *block = take(200 * TP_MiB, stream);
  CHECK(STAT(num_alloc_retries, CURRENT) == retries + 1 && CURRENT(segment) == 1);
  drop(block);
  clear();
}

static void test_a_busy_streams_block_before_the_cache_is_released(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  int64_t retries = STAT(num_alloc_retries, CURRENT);
  tp__block_t *block = take(200 * TP_MiB, first);
  char *address = block->address;
  keep_busy(first, address);
  drop(block);
  tp__block_t *taken = take(200 * TP_MiB, second);
  CHECK(taken->address == address && taken->stream == second);
  CHECK(STAT(num_alloc_retries, CURRENT) == retries);
  CHECK(tp_stream_query(first) == 0 && tp_stream_query(second) == 0); /* the host has not waited */
  CHECK_OK(tp_stream_synchronize(second));
  CHECK(tp_stream_query(first) == 1); /* the second stream has */
  drop(taken);
  clear();
}

static void test_blocks_in_use_elsewhere_are_waited_for(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(200 * TP_MiB, owner);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, address);
  drop(block);
  tp__block_t *again = take(150 * TP_MiB, owner);
  CHECK(again->address == address && tp_stream_query(user) == 1);
  drop(again);
  clear();
}

static void test_texts_of_a_shortage(void) {
  tp_stream_t *stream = tp_stream_default(0);
  expect_shortage(TP_GiB, "The request is larger than the device");
  tp__block_t *held = take(200 * TP_MiB, stream);
  expect_shortage(100 * TP_MiB, "Tensors of this process hold most of it");
  CHECK(strstr(tp_error_text(), "allocate: cuda:0 has no room for 100.00 MiB (104857600 bytes)."));
  CHECK(strstr(tp_error_text(), "The device has 256.00 MiB, of which 56.00 MiB are free"));
  CHECK(strstr(tp_error_text(), "200.00 MiB are reserved here and 0 bytes are used by others"));
  drop(held);
  clear();

  /* Twelve segments of 20 MiB, each kept by a small block. */
  tp__block_t *walls[12], *middles[12], *ends[12];
  for (int i = 0; i < 12; i++) {
    walls[i] = take(2 * TP_MiB, stream);
    middles[i] = take(9 * TP_MiB, stream);
    ends[i] = take(9 * TP_MiB, stream);
    CHECK(ends[i]->segment == walls[i]->segment && !ends[i]->next);
  }
  for (int i = 0; i < 12; i++) {
    drop(middles[i]);
    drop(ends[i]);
  }
  expect_shortage(50 * TP_MiB, "lies in pieces");
  CHECK(strstr(tp_error_text(), "the largest free block has 18.00 MiB and 0 bytes can be returned"));
  for (int i = 0; i < 12; i++) drop(walls[i]);
  clear();

  /* Another library has most of it. */
  void *foreign = NULL;
  CHECK(cudaMalloc(&foreign, 200 * TP_MiB) == cudaSuccess);
  expect_shortage(100 * TP_MiB, "used by other processes or libraries");
  CHECK(cudaFree(foreign) == cudaSuccess);
  clear();
}

static void test_other_failures_of_the_driver(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_emulated_fail("cudaMalloc", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(!tp__alloc(100, stream) && tp_error_status() == TP_CUDA);
  validate_heap(0);
  drop(take(100, stream));
  tp_emulated_fail("cudaFree", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(tp_memory_empty_cache(0) == TP_CUDA);
  validate_heap(0);
  CHECK(CURRENT(segment) == 1);
  clear();
}

static void test_a_limit_comes_before_the_driver(void) {
  tp_stream_t *stream = tp_stream_default(0);
  size_t limit = 0;
  CHECK_OK(tp_memory_get_limit(0, &limit));
  CHECK(limit == TP_NO_LIMIT);
  CHECK_OK(tp_memory_set_limit(0, 64 * TP_MiB));
  CHECK_OK(tp_memory_get_limit(0, &limit));
  CHECK(limit == 64 * TP_MiB);
  CHECK_OK(tp_memory_get_limit(1, &limit));
  CHECK(limit == TP_NO_LIMIT);

  tp__block_t *blocks[3];
  for (int i = 0; i < 3; i++) blocks[i] = take(20 * TP_MiB, stream);
  int64_t asked = tp_emulated_call_count("cudaMalloc", -1), rejections = STAT(num_oom_rejections, CURRENT);
  expect_shortage(20 * TP_MiB, "Reserved memory is limited to 64.00 MiB. The limit is reached");
  CHECK(tp_emulated_call_count("cudaMalloc", -1) == asked);
  CHECK(STAT(num_oom_rejections, CURRENT) == rejections + 1);
  tp_memory_shortage_t found;
  CHECK_OK(tp_memory_shortage(&found));
  CHECK(found.cause == TP_SHORTAGE_LIMIT && found.limit == 64 * TP_MiB && !found.is_hopeless);

  /* What is cached goes back first, as when the driver refuses. */
  for (int i = 0; i < 3; i++) drop(blocks[i]);
  tp__block_t *block = take(60 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 60 * (int64_t)TP_MiB);

  /* A request beyond the limit costs nobody the cache; a lower limit takes nothing away. */
  drop(block);
  expect_shortage(65 * TP_MiB, "The request is larger than the limit");
  CHECK_OK(tp_memory_shortage(&found));
  CHECK(found.is_hopeless && CURRENT(reserved_bytes) == 60 * (int64_t)TP_MiB);
  CHECK_OK(tp_memory_set_limit(0, 10 * TP_MiB));
  drop(take(50 * TP_MiB, stream));
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  drop(take(100 * TP_MiB, stream));
  CHECK(tp_memory_set_limit(99, 0) == TP_DEVICE && tp_memory_get_limit(99, &limit) == TP_DEVICE);
  clear();
}

static void test_what_a_shortage_holds(void) {
  tp_stream_t *first = tp_stream_default(0), *second = tp_stream_from_pool(0, 0), *third = tp_stream_from_pool(0, 0);
  tp__block_t *held = take(100 * TP_MiB, first);
  tp__block_t *parts[] = {take(11 * TP_MiB, second), take(13 * TP_MiB, third), take(3 * TP_MiB, third)};
  keep_busy(second, parts[0]->address);
  keep_busy(third, parts[1]->address);
  drop(parts[0]);
  drop(parts[1]);
  expect_shortage(200 * TP_MiB + 1, "has no room for 200.00 MiB (209715712 bytes)");
  tp_memory_shortage_t found;
  CHECK_OK(tp_memory_shortage(&found));
  CHECK(found.device == 0 && found.cause == TP_SHORTAGE_DEVICE && !found.is_capturing && !found.is_hopeless);
  CHECK(found.requested == 200 * TP_MiB + 1 && found.rounded == 200 * TP_MiB + 512);
  CHECK(found.allocated == 103 * TP_MiB && found.reserved == 120 * TP_MiB && found.device_total == 256 * TP_MiB);
  CHECK(found.device_free == 136 * TP_MiB && found.others == 0 && found.returnable == 0 && found.private_pools == 0);
  CHECK(found.pending == 0 && found.limit == TP_NO_LIMIT && !found.budget.name[0]);
  CHECK(found.stream_count == 1 && found.streams[0] == tp_stream_handle(third));
  CHECK(found.largest_free == 17 * TP_MiB && found.stream_largest_free[0] == 17 * TP_MiB);

  /* A call that is repeated has not failed. */
  int64_t failures = STAT(num_ooms, CURRENT), retries = STAT(num_alloc_retries, CURRENT);
  CHECK_OK(tp_memory_repeat(0, TP_SHORTAGE_DEVICE));
  CHECK(STAT(num_ooms, CURRENT) == failures - 1 && STAT(num_alloc_retries, CURRENT) == retries + 1);
  int64_t rejections = STAT(num_oom_rejections, CURRENT);
  CHECK_OK(tp_memory_repeat(0, TP_SHORTAGE_LIMIT));
  CHECK(STAT(num_oom_rejections, CURRENT) == rejections - 1 && tp_memory_repeat(99, 0) == TP_DEVICE);
  CHECK(tp_memory_shortage(&found) == TP_STATE); /* another failure came after it */
  drop(parts[2]);
  drop(held);
  clear();
}

static void test_largest_blocks_of_many_streams(void) {
  tp__block_t *blocks[20];
  for (int i = 0; i < 20; i++) blocks[i] = take((size_t)(1 + i) * 64 * TP_KiB, tp_stream_from_pool(0, 0));
  for (int i = 0; i < 20; i++) drop(blocks[i]);
  /* Larger than the device, so that nothing is taken over or given back. */
  expect_shortage(TP_GiB, "larger than the device");
  tp_memory_shortage_t found;
  CHECK_OK(tp_memory_shortage(&found));
  CHECK(found.stream_count == TP_SHORTAGE_STREAMS && found.returnable == found.reserved);
  for (int32_t i = 0; i < found.stream_count; i++) {
    size_t largest = 0;
    for (const tp__segment_t *segment = tp__heap(0)->segments; segment; segment = segment->next) {
      for (const tp__block_t *block = segment->first; block; block = block->next) {
        if (tp_stream_handle(block->stream) == found.streams[i] && block->nbytes > largest) largest = block->nbytes;
      }
    }
    CHECK(found.stream_largest_free[i] == largest);
    CHECK(i == 0 || found.stream_largest_free[i - 1] >= largest);
  }
  CHECK(found.largest_free == found.stream_largest_free[0]);
  clear();
}

static void test_the_same_size_is_reached_again(void) {
  enum { MOST = 64 };
  tp__block_t *blocks[MOST];
  int first_count = 0;
  for (int round = 0; round < 10; round++) {
    int count = 0;
    while ((blocks[count] = tp__alloc(20 * TP_MiB, tp_stream_default(0)))) CHECK(++count < MOST);
    if (round == 0) first_count = count;
    CHECK(count == first_count && count == 12);
    while (count > 0) drop(blocks[--count]);
  }
  clear();
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  test_the_cache_is_released_before_giving_up();
  test_a_busy_streams_block_before_the_cache_is_released();
  test_blocks_in_use_elsewhere_are_waited_for();
  test_a_limit_comes_before_the_driver();
  test_what_a_shortage_holds();
  test_largest_blocks_of_many_streams();
  test_texts_of_a_shortage();
  test_other_failures_of_the_driver();
  test_the_same_size_is_reached_again();
  return 0;
}
