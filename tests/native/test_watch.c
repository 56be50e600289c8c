/* What a capture hears of work: what its replays use, writes to a predicate, work beside it. */
#include <pthread.h>
#include <string.h>

#include "graph/graph.h"
#include "graph_case.h"
#include "tp_emulated.h"
#include "values.h"

static tp_stream_t *first, *second; /* of the pool, of device 0 */

static tp_status_t fill(tp_tensor_t *tensor, tp_stream_t *stream) {
  int32_t device = tp_stream_device(stream);
  tp_stream_t *before = tp_stream_current(device);
  CHECK_OK(tp_stream_set_current(stream));
  tp_status_t status = tp_tensor_fill_float(tensor, 1.5);
  CHECK_OK(tp_stream_set_current(before));
  return status;
}

static tp_tensor_t *make(int32_t device) {
  tp_tensor_t *tensor = tp_tensor_empty_1d(TP_DTYPE_float32, device, 64);
  CHECK(tensor);
  return tensor;
}

static tp_graph_t *begin(tp_stream_t *stream) { return begin_graph(stream, TP_CAPTURE_RELAXED); }

static void test_only_captures_and_the_order_checker_watch(void) {
  CHECK(!tp__is_watched());
  tp_graph_t *graph = begin(first);
  CHECK(tp__is_watched());
  CHECK_OK(tp_order_set_mode(TP_ORDER_ERROR));
  CHECK_OK(tp_order_set_mode(TP_ORDER_COLLECT));
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK(tp__is_watched());
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  CHECK(!tp__is_watched());
  CHECK_OK(tp_graph_reset(graph));
  CHECK_OK(tp_graph_capture_begin(graph, first, NULL, TP_CAPTURE_RELAXED));
  CHECK(tp__is_watched());
  tp_graph_release(graph); /* which abandons it */
  CHECK(!tp__is_watched());
}

static void test_a_write_to_the_predicate_is_noted(void) {
  tp_tensor_t *before = make(0), *predicate = make(0), *behind = make(0);
  tp_graph_t *graph = begin(first);
  tp__watch_predicate(&graph->watch, predicate->storage->data, predicate->storage->nbytes);
  CHECK_OK(fill(before, first));
  CHECK_OK(fill(behind, first));
  CHECK_OK(fill(predicate, second)); /* not in the capture */
  CHECK_OK(tp_stream_set_current(first));
  CHECK_OK(tp_tensor_copy(before, predicate));
  CHECK(!graph->watch.is_written);
  CHECK_OK(tp_tensor_copy(predicate, before));
  CHECK(graph->watch.is_written);
  tp__watch_predicate(&graph->watch, predicate->storage->data, predicate->storage->nbytes);
  CHECK(!graph->watch.is_written);
  tp_tensor_t *last = tp_tensor_slice(predicate, 0, 63, 64, 1);
  CHECK_OK(tp_tensor_fill_float(last, 2)); /* any part of its block */
  CHECK(graph->watch.is_written);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(tp_graph_capture_end(graph));
  tp_graph_release(graph);
  tp_tensor_release(last);
  tp_tensor_release(before);
  tp_tensor_release(predicate);
  tp_tensor_release(behind);
}

/* Bodies of conditional nodes are captures of their own, inside of one. */
static void test_what_a_body_does_counts_for_all_around_it(void) {
  tp_tensor_t *x = make(0);
  CHECK_OK(tp_order_set_mode(TP_ORDER_ERROR));
  tp_graph_t *outer = begin(first), *inner = begin(second);
  tp__watch_end(&inner->watch);
  tp__watch_begin(&inner->watch, second, &outer->watch);
  tp__watch_predicate(&outer->watch, tp__tensor_retain(x)->data, x->storage->nbytes);
  CHECK_OK(fill(x, second));
  CHECK(outer->watch.is_written && !inner->watch.is_written);
  CHECK(outer->watch.touch_count == 1 && outer->watch.touches[0].writes && inner->watch.touch_count == 0);
  CHECK_OK(tp_graph_capture_end(inner));
  tp__watch_begin(&inner->watch, second, &outer->watch); /* which is captured no more: between two pieces */
  tp_tensor_t *beside = make(0);
  CHECK_OK(fill(beside, second));
  tp__watch_end(&inner->watch);
  CHECK_OK(fill(x, first));
  CHECK(outer->watch.touch_count == 1);
  CHECK_OK(tp_graph_capture_end(outer));
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  tp_graph_release(inner);
  tp_graph_release(outer);
  tp_tensor_release(beside);
  tp_tensor_release(x);
  tp_tensor_release(x);
}

/* ---- work beside a capture ---- */

static void *fill_elsewhere(void *tensor) {
  CHECK_OK(fill(tensor, second));
  return NULL;
}

static void test_work_of_the_thread_that_no_capture_takes_is_counted(void) {
  tp_tensor_t *x = make(0), *y = make(1);
  tp_stream_t *other = tp_stream_from_pool(1, 0);
  tp_graph_t *graph = begin(first), *neighbour = begin(other);
  CHECK_OK(fill(x, first));
  CHECK_OK(fill(y, other));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, fill_elsewhere, x) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  float values[64];
  CHECK_OK(tp_tensor_copy_to_host(x, values, sizeof values)); /* reads only */
  CHECK(graph->watch.beside_count == 0 && neighbour->watch.beside_count == 0);
  CHECK_OK(fill(y, tp_stream_default(1)));
  CHECK_OK(fill(x, second));
  CHECK(neighbour->watch.beside_count == 2 && neighbour->watch.beside_stream == tp_stream_default(1));
  CHECK(!strcmp(neighbour->watch.beside_operation, "fill"));
  CHECK_OK(tp_graph_capture_end(neighbour));
  CHECK_OK(fill(x, second));
  CHECK(graph->watch.beside_count == 1 && graph->watch.beside_stream == second);
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK_OK(tp_graph_reset(graph));
  CHECK(graph->watch.beside_count == 0);
  tp_graph_release(graph);
  tp_graph_release(neighbour);
  tp_tensor_release(x);
  tp_tensor_release(y);
}

/* ---- what a graph writes ---- */

static void test_a_graph_tells_what_it_writes(void) {
  tp_tensor_t *read = make(0), *written = make(0), *part = make(0), *none = make(0);
  tp_tensor_t *last = tp_tensor_slice(part, 0, 63, 64, 1);
  tp_graph_t *graph = begin(first);
  CHECK_OK(tp_stream_set_current(first));
  CHECK_OK(tp_tensor_copy(written, read));
  CHECK_OK(tp_tensor_fill_float(last, 2));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(fill(none, second));
  for (int i = 0; i < 2; i++) {
    CHECK(tp_graph_writes(graph, written) == 1 && tp_graph_writes(graph, part) == 1);
    CHECK(tp_graph_writes(graph, read) == 0 && tp_graph_writes(graph, none) == 0);
    if (!i) CHECK_OK(tp_graph_capture_end(graph));
  }
  CHECK_OK(tp_graph_reset(graph));
  CHECK(tp_graph_writes(graph, written) == 0);
  tp_graph_release(graph);
  tp_tensor_release(last);
  tp_tensor_release(part);
  tp_tensor_release(read);
  tp_tensor_release(written);
  tp_tensor_release(none);
}

/* ---- what a replay uses ---- */

static void test_a_replay_is_ordered_like_any_work(void) {
  tp_tensor_t *x = make(0), *y = make(0), *z = make(0);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_order_set_mode(TP_ORDER_ERROR));
  tp_graph_t *graph = begin(first);
  CHECK_OK(tp_stream_set_current(first));
  for (int i = 0; i < 3; i++) CHECK_OK(tp_tensor_copy(y, x));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK(graph->watch.touch_count == 2);
  CHECK_OK(fill(x, second));
  CHECK(tp_graph_replay(graph, first) == TP_ORDER);
  tp_order_report_t report;
  tp_order_last(&report);
  CHECK(!strcmp(report.operations[0], "fill") && !strcmp(report.operations[1], "replay"));
  CHECK(report.writes[0] && !report.writes[1]);
  CHECK_OK(tp_stream_wait_stream(first, second));
  CHECK_OK(tp_graph_replay(graph, first));
  CHECK_OK(fill(z, second));
  CHECK(fill(y, second) == TP_ORDER);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(fill(y, second));
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  tp_graph_release(graph);
  tp_tensor_release(x);
  tp_tensor_release(y);
  tp_tensor_release(z);
}

/* CUDA runs the launches of one executable graph one after the other, in the order of their calls. */
static void test_replays_on_two_streams_are_in_order(void) {
  tp_tensor_t *x = make(0);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_order_set_mode(TP_ORDER_ERROR));
  tp_graph_t *graph = begin(first), *twin = begin(second);
  CHECK_OK(fill(x, first));
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK_OK(fill(x, second));
  CHECK_OK(tp_graph_capture_end(twin));
  CHECK_OK(tp_graph_replay(graph, first));
  CHECK_OK(tp_graph_replay(graph, second));
  CHECK_OK(fill(x, second));
  CHECK(tp_graph_replay(twin, first) == TP_ORDER);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  tp_graph_release(graph);
  tp_graph_release(twin);
  tp_tensor_release(x);
}

int main(void) {
  values_start();
  CHECK((first = tp_stream_from_pool(0, 0)) && (second = tp_stream_from_pool(0, 0)));
  test_only_captures_and_the_order_checker_watch();
  test_a_write_to_the_predicate_is_noted();
  test_what_a_body_does_counts_for_all_around_it();
  test_work_of_the_thread_that_no_capture_takes_is_counted();
  test_a_graph_tells_what_it_writes();
  test_a_replay_is_ordered_like_any_work();
  test_replays_on_two_streams_are_in_order();
  return 0;
}
