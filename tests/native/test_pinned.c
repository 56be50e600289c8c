/* Pinned memory: sizes, reuse, the bound of the cache, figures, a host that is short of memory. */
#include "alloc/capture.h"
#include "pinned_case.h"

/* ---- sizes and reuse ---- */

static void test_nothing_is_asked_before_the_first_use(void) {
  CHECK(!tp_pinned_alloc(0) && tp_error_status() == TP_OK);
  tp_pinned_free(NULL);
  CHECK(!tp_pinned_contains("text") && !tp_pinned_contains(NULL));
  CHECK_OK(tp_pinned_empty_cache());
  CHECK(HOST_CURRENT(allocations) == 0 && !tp_device_is_started(0));
}

static void test_a_request_wastes_a_quarter_at_most(void) {
  size_t last = 0;
  for (size_t nbytes = 1; nbytes < ((size_t)1 << 40); nbytes += 1 + nbytes / 37) {
    for (int32_t more = -1; more < 2; ++more) {
      size_t asked = nbytes + (size_t)more, rounded = tp__pinned_round(asked);
      if (asked == 0) continue;
      CHECK(rounded >= asked && rounded % 512 == 0 && tp__pinned_round(rounded) == rounded);
      CHECK(asked <= 4 * TP_KiB ? rounded < asked + 512 : 4 * rounded <= 5 * asked);
      CHECK(asked < TP_MiB || 16 * (rounded - asked) <= asked);
    }
    CHECK(tp__pinned_round(nbytes) >= last);
    last = tp__pinned_round(nbytes);
  }
  /* Just above a power of two. */
  CHECK(tp__pinned_round(128 * TP_MiB) == 128 * TP_MiB && tp__pinned_round(128 * TP_MiB + 1) == 136 * TP_MiB);
  char *memory = take(128 * TP_MiB + 1);
  const int64_t expected = (int64_t)(136 * TP_MiB);
  CHECK(HOST_CURRENT(active_bytes) == expected && HOST_CURRENT(allocated_bytes) == expected);
  CHECK(HOST_CURRENT(requested_bytes) == (int64_t)(128 * TP_MiB) + 1);
  drop(memory);
  clear();
}

static void test_small_blocks_share_a_region(void) {
  char *blocks[64];
  int64_t before = driver_calls("cudaHostAlloc");
  for (int32_t i = 0; i < 64; ++i) memset(blocks[i] = take(1000), i, 1000);
  CHECK(driver_calls("cudaHostAlloc") == before + 1 && HOST_CURRENT(allocated_bytes) == (int64_t)(64 * TP_KiB));
  for (int32_t i = 0; i < 64; ++i) CHECK(blocks[i][0] == i && blocks[i][999] == i);
  CHECK_OK(tp_pinned_empty_cache());
  for (int32_t i = 0; i < 63; ++i) drop(blocks[i]);
  CHECK_OK(tp_pinned_empty_cache());
  CHECK(HOST_CURRENT(allocations) == 1); /* the last one is in use */
  drop(blocks[63]);
  clear();
}

static void test_memory_is_used_again(void) {
  char *first = take(TP_MiB), *second = take(TP_MiB);
  int64_t before = driver_calls("cudaHostAlloc");
  drop(first);
  CHECK(take(TP_MiB) == first);
  drop(second);
  CHECK(take(TP_MiB - 9) == second);
  drop(second);
  CHECK(take(850 * TP_KiB) == second); /* of at most 1.25 times the size */
  drop(second);
  char *other = take(800 * TP_KiB); /* that would waste more */
  CHECK(other != second && driver_calls("cudaHostAlloc") == before + 1);
  drop(first);
  drop(other);
  /* What is no block is not given back. */
  drop(first);
  drop(first + 512);
  drop(&before);
  CHECK(HOST_CURRENT(active_requests) == 0 && HOST_CURRENT(allocations) == 3);
  clear();
}

static void test_what_is_pinned(void) {
  char *ours = take(5000), *theirs = NULL, *pageable = malloc(100);
  CHECK(cudaHostAlloc((void **)&theirs, 100, cudaHostAllocDefault) == cudaSuccess && pageable);
  CHECK(tp_pinned_contains(ours) && tp_pinned_contains(ours + 4999));
  CHECK(tp_pinned_contains(theirs + 99) && !tp_pinned_contains(pageable));
  CHECK_OK(tp_emulated_fail("cudaPointerGetAttributes", 1, code("cudaErrorInvalidValue")));
  CHECK(!tp_pinned_contains(theirs) && cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaFreeHost(theirs) == cudaSuccess);
  free(pageable);
  drop(ours);
  clear();
}

static void test_the_bound_of_the_cache(void) {
  CHECK_OK(tp_memory_set_settings("pinned_max_cached_size_mb:3"));
  char *blocks[4];
  for (int32_t i = 0; i < 4; ++i) blocks[i] = take(TP_MiB);
  for (int32_t i = 0; i < 4; ++i) drop(blocks[i]);
  CHECK(HOST_CURRENT(allocations) == 3 && HOST_STAT(allocated_bytes, PEAK) >= (int64_t)(4 * TP_MiB));
  CHECK(!tp_pinned_contains(blocks[0])); /* the oldest went back */
  CHECK_OK(tp_memory_set_settings("pinned_max_cached_size_mb:0"));
  drop(take(TP_MiB));
  CHECK(HOST_CURRENT(allocations) == 0);
  /* Giving back that fails is silent, and made good later. */
  char *block = take(TP_MiB);
  CHECK_OK(tp_emulated_fail("cudaFreeHost", 1, code("cudaErrorUnknown")));
  CHECK(!tp_pinned_alloc(0) && tp_error_status() == TP_OK);
  drop(block);
  CHECK(HOST_CURRENT(allocations) == 1 && tp_error_status() == TP_OK);
  CHECK_OK(tp_memory_set_settings(""));
  clear();
}

static void test_figures(void) {
  CHECK_OK(tp_pinned_reset_accumulated_stats());
  CHECK_OK(tp_pinned_reset_peak_stats());
  char *first = take(TP_MiB), *second = take(3 * TP_MiB);
  drop(first);
  CHECK(HOST_STAT(requested_bytes, CURRENT) == (int64_t)(3 * TP_MiB));
  CHECK(HOST_STAT(requested_bytes, PEAK) == (int64_t)(4 * TP_MiB));
  CHECK(HOST_STAT(requested_bytes, ALLOCATED) == (int64_t)(4 * TP_MiB));
  CHECK(HOST_STAT(requested_bytes, FREED) == (int64_t)TP_MiB);
  CHECK(HOST_STAT(allocations, CURRENT) == 2 && HOST_STAT(active_requests, CURRENT) == 1);
  CHECK_OK(tp_pinned_empty_cache());
  CHECK(host_stat(TP_HOST_STAT_num_host_alloc) == 2 && host_stat(TP_HOST_STAT_num_host_free) == 1);
  CHECK(host_stat(TP_HOST_STAT_host_alloc_time + TP_DURATION_COUNT) == 2);
  CHECK(host_stat(TP_HOST_STAT_host_free_time + TP_DURATION_COUNT) == 1);
  const int32_t times = TP_HOST_STAT_host_alloc_time;
  CHECK(host_stat(times + TP_DURATION_TOTAL) >= host_stat(times + TP_DURATION_MAX));
  CHECK(host_stat(times + TP_DURATION_MAX) >= host_stat(times + TP_DURATION_AVG));
  CHECK(host_stat(times + TP_DURATION_AVG) == host_stat(times + TP_DURATION_TOTAL) / 2);
  CHECK(host_stat(times + TP_DURATION_MIN) <= host_stat(times + TP_DURATION_AVG));
  CHECK_OK(tp_pinned_reset_peak_stats());
  CHECK(HOST_STAT(requested_bytes, PEAK) == (int64_t)(3 * TP_MiB) && host_stat(times + TP_DURATION_MAX) == 0);
  CHECK_OK(tp_pinned_reset_accumulated_stats());
  CHECK(HOST_STAT(requested_bytes, ALLOCATED) == 0 && host_stat(times + TP_DURATION_TOTAL) == 0);
  CHECK(host_stat(TP_HOST_STAT_num_host_alloc) == 0 && HOST_STAT(requested_bytes, CURRENT) == (int64_t)(3 * TP_MiB));
  int64_t values[TP_HOST_STAT_COUNT];
  CHECK(tp_pinned_stats(values, 3) == TP_INVALID_ARGUMENT);
  drop(second);
  clear();
}

/* ---- short of memory ---- */

static void refuse(int64_t nth) { CHECK_OK(tp_emulated_fail("cudaHostAlloc", nth, code("cudaErrorMemoryAllocation"))); }

static void test_the_cache_goes_back_before_giving_up(void) {
  drop(take(TP_MiB));
  refuse(1);
  char *memory = take(7 * TP_MiB);
  CHECK(HOST_CURRENT(allocations) == 1 && cudaPeekAtLastError() == cudaSuccess);
  drop(memory);
  clear();
}

/* Refused every time: the driver has no room for more than memory has. */
static void test_what_cannot_be_pinned(void) {
  char *held = take(TP_MiB);
  drop(take(2 * TP_MiB));
  int64_t before = driver_calls("cudaHostAlloc");
  CHECK(!tp_pinned_alloc((size_t)1 << 59) && tp_error_status() == TP_HOST_MEMORY);
  CHECK(driver_calls("cudaHostAlloc") == before + 3);
  CHECK(strstr(tp_error_text(), "pin_memory: the host has no room for 576460752303423488 more bytes of pinned memory"));
  CHECK(strstr(tp_error_text(), "1048576 are pinned, 1048576 in use"));
  validate_pinned();
  CHECK(!tp_pinned_alloc(SIZE_MAX) && tp_error_status() == TP_OVERFLOW);
  drop(held);
  clear();
}

static void test_copies_are_waited_for_before_giving_up(void) {
  tp_stream_t *busy = held_stream();
  tp_tensor_t *a = empty(TP_MiB);
  CHECK_OK(tp_stream_set_current(busy));
  char *source = take(TP_MiB);
  CHECK_OK(tp_tensor_queue_from_host(a, source, TP_MiB));
  drop(source);
  CHECK(!tp_pinned_alloc((size_t)1 << 59) && tp_error_status() == TP_HOST_MEMORY);
  CHECK(tp_stream_query(busy) == 1 && HOST_CURRENT(allocations) == 0);
  tp_tensor_release(a);
  clear();
}

static void test_nothing_goes_back_in_a_capture(void) {
  tp_stream_t *busy = held_stream();
  tp_tensor_t *a = empty(TP_MiB);
  char *source = take(TP_MiB);
  drop(take(2 * TP_MiB));
  CHECK_OK(tp_stream_set_current(busy));
  CHECK_OK(tp_tensor_queue_from_host(a, source, TP_MiB));
  drop(source);
  tp_mempool_t *pool = tp_mempool_create(TP_MEMPOOL_OF_CAPTURE, NULL, NULL);
  tp__capture_t *capture = tp__capture_begin(pool, tp_stream_default(0));
  CHECK(capture);
  int64_t before = driver_calls("cudaHostAlloc");
  CHECK(!tp_pinned_alloc((size_t)1 << 59) && tp_error_status() == TP_HOST_MEMORY);
  CHECK(driver_calls("cudaHostAlloc") == before + 1);
  CHECK_OK(tp_pinned_empty_cache());
  CHECK(tp_stream_query(busy) == 0 && HOST_CURRENT(allocations) == 2);
  tp__capture_end(capture);
  tp_mempool_release(pool);
  tp_tensor_release(a);
  clear();
}

int main(void) {
  values_start();
  test_nothing_is_asked_before_the_first_use();
  test_a_request_wastes_a_quarter_at_most();
  test_small_blocks_share_a_region();
  test_memory_is_used_again();
  test_what_is_pinned();
  test_the_bound_of_the_cache();
  test_figures();
  test_the_cache_goes_back_before_giving_up();
  test_what_cannot_be_pinned();
  test_copies_are_waited_for_before_giving_up();
  test_nothing_goes_back_in_a_capture();
  return 0;
}
