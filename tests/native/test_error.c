/* The error slot: its text, CUDA's codes, one slot for each thread, quiet release functions. */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "internal.h"

static void test_empty_at_first(void) {
  CHECK(tp_error_status() == TP_OK);
  CHECK(strcmp(tp_error_text(), "") == 0);
  CHECK(strcmp(tp_error_operation(), "") == 0);
  CHECK(tp_error_cuda_code() == 0);
  CHECK(strcmp(tp_error_cuda_name(), "") == 0);
}

static void test_own_error(void) {
  CHECK(tp__error_set(TP_SHAPE, "add", "got %d, expected %d", 3, 4) == TP_SHAPE);
  CHECK(tp_error_status() == TP_SHAPE);
  CHECK(strcmp(tp_error_text(), "add: got 3, expected 4") == 0);
  CHECK(strcmp(tp_error_operation(), "add") == 0);
  CHECK(tp_error_cuda_code() == 0);
}

static void test_text_of_the_slot_as_argument(void) {
  tp__error_set(TP_SHAPE, "add", "first");
  tp__error_set(TP_SHAPE, "sum", "after %s", tp_error_text());
  CHECK(strcmp(tp_error_text(), "sum: after add: first") == 0);
}

static void test_long_texts_are_cut(void) {
  char longer[4000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  tp__error_set(TP_STATE, longer, "%s", longer);
  CHECK(strlen(tp_error_operation()) == 63);
  CHECK(strlen(tp_error_text()) > 1000 && strlen(tp_error_text()) < sizeof longer);
}

static void test_out_of_memory_has_cudas_code(void) {
  tp__error_set(TP_OUT_OF_MEMORY, "empty", "no room");
  CHECK(tp_error_cuda_code() == cudaErrorMemoryAllocation);
  CHECK(strcmp(tp_error_cuda_name(), "cudaErrorMemoryAllocation") == 0);
}

static void test_statuses_of_cudas_errors(void) {
  CHECK(tp__error_set_cuda(cudaErrorMemoryAllocation, "empty", "cudaMalloc(&p, 1)") == TP_OUT_OF_MEMORY);
  CHECK(tp__error_set_cuda(cudaErrorNoDevice, "empty", "cudaSetDevice") == TP_UNAVAILABLE);
  CHECK(tp_error_cuda_code() == 0);
  CHECK(tp__error_set_cuda(cudaErrorInsufficientDriver, "empty", "cudaSetDevice") == TP_UNAVAILABLE);
  CHECK(tp__error_set_cuda(cudaErrorInvalidValue, "empty", "cudaMalloc(&p, 1)") == TP_CUDA);
  CHECK(tp_error_cuda_code() == cudaErrorInvalidValue);
  CHECK(strncmp(tp_error_text(), "empty: cudaErrorInvalidValue: ", 30) == 0);
  CHECK(strstr(tp_error_text(), "(in cudaMalloc)"));
}

static void test_what_usually_helps(void) {
  for (int error = cudaErrorStreamCaptureUnsupported; error <= cudaErrorStreamCaptureWrongThread; error++) {
    CHECK(tp__error_set_cuda((cudaError_t)error, "add", "cudaCall") == TP_CUDA);
    /* Of a capture that was broken before, only the call that broke it can be told more. */
    CHECK(!strstr(tp_error_text(), "(in cudaCall); ") == (error == cudaErrorStreamCaptureInvalidated));
  }
  tp__error_set_cuda(cudaErrorIllegalAddress, "add", "cudaCall");
  CHECK(strstr(tp_error_text(), "(in cudaCall); the device is lost to this process: restart it"));
  tp__error_set_cuda(cudaErrorInvalidValue, "add", "cudaCall");
  CHECK(!strstr(tp_error_text(), ";"));
  tp__error_add("; %d more", 3);
  CHECK(strstr(tp_error_text(), "(in cudaCall); 3 more"));
}

static cudaError_t heard;

static void hear(cudaError_t error) {
  heard = error;
  tp__error_add("; heard");
}

static void test_a_listener_hears_of_captures_only(void) {
  tp__error_listen(hear);
  tp__error_set_cuda(cudaErrorInvalidValue, "add", "cudaCall");
  CHECK(heard == cudaSuccess && !strstr(tp_error_text(), "heard"));
  tp__error_set_cuda(cudaErrorCapturedEvent, "add", "cudaCall");
  CHECK(heard == cudaErrorCapturedEvent && strstr(tp_error_text(), "; heard"));
  tp__error_listen(NULL);
  tp__error_set_cuda(cudaErrorCapturedEvent, "add", "cudaCall");
  CHECK(!strstr(tp_error_text(), "heard"));
}

static void test_cudas_last_error_is_cleared(void) {
  cudaError_t error = cudaSetDevice(99);
  CHECK(error != cudaSuccess);
  tp__error_set_cuda(error, "device_set", "cudaSetDevice");
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

static void *other_thread(void *argument) {
  CHECK(tp_error_status() == TP_OK);
  tp__error_set(TP_INDEX, "select", "other");
  return argument;
}

static void test_one_slot_for_each_thread(void) {
  tp__error_set(TP_SHAPE, "add", "mine");
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(strcmp(tp_error_text(), "add: mine") == 0);
}

static void test_release_functions_are_quiet(void) {
  void *address = tp_memory_alloc(100, tp_stream_default(0));
  tp_event_t *event = tp_event_create(0);
  CHECK(address && event);
  CHECK_OK(tp_event_record(event, tp_stream_default(0)));
  tp__error_set(TP_SHAPE, "add", "kept");
  tp_memory_free(address);
  tp_memory_free(address);
  tp_memory_free(NULL);
  tp_event_release(event);
  tp_event_release(NULL);
  CHECK(tp_error_status() == TP_SHAPE);
  CHECK(strcmp(tp_error_text(), "add: kept") == 0);
}

int main(void) {
  test_empty_at_first();
  test_own_error();
  test_text_of_the_slot_as_argument();
  test_long_texts_are_cut();
  test_out_of_memory_has_cudas_code();
  test_statuses_of_cudas_errors();
  test_what_usually_helps();
  test_a_listener_hears_of_captures_only();
  test_cudas_last_error_is_cleared();
  test_one_slot_for_each_thread();
  test_release_functions_are_quiet();
  return 0;
}
