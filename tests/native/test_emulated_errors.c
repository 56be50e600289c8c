/* The emulated device's errors: injected ones, counts of calls, settings, forks, and threads. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cuda_api.h"
#include "tp_emulated.h"

#define THREADS 8
#define ROUNDS 200

/* Runs a test in a child, where the runtime has not been used yet. */
static void in_child(void (*test)(void)) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    test();
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void expect_bad_setting(const char *variable, const char *value) {
  int count;
  setenv(variable, value, 1);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInitializationError);
  CHECK(cudaSetDevice(0) == cudaErrorInitializationError);
  const char *text = cudaGetErrorString(cudaErrorInitializationError);
  CHECK(strstr(text, variable) && strstr(text, value));
}

static void bad_memory(void) { expect_bad_setting("TENSORPLAY_EMULATED_MEMORY", "12 apples"); }
static void no_memory(void) { expect_bad_setting("TENSORPLAY_EMULATED_MEMORY", "0"); }
static void much_memory(void) { expect_bad_setting("TENSORPLAY_EMULATED_MEMORY", "17GiB"); }
static void bad_seed(void) { expect_bad_setting("TENSORPLAY_EMULATED_SEED", "-1"); }
static void bad_devices(void) { expect_bad_setting("TENSORPLAY_EMULATED_DEVICES", "9"); }
static void bad_fibres(void) { expect_bad_setting("TENSORPLAY_EMULATED_FIBRES", "yes"); }
static void bad_peers(void) { expect_bad_setting("TENSORPLAY_EMULATED_PEERS", "2"); }

static void good_settings(void) {
  int count;
  setenv("TENSORPLAY_EMULATED_MEMORY", "512MiB", 1);
  setenv("TENSORPLAY_EMULATED_DEVICES", "8", 1);
  setenv("TENSORPLAY_EMULATED_SEED", "18446744073709551615", 1);
  CHECK_OK(cudaGetDeviceCount(&count));
  CHECK(count == 8 && tp_emulated_capacity(7) == (int64_t)512 << 20);
  CHECK(tp_emulated_set_device_count(2) == -1);
}

static void no_devices(void) {
  int count;
  CHECK_OK(tp_emulated_set_device_count(0));
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 0);
  CHECK(cudaDeviceSynchronize() == cudaErrorNoDevice);
  CHECK(cudaSetDevice(0) == cudaErrorInvalidDevice);
}

static void free_to_start(void) { CHECK_OK(cudaDeviceSynchronize()); }

static void refused_after_fork(void) { CHECK(cudaDeviceSynchronize() == cudaErrorInitializationError); }

/* Asking how many devices there are leaves a forked child free; using one does not. */
static void test_fork(void) {
  int count;
  CHECK_OK(cudaGetDeviceCount(&count));
  CHECK(count == 2);
  in_child(free_to_start);
  CHECK_OK(cudaDeviceSynchronize());
  in_child(refused_after_fork);
}

static void test_injection(void) {
  void *memory;
  int32_t code = tp_emulated_error_code("cudaErrorMemoryAllocation");
  CHECK(code == cudaErrorMemoryAllocation && tp_emulated_error_code("cudaErrorNothing") == -1);
  tp_emulated_reset();
  CHECK_OK(tp_emulated_fail("cudaMalloc", 2, code));
  CHECK_OK(cudaMalloc(&memory, 512));
  CHECK_OK(cudaFree(memory));
  CHECK(cudaMalloc(&memory, 512) == cudaErrorMemoryAllocation);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK_OK(cudaGetLastError());
  CHECK_OK(cudaMalloc(&memory, 512));
  CHECK_OK(cudaFree(memory));
  CHECK(tp_emulated_call_count("cudaMalloc", 0) == 3 && tp_emulated_call_count("cudaMalloc", 1) == 0);
  CHECK(tp_emulated_call_count("cudaMalloc", -1) == 3);
  CHECK(tp_emulated_call_count("cudaNothing", -1) == -1 && tp_emulated_fail("cudaNothing", 1, code) == -1);
  CHECK_OK(tp_emulated_fail("cudaMalloc", 1, code));
  tp_emulated_clear_call_counts();
  CHECK(tp_emulated_call_count("cudaMalloc", -1) == 0);
  CHECK_OK(tp_emulated_fail("cudaMalloc", 0, 0));
  CHECK_OK(cudaMalloc(&memory, 512));
  CHECK_OK(cudaFree(memory));
}

static void test_texts(void) {
  CHECK(!strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
  CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
  CHECK(!strcmp(cudaGetErrorString(cudaErrorInitializationError), "initialization error"));
  CHECK(!strcmp(cudaGetErrorString((cudaError_t)4321), "unrecognized error code"));
  CHECK(!strcmp(cudaGetErrorName((cudaError_t)4321), "unrecognized error code"));
}

static void test_capture_mode(void) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  CHECK_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeGlobal);
  CHECK_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeRelaxed);
  CHECK_OK(cudaStreamIsCapturing(NULL, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
}

/* Last errors belong to threads. */
static void *expect_no_error(void *unused) {
  CHECK_OK(cudaGetLastError());
  return unused;
}

static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;
static int host_functions; /* under user_lock */

static void count_host_function(void *unused) {
  (void)unused;
  pthread_mutex_lock(&user_lock);
  host_functions++;
  pthread_mutex_unlock(&user_lock);
}

/* Each thread copies its number through device memory on its own stream, orders streams by events, and shares a
 * lock with host functions, which run in whichever thread makes work run. */
static void *work(void *argument) {
  int number = (int)(intptr_t)argument, back;
  int *memory;
  cudaStream_t stream, other;
  cudaEvent_t event;
  CHECK_OK(cudaSetDevice(number % 2));
  CHECK_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  for (int i = 0; i < ROUNDS; i++) {
    int value = number * ROUNDS + i;
    CHECK_OK(cudaMalloc((void **)&memory, 512));
    CHECK_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK_OK(cudaMemcpyAsync(memory, &value, sizeof value, cudaMemcpyHostToDevice, stream));
    CHECK_OK(cudaEventRecord(event, stream));
    CHECK_OK(cudaStreamWaitEvent(other, event, 0));
    CHECK_OK(cudaLaunchHostFunc(stream, count_host_function, NULL));
    bool done = cudaEventQuery(event) == cudaSuccess;
    CHECK_OK(cudaMemcpyAsync(&back, memory, sizeof back, cudaMemcpyDeviceToHost, other));
    CHECK(back == value && (done || cudaEventQuery(event) == cudaSuccess));
    CHECK_OK(cudaEventDestroy(event));
    CHECK_OK(cudaFree(memory));
  }
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_OK(cudaStreamDestroy(stream));
  CHECK_OK(cudaStreamDestroy(other));
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[THREADS];
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  CHECK_OK(pthread_create(&threads[0], NULL, expect_no_error, NULL));
  CHECK_OK(pthread_join(threads[0], NULL));
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  for (intptr_t i = 0; i < THREADS; i++) CHECK_OK(pthread_create(&threads[i], NULL, work, (void *)i));
  for (int i = 0; i < THREADS; i++) CHECK_OK(pthread_join(threads[i], NULL));
  CHECK(host_functions == THREADS * ROUNDS);
  CHECK(tp_emulated_queued(-1) == 0 && tp_emulated_used(0) == 0 && tp_emulated_used(1) == 0);
}

int main(void) {
  void (*const settings[])(void) = {bad_memory,  no_memory,  much_memory,   bad_seed,
                                    bad_devices, bad_fibres, bad_peers, good_settings, no_devices};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) in_child(settings[i]);
  test_fork();
  test_injection();
  test_texts();
  test_capture_mode();
  test_threads();
  return 0;
}
