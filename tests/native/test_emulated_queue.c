/* The emulated device's queues: when work runs, and in which order. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "cuda_api.h"
#include "tp_emulated.h"

#define SEEDS 32

static char order[64]; /* the letters of the host functions that ran */

static void note(void *letter) {
  size_t length = strlen(order);
  order[length] = (char)(uintptr_t)letter;
  order[length + 1] = 0;
}

static void letter(cudaStream_t stream, char c) {
  CHECK_OK(cudaLaunchHostFunc(stream, note, (void *)(uintptr_t)c));
}

static cudaStream_t new_stream(unsigned int flags) {
  cudaStream_t stream;
  CHECK_OK(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

static cudaEvent_t new_event(void) {
  cudaEvent_t event;
  CHECK_OK(cudaEventCreateWithFlags(&event, cudaEventDefault));
  return event;
}

static void start(uint64_t seed) {
  CHECK_OK(cudaDeviceSynchronize());
  tp_emulated_reset();
  tp_emulated_set_seed(seed);
  order[0] = 0;
}

/* Launching never runs anything; a synchronise runs the stream in order. */
static void test_order_in_a_stream(void) {
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    start(seed);
    for (char c = 'a'; c <= 'e'; c++) letter(stream, c);
    CHECK(order[0] == 0);
    CHECK(tp_emulated_stream_queued(0, (uintptr_t)stream) == 5);
    CHECK_OK(cudaStreamSynchronize(stream));
    CHECK(!strcmp(order, "abcde"));
  }
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Without a wait both orders occur over the seeds, and a synchronise of one stream sometimes leaves the
 * other alone; with a wait there is one order. The same seed gives the same order. */
static void test_seeds(void) {
  cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
  cudaEvent_t event = new_event();
  bool ab = false, ba = false, alone = false;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    char first[sizeof order];
    for (int run = 0; run < 2; run++) {
      start(seed);
      letter(a, 'a');
      letter(b, 'b');
      CHECK_OK(cudaStreamSynchronize(b));
      alone |= !strcmp(order, "b");
      CHECK_OK(cudaDeviceSynchronize());
      if (run == 0) memcpy(first, order, sizeof first);
    }
    CHECK(!strcmp(first, order));
    ab |= !strcmp(order, "ab");
    ba |= !strcmp(order, "ba");

    start(seed);
    letter(a, 'a');
    CHECK_OK(cudaEventRecord(event, a));
    letter(a, 'c');
    CHECK_OK(cudaStreamWaitEvent(b, event, 0));
    CHECK_OK(cudaEventRecord(event, a)); /* recorded again: the wait stands for the first record */
    letter(b, 'b');
    CHECK_OK(cudaStreamSynchronize(b));
    CHECK(strchr(order, 'a') < strchr(order, 'b') && strchr(order, 'b'));
  }
  CHECK(ab && ba && alone);
  CHECK_OK(cudaEventDestroy(event));
  CHECK_OK(cudaStreamDestroy(a));
  CHECK_OK(cudaStreamDestroy(b));
}

/* The legacy stream waits for blocking streams, and they for it; non-blocking streams do neither. */
static void test_legacy(void) {
  cudaStream_t blocking = new_stream(cudaStreamDefault), free_stream = new_stream(cudaStreamNonBlocking);
  bool overtaken = false;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    start(seed);
    letter(free_stream, 'f');
    letter(blocking, 'a');
    letter(NULL, 'b');
    letter(blocking, 'c');
    CHECK(cudaStreamQuery(NULL) == cudaErrorNotReady);
    CHECK_OK(cudaStreamSynchronize(blocking));
    const char *a = strchr(order, 'a'), *b = strchr(order, 'b'), *c = strchr(order, 'c');
    CHECK(a && b && c && a < b && b < c);
    const char *f = strchr(order, 'f');
    overtaken |= !f || f > a;
  }
  CHECK(overtaken);
  CHECK_OK(cudaDeviceSynchronize());
  CHECK_OK(cudaStreamDestroy(blocking));
  CHECK_OK(cudaStreamDestroy(free_stream));
}

/* A query answers for the time before it; polling makes progress, launching and polling in turn none. */
static void test_query(void) {
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  cudaEvent_t event = new_event();
  start(0);
  CHECK_OK(cudaEventQuery(event)); /* never recorded */
  letter(stream, 'a');
  CHECK_OK(cudaEventRecord(event, stream));
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(order[0] == 0); /* something was queued since the last query */
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK_OK(cudaGetLastError());
  int polls = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) CHECK(++polls < 10);
  CHECK(!strcmp(order, "a"));
  for (int i = 0; i < 5; i++) {
    letter(stream, 'b');
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  }
  CHECK(!strcmp(order, "a"));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_OK(cudaStreamQuery(stream));
  CHECK_OK(cudaEventDestroy(event));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A stream holds 1,024 pieces; one more runs the oldest. */
static void test_full_queue(void) {
  void *memory;
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  start(0);
  CHECK_OK(cudaMalloc(&memory, 512));
  letter(stream, 'a');
  for (int i = 1; i < 1024; i++) CHECK_OK(cudaMemsetAsync(memory, i, 1, stream));
  CHECK(order[0] == 0);
  CHECK_OK(cudaMemsetAsync(memory, 0, 1, stream));
  CHECK(!strcmp(order, "a"));
  CHECK(tp_emulated_stream_queued(0, (uintptr_t)stream) == 1024);
  CHECK_OK(cudaFree(memory)); /* waits for the device */
  CHECK(tp_emulated_queued(0) == 0);
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A held stream is passed over by steps and queries, and runs for a call that waits for it. */
static void test_hold(void) {
  cudaStream_t held = new_stream(cudaStreamNonBlocking), other = new_stream(cudaStreamNonBlocking);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    start(seed);
    CHECK_OK(tp_emulated_hold(0, (uintptr_t)held));
    letter(held, 'h');
    letter(other, 'o');
    for (int i = 0; i < 10; i++) CHECK(cudaStreamQuery(held) == cudaErrorNotReady);
    CHECK(!strcmp(order, "o"));
    CHECK(tp_emulated_step(10) == 0);
    CHECK_OK(cudaStreamSynchronize(held));
    CHECK(!strcmp(order, "oh"));
    letter(held, 'i');
    CHECK(tp_emulated_step(10) == 0);
    CHECK_OK(tp_emulated_release(0, (uintptr_t)held));
    CHECK(tp_emulated_step(10) == 1);
    CHECK(!strcmp(order, "ohi"));
  }
  CHECK(tp_emulated_hold(0, 12345) == -1);
  CHECK_OK(cudaStreamDestroy(held));
  CHECK_OK(cudaStreamDestroy(other));
}

/* Virtual time: reproducible, longer for more bytes, joined by waits, and seen by the host. */
static void test_time(void) {
  void *memory;
  cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
  cudaEvent_t begin = new_event(), middle = new_event(), end = new_event();
  float first_ms = 0, small_ms, large_ms;
  CHECK_OK(cudaMalloc(&memory, 1 << 20));
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    start(seed);
    CHECK_OK(cudaEventRecord(begin, a));
    CHECK_OK(cudaMemsetAsync(memory, 0, 1, a));
    CHECK_OK(cudaEventRecord(middle, a));
    CHECK_OK(cudaStreamWaitEvent(b, middle, 0));
    CHECK_OK(cudaMemsetAsync(memory, 0, 1 << 20, b));
    CHECK_OK(cudaEventRecord(end, b));
    CHECK(cudaEventElapsedTime(&small_ms, begin, end) == cudaErrorNotReady);
    CHECK_OK(cudaEventSynchronize(end));
    CHECK_OK(cudaEventElapsedTime(&small_ms, begin, middle));
    CHECK_OK(cudaEventElapsedTime(&large_ms, middle, end));
    CHECK(small_ms > 0 && large_ms > small_ms);
    if (seed == 0) first_ms = large_ms;
    CHECK(large_ms == first_ms);
    CHECK_OK(cudaEventElapsedTime(&large_ms, end, middle));
    CHECK(large_ms == -first_ms);
  }
  cudaGetLastError();
  CHECK_OK(cudaFree(memory));
  CHECK_OK(cudaEventDestroy(begin));
  CHECK_OK(cudaEventDestroy(middle));
  CHECK_OK(cudaEventDestroy(end));
  CHECK_OK(cudaStreamDestroy(a));
  CHECK_OK(cudaStreamDestroy(b));
}

/* Work of a destroyed stream still runs; destroyed handles are refused. */
static void test_handles(void) {
  cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  cudaEvent_t event = new_event(), other = new_event();
  start(0);
  letter(stream, 'a');
  CHECK_OK(cudaEventRecord(event, stream));
  CHECK_OK(cudaStreamDestroy(stream));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaEventSynchronize(event));
  CHECK(!strcmp(order, "a"));
  CHECK_OK(cudaEventDestroy(event));
  CHECK(cudaEventRecord(event, NULL) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaSetDevice(1));
  CHECK(cudaEventRecord(other, NULL) == cudaErrorInvalidResourceHandle); /* an event of device 0 */
  CHECK_OK(cudaSetDevice(0));
  CHECK(cudaStreamDestroy(NULL) == cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaEventDestroy(other));
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
}

static void call_cuda(void *out) { *(cudaError_t *)out = cudaDeviceSynchronize(); }

/* A host function must not call CUDA. */
static void test_host_function(void) {
  cudaError_t error = cudaSuccess;
  start(0);
  CHECK_OK(cudaLaunchHostFunc(NULL, call_cuda, &error));
  CHECK_OK(cudaDeviceSynchronize());
  CHECK(error == cudaErrorNotPermitted);
}

int main(void) {
  test_order_in_a_stream();
  test_seeds();
  test_legacy();
  test_query();
  test_full_queue();
  test_hold();
  test_time();
  test_handles();
  test_host_function();
  return 0;
}
