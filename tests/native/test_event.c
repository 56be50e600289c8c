/* Events: before the first record, devices, time between them, pooling. */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "internal.h"
#include "tp_emulated.h"

static void test_never_recorded(void) {
  tp_event_t *event = tp_event_create(0);
  CHECK(event);
  CHECK(tp_event_query(event) == 1);
  CHECK_OK(tp_event_synchronize(event));
  CHECK(tp_event_device(event) == -1 && tp_event_handle(event) == 0);
  tp_event_release(event);
  CHECK(!tp_device_is_started(0));
}

static void test_wrong_flags(void) {
  CHECK(!tp_event_create(16) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_event_create(-1) && tp_error_status() == TP_INVALID_ARGUMENT);
}

static void test_device_of_the_first_record(void) {
  tp_event_t *event = tp_event_create(TP_EVENT_BLOCKING);
  CHECK_OK(tp_event_record(event, tp_stream_default(1)));
  CHECK(tp_event_device(event) == 1 && tp_event_handle(event) != 0);
  CHECK(tp_event_record(event, tp_stream_default(0)) == TP_DEVICE);
  CHECK(strstr(tp_error_text(), "belongs to cuda:1") && strstr(tp_error_text(), "a stream of cuda:0"));
  CHECK_OK(tp_event_synchronize(event));
  CHECK(tp_event_query(event) == 1);
  tp_event_release(event);
}

static void test_recording_in_the_current_stream(void) {
  tp_event_t *here = tp_event_create(0), *there = tp_event_create(0);
  tp_stream_t *stream = tp_stream_from_pool(1, 0);
  CHECK_OK(tp_event_record_current(here));
  CHECK(tp_event_device(here) == 0);
  tp_place_t former = tp_stream_enter(stream);
  CHECK(tp_emulated_hold(1, tp_stream_handle(stream)) == 0);
  CHECK_OK(tp_event_record_current(there));
  CHECK(tp_event_record_current(here) == TP_DEVICE);
  tp_stream_leave(former);
  CHECK(tp_event_device(there) == 1 && tp_event_query(there) == 0);
  CHECK_OK(tp_event_synchronize(there));
  tp_event_release(here);
  tp_event_release(there);
  tp_emulated_reset();
}

static void expect_state(tp_event_t *start, tp_event_t *end, const char *text) {
  double milliseconds = -1;
  CHECK(tp_event_elapsed_time_ms(start, end, &milliseconds) == TP_STATE);
  CHECK(strstr(tp_error_text(), text));
  CHECK(milliseconds == -1);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

static void test_elapsed_time(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  void *memory = tp_memory_alloc(1 * TP_MiB, stream);
  tp_event_t *start = tp_event_create(TP_EVENT_TIMING);
  tp_event_t *end = tp_event_create(TP_EVENT_TIMING);
  tp_event_t *untimed = tp_event_create(0);
  tp_event_t *elsewhere = tp_event_create(TP_EVENT_TIMING);
  expect_state(untimed, end, "the start event was made without timing");
  expect_state(start, end, "the start event was never recorded");
  CHECK_OK(tp_event_record(start, stream));
  CHECK_OK(tp_event_record(untimed, stream));
  CHECK_OK(tp_event_record(elsewhere, tp_stream_default(1)));
  expect_state(start, untimed, "the end event was made without timing");
  expect_state(start, end, "the end event was never recorded");
  expect_state(start, elsewhere, "start was recorded on cuda:0, end on cuda:1");
  CHECK_OK(tp_stream_synchronize(stream));
  CHECK(tp_emulated_hold(0, tp_stream_handle(stream)) == 0);
  CHECK_OK(tp__device_enter(0, "test"));
  CHECK(cudaMemsetAsync(memory, 0, 1 * TP_MiB, tp__stream_cuda(stream)) == cudaSuccess);
  CHECK_OK(tp_event_record(end, stream));
  expect_state(start, end, "the work before the end event is not done");
  CHECK(tp_event_query(end) == 0);
  CHECK_OK(tp_event_synchronize(end));
  double forward = 0, backward = 0, none = 1;
  CHECK_OK(tp_event_elapsed_time_ms(start, end, &forward));
  CHECK_OK(tp_event_elapsed_time_ms(end, start, &backward));
  CHECK_OK(tp_event_elapsed_time_ms(end, end, &none));
  CHECK(forward > 0 && backward == -forward && none == 0);
  tp_event_release(start);
  tp_event_release(end);
  tp_event_release(untimed);
  tp_event_release(elsewhere);
  tp_memory_free(memory);
  tp_emulated_reset();
}

static void *release_elsewhere(void *event) {
  tp_event_release(event);
  return NULL;
}

static void test_events_are_used_again(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_event_record(event, stream));
  uintptr_t handle = tp_event_handle(event);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, release_elsewhere, event) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  int64_t made = tp_emulated_call_count("cudaEventCreateWithFlags", -1);
  for (int i = 0; i < 1000; i++) {
    event = tp_event_create(0);
    CHECK_OK(tp_event_record(event, stream));
    CHECK(tp_event_handle(event) == handle);
    tp_event_release(event);
  }
  CHECK(tp_emulated_call_count("cudaEventCreateWithFlags", -1) == made);
  CHECK(tp_emulated_call_count("cudaEventDestroy", -1) == 0);
}

static void test_many_at_once(void) {
  enum { COUNT = 200 };
  tp_event_t *events[COUNT];
  for (int i = 0; i < COUNT; i++) {
    events[i] = tp_event_create(0);
    CHECK_OK(tp_event_record(events[i], tp_stream_default(0)));
    for (int j = 0; j < i; j++) CHECK(tp_event_handle(events[j]) != tp_event_handle(events[i]));
  }
  for (int i = 0; i < COUNT; i++) tp_event_release(events[i]);
}

static void test_a_failed_record(void) {
  tp_event_t *event = tp_event_create(TP_EVENT_TIMING | TP_EVENT_BLOCKING);
  tp_emulated_fail("cudaEventCreateWithFlags", 1, tp_emulated_error_code("cudaErrorMemoryAllocation"));
  CHECK(tp_event_record(event, tp_stream_default(0)) == TP_OUT_OF_MEMORY);
  CHECK(tp_event_device(event) == -1);
  CHECK_OK(tp_event_record(event, tp_stream_default(1)));
  CHECK(tp_event_device(event) == 1);
  tp_event_release(event);
}

/* Others may use it as long as it lives: it comes from no stack, and returns to none. */
static void test_an_event_between_processes(void) {
  uint8_t handle[TP_EVENT_HANDLE_NBYTES], again[TP_EVENT_HANDLE_NBYTES];
  CHECK(!tp_event_create(TP_EVENT_INTERPROCESS | TP_EVENT_TIMING) && tp_error_status() == TP_INVALID_ARGUMENT);
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_event_record(event, tp_stream_default(0)));
  CHECK(tp_event_ipc_handle(event, handle) == TP_STATE && strstr(tp_error_text(), "interprocess"));
  tp_event_release(event);
  int64_t made = tp_emulated_call_count("cudaEventCreateWithFlags", -1);
  int64_t destroyed = tp_emulated_call_count("cudaEventDestroy", -1);
  for (int i = 1; i <= 3; i++) {
    event = tp_event_create(TP_EVENT_INTERPROCESS | TP_EVENT_BLOCKING);
    CHECK_OK(tp_event_ipc_handle(event, handle));
    CHECK(tp_event_device(event) == 0 && tp_event_query(event) == 1);
    CHECK_OK(tp_event_record(event, tp_stream_default(0)));
    CHECK_OK(tp_event_ipc_handle(event, again));
    CHECK(memcmp(handle, again, sizeof handle) == 0);
    CHECK(tp_event_record(event, tp_stream_default(1)) == TP_DEVICE);
    CHECK(!tp_event_from_ipc_handle(0, handle) && tp_error_cuda_code() == cudaErrorDeviceUninitialized);
    tp_event_release(event);
    CHECK(tp_emulated_call_count("cudaEventCreateWithFlags", -1) == made + i);
    CHECK(tp_emulated_call_count("cudaEventDestroy", -1) == destroyed + i);
  }
  CHECK(!tp_event_from_ipc_handle(99, handle) && tp_error_status() == TP_DEVICE);
}

static void test_failing_calls_between_processes(void) {
  uint8_t handle[TP_EVENT_HANDLE_NBYTES] = {0};
  tp_event_t *event = tp_event_create(TP_EVENT_INTERPROCESS);
  int unsupported = tp_emulated_error_code("cudaErrorNotSupported");
  tp_emulated_fail("cudaEventCreateWithFlags", 1, unsupported);
  CHECK(tp_event_ipc_handle(event, handle) == TP_CUDA && tp_event_device(event) == -1);
  tp_emulated_fail("cudaIpcGetEventHandle", 1, unsupported);
  CHECK(tp_event_ipc_handle(event, handle) == TP_CUDA && tp_event_device(event) == 0);
  CHECK_OK(tp_event_ipc_handle(event, handle));
  tp_emulated_fail("cudaIpcOpenEventHandle", 1, unsupported);
  CHECK(!tp_event_from_ipc_handle(0, handle) && tp_error_cuda_code() == unsupported);
  cudaEvent_t kept = (cudaEvent_t)tp_event_handle(event);
  tp_emulated_fail("cudaEventDestroy", 1, unsupported);
  tp_event_release(event);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaEventDestroy(kept) == cudaSuccess);
}

int main(void) {
  test_never_recorded();
  test_wrong_flags();
  test_device_of_the_first_record();
  test_recording_in_the_current_stream();
  test_elapsed_time();
  test_events_are_used_again();
  test_many_at_once();
  test_a_failed_record();
  test_an_event_between_processes();
  test_failing_calls_between_processes();
  return 0;
}
