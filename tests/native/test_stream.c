/* Streams: the pool, priorities, current streams of threads, order between streams. */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "internal.h"
#include "tp_emulated.h"

static void test_default_streams(void) {
  for (int32_t device = 0; device < 2; device++) {
    tp_stream_t *stream = tp_stream_default(device);
    CHECK(stream == tp_stream_default(device) && stream == tp_stream_current(device));
    CHECK(tp_stream_device(stream) == device);
    CHECK(tp_stream_handle(stream) == 0);
    CHECK(tp_stream_priority(stream) == 0);
    CHECK(tp__stream_id(stream) == 0);
  }
  CHECK(tp_stream_default(0) != tp_stream_default(1));
  CHECK(tp_stream_default(TP_DEVICE_CURRENT) == tp_stream_default(0));
}

static void test_the_pool_goes_round(void) {
  tp_stream_t *streams[32];
  for (int i = 0; i < 32; i++) {
    streams[i] = tp_stream_from_pool(0, 0);
    CHECK(streams[i] && tp_stream_device(streams[i]) == 0 && tp_stream_priority(streams[i]) == 0);
    CHECK(tp_stream_handle(streams[i]) != 0);
    for (int j = 0; j < i; j++) {
      CHECK(streams[i] != streams[j]);
      CHECK(tp_stream_handle(streams[i]) != tp_stream_handle(streams[j]));
      CHECK(tp__stream_id(streams[i]) != tp__stream_id(streams[j]));
    }
  }
  for (int i = 0; i < 40; i++) CHECK(tp_stream_from_pool(0, 0) == streams[i % 32]);
  CHECK(tp_emulated_call_count("cudaStreamCreateWithPriority", -1) == 32);
}

static void test_priorities_are_clamped(void) {
  int least, greatest;
  CHECK_OK(tp__device_enter(1, "test"));
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess);
  CHECK(greatest < least);
  static const int32_t asked[] = {0, -1, -5, -100, 1, 100, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    int32_t expected = asked[i] > least ? least : asked[i] < greatest ? greatest : asked[i];
    tp_stream_t *stream = tp_stream_from_pool(1, asked[i]);
    int actual = 1;
    CHECK(stream && tp_stream_priority(stream) == expected);
    CHECK(cudaStreamGetPriority(tp__stream_cuda(stream), &actual) == cudaSuccess && actual == expected);
  }
}

static void *other_thread(void *argument) {
  CHECK(tp_stream_current(0) == tp_stream_default(0));
  CHECK_OK(tp_stream_set_current(argument));
  return argument;
}

static void test_current_streams(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0);
  tp_stream_t *second = tp_stream_from_pool(1, 0);
  CHECK_OK(tp_stream_set_current(first));
  CHECK_OK(tp_stream_set_current(second));
  CHECK(tp_stream_current(0) == first && tp_stream_current(1) == second);
  CHECK(tp_device_current() == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, tp_stream_from_pool(0, -1)) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(tp_stream_current(0) == first);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(tp_stream_set_current(tp_stream_default(1)));
  CHECK(tp_stream_set_current(NULL) == TP_INVALID_ARGUMENT);
}

static void test_entering_and_leaving(void) {
  tp_stream_t *before = tp_stream_from_pool(1, 0);
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(1, 0);
  CHECK_OK(tp_stream_set_current(before));
  tp_place_t outer = tp_stream_enter(first);
  CHECK(outer.stream == tp_stream_default(0) && outer.device == 0);
  CHECK(tp_stream_current(TP_DEVICE_CURRENT) == first);
  tp_place_t inner = tp_stream_enter(second);
  CHECK(inner.stream == before && inner.device == 0);
  CHECK(tp_device_current() == 1 && tp_stream_current(1) == second && tp_stream_current(0) == first);
  tp_stream_leave(inner);
  CHECK(tp_device_current() == 0 && tp_stream_current(1) == before && tp_stream_current(0) == first);
  tp_stream_leave(outer);
  CHECK(tp_device_current() == 0 && tp_stream_current(0) == tp_stream_default(0));
  CHECK_OK(tp_stream_set_current(tp_stream_default(1)));
}

/* Puts one piece of work on a stream that stays until somebody waits for it. */
static void keep_busy(tp_stream_t *stream, void *memory) {
  CHECK_OK(tp__device_enter(tp_stream_device(stream), "test"));
  CHECK(tp_emulated_hold(tp_stream_device(stream), tp_stream_handle(stream)) == 0);
  CHECK(cudaMemsetAsync(memory, 1, 512, tp__stream_cuda(stream)) == cudaSuccess);
}

static void test_query_and_synchronize(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  void *memory = tp_memory_alloc(512, stream);
  CHECK(memory && tp_stream_query(stream) == 1);
  keep_busy(stream, memory);
  CHECK(tp_stream_query(stream) == 0 && tp_stream_query(stream) == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK_OK(tp_stream_synchronize(stream));
  CHECK(tp_stream_query(stream) == 1);
  tp_memory_free(memory);
  tp_emulated_reset();
}

static void test_waiting_for_a_stream_of_another_device(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0);
  tp_stream_t *second = tp_stream_from_pool(1, 0);
  void *memory = tp_memory_alloc(512, first);
  keep_busy(first, memory);
  int64_t events = tp_emulated_call_count("cudaEventCreateWithFlags", -1);
  CHECK_OK(tp_stream_wait_stream(second, second));
  CHECK(tp_stream_query(second) == 1);
  for (int i = 0; i < 10; i++) CHECK_OK(tp_stream_wait_stream(second, first));
  CHECK(tp_emulated_call_count("cudaEventCreateWithFlags", -1) <= events + 1);
  CHECK(tp_stream_query(second) == 0);
  CHECK_OK(tp_stream_synchronize(second)); /* runs what it waits for */
  CHECK(tp_stream_query(first) == 1);
  tp_memory_free(memory);
  tp_emulated_reset();
}

static void test_waiting_for_an_event(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0);
  tp_stream_t *second = tp_stream_from_pool(0, 0);
  void *memory = tp_memory_alloc(512, first);
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_stream_wait_event(second, event));
  CHECK(tp_stream_query(second) == 1); /* never recorded: not waited for */
  keep_busy(first, memory);
  CHECK_OK(tp_event_record(event, first));
  CHECK_OK(tp_stream_wait_event(second, event));
  tp_event_release(event); /* the wait stays */
  CHECK(tp_stream_query(second) == 0);
  CHECK_OK(tp_stream_synchronize(second));
  CHECK(tp_stream_query(first) == 1);
  tp_memory_free(memory);
  tp_emulated_reset();
}

static void test_a_failed_pool_can_be_made_again(void) {
  tp_emulated_fail("cudaStreamCreateWithPriority", 3, tp_emulated_error_code("cudaErrorMemoryAllocation"));
  CHECK(!tp_stream_from_pool(1, -1));
  CHECK(tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK(tp_emulated_call_count("cudaStreamDestroy", -1) == 2);
  CHECK(tp_stream_from_pool(1, -1));
}

int main(void) {
  test_default_streams();
  test_the_pool_goes_round();
  test_a_failed_pool_can_be_made_again();
  test_priorities_are_clamped();
  test_current_streams();
  test_entering_and_leaving();
  test_query_and_synchronize();
  test_waiting_for_a_stream_of_another_device();
  test_waiting_for_an_event();
  return 0;
}
