/* Copies between the host and a device in captures: what is refused, and how long a graph keeps pinned memory. */
#include "graph_case.h"
#include "pinned_case.h"

enum { NBYTES = 5000 };

/* The stream is current until the end. */
static tp_graph_t *begin(tp_stream_t *stream) {
  CHECK_OK(tp_stream_set_current(stream));
  return begin_graph(stream, TP_CAPTURE_GLOBAL);
}

static void end(tp_graph_t *graph) {
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  validate_pinned();
}

static void reset(tp_graph_t *graph) {
  CHECK_OK(tp_graph_reset(graph));
  validate_pinned();
}

static void replay(tp_graph_t *graph, tp_stream_t *stream) {
  CHECK_OK(tp_graph_replay(graph, stream));
  CHECK_OK(tp_stream_synchronize(stream));
}

static void expect_refusal(tp_status_t status, const char *text) {
  CHECK(status == TP_STATE && strstr(tp_error_text(), text));
}

/* ---- what is refused ---- */

static void check_refusals(tp_tensor_t *tensor, void *pageable, void *pinned) {
  expect_refusal(tp_tensor_queue_from_host(tensor, pageable, NBYTES), "may be gone when the graph is replayed: use");
  expect_refusal(tp_tensor_queue_to_host(tensor, pageable, NBYTES), "or copy before the capture");
  expect_refusal(tp_tensor_copy_from_host(tensor, pinned, NBYTES), "this copy is waited for: queue it");
  expect_refusal(tp_tensor_copy_to_host(tensor, pinned, NBYTES), "non_blocking=True");
  expect_refusal(tp_tensor_copy_from_host(tensor, pageable, NBYTES), "or copy outside of the capture");
}

static void test_pageable_memory_is_refused(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(NBYTES);
  char *pageable = malloc(NBYTES), *pinned = take(NBYTES), *foreign = NULL;
  CHECK(pageable && cudaHostAlloc((void **)&foreign, NBYTES, cudaHostAllocDefault) == cudaSuccess);
  tp_graph_t *graph = begin(stream);
  int64_t copies = driver_calls("cudaMemcpyAsync");
  check_refusals(a, pageable, pinned);
  expect_refusal(tp_tensor_queue_from_host(a, foreign, NBYTES), "use pinned"); /* nobody here could keep it */
  CHECK(driver_calls("cudaMemcpyAsync") == copies && cudaPeekAtLastError() == cudaSuccess);
  CHECK_OK(tp_tensor_fill_int(a, 4)); /* nothing has spoilt the capture */
  end(graph);
  replay(graph, stream);
  expect_bytes(a, 4);
  tp_graph_release(graph);
  CHECK(cudaFreeHost(foreign) == cudaSuccess);
  free(pageable);
  drop(pinned);
  tp_tensor_release(a);
  clear();
}

static void test_a_capture_of_another_library_is_refused(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(NBYTES);
  char *pinned = take(NBYTES);
  CHECK_OK(tp_stream_set_current(stream));
  CHECK(cudaStreamBeginCapture(tp__stream_cuda(stream), cudaStreamCaptureModeGlobal) == cudaSuccess);
  expect_refusal(tp_tensor_queue_from_host(a, pinned, NBYTES), "another library captures the stream");
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(tp__stream_cuda(stream), &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  drop(pinned);
  tp_tensor_release(a);
  clear();
}

/* ---- how long memory stays ---- */

static void test_a_source_stays_until_the_graph_is_gone(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(NBYTES);
  char *source = memset(take(NBYTES), 1, NBYTES);
  tp_graph_t *graph = begin(stream);
  CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES));
  drop(source);
  end(graph);
  char *next = memset(take(NBYTES), 2, NBYTES);
  CHECK(next != source && HOST_CURRENT(active_requests) == 2);
  for (int32_t i = 0; i < 2; ++i) {
    CHECK_OK(tp_tensor_fill_int(a, 0));
    CHECK_OK(tp_device_synchronize(0));
    replay(graph, stream);
    expect_bytes(a, 1);
  }
  CHECK_OK(tp_pinned_empty_cache());
  CHECK(HOST_CURRENT(active_requests) == 2 && HOST_CURRENT(allocations) == 1);
  reset(graph);
  CHECK(HOST_CURRENT(active_requests) == 1 && take(NBYTES) == source);
  drop(source);
  drop(next);
  tp_graph_release(graph);
  tp_tensor_release(a);
  clear();
}

static void test_a_target_stays_until_the_graph_is_gone(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(NBYTES);
  char *target = take(NBYTES), *dropped = take(NBYTES);
  tp_graph_t *graph = begin(stream);
  CHECK_OK(tp_tensor_queue_to_host(a, target, NBYTES));
  CHECK_OK(tp_tensor_queue_to_host(a, dropped, NBYTES));
  drop(dropped);
  end(graph);
  char *next = memset(take(NBYTES), 7, NBYTES);
  CHECK(next != dropped);
  for (int32_t value = 3; value < 5; ++value) {
    CHECK_OK(tp_tensor_fill_int(a, value));
    CHECK_OK(tp_device_synchronize(0));
    replay(graph, stream);
    CHECK(target[0] == value && target[NBYTES - 1] == value && next[0] == 7);
  }
  tp_graph_release(graph);
  validate_pinned();
  CHECK(HOST_CURRENT(active_requests) == 2); /* what the program still has */
  drop(target);
  drop(next);
  tp_tensor_release(a);
  clear();
}

/* A graph that copies a block of ones, which only the graph still has, to the tensor. */
static tp_graph_t *capture_dropped(tp_tensor_t *a, char **source) {
  *source = memset(take(NBYTES), 1, NBYTES);
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  CHECK_OK(tp_tensor_queue_from_host(a, *source, NBYTES));
  end(graph);
  drop(*source);
  return graph;
}

/* A block is free only once the last launch on each stream has run. */
static void test_launches_are_waited_for(void) {
  tp_stream_t *first = held_stream(), *second = held_stream();
  tp_tensor_t *a = empty(NBYTES);
  char *source;
  tp_graph_t *graph = capture_dropped(a, &source);
  for (int32_t i = 0; i < 3; ++i) CHECK_OK(tp_graph_replay(graph, first));
  CHECK_OK(tp_graph_replay(graph, second));
  tp_graph_release(graph);
  release(first);
  CHECK_OK(tp_stream_synchronize(first));
  CHECK(HOST_CURRENT(active_requests) == 1 && tp_stream_query(second) == 0);
  char *next = take(NBYTES);
  CHECK(next != source);
  release(second);
  CHECK_OK(tp_stream_synchronize(second));
  CHECK(HOST_CURRENT(active_requests) == 1 && take(NBYTES) == source);
  drop(source);
  drop(next);
  tp_tensor_release(a);
  clear();
}

/* The launch is queued when the call that it needs on a stream of another library fails. */
static void test_a_launch_that_fails_late_is_waited_for(void) {
  cudaStream_t theirs;
  CHECK(!cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking));
  tp_stream_t *external = tp_stream_external(0, (uintptr_t)theirs);
  tp_tensor_t *a = empty(NBYTES);
  char *source;
  tp_graph_t *graph = capture_dropped(a, &source);
  CHECK(external && tp_emulated_hold(0, (uintptr_t)theirs) == 0);
  CHECK(tp_emulated_fail("cudaStreamWaitEvent", 1, tp_emulated_error_code("cudaErrorUnknown")) == 0);
  CHECK(tp_graph_replay(graph, external) == TP_CUDA);
  tp_graph_release(graph);
  char *next = memset(take(NBYTES), 2, NBYTES);
  CHECK(next != source);
  CHECK(tp_emulated_release(0, (uintptr_t)theirs) == 0);
  CHECK_OK(tp_stream_synchronize(external));
  expect_bytes(a, 1);
  CHECK(HOST_CURRENT(active_requests) == 1 && take(NBYTES) == source);
  CHECK(!cudaStreamDestroy(theirs));
  drop(source);
  drop(next);
  tp_tensor_release(a);
  clear();
}

static void test_emptying_the_cache_waits_for_launches(void) {
  tp_stream_t *stream = held_stream();
  tp_tensor_t *a = empty(NBYTES);
  char *source = take(NBYTES);
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES));
  end(graph);
  drop(source);
  CHECK_OK(tp_graph_replay(graph, stream));
  tp_graph_release(graph);
  CHECK(HOST_CURRENT(active_requests) == 1);
  CHECK_OK(tp_pinned_empty_cache());
  CHECK(HOST_CURRENT(active_requests) == 0 && HOST_CURRENT(allocations) == 0);
  tp_tensor_release(a);
  clear();
}

/* Two graphs, and a copy outside of graphs. */
static void test_a_block_of_several_users(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *busy = held_stream();
  tp_tensor_t *a = empty(NBYTES);
  char *source = take(NBYTES);
  tp_graph_t *graphs[2];
  for (int32_t i = 0; i < 2; ++i) {
    graphs[i] = begin(stream);
    for (int32_t k = 0; k < 3; ++k) CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES));
    end(graphs[i]);
  }
  CHECK_OK(tp_stream_set_current(busy));
  CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES));
  drop(source);
  tp_graph_release(graphs[0]);
  release(busy);
  CHECK_OK(tp_stream_synchronize(busy));
  CHECK(HOST_CURRENT(active_requests) == 1);
  tp_graph_release(graphs[1]);
  CHECK(HOST_CURRENT(active_requests) == 0);
  tp_tensor_release(a);
  clear();
}

static void test_a_capture_that_comes_to_nothing_keeps_nothing(void) {
  tp_tensor_t *a = empty(NBYTES);
  char *source = take(NBYTES), *other = take(NBYTES);
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES));
  CHECK_OK(tp_tensor_queue_from_host(a, other, NBYTES));
  drop(source);
  CHECK(HOST_CURRENT(active_requests) == 2);
  tp_graph_capture_abandon(graph);
  validate_pinned();
  CHECK(HOST_CURRENT(active_requests) == 1);
  drop(other);
  CHECK(HOST_CURRENT(active_requests) == 0);
  tp_graph_release(graph);
  tp_tensor_release(a);
  clear();
}

/* As graphs with conditional bodies have them. */
static void test_captures_of_one_graph_are_held_together(void) {
  tp_tensor_t *a = empty(NBYTES);
  char *sources[] = {take(NBYTES), take(NBYTES)};
  tp__hold_t *hold = NULL;
  tp__hold_take(12345, &hold);
  CHECK(!hold); /* nothing was captured there */
  for (int32_t i = 0; i < 2; ++i) {
    tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
    CHECK_OK(tp_tensor_queue_from_host(a, sources[i], NBYTES));
    tp__hold_take(tp__stream_capture(tp_stream_current(0)), &hold);
    end(graph);
    tp_graph_release(graph);
    drop(sources[i]);
    CHECK(HOST_CURRENT(active_requests) == 2);
  }
  tp__hold_drop(hold);
  CHECK(HOST_CURRENT(active_requests) == 0);
  tp__hold_drop(NULL);
  tp_tensor_release(a);
  clear();
}

/* ---- captures that begin at the wrong moment ---- */

/* An event that a capture may have is not asked: it is recorded again once the capture is over. */
static void test_an_event_that_a_capture_has_is_recorded_anew(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp_tensor_t *a = empty(NBYTES);
  char *source = take(NBYTES);
  CHECK_OK(tp_stream_set_current(stream));
  int64_t records = driver_calls("cudaEventRecord"), queries = driver_calls("cudaEventQuery");
  CHECK_OK(tp_emulated_fail("cudaStreamIsCapturing", 3, code("cudaErrorStreamCaptureUnsupported")));
  CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES)); /* the question behind the record is answered with yes */
  CHECK(driver_calls("cudaEventRecord") == records + 1);
  CHECK_OK(tp_emulated_fail("cudaStreamIsCapturing", 1, code("cudaErrorStreamCaptureUnsupported")));
  drop(source);
  CHECK(HOST_CURRENT(active_requests) == 1 && driver_calls("cudaEventRecord") == records + 1);
  CHECK(driver_calls("cudaEventQuery") == queries);
  (void)HOST_CURRENT(active_requests); /* records, and asks before it has run */
  CHECK_OK(tp_stream_synchronize(stream));
  CHECK(HOST_CURRENT(active_requests) == 0 && driver_calls("cudaEventRecord") == records + 2);
  tp_tensor_release(a);
  clear();
}

static void test_an_event_of_a_capture_that_was_not_seen(void) {
  static const char *const errors[] = {"cudaErrorCapturedEvent", "cudaErrorInvalidValue"};
  for (int32_t e = 0; e < 2; ++e) {
    tp_stream_t *stream = tp_stream_from_pool(0, 0);
    tp_tensor_t *a = empty(NBYTES);
    char *source = take(NBYTES);
    CHECK_OK(tp_stream_set_current(stream));
    CHECK_OK(tp_tensor_queue_from_host(a, source, NBYTES));
    drop(source);
    int64_t records = driver_calls("cudaEventRecord");
    CHECK_OK(tp_emulated_fail("cudaEventQuery", 1, code(errors[e])));
    CHECK(HOST_CURRENT(active_requests) == 1 && cudaPeekAtLastError() == cudaSuccess);
    (void)HOST_CURRENT(active_requests);
    CHECK_OK(tp_device_synchronize(0));
    CHECK(HOST_CURRENT(active_requests) == 0 && driver_calls("cudaEventRecord") == records + 1);
    tp_tensor_release(a);
    clear();
  }
}

/* ---- failing calls ---- */

static tp_status_t capture_and_replay(tp_stream_t *stream, char *source, tp_tensor_t *target) {
  tp_graph_t *graph = make_graph();
  CHECK_OK(tp_stream_set_current(stream));
  tp_status_t status = tp_graph_capture_begin(graph, stream, NULL, TP_CAPTURE_GLOBAL);
  if (!status) {
    status = tp_tensor_queue_from_host(target, source, NBYTES);
    if (status)
      tp_graph_capture_abandon(graph);
    else
      status = tp_graph_capture_end(graph);
  }
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  for (int32_t i = 0; !status && i < 2; ++i) status = tp_graph_replay(graph, stream);
  tp_graph_release(graph);
  return status;
}

static void test_every_call_may_fail(void) {
  static const char *const calls[] = {"cudaMemcpyAsync",       "cudaEventRecord", "cudaEventCreateWithFlags",
                                      "cudaStreamIsCapturing", "cudaEventQuery",  "cudaGraphLaunch",
                                      "cudaGraphInstantiate",  "cudaStreamGetCaptureInfo"};
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  int32_t refused = 0;
  for (size_t c = 0; c < sizeof calls / sizeof *calls; ++c) {
    for (int64_t nth = 1; nth <= 4; ++nth) {
      tp_tensor_t *a = empty(NBYTES);
      char *source = memset(take(NBYTES), 1, NBYTES);
      CHECK_OK(tp_emulated_fail(calls[c], nth, code("cudaErrorUnknown")));
      refused += capture_and_replay(stream, source, a) != TP_OK;
      CHECK_OK(tp_emulated_fail(calls[c], 0, 0));
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      validate_pinned();
      CHECK_OK(capture_and_replay(stream, source, a));
      CHECK_OK(tp_device_synchronize(0));
      expect_bytes(a, 1);
      drop(source);
      tp_tensor_release(a);
      clear();
    }
  }
  CHECK(refused > 8);
}

int main(void) {
  values_start();
  test_pageable_memory_is_refused();
  test_a_capture_of_another_library_is_refused();
  test_a_source_stays_until_the_graph_is_gone();
  test_a_target_stays_until_the_graph_is_gone();
  test_launches_are_waited_for();
  test_a_launch_that_fails_late_is_waited_for();
  test_emptying_the_cache_waits_for_launches();
  test_a_block_of_several_users();
  test_a_capture_that_comes_to_nothing_keeps_nothing();
  test_captures_of_one_graph_are_held_together();
  test_an_event_that_a_capture_has_is_recorded_anew();
  test_an_event_of_a_capture_that_was_not_seen();
  test_every_call_may_fail();
  return 0;
}
