/* What settings change about which block serves whom, and which segments go back: oversize blocks, collecting old
 * segments, asking the driver without the lock. */
#include <stdlib.h>

#include "alloc_case.h"

static void set(const char *text) { CHECK_OK(tp_memory_set_settings(text)); }

static char *cached(size_t nbytes) {
  tp__block_t *block = take(nbytes, tp_stream_default(0));
  char *address = block->address;
  drop(block);
  return address;
}

/* ---- oversize ---- */

static void test_an_oversize_block_serves_requests_of_its_size_only(void) {
  tp_stream_t *stream = tp_stream_default(0);
  set("max_split_size_mb:40,max_non_split_rounding_mb:20");
  char *address = cached(80 * TP_MiB);
  tp__block_t *smaller = take(30 * TP_MiB, stream);
  CHECK(smaller->address != address && smaller->segment->nbytes == 30 * TP_MiB);
  tp__block_t *other = take(50 * TP_MiB, stream);
  CHECK(other->address != address && other->nbytes == 50 * TP_MiB);
  tp__block_t *same = take(60 * TP_MiB, stream);
  CHECK(same->address == address && same->nbytes == 80 * TP_MiB && !same->next); /* whole */
  CHECK(CURRENT(oversize_allocations) == 2 && CURRENT(oversize_segments) == 2);
  CHECK(tp_memory_stat(0, TP_STAT_max_split_size) == (int64_t)(40 * TP_MiB));
  drop(smaller);
  drop(other);
  drop(same);
  CHECK(CURRENT(oversize_allocations) == 0 && CURRENT(oversize_segments) == 2);
  clear();
  CHECK(CURRENT(oversize_segments) == 0);
  set("");
  CHECK(tp_memory_stat(0, TP_STAT_max_split_size) == 0);
}

static void test_a_block_below_the_limit_is_split_as_ever(void) {
  tp_stream_t *stream = tp_stream_default(0);
  set("max_split_size_mb:40");
  char *address = cached(38 * TP_MiB);
  tp__block_t *block = take(12 * TP_MiB, stream);
  CHECK(block->address == address && block->nbytes == 12 * TP_MiB && block->next);
  CHECK(STAT(oversize_allocations, CURRENT) == 0);
  drop(block);
  set("");
  clear();
}

static void test_settings_may_change_while_blocks_live(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *before = take(50 * TP_MiB, stream);
  set("max_split_size_mb:40");
  tp__block_t *meanwhile = take(50 * TP_MiB, stream);
  CHECK(CURRENT(oversize_allocations) == 1 && CURRENT(oversize_segments) == 1);
  drop(before);
  CHECK(CURRENT(oversize_allocations) == 1);
  set("max_split_size_mb:100");
  drop(meanwhile);
  CHECK(CURRENT(oversize_allocations) == 0 && CURRENT(oversize_segments) == 1);
  set("");
  clear();
}

static void test_just_enough_oversize_segments_go_back(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[4];
  static const size_t sizes[] = {50, 70, 60, 24};
  set("max_split_size_mb:30,max_non_split_rounding_mb:20");
  for (int i = 0; i < 4; i++) blocks[i] = take(sizes[i] * TP_MiB, stream);
  for (int i = 0; i < 4; i++) drop(blocks[i]);
  int64_t retries = STAT(num_alloc_retries, CURRENT), freed = STAT(num_device_free, CURRENT);
  tp__block_t *fits = take(84 * TP_MiB, stream); /* 52 MiB are free: the 70 and the 50 go */
  CHECK(STAT(num_device_free, CURRENT) == freed + 2 && STAT(num_alloc_retries, CURRENT) == retries);
  CHECK(CURRENT(reserved_bytes) == (int64_t)((84 + 60 + 24) * TP_MiB));
  tp__block_t *held = take(172 * TP_MiB, stream); /* oversize are 60, of which none goes alone */
  CHECK(CURRENT(reserved_bytes) == (int64_t)((84 + 172) * TP_MiB) && STAT(num_alloc_retries, CURRENT) == retries + 1);
  drop(fits);
  drop(held);
  set("");
  clear();
}

static void test_the_smallest_that_suffices_goes_back(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[3];
  static const size_t sizes[] = {120, 80, 50};
  set("max_split_size_mb:30");
  for (int i = 0; i < 3; i++) blocks[i] = take(sizes[i] * TP_MiB, stream);
  for (int i = 0; i < 3; i++) drop(blocks[i]);
  tp__block_t *block = take(54 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == (int64_t)((120 + 54 + 50) * TP_MiB));
  drop(block);
  set("");
  clear();
}

/* ---- collecting ---- */

static void test_old_segments_go_back_above_the_threshold(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_memory_set_limit(0, 200 * TP_MiB));
  set("garbage_collection_threshold:0.5");
  tp__block_t *old = take(30 * TP_MiB, stream), *young = take(40 * TP_MiB, stream), *live = take(50 * TP_MiB, stream);
  tp__block_t *small = take(1000, stream);
  drop(old);
  tp__alloc_free(take(2000, stream));
  drop(young);
  int64_t retries = STAT(num_alloc_retries, CURRENT);
  tp__block_t *more = take(60 * TP_MiB, stream); /* 122 MiB are reserved, 100 are the threshold */
  CHECK(CURRENT(reserved_bytes) == (int64_t)((2 + 40 + 50 + 60) * TP_MiB) && CURRENT(segment) == 4);
  CHECK(STAT(num_alloc_retries, CURRENT) == retries);
  drop(more);
  drop(live);
  drop(small);
  set("");
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  clear();
}

static void test_without_a_threshold_nothing_is_collected(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_memory_set_limit(0, 240 * TP_MiB));
  tp__block_t *first = take(30 * TP_MiB, stream), *second = take(100 * TP_MiB, stream);
  drop(first);
  drop(second);
  drop(take(102 * TP_MiB, stream));
  CHECK(CURRENT(reserved_bytes) == (int64_t)(232 * TP_MiB));
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  clear();
}

static void test_the_driver_fails_to_take_back(void) {
  tp_stream_t *stream = tp_stream_default(0);
  set("garbage_collection_threshold:0.1");
  (void)cached(60 * TP_MiB);
  tp_emulated_fail("cudaFree", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(!tp__alloc(70 * TP_MiB, stream) && tp_error_status() == TP_CUDA);
  validate_heap(0);
  set("max_split_size_mb:20");
  (void)cached(70 * TP_MiB);
  tp_emulated_fail("cudaFree", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(!tp__alloc(150 * TP_MiB, stream) && tp_error_status() == TP_CUDA);
  validate_heap(0);
  set("");
  clear();
}

/* ---- asking the driver without the lock ---- */

enum { THREADS = 4, ROUNDS = 60 };

static void *allocate_and_free(void *argument) {
  size_t number = (size_t)(uintptr_t)argument;
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  for (size_t i = 0; i < ROUNDS; i++) {
    tp__block_t *block = tp__alloc((10 + (i * 7 + number * 3) % 9) * TP_MiB, stream);
    CHECK(block || tp_error_status() == TP_OUT_OF_MEMORY);
    if (block) tp__alloc_free(block);
    if (i % 8 == number) CHECK_OK(tp_memory_empty_cache(0));
  }
  return NULL;
}

static void test_threads_allocate_while_the_driver_is_asked(void) {
  set("release_lock_on_cudamalloc:True");
  CHECK_OK(tp_memory_set_limit(0, 60 * TP_MiB));
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, allocate_and_free, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  validate_heap(0);
  CHECK(STAT(reserved_bytes, PEAK) <= (int64_t)(60 * TP_MiB));
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  tp__block_t *block = take(20 * TP_MiB, tp_stream_default(0));
  tp_emulated_fail("cudaMalloc", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(!tp__alloc(30 * TP_MiB, tp_stream_default(0)) && tp_error_status() == TP_CUDA);
  drop(block);
  set("");
  clear();
}

int main(void) {
  clear();
  test_an_oversize_block_serves_requests_of_its_size_only();
  test_a_block_below_the_limit_is_split_as_ever();
  test_settings_may_change_while_blocks_live();
  test_just_enough_oversize_segments_go_back();
  test_the_smallest_that_suffices_goes_back();
  test_old_segments_go_back_above_the_threshold();
  test_without_a_threshold_nothing_is_collected();
  test_the_driver_fails_to_take_back();
  test_threads_allocate_while_the_driver_is_asked();
  return 0;
}
