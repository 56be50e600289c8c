/* Captures that fail: what their end says, and that nothing of them stays. */
#include <pthread.h>
#include <string.h>

#include "alloc_case.h"
#include "graph_case.h"

static void begin(tp_graph_t *graph, tp_stream_t *stream, int32_t mode) {
  CHECK_OK(tp_graph_capture_begin(graph, stream, NULL, mode));
  CHECK(tp_stream_is_capturing(stream) && tp__captures_underway());
}

/* Work that becomes a node, on memory of the capture's pool where the stream takes part in one. */
static void work(tp_stream_t *stream) {
  tp_stream_t *former = tp__stream_current(0);
  CHECK_OK(tp_stream_set_current(stream));
  tp_tensor_t *tensor = tp_tensor_empty_1d(TP_DTYPE_float32, 0, 1000);
  CHECK(tensor);
  CHECK_OK(tp_tensor_fill_float(tensor, 1));
  tp_tensor_release(tensor);
  CHECK_OK(tp_stream_set_current(former));
}

static bool says(const char *part) {
  bool found = strstr(tp_error_text(), part);
  if (!found) fprintf(stderr, "not there: %s\n", part);
  return found;
}

static bool names(const tp_stream_t *stream) {
  char text[64];
  snprintf(text, sizeof text, "stream %#llx of cuda:%d", (unsigned long long)tp_stream_handle(stream),
           tp_stream_device(stream));
  return strstr(tp_error_text(), text);
}

/* The graph is empty, its stream and memory are as before; and it can capture. */
static void check_recovered(tp_graph_t *graph, tp_stream_t *stream) {
  CHECK(!tp_stream_is_capturing(stream) && !tp__captures_underway());
  CHECK(tp_graph_handle(graph) == 0 && tp_graph_exec_handle(graph) == 0 && cudaPeekAtLastError() == cudaSuccess);
  CHECK(tp_mempool_list(0, 0, NULL) == 0);
  CHECK(tp_graph_replay(graph, NULL) == TP_STATE);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  work(stream);
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK_OK(tp_graph_replay(graph, stream));
  CHECK_OK(tp_stream_synchronize(stream));
  CHECK_OK(tp_graph_reset(graph));
  CHECK(tp_mempool_list(0, 0, NULL) == 0);
}

/* ---- the beginning ---- */

static void test_refused_beginnings(void) {
  tp_graph_t *graph = make_graph(), *other = make_graph();
  tp_stream_t *stream = tp_stream_of_captures(0);
  CHECK(tp_graph_capture_end(graph) == TP_STATE && says("begin one first"));
  CHECK(tp_graph_capture_begin(graph, NULL, NULL, 0) == TP_INVALID_ARGUMENT);
  CHECK(tp_graph_capture_begin(graph, stream, NULL, 3) == TP_INVALID_ARGUMENT && says("got mode 3"));
  CHECK(tp_graph_capture_begin(graph, tp_stream_default(0), NULL, 0) == TP_STATE && says("or pass stream="));
  begin(graph, stream, TP_CAPTURE_RELAXED);
  CHECK(tp_graph_capture_begin(graph, tp_stream_from_pool(0, 0), NULL, 0) == TP_STATE && says("end it first"));
  CHECK(tp_graph_capture_begin(other, stream, NULL, 0) == TP_STATE && says("pass another one as stream="));
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK(tp_graph_capture_begin(graph, stream, NULL, 0) == TP_STATE && says("reset() it first"));
  tp_graph_release(graph);
  check_recovered(other, stream);
  tp_graph_release(other);
  clear();
}

static void test_a_beginning_that_cuda_refuses(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_emulated_fail("cudaStreamBeginCapture", 1, cudaErrorUnknown));
  CHECK(tp_graph_capture_begin(graph, stream, NULL, 0) == TP_CUDA && says("(in cudaStreamBeginCapture)"));
  check_recovered(graph, stream);
  tp_graph_release(graph);
  clear();
}

static void test_preparing(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  void *memory = tp_memory_alloc(1000, stream);
  keep_busy(stream, memory);
  tp_memory_free(memory);
  CHECK(CURRENT(reserved_bytes) > 0);
  CHECK_OK(tp_graph_prepare(0));
  CHECK(tp_emulated_stream_queued(0, tp_stream_handle(stream)) == 0 && CURRENT(reserved_bytes) == 0);
  CHECK_OK(tp_graph_prepare(TP_DEVICE_CURRENT));
  CHECK(tp_graph_prepare(7) == TP_DEVICE);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  int64_t waits = tp_emulated_call_count("cudaDeviceSynchronize", -1);
  CHECK_OK(tp_graph_prepare(0)); /* would break it */
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", -1) == waits);
  CHECK_OK(tp_graph_capture_end(graph));
  tp_graph_release(graph);
  CHECK_OK(tp_emulated_fail("cudaDeviceSynchronize", 1, cudaErrorUnknown));
  CHECK(tp_graph_prepare(0) == TP_CUDA);
  CHECK_OK(tp_wait_set_debug_mode(TP_WAIT_REFUSED));
  CHECK(tp_graph_prepare(0) == TP_STATE);
  CHECK_OK(tp_wait_set_debug_mode(TP_WAIT_SILENT));
  clear();
}

/* ---- what broke a capture ---- */

static void test_the_end_names_the_first_failure(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  begin(graph, stream, TP_CAPTURE_RELAXED);
  tp_capture_note_place("nowhere.py:1"); /* nothing has failed */
  work(stream);
  CHECK(tp_stream_query(stream) == TP_CUDA && tp_error_cuda_code() == cudaErrorStreamCaptureUnsupported);
  CHECK(says("stream_query: ") && says("nothing may wait for it or ask") && says("is broken by it") && names(stream));
  tp_capture_note_place("train.py:12");
  CHECK(tp_stream_synchronize(stream) == TP_CUDA);
  tp_capture_note_place("train.py:13"); /* of a later one */
  CHECK(says("was broken at train.py:12 by stream_query: cudaErrorStreamCaptureUnsupported: "));
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && tp_error_cuda_code() == cudaErrorStreamCaptureInvalidated);
  CHECK(says("capture_end: ") && says("was broken at train.py:12 by stream_query: ") && names(stream));
  CHECK(!strstr(tp_error_text(), "train.py:13") && !strstr(tp_error_text(), "nowhere.py"));
  check_recovered(graph, stream);
  tp_graph_release(graph);
  clear();
}

static void test_a_call_that_is_not_ours(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  for (int asks = 0; asks < 2; asks++) {
    begin(graph, stream, TP_CAPTURE_RELAXED);
    CHECK(cudaStreamQuery(tp__stream_cuda(stream)) == cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    tp_event_t *event = tp_event_create(0);
    if (asks) {
      CHECK(tp_event_record(event, stream) == TP_CUDA && says("was broken by a call that is not TensorPlay's"));
      tp_capture_note_place("train.py:12");
    }
    tp_event_release(event);
    CHECK(tp_graph_capture_end(graph) == TP_CUDA && says("was broken by a call that is not TensorPlay's"));
    CHECK(!asks == !strstr(tp_error_text(), ", which was first met at train.py:12 by event_record: "));
    check_recovered(graph, stream);
  }
  tp_graph_release(graph);
  clear();
}

static void *wait_for_event(void *event) {
  CHECK(tp_event_synchronize(event) == TP_CUDA && says("is broken by it"));
  tp_capture_note_place("worker.py:3");
  return NULL;
}

static void test_a_call_of_another_thread(void) {
  tp_graph_t *graph = make_graph(), *local = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, 0);
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_event_record(event, tp_stream_from_pool(0, 0)));
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  begin(local, other, TP_CAPTURE_THREAD_LOCAL);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for_event, event) == 0 && pthread_join(thread, NULL) == 0);
  tp_capture_note_place("train.py:12"); /* of no failure of this thread */
  CHECK_OK(tp_graph_capture_end(local));
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && says("was broken at worker.py:3 by event_synchronize: "));
  tp_event_release(event);
  tp_graph_release(local);
  check_recovered(graph, stream);
  tp_graph_release(graph);
  clear();
}

/* Both are broken, and each of their ends says so. */
static void test_captures_that_would_merge(void) {
  tp_graph_t *graphs[] = {make_graph(), make_graph()};
  tp_stream_t *streams[] = {tp_stream_from_pool(0, 0), tp_stream_from_pool(0, 0)};
  for (int i = 0; i < 2; i++) begin(graphs[i], streams[i], TP_CAPTURE_RELAXED);
  CHECK(tp_stream_wait_stream(streams[0], streams[1]) == TP_CUDA);
  CHECK(tp_error_cuda_code() == cudaErrorStreamCaptureMerge && says("different captures") && names(streams[0]));
  CHECK(names(streams[1]));
  for (int i = 0; i < 2; i++) {
    CHECK(tp_graph_capture_end(graphs[i]) == TP_CUDA && says("was broken by stream_wait_stream: "));
    CHECK(names(streams[i]) && !names(streams[1 - i]));
  }
  for (int i = 0; i < 2; i++) {
    check_recovered(graphs[i], streams[i]);
    tp_graph_release(graphs[i]);
  }
  clear();
}

/* ---- streams that were not joined ---- */

static void test_streams_that_are_not_joined_are_named(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_of_captures(0), *forks[4];
  for (int i = 0; i < 3; i++) forks[i] = tp_stream_from_pool(0, 0);
  forks[3] = tp_stream_from_pool(1, 0);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  work(stream);
  for (int i = 0; i < 4; i++) CHECK_OK(tp_stream_wait_stream(forks[i], stream));
  work(forks[0]);
  work(forks[1]);
  CHECK_OK(tp_device_set(1));
  tp_tensor_t *far = tp_tensor_empty_1d(TP_DTYPE_float32, 1, 100);
  CHECK_OK(tp_stream_set_current(forks[3]));
  CHECK_OK(tp_tensor_fill_float(far, 1));
  tp_tensor_release(far);
  CHECK_OK(tp_stream_set_current(tp_stream_default(1)));
  CHECK_OK(tp_device_set(0));
  CHECK_OK(tp_stream_wait_stream(stream, forks[0]));
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && tp_error_cuda_code() == cudaErrorStreamCaptureUnjoined);
  CHECK(says("wait_stream()") && names(forks[1]) && names(forks[3]));
  CHECK(!names(forks[0]) && !names(forks[2]) && !names(stream));
  for (int i = 0; i < 4; i++) CHECK(!tp_stream_is_capturing(forks[i]));
  check_recovered(graph, stream);
  tp_graph_release(graph);
  clear();
}

/* A branch that another one goes on with has its end there. */
static void test_only_the_ends_of_branches_are_named(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *near = tp_stream_from_pool(0, 0), *far = tp_stream_from_pool(0, 0);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  work(stream);
  CHECK_OK(tp_stream_wait_stream(near, stream));
  work(near);
  CHECK_OK(tp_stream_wait_stream(far, near));
  work(far);
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && names(far) && !names(near));
  check_recovered(graph, stream);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  CHECK_OK(tp_stream_wait_stream(near, stream));
  work(near);
  CHECK_OK(tp_emulated_fail("cudaGraphNodeGetDependentNodes", 1, cudaErrorUnknown));
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && says("not joined: a stream that is not TensorPlay's"));
  check_recovered(graph, stream);
  tp_graph_release(graph);
  clear();
}

/* ---- other ends ---- */

static void *end_capture(void *graph) {
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && tp_error_cuda_code() == cudaErrorStreamCaptureWrongThread);
  CHECK(says("ends in the thread where it began"));
  return NULL;
}

static void *abandon_capture(void *graph) {
  tp_graph_capture_abandon(graph);
  CHECK(tp_error_status() == TP_OK);
  return NULL;
}

static void test_an_end_in_another_thread(void) {
  void *(*const ends[])(void *) = {end_capture, abandon_capture};
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  for (int i = 0; i < 2; i++) {
    begin(graph, stream, TP_CAPTURE_THREAD_LOCAL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ends[i], graph) == 0 && pthread_join(thread, NULL) == 0);
    check_recovered(graph, stream);
  }
  tp_graph_release(graph);
  clear();
}

static void test_ends_that_cuda_refuses(void) {
  tp_graph_t *graph = make_graph();
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  work(stream);
  CHECK_OK(tp_emulated_fail("cudaGraphInstantiate", 1, cudaErrorUnknown));
  CHECK(tp_graph_capture_end(graph) == TP_CUDA && says("capture_end: ") && says("(in cudaGraphInstantiate)"));
  check_recovered(graph, stream);
  begin(graph, stream, TP_CAPTURE_GLOBAL);
  CHECK_OK(tp_emulated_fail("cudaStreamGetCaptureInfo", 1, cudaErrorUnknown)); /* only names would be missing */
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK_OK(tp_graph_reset(graph));
  check_recovered(graph, stream);
  tp_graph_release(graph);
  clear();
}

static void *fail_again_and_again(void *stream) {
  tp_graph_t *graph = make_graph();
  for (int i = 0; i < 30; i++) {
    CHECK_OK(tp_graph_capture_begin(graph, stream, NULL, TP_CAPTURE_THREAD_LOCAL));
    work(stream);
    if (i % 2) {
      CHECK(tp_stream_query(stream) == TP_CUDA && names(stream) && says("is broken by it"));
      tp_capture_note_place("thread.py:1");
      CHECK(tp_graph_capture_end(graph) == TP_CUDA && says("was broken at thread.py:1 by stream_query: "));
    } else {
      CHECK_OK(tp_graph_capture_end(graph));
      CHECK_OK(tp_graph_replay(graph, stream));
      CHECK_OK(tp_graph_reset(graph));
    }
    CHECK_OK(tp_graph_prepare(0));
  }
  tp_graph_release(graph);
  return NULL;
}

static void test_threads_whose_captures_fail_at_once(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    CHECK(pthread_create(&threads[i], NULL, fail_again_and_again, tp_stream_from_pool(0, 0)) == 0);
  }
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  clear();
}

/* Release functions, at any moment, in any state of the capture. */
static void test_graphs_that_are_dropped_in_their_capture(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *side = tp_stream_from_pool(0, 0);
  for (int how = 0; how < 3; how++) {
    tp_graph_t *graph = make_graph();
    begin(graph, stream, TP_CAPTURE_RELAXED);
    work(stream);
    CHECK_OK(tp_stream_wait_stream(side, stream));
    if (how == 1) work(side);
    if (how == 2) CHECK(tp_stream_query(side) == TP_CUDA);
    tp__error_set(TP_SHAPE, "add", "kept");
    tp_graph_release(graph);
    CHECK(strcmp(tp_error_text(), "add: kept") == 0 && cudaPeekAtLastError() == cudaSuccess);
    CHECK(!tp_stream_is_capturing(stream) && !tp_stream_is_capturing(side) && !tp__captures_underway());
  }
  tp_graph_release(NULL);
  clear();
}

int main(void) {
  CHECK_OK(tp_emulated_set_capacity(0, 256 * TP_MiB));
  CHECK_OK(tp_kernels_set_path(TP_TEST_KERNELS));
  test_refused_beginnings();
  test_a_beginning_that_cuda_refuses();
  test_preparing();
  test_the_end_names_the_first_failure();
  test_a_call_that_is_not_ours();
  test_a_call_of_another_thread();
  test_captures_that_would_merge();
  test_streams_that_are_not_joined_are_named();
  test_only_the_ends_of_branches_are_named();
  test_an_end_in_another_thread();
  test_ends_that_cuda_refuses();
  test_threads_whose_captures_fail_at_once();
  test_graphs_that_are_dropped_in_their_capture();
  return 0;
}
