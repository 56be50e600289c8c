/* Devices: counting, current ones, starting only what is used, other users of cudaSetDevice, faults. */
#include <pthread.h>
#include <string.h>

#include "../../libtensorplay/kernels/fault.h"
#include "check.h"
#include "internal.h"
#include "tp_emulated.h"

static void test_questions_start_nothing(void) {
  CHECK(tp_device_count() == 2);
  CHECK(tp_device_current() == 0);
  CHECK_OK(tp_device_set(1));
  CHECK(tp_device_current() == 1);
  CHECK_OK(tp_device_set(TP_DEVICE_CURRENT));
  CHECK(tp_device_current() == 1);
  CHECK_OK(tp_device_set(0));
  tp_device_properties_t properties;
  CHECK_OK(tp_device_get_properties(0, &properties));
  CHECK(properties.total_memory > 0 && properties.major == 9 && properties.warp_size == 32);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(tp_stream_query(tp_stream_default(0)) == 1);
  CHECK_OK(tp_stream_synchronize(tp_stream_default(0)));
  CHECK(tp_memory_stat(0, 0) == 0);
  CHECK(!tp_device_is_started(0) && !tp_device_is_started(1));
  CHECK(tp_emulated_call_count("cudaSetDevice", -1) == 0);
  CHECK(tp_emulated_call_count("cudaHostAlloc", -1) == 0);
}

static void expect_no_device(tp_status_t status) {
  CHECK(status == TP_DEVICE);
  CHECK(strstr(tp_error_text(), "device 99 asked for, 2 visible"));
}

static void test_devices_that_do_not_exist(void) {
  tp_device_properties_t properties;
  size_t free_nbytes, total;
  expect_no_device(tp_device_set(99));
  expect_no_device(tp_device_synchronize(99));
  expect_no_device(tp_device_get_properties(99, &properties));
  expect_no_device(tp_memory_empty_cache(99));
  expect_no_device(tp_memory_get_info(99, &free_nbytes, &total));
  expect_no_device(tp_memory_reset_peak_stats(99));
  expect_no_device((tp_status_t)tp_memory_stat(99, 0));
  CHECK(!tp_stream_default(99));
  expect_no_device(tp_error_status());
  CHECK(!tp_stream_from_pool(99, 0));
  expect_no_device(tp_error_status());
  CHECK(tp_device_set(-2) == TP_DEVICE);
  CHECK(tp_device_set(2) == TP_DEVICE);
  CHECK(!tp_device_is_started(99) && !tp_device_is_started(-2));
  CHECK(tp_device_current() == 0);
}

static void *use_device_1(void *argument) {
  tp_stream_t *stream = tp_stream_from_pool(1, 0);
  CHECK(stream);
  tp_event_t *event = tp_event_create(TP_EVENT_TIMING);
  CHECK(event);
  CHECK_OK(tp_event_record(event, stream));
  CHECK_OK(tp_event_synchronize(event));
  void *address = tp_memory_alloc(1000, stream);
  CHECK(address);
  tp_memory_free(address);
  CHECK_OK(tp_memory_empty_cache(1));
  CHECK_OK(tp_device_synchronize(1));
  tp_event_release(event);
  return argument;
}

static void *ask_in_a_fresh_thread(void *argument) {
  CHECK(tp_event_query(argument) >= 0);
  return argument;
}

static void in_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, function, argument) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void test_only_used_devices_start(void) {
  in_thread(use_device_1, NULL);
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_event_record(event, tp_stream_default(1)));
  in_thread(ask_in_a_fresh_thread, event);
  tp_event_release(event);
  CHECK(tp_device_is_started(1) && !tp_device_is_started(0));
  /* What a thread calls before it has entered a device counts as device 0: only the entering itself may. */
  CHECK(tp_emulated_call_count("cudaMalloc", 0) == 0);
  CHECK(tp_emulated_call_count("cudaHostAlloc", 0) == 0);
  CHECK(tp_emulated_call_count("cudaEventQuery", 0) == 0);
  CHECK(tp_emulated_call_count("cudaEventSynchronize", 0) == 0);
}

static int device_of(const void *address) {
  struct cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, address) == cudaSuccess);
  return attributes.device;
}

/* Another library that changes CUDA's device in our thread must not move our memory or events. */
static void test_cudas_device_changed_by_others(void) {
  for (int32_t device = 0; device < 2; device++) {
    CHECK_OK(tp_device_set(device));
    CHECK_OK(tp__device_enter(device, "test"));
    CHECK(cudaSetDevice(1 - device) == cudaSuccess);
    void *address = tp_memory_alloc(32 * TP_MiB, tp_stream_current(device));
    CHECK(address && device_of(address) == device);
    tp_memory_free(address);
    CHECK(cudaSetDevice(1 - device) == cudaSuccess);
    CHECK_OK(tp_memory_empty_cache(device));
    CHECK(cudaSetDevice(1 - device) == cudaSuccess);
    CHECK_OK(tp__device_enter(device, "test"));
    int actual = -1;
    CHECK(cudaGetDevice(&actual) == cudaSuccess && actual == device);
  }
  CHECK_OK(tp_device_set(0));
}

static void test_a_visit_puts_the_device_back(void) {
  int32_t before;
  int actual = -1;
  CHECK_OK(tp__device_enter(0, "test"));
  CHECK(tp__device_visit(1, &before));
  CHECK(cudaGetDevice(&actual) == cudaSuccess && actual == 1);
  tp__device_leave(before);
  CHECK(cudaGetDevice(&actual) == cudaSuccess && actual == 0);
}

static void test_faults_are_reported_once_and_cleared(void) {
  CHECK_OK(tp__device_enter(1, "test"));
  tp_fault_t *word = tp__device_fault_word(1); /* pinned memory: the host's own on this device */
  CHECK(word);
  *word = (tp_fault_t){TP_FAULT_INDEX, TP_FAULT_OP_EMBEDDING, .value = 99, .limit = 10};
  CHECK_OK(tp_device_synchronize(0));
  CHECK(tp_device_synchronize(1) == TP_INDEX);
  CHECK(strcmp(tp_error_text(), "embedding: index 99 is out of range for 10 rows on cuda:1") == 0);
  CHECK(strcmp(tp_error_operation(), "embedding") == 0);
  CHECK_OK(tp_device_synchronize(1));
  *word = (tp_fault_t){TP_FAULT_INDEX, TP_FAULT_OP_INDEX_SELECT, .value = -1, .limit = 3};
  CHECK(tp_stream_synchronize(tp_stream_default(1)) == TP_INDEX);
  CHECK(strstr(tp_error_text(), "index_select: index -1 is out of range for a dimension of size 3"));
  CHECK_OK(tp_stream_synchronize(tp_stream_default(1)));
}

static void test_peers(void) {
  CHECK_OK(tp__device_enter(0, "test"));
  for (int i = 0; i < 2; i++) {
    CHECK_OK(tp__device_enable_peer(0, 1));
    CHECK(tp_emulated_call_count("cudaDeviceEnablePeerAccess", -1) == 1);
  }
  int actual = -1;
  CHECK(cudaGetDevice(&actual) == cudaSuccess && actual == 0);
}

static void test_a_failed_start_can_be_repeated(void) {
  CHECK(!tp_device_is_started(0));
  tp_emulated_fail("cudaHostAlloc", 1, tp_emulated_error_code("cudaErrorMemoryAllocation"));
  CHECK(tp__device_enter(0, "test") == TP_OUT_OF_MEMORY);
  CHECK(!tp_device_is_started(0));
  CHECK_OK(tp__device_enter(0, "test"));
  CHECK(tp_device_is_started(0));
}

int main(void) {
  test_questions_start_nothing();
  test_devices_that_do_not_exist();
  test_only_used_devices_start();
  test_a_failed_start_can_be_repeated();
  test_cudas_device_changed_by_others();
  test_a_visit_puts_the_device_back();
  test_faults_are_reported_once_and_cleared();
  test_peers();
  return 0;
}
