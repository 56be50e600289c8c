/* The order checker: which waits count, what becomes of memory that is given back, and threads. */
#include <pthread.h>
#include <string.h>

#include "alloc/capture.h"
#include "order/order.h"
#include "tp_emulated.h"
#include "values.h"

static tp_stream_t *first, *second; /* of the pool, of device 0 */

static void begin(int32_t mode) {
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK_OK(tp_order_set_mode(mode));
}

static tp_status_t fill(tp_tensor_t *tensor, tp_stream_t *stream) {
  CHECK_OK(tp_stream_set_current(stream));
  tp_status_t status = tp_tensor_fill_float(tensor, 1);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  return status;
}

static tp_tensor_t *make(tp_stream_t *stream, int64_t numel) {
  CHECK_OK(tp_stream_set_current(stream));
  tp_tensor_t *tensor = tp_tensor_empty_1d(TP_DTYPE_float32, 0, numel);
  CHECK(tensor);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  return tensor;
}

static void test_modes(void) {
  CHECK(tp_order_set_mode(3) == TP_INVALID_ARGUMENT && tp_order_set_mode(-1) == TP_INVALID_ARGUMENT);
  begin(TP_ORDER_OFF);
  tp_tensor_t *x = make(first, 64);
  CHECK_OK(fill(x, first));
  CHECK_OK(fill(x, second));
  CHECK_OK(tp_order_set_mode(TP_ORDER_ERROR));
  CHECK_OK(fill(x, first)); /* what was queued before is not known */
  CHECK(fill(x, second) == TP_ORDER);
  tp_order_report_t report;
  tp_order_last(&report);
  CHECK(report.streams[0] == first && report.streams[1] == second);
  CHECK(report.writes[0] && report.writes[1] && !report.is_reused && report.nbytes == 0);
  CHECK(!strcmp(report.operations[0], "fill") && strstr(tp_error_text(), "wait_stream() is missing"));
  CHECK(!tp_order_take(&report));
  tp_tensor_release(x);
}

static void test_blocking_streams_follow_the_default_stream(void) {
  begin(TP_ORDER_ERROR);
  cudaStream_t handles[2];
  CHECK(cudaStreamCreateWithFlags(&handles[0], cudaStreamDefault) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&handles[1], cudaStreamNonBlocking) == cudaSuccess);
  tp_stream_t *blocking = tp_stream_external(0, (uintptr_t)handles[0]);
  tp_stream_t *other = tp_stream_external(0, (uintptr_t)handles[1]);
  tp_stream_t *legacy = tp_stream_default(0);
  tp_tensor_t *x = make(legacy, 64);
  CHECK_OK(fill(x, legacy));
  CHECK_OK(fill(x, blocking));
  CHECK_OK(fill(x, legacy));
  CHECK(fill(x, other) == TP_ORDER);
  CHECK_OK(fill(x, blocking));
  CHECK(fill(x, first) == TP_ORDER);
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_event_record(event, legacy)); /* stands for the blocking stream as well */
  CHECK_OK(tp_stream_wait_event(first, event));
  CHECK_OK(fill(x, first));
  tp_event_release(event);
  CHECK_OK(tp_device_synchronize(0));
  tp_tensor_release(x);
}

static void test_a_stream_that_is_gone_is_not_asked(void) {
  begin(TP_ORDER_ERROR);
  cudaStream_t handle;
  CHECK(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess);
  tp_tensor_t *x = make(tp_stream_external(0, (uintptr_t)handle), 64);
  CHECK_OK(fill(x, first));
  CHECK_OK(tp_device_synchronize(0));
  CHECK(cudaStreamDestroy(handle) == cudaSuccess);
  int64_t asked = tp_emulated_call_count("cudaStreamGetFlags", -1);
  tp_tensor_release(x);
  CHECK(tp_emulated_call_count("cudaStreamGetFlags", -1) == asked);
}

static void test_events_stand_for_their_last_record(void) {
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_event_record(event, first));
  begin(TP_ORDER_ERROR);
  tp_tensor_t *x = make(first, 64);
  CHECK_OK(fill(x, first));
  CHECK_OK(tp_stream_wait_event(second, event)); /* recorded before the checker was on */
  CHECK(fill(x, second) == TP_ORDER);
  CHECK_OK(tp_event_record(event, first));
  CHECK_OK(tp_event_record(event, second));
  CHECK_OK(tp_event_synchronize(event));
  CHECK(fill(x, second) == TP_ORDER);
  CHECK_OK(tp_event_record(event, first));
  CHECK_OK(tp_event_synchronize(event));
  CHECK_OK(fill(x, second));
  tp_event_release(event);
  tp_tensor_release(x);
}

/* ---- memory that is given back ---- */

static void test_the_allocators_own_waits_order_nothing_else(void) {
  begin(TP_ORDER_ERROR);
  tp_tensor_t *kept = make(first, 64), *x = make(first, 64);
  CHECK_OK(fill(kept, first));
  CHECK_OK(fill(x, first));
  while (tp_stream_query(first) == 0) continue;
  CHECK_OK(fill(kept, first));
  tp_tensor_release(x);
  for (int i = 0; i < 8; i++) { /* of any stream's memory, in whatever way the allocator takes it over */
    tp_tensor_t *y = make(second, 64);
    CHECK_OK(fill(y, second));
    tp_tensor_release(y);
  }
  CHECK(fill(kept, second) == TP_ORDER);
  tp_tensor_release(kept);
}

static void test_use_that_was_not_recorded_is_found_by_the_next_owner(void) {
  for (int recorded = 0; recorded < 2; recorded++) {
    begin(TP_ORDER_ERROR);
    tp_tensor_t *x = make(first, 64);
    CHECK_OK(fill(x, first));
    CHECK_OK(tp_stream_wait_stream(second, first));
    CHECK_OK(fill(x, second));
    if (recorded) CHECK_OK(tp_tensor_record_stream(x, second));
    uintptr_t address = tp_tensor_data(x);
    tp_tensor_release(x);
    if (recorded) CHECK(tp_emulated_step(100) > 0); /* the allocator sees that it is done, the program does not */
    tp_tensor_t *y = make(first, 64);
    CHECK(tp_tensor_data(y) == address);
    CHECK(fill(y, first) == (recorded ? TP_OK : TP_ORDER));
    tp_order_report_t report;
    tp_order_last(&report);
    CHECK(recorded || (report.is_reused && report.nbytes == 512 && report.address == address));
    CHECK(recorded || strstr(tp_error_text(), "without record_stream()"));
    CHECK_OK(tp_stream_wait_stream(first, second));
    CHECK_OK(fill(y, first));
    tp_tensor_release(y);
  }
}

/* A block in the middle of former ones takes its part of their past, and leaves the rest where it is. */
static void test_parts_of_former_blocks(void) {
  begin(TP_ORDER_ERROR);
  static char memory[3072]; /* stands for device memory: nothing is queued here */
  tp__touch_t touch = {memory, true};
  tp__order_alloc(memory, 3072, first);
  CHECK_OK(tp__order_check(second, 1, &touch, "old"));
  tp__order_free(memory);
  tp__order_alloc(memory + 1024, 1024, first);
  touch.memory = memory + 1536;
  CHECK(tp__order_check(first, 1, &touch, "new") == TP_ORDER);
  CHECK_OK(tp_stream_wait_stream(first, second));
  CHECK_OK(tp__order_check(first, 1, &touch, "new"));
  for (int part = 0; part < 2; part++) { /* by now behind what the second stream did */
    tp__order_alloc(memory + 2048 * part, 1024, first);
    touch.memory = memory + 2048 * part;
    CHECK_OK(tp__order_check(first, 1, &touch, "rest"));
    CHECK(tp__order_check(second, 1, &touch, "rest") == TP_ORDER);
  }
  tp__order_forget(memory, 3072);
  CHECK_OK(tp__order_check(second, 1, &touch, "forgotten"));
}

static void test_pinned_memory(void) {
  begin(TP_ORDER_ERROR);
  tp_tensor_t *x = make(first, 64), *y = make(second, 64);
  float *host = tp_pinned_alloc(256);
  CHECK(host);
  CHECK_OK(fill(x, first));
  CHECK_OK(fill(y, second));
  CHECK_OK(tp_stream_set_current(first));
  CHECK_OK(tp_tensor_queue_to_host(x, host, 256));
  CHECK_OK(tp_stream_set_current(second));
  CHECK(tp_tensor_queue_to_host(y, host, 256) == TP_ORDER);
  CHECK_OK(tp_stream_wait_stream(second, first));
  CHECK_OK(tp_tensor_queue_to_host(y, host, 256));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_pinned_free(host);
  CHECK_OK(tp_device_synchronize(0));
  tp_tensor_release(x);
  tp_tensor_release(y);
}

/* ---- lanes ---- */

static void test_a_lane_serves_again_without_a_past(void) {
  begin(TP_ORDER_ERROR);
  pthread_mutex_lock(&tp__order_lock);
  int32_t captured = tp__order_lane(first, 7), now = tp__order_lane(first, 0), other = tp__order_lane(second, 0);
  CHECK(captured != now);
  uint64_t time = tp__order_tick(captured);
  CHECK(!tp__order_is_before(captured, time, now) && !tp__order_is_before(captured, time, other));
  tp__order_retire(7);
  CHECK(tp__order_lane(second, 8) == captured);
  CHECK(tp__order_tick(captured) == time + 1);
  tp__order_retire(8);
  pthread_mutex_unlock(&tp__order_lock);
}

static void test_more_streams_than_lanes_are_one(void) {
  begin(TP_ORDER_ERROR);
  enum { STREAMS = TP_ORDER_LANES + 8 };
  static tp_stream_t *streams[STREAMS];
  tp_tensor_t *x = make(first, 64);
  for (int i = 0; i < STREAMS; i++) {
    cudaStream_t handle;
    CHECK(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess);
    streams[i] = tp_stream_external(0, (uintptr_t)handle);
    if (i == 0) CHECK_OK(fill(x, streams[i]));
    if (i > 0 && i < STREAMS - 2) CHECK(fill(x, streams[i]) == TP_ORDER);
  }
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(fill(x, streams[STREAMS - 2]));
  CHECK_OK(fill(x, streams[STREAMS - 1])); /* not told apart */
  CHECK(fill(x, streams[0]) == TP_ORDER);
  CHECK_OK(tp_device_synchronize(0));
  tp_tensor_release(x);
}

/* ---- captures ---- */

static void test_work_of_a_capture_is_ordered_within_it(void) {
  begin(TP_ORDER_ERROR);
  tp_tensor_t *x = make(first, 64);
  CHECK_OK(fill(x, first));
  tp_mempool_t *mempool = tp_mempool_create(TP_MEMPOOL_OF_CAPTURE, NULL, NULL);
  tp_event_t *fork = tp_event_create(0);
  tp__capture_t *capture = tp__capture_begin(mempool, first);
  CHECK(mempool && fork && capture);
  CHECK(cudaStreamBeginCapture(tp__stream_cuda(first), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK_OK(tp_event_record(fork, first));
  CHECK_OK(tp_stream_wait_event(second, fork));
  CHECK_OK(fill(x, first));
  CHECK(fill(x, second) == TP_ORDER); /* the fork came before */
  CHECK_OK(tp_stream_wait_stream(second, first));
  CHECK_OK(fill(x, second));
  CHECK(fill(x, first) == TP_ORDER);
  CHECK_OK(tp_stream_wait_stream(first, second));
  CHECK_OK(fill(x, first));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(tp__stream_cuda(first), &graph) == cudaSuccess);
  tp__capture_end(capture);
  CHECK(tp__order_world_of(first) == 0 && tp__order_world_of(second) == 0);
  CHECK(fill(x, second) == TP_ORDER); /* what came before the capture still counts, its own waits do not */
  CHECK_OK(fill(x, first));
  tp__touch_t touched = {(void *)tp_tensor_data(x), true}; /* a replay is one piece of work */
  CHECK(tp__order_check(second, 1, &touched, "replay") == TP_ORDER);
  CHECK_OK(tp_stream_wait_stream(second, first));
  CHECK_OK(tp__order_check(second, 1, &touched, "replay"));
  CHECK(fill(x, first) == TP_ORDER);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  tp_event_release(fork);
  tp_mempool_release(mempool);
  CHECK_OK(tp_device_synchronize(0));
  tp_tensor_release(x);
}

/* ---- collecting, and threads ---- */

static void test_each_pair_is_collected_once(void) {
  begin(TP_ORDER_COLLECT);
  tp_tensor_t *x = make(first, 64);
  for (int i = 0; i < 1000; i++) CHECK_OK(fill(x, i % 2 ? second : first));
  tp_order_report_t report;
  CHECK(tp_order_take(&report) == 1 && report.streams[0] == first && report.streams[1] == second);
  CHECK(tp_order_take(&report) == 1 && report.streams[0] == second && report.streams[1] == first);
  CHECK(tp_order_take(&report) == 0);
  CHECK_OK(tp_device_synchronize(0));
  tp_tensor_release(x);
}

static void *work(void *argument) {
  tp_stream_t *stream = argument;
  tp_event_t *event = tp_event_create(0);
  CHECK_OK(tp_stream_set_current(stream));
  for (int i = 0; i < 300; i++) {
    tp_tensor_t *x = tp_tensor_empty_1d(TP_DTYPE_float32, 0, 64 + i);
    CHECK(x);
    CHECK_OK(tp_tensor_fill_float(x, 1));
    CHECK_OK(tp_event_record(event, stream));
    if (i % 7 == 0) CHECK(tp_stream_query(stream) >= 0);
    if (i % 11 == 0) CHECK_OK(tp_stream_wait_event(second, event));
    if (i % 50 == 0) CHECK_OK(tp_order_set_mode(i % 100 ? TP_ORDER_ERROR : TP_ORDER_COLLECT));
    tp_tensor_release(x);
  }
  tp_event_release(event);
  return NULL;
}

static void test_threads_with_streams_of_their_own(void) {
  begin(TP_ORDER_ERROR);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, work, tp_stream_from_pool(0, 0)) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  tp_order_report_t report;
  CHECK(tp_order_take(&report) == 0);
}

int main(void) {
  values_start();
  CHECK((first = tp_stream_from_pool(0, 0)) && (second = tp_stream_from_pool(0, 0)));
  test_modes();
  test_blocking_streams_follow_the_default_stream();
  test_a_stream_that_is_gone_is_not_asked();
  test_events_stand_for_their_last_record();
  test_the_allocators_own_waits_order_nothing_else();
  test_use_that_was_not_recorded_is_found_by_the_next_owner();
  test_parts_of_former_blocks();
  test_pinned_memory();
  test_a_lane_serves_again_without_a_past();
  test_more_streams_than_lanes_are_one();
  test_work_of_a_capture_is_ordered_within_it();
  test_each_pair_is_collected_once();
  test_threads_with_streams_of_their_own();
  begin(TP_ORDER_OFF);
  return 0;
}
