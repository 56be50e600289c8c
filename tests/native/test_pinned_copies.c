/* Queued copies from and to pinned memory, which keep their block; failing calls; threads. */
#include <pthread.h>

#include "pinned_case.h"

static void test_a_source_is_kept_until_it_was_read(void) {
  tp_stream_t *busy = held_stream();
  tp_tensor_t *a = empty(5000);
  CHECK_OK(tp_stream_set_current(busy));
  char *source = memset(take(5000), 1, 5000);
  CHECK_OK(tp_tensor_queue_from_host(a, source, 5000));
  CHECK(tp_stream_query(busy) == 0);
  drop(source);
  CHECK(HOST_CURRENT(active_requests) == 1 && HOST_CURRENT(requested_bytes) == 0);
  char *next = memset(take(5000), 2, 5000);
  CHECK(next != source);
  drop(next);
  release(busy);
  CHECK_OK(tp_stream_synchronize(busy));
  expect_bytes(a, 1);
  CHECK(HOST_CURRENT(active_requests) == 0);
  tp_tensor_release(a);
  clear();
}

static void test_a_target_is_kept_until_it_was_written(void) {
  tp_stream_t *busy = held_stream();
  CHECK_OK(tp_stream_set_current(busy));
  tp_tensor_t *a = empty(3 * TP_MiB);
  CHECK_OK(tp_tensor_fill_int(a, 5));
  char *target = memset(take(3 * TP_MiB), 1, 3 * TP_MiB);
  CHECK_OK(tp_tensor_queue_to_host(a, target, 3 * TP_MiB));
  CHECK(target[0] == 1 && tp_stream_query(busy) == 0);
  tp_tensor_release(a);
  CHECK_OK(tp_stream_synchronize(busy));
  CHECK(target[0] == 5 && target[3 * TP_MiB - 1] == 5);
  CHECK_OK(tp_emulated_hold(0, tp_stream_handle(busy)));
  a = empty(3 * TP_MiB);
  CHECK_OK(tp_tensor_queue_to_host(a, target, 3 * TP_MiB));
  drop(target);
  char *next = take(3 * TP_MiB);
  CHECK(next != target);
  drop(next);
  tp_tensor_release(a);
  clear();
}

/* The device's memory was allocated on one stream, and is copied on another. */
static void test_the_devices_memory_is_kept_too(void) {
  tp_stream_t *busy = held_stream();
  tp_tensor_t *a = empty(TP_MiB);
  uintptr_t address = tp_tensor_data(a);
  CHECK_OK(tp_tensor_fill_int(a, 5));
  CHECK_OK(tp_stream_wait_stream(busy, tp_stream_default(0)));
  char *target = take(TP_MiB);
  CHECK_OK(tp_stream_set_current(busy));
  CHECK_OK(tp_tensor_queue_to_host(a, target, TP_MiB));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_tensor_release(a);
  tp_tensor_t *next = empty(TP_MiB);
  CHECK(tp_tensor_data(next) != address);
  CHECK_OK(tp_tensor_fill_int(next, 6));
  CHECK_OK(tp_stream_synchronize(busy));
  CHECK(target[0] == 5 && target[TP_MiB - 1] == 5);
  tp_tensor_release(next);
  drop(target);
  clear();
}

static void test_a_slow_stream_holds_up_nothing_else(void) {
  tp_stream_t *slow = held_stream(), *fast = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(TP_MiB), *b = empty(TP_MiB);
  char *of_slow = take(TP_MiB), *of_fast = take(TP_MiB), *of_both = take(TP_MiB);
  CHECK_OK(tp_stream_set_current(slow));
  CHECK_OK(tp_tensor_queue_from_host(a, of_slow, TP_MiB));
  CHECK_OK(tp_tensor_queue_from_host(a, of_both, TP_MiB));
  CHECK_OK(tp_stream_set_current(fast));
  CHECK_OK(tp_tensor_queue_from_host(b, of_fast, TP_MiB));
  CHECK_OK(tp_tensor_queue_from_host(b, of_both, TP_MiB));
  drop(of_slow);
  drop(of_both);
  drop(of_fast);
  CHECK_OK(tp_stream_synchronize(fast));
  CHECK(tp_stream_query(slow) == 0);
  CHECK(take(TP_MiB) == of_fast);
  CHECK(HOST_CURRENT(active_requests) == 3);
  release(slow);
  CHECK_OK(tp_stream_synchronize(slow));
  CHECK(HOST_CURRENT(active_requests) == 1);
  drop(of_fast);
  tp_tensor_release(a);
  tp_tensor_release(b);
  clear();
}

/* A block has one use for a stream, which stands for the last copy. */
static void test_many_copies_of_one_block(void) {
  tp_tensor_t *a = empty(TP_MiB);
  char *source = take(TP_MiB);
  for (int32_t i = 0; i < 50; ++i) {
    CHECK_OK(tp_tensor_queue_from_host(a, source, TP_MiB));
    CHECK_OK(tp_device_synchronize(0));
  }
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_emulated_hold(0, tp_stream_handle(stream)));
  CHECK_OK(tp_tensor_queue_from_host(a, memset(source, 7, TP_MiB), TP_MiB));
  drop(source);
  CHECK(HOST_CURRENT(active_requests) == 1 && tp__pinned.pending == 1);
  release(stream);
  expect_bytes(a, 7);
  CHECK(HOST_CURRENT(active_requests) == 0);
  tp_tensor_release(a);
  clear();
}

/* Its owner may destroy it once the copy is queued: the block is free when the copy has run all the same. */
static void test_a_stream_of_another_library_may_be_gone(void) {
  cudaStream_t theirs;
  CHECK(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking) == cudaSuccess);
  CHECK_OK(tp_stream_set_current(tp_stream_external(0, (uintptr_t)theirs)));
  tp_tensor_t *a = empty(TP_MiB);
  char *source = memset(take(TP_MiB), 3, TP_MiB);
  CHECK_OK(tp_tensor_queue_from_host(a, source, TP_MiB));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK(cudaStreamDestroy(theirs) == cudaSuccess);
  drop(source);
  CHECK_OK(tp_device_synchronize(0));
  CHECK(take(TP_MiB) == source);
  expect_bytes(a, 3);
  drop(source);
  tp_tensor_release(a);
  clear();
}

/* Memory that nobody keeps may change, or go, when the call returns. */
static void test_other_memory_is_copied_at_once(void) {
  char *pinned = NULL, *pageable = malloc(5000);
  tp_tensor_t *a = empty(5000);
  CHECK(pageable && cudaHostAlloc((void **)&pinned, 5000, cudaHostAllocDefault) == cudaSuccess);
  char *memories[] = {pinned, pageable};
  for (int32_t i = 0; i < 2; ++i) {
    CHECK_OK(tp_tensor_queue_from_host(a, memset(memories[i], 4, 5000), 5000));
    memset(memories[i], 0, 5000);
    expect_bytes(a, 4);
    CHECK_OK(tp_tensor_queue_to_host(a, memories[i], 5000));
    CHECK(memories[i][0] == 4 && memories[i][4999] == 4);
  }
  /* So is memory that was given back, and what reaches beyond a block. */
  char *ours = take(5000), *next = take(5000);
  drop(next);
  bool served = true;
  CHECK_OK(tp__pinned_copy(next, (void *)tp_tensor_data(a), 5000, cudaMemcpyDeviceToHost, tp_stream_default(0), &served,
                           "test"));
  CHECK(!served);
  CHECK_OK(tp__pinned_copy(ours + 500, (void *)tp_tensor_data(a), 5000, cudaMemcpyDeviceToHost, tp_stream_default(0),
                           &served, "test"));
  CHECK(!served);
  drop(ours);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  free(pageable);
  tp_tensor_release(a);
  clear();
}

/* ---- failing calls ---- */

/* A round of everything; whatever fails, nothing is lost. */
static tp_status_t round_trip(tp_stream_t *stream, const char *sent) {
  tp_status_t status = TP_OK;
  char *source = tp_pinned_alloc(20000), *target = tp_pinned_alloc(20000);
  tp_tensor_t *a = tp_tensor_empty_1d(TP_DTYPE_uint8, 0, 20000);
  if (!source || !target || !a) status = tp_error_status();
  CHECK_OK(tp_stream_set_current(stream));
  if (!status) status = tp_tensor_queue_from_host(a, memcpy(source, sent, 20000), 20000);
  if (!status) status = tp_tensor_queue_to_host(a, target, 20000);
  if (!status) status = tp_stream_synchronize(stream);
  if (!status) CHECK(!memcmp(target, sent, 20000));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_pinned_free(source);
  tp_pinned_free(target);
  tp_tensor_release(a);
  if (!status) status = tp_pinned_empty_cache();
  return status;
}

static void test_every_call_may_fail(void) {
  char *sent = malloc(20000);
  CHECK(sent);
  for (int32_t i = 0; i < 20000; ++i) sent[i] = (char)values_bits();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(round_trip(stream, sent));
  static const char *const calls[] = {"cudaHostAlloc",         "cudaFreeHost",   "cudaMemcpyAsync",
                                      "cudaEventRecord",       "cudaEventQuery", "cudaEventCreateWithFlags",
                                      "cudaStreamIsCapturing", "cudaSetDevice",  "cudaStreamSynchronize"};
  int32_t refused = 0;
  for (size_t c = 0; c < sizeof calls / sizeof *calls; ++c) {
    for (int64_t nth = 1; nth <= 8; ++nth) {
      for (int32_t e = 0; e < 2; ++e) {
        CHECK_OK(tp_emulated_fail(calls[c], nth, code(e ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown")));
        refused += round_trip(stream, sent) != TP_OK;
        CHECK_OK(tp_emulated_fail(calls[c], 0, 0));
        CHECK(cudaPeekAtLastError() == cudaSuccess);
        validate_pinned();
        CHECK_OK(round_trip(stream, sent));
        clear();
      }
    }
  }
  CHECK(refused > 8);
  free(sent);
}

/* ---- threads ---- */

static void *work(void *argument) {
  int32_t number = (int32_t)(intptr_t)argument;
  CHECK_OK(tp_stream_set_current(tp_stream_from_pool(0, 0)));
  for (int32_t turn = 0; turn < 60; ++turn) {
    size_t nbytes = (size_t)(1 + (number * 7919 + turn * 104729) % 60000);
    char *source = tp_pinned_alloc(nbytes), *target = tp_pinned_alloc(nbytes);
    tp_tensor_t *a = tp_tensor_empty_1d(TP_DTYPE_uint8, 0, (int64_t)nbytes);
    CHECK(source && target && a);
    CHECK_OK(tp_tensor_queue_from_host(a, memset(source, number, nbytes), nbytes));
    tp_pinned_free(source);
    CHECK_OK(tp_tensor_queue_to_host(a, target, nbytes));
    if (turn % 8 == 0) CHECK_OK(tp_pinned_empty_cache());
    CHECK_OK(tp_stream_synchronize(tp_stream_current(0)));
    CHECK(target[0] == (char)number && target[nbytes - 1] == (char)number && tp_pinned_contains(target));
    tp_pinned_free(target);
    tp_tensor_release(a);
  }
  return NULL;
}

static void test_threads(void) {
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
  for (int32_t i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  clear();
}

int main(void) {
  values_start();
  test_a_source_is_kept_until_it_was_read();
  test_a_target_is_kept_until_it_was_written();
  test_the_devices_memory_is_kept_too();
  test_a_slow_stream_holds_up_nothing_else();
  test_many_copies_of_one_block();
  test_a_stream_of_another_library_may_be_gone();
  test_other_memory_is_copied_at_once();
  test_every_call_may_fail();
  test_threads();
  return 0;
}
