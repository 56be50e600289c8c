/* Large copies to and from pageable memory: in pieces through pinned memory, in the stream's order. */
#include <pthread.h>

#include "tp_emulated.h"
#include "values.h"

/* Pieces of 4 MiB, of which there are two: each is used twice and more, and the last copy is short. */
enum { NUMEL = 18 * 1024 * 1024 / 8 + 5 };
static const size_t NBYTES = NUMEL * sizeof(int64_t);

static int64_t *numbers(int64_t first) {
  int64_t *made = malloc(NBYTES);
  CHECK(made);
  for (int64_t i = 0; i < NUMEL; ++i) made[i] = first + i;
  return made;
}

static void check_numbers(const tp_tensor_t *tensor, int64_t first) {
  int64_t *found = malloc(NBYTES);
  CHECK(found);
  CHECK_OK(tp_tensor_copy_to_host(tensor, found, NBYTES));
  for (int64_t i = 0; i < NUMEL; ++i) {
    if (found[i] != first + i) CHECK_CLOSE((double)found[i], (double)(first + i), 0, i);
  }
  free(found);
}

static tp_tensor_t *empty(int32_t device) {
  tp_tensor_t *made = tp_tensor_empty_1d(TP_DTYPE_int64, device, NUMEL);
  CHECK(made);
  return made;
}

static int32_t code(const char *name) { return tp_emulated_error_code(name); }

/* The source may change at once; what the stream held before and gets later stays in its order. */
static void test_order(void) {
  int64_t *values = numbers(0);
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_stream_set_current(stream));
  for (uint64_t seed = 0; seed < 5; ++seed) {
    tp_emulated_set_seed(seed);
    tp_tensor_t *a = empty(0), *b = empty(0);
    CHECK_OK(tp_tensor_fill_int(a, 7));
    for (int64_t i = 0; i < NUMEL; ++i) values[i] = i;
    CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
    memset(values, 0, NBYTES);
    CHECK(tp_emulated_stream_queued(0, tp_stream_handle(stream)) > 0); /* it did not wait for the last piece */
    CHECK_OK(tp_tensor_copy(b, a));
    CHECK_OK(tp_tensor_fill_int(a, 7));
    check_numbers(b, 0);
    tp_tensor_release(a);
    tp_tensor_release(b);
  }
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  free(values);
}

/* Pieces that another stream still needs are not waited for. */
static void test_other_stream(void) {
  int64_t *values = numbers(3);
  tp_stream_t *busy = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(0), *b = empty(0);
  CHECK_OK(tp_stream_set_current(busy));
  CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
  CHECK_OK(tp_emulated_hold(0, tp_stream_handle(busy)));
  CHECK_OK(tp_stream_set_current(other));
  int64_t queued = tp_emulated_stream_queued(0, tp_stream_handle(busy));
  CHECK(queued > 0);
  CHECK_OK(tp_tensor_copy_from_host(b, values, NBYTES));
  CHECK_OK(tp_stream_synchronize(other));
  check_numbers(b, 3);
  CHECK(tp_emulated_stream_queued(0, tp_stream_handle(busy)) == queued);
  CHECK_OK(tp_emulated_release(0, tp_stream_handle(busy)));
  CHECK_OK(tp_stream_set_current(busy));
  check_numbers(a, 3);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_tensor_release(a);
  tp_tensor_release(b);
  free(values);
}

/* Pinned memory needs no pieces. */
static void test_pinned(void) {
  int64_t *pinned = NULL;
  CHECK(cudaHostAlloc((void **)&pinned, NBYTES, cudaHostAllocDefault) == cudaSuccess);
  for (int64_t i = 0; i < NUMEL; ++i) pinned[i] = i;
  tp_tensor_t *a = empty(0);
  tp_emulated_clear_call_counts();
  CHECK_OK(tp_tensor_copy_from_host(a, pinned, NBYTES));
  memset(pinned, 0, NBYTES);
  CHECK_OK(tp_tensor_copy_to_host(a, pinned, NBYTES));
  CHECK(tp_emulated_call_count("cudaMemcpyAsync", 0) == 2);
  for (int64_t i = 0; i < NUMEL; ++i) CHECK(pinned[i] == i);
  tp_tensor_release(a);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

/* Device 1 has no pieces yet: where none can be pinned CUDA's own way serves, and later copies ask again. */
static void test_nothing_to_pin(void) {
  int64_t *values = numbers(1);
  tp_tensor_t *a = empty(1);
  CHECK_OK(tp_emulated_fail("cudaHostAlloc", 1, code("cudaErrorMemoryAllocation")));
  tp_emulated_clear_call_counts();
  CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
  CHECK(tp_emulated_call_count("cudaMemcpyAsync", 1) == 1);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK_OK(tp_emulated_fail("cudaHostAlloc", 1, code("cudaErrorUnknown")));
  CHECK(tp_tensor_copy_from_host(a, values, NBYTES) == TP_CUDA);
  CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
  CHECK(tp_emulated_call_count("cudaMemcpyAsync", 1) > 2);
  check_numbers(a, 1);
  tp_tensor_release(a);
  free(values);
}

/* Each call fails in its turn: the copy says so, and the next one is right. */
static void test_failures(void) {
  static const char *const calls[] = {"cudaMemcpyAsync", "cudaEventRecord", "cudaEventSynchronize",
                                      "cudaPointerGetAttributes", "cudaStreamSynchronize"};
  int64_t *values = numbers(2), *found = malloc(NBYTES);
  CHECK(found);
  tp_tensor_t *a = empty(0);
  for (size_t c = 0; c < sizeof calls / sizeof *calls; ++c) {
    int32_t refused = 0;
    for (int64_t nth = 1; nth <= 5; ++nth) {
      CHECK_OK(tp_emulated_fail(calls[c], nth, code("cudaErrorUnknown")));
      refused += tp_tensor_copy_from_host(a, values, NBYTES) == TP_CUDA;
      CHECK_OK(tp_emulated_fail(calls[c], 0, 0));
      CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
      check_numbers(a, 2);
      CHECK_OK(tp_emulated_fail(calls[c], nth, code("cudaErrorUnknown")));
      refused += tp_tensor_copy_to_host(a, found, NBYTES) == TP_CUDA;
      CHECK_OK(tp_emulated_fail(calls[c], 0, 0));
      check_numbers(a, 2);
    }
    CHECK(refused > 0);
  }
  /* Not even known when the copy ends: those pieces are left to it. */
  CHECK_OK(tp_emulated_fail("cudaEventRecord", 1, code("cudaErrorUnknown")));
  CHECK_OK(tp_emulated_fail("cudaStreamSynchronize", 1, code("cudaErrorUnknown")));
  tp_emulated_clear_call_counts();
  CHECK(tp_tensor_copy_from_host(a, values, NBYTES) == TP_CUDA);
  CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
  CHECK(tp_emulated_call_count("cudaHostAlloc", 0) == 1);
  check_numbers(a, 2);
  tp_tensor_release(a);
  free(values);
  free(found);
}

/* Its events are not asked, and recorded again once it is over. */
static void test_a_capture_that_begins_during_a_copy(void) {
  int64_t *values = numbers(6);
  tp_tensor_t *a = empty(0);
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_stream_set_current(stream));
  CHECK(cudaStreamBeginCapture((cudaStream_t)tp_stream_handle(stream), cudaStreamCaptureModeGlobal) == cudaSuccess);
  tp_emulated_clear_call_counts();
  CHECK(tp__staging_send((void *)tp_tensor_data(a), values, NBYTES, stream, "test") == TP_STATE);
  CHECK(strstr(tp_error_text(), "has begun during the copy"));
  CHECK(tp_emulated_call_count("cudaEventRecord", -1) == 0 && tp_emulated_call_count("cudaEventSynchronize", -1) == 0);
  cudaGraph_t graph; /* nothing has spoilt it */
  CHECK(cudaStreamEndCapture((cudaStream_t)tp_stream_handle(stream), &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
  check_numbers(a, 6);
  /* An event that CUDA says a capture has. */
  static const char *const errors[] = {"cudaErrorCapturedEvent", "cudaErrorInvalidValue"};
  for (int32_t e = 0; e < 2; ++e) {
    CHECK_OK(tp_emulated_fail("cudaEventSynchronize", 1, code(errors[e])));
    CHECK(tp_tensor_copy_from_host(a, values, NBYTES) == TP_STATE);
    CHECK_OK(tp_emulated_fail("cudaEventSynchronize", 0, 0));
    CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
    check_numbers(a, 6);
  }
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_tensor_release(a);
  free(values);
}

static void *copy_both_ways(void *argument) {
  int64_t first = (int64_t)(intptr_t)argument, *values = numbers(first);
  tp_tensor_t *a = empty(0);
  CHECK_OK(tp_stream_set_current(tp_stream_from_pool(0, 0)));
  for (int32_t turn = 0; turn < 3; ++turn) {
    CHECK_OK(tp_tensor_copy_from_host(a, values, NBYTES));
    check_numbers(a, first);
  }
  CHECK_OK(tp_stream_synchronize(tp_stream_current(0)));
  tp_tensor_release(a);
  free(values);
  return NULL;
}

static void test_threads(void) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; ++i)
    CHECK(pthread_create(&threads[i], NULL, copy_both_ways, (void *)(i * 1000)) == 0);
  for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
  values_start();
  test_order();
  test_other_stream();
  test_pinned();
  test_nothing_to_pin();
  test_failures();
  test_a_capture_that_begins_during_a_copy();
  test_threads();
  return 0;
}
