/* A process without a device: counting gives 0, everything else says why. */
#include <string.h>

#include "check.h"
#include "internal.h"
#include "tp_emulated.h"

static void expect_unavailable(tp_status_t status, const char *operation) {
  CHECK(status == TP_UNAVAILABLE);
  CHECK(strcmp(tp_error_operation(), operation) == 0);
  CHECK(strstr(tp_error_text(), "cudaErrorNoDevice"));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

static void test_a_driver_that_fails(void) {
  CHECK(tp_emulated_fail("cudaGetDeviceCount", 1, cudaErrorInvalidValue) == 0);
  CHECK(tp_device_count() == TP_CUDA && tp_error_cuda_code() == cudaErrorInvalidValue);
  CHECK(tp_emulated_fail("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver) == 0);
  CHECK(tp_device_count() == 0);
  /* What CUDA says when CUDA_VISIBLE_DEVICES names a device twice. */
  CHECK(tp_emulated_fail("cudaGetDeviceCount", 1, cudaErrorInvalidDevice) == 0);
  CHECK(tp_device_count() == 0);
  CHECK(tp_emulated_fail("cudaGetDeviceCount", 1, cudaErrorInvalidDevice) == 0);
  expect_unavailable(tp_device_set(0), "device_set");
}

static void test_no_device(void) {
  tp_device_properties_t properties;
  size_t free_nbytes, total;
  CHECK(tp_device_count() == 0);
  CHECK(tp_device_current() == 0);
  expect_unavailable(tp_device_set(0), "device_set");
  expect_unavailable(tp_device_synchronize(TP_DEVICE_CURRENT), "device_synchronize");
  expect_unavailable(tp_device_get_properties(0, &properties), "device_get_properties");
  expect_unavailable(tp_memory_get_info(5, &free_nbytes, &total), "memory_get_info");
  expect_unavailable(tp_memory_empty_cache(0), "memory_empty_cache");
  expect_unavailable((tp_status_t)tp_memory_stat(0, 0), "memory_stat");
  CHECK(!tp_stream_current(0));
  expect_unavailable(tp_error_status(), "stream_current");
  CHECK(!tp_stream_from_pool(0, 0));
  expect_unavailable(tp_error_status(), "stream_from_pool");
  CHECK(tp_device_is_started(0) == 0);
}

int main(void) {
  CHECK(tp_emulated_set_device_count(0) == 0);
  test_a_driver_that_fails();
  test_no_device();
  return 0;
}
