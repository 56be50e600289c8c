/* Conditional nodes: loops that kernels end, the streams of bodies, and what bodies that fail leave behind. */
#include <pthread.h>
#include <string.h>

#include "alloc_case.h"
#include "graph_case.h"

enum {
#define TP_UNARY(name, ...)
#define TP_BINARY(name, code, ...) BINARY_##name = code,
#include "../../libtensorplay/kernels/ops.def"
#undef TP_UNARY
#undef TP_BINARY
};

static tp_tensor_t *make(int32_t dtype, int64_t value) {
  tp_tensor_t *tensor = tp_tensor_empty(dtype, 0, 0, NULL);
  CHECK(tensor);
  CHECK_OK(tp_tensor_fill_int(tensor, value));
  return tensor;
}

static int64_t value_of(const tp_tensor_t *tensor) {
  int64_t value;
  CHECK_OK(tp_tensor_copy_to_host(tensor, &value, sizeof value));
  return value;
}

static tp_graph_t *begin(tp_stream_t *stream, int32_t mode) {
  tp_graph_t *graph = begin_graph(stream, mode);
  CHECK_OK(tp_stream_set_current(stream));
  return graph;
}

static void end(tp_graph_t *graph) {
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(tp_graph_capture_end(graph));
}

static void enter(tp_stream_t *inside) {
  CHECK(inside);
  CHECK_OK(tp_stream_set_current(inside));
}

static void leave(tp_graph_t *graph, tp_stream_t *outside) {
  CHECK_OK(tp_graph_end_body(graph));
  CHECK_OK(tp_stream_set_current(outside));
}

/* What a loop works with. */
typedef struct loop {
  tp_tensor_t *n, *limit, *going;
} loop_t;

static loop_t make_loop(int64_t limit) {
  return (loop_t){make(TP_DTYPE_int64, 0), make(TP_DTYPE_int64, limit), make(TP_DTYPE_bool, true)};
}

static void release_loop(const loop_t *loop) {
  tp_tensor_release(loop->n);
  tp_tensor_release(loop->limit);
  tp_tensor_release(loop->going);
}

/* n := n + by, on the current stream. */
static bool count(const loop_t *loop, int64_t by) {
  tp_tensor_t *same = tp_binary_int(BINARY_add, loop->n, by, 0, 0, loop->n);
  tp_tensor_release(same);
  return same;
}

static bool compare(const loop_t *loop) {
  tp_tensor_t *same = tp_binary(BINARY_lt, loop->n, loop->limit, loop->going);
  tp_tensor_release(same);
  return same;
}

/* n counts up to the limit; with an if in each round that adds 100 to the first round's count, and takes it away. */
static void capture_loop(tp_graph_t *graph, const loop_t *loop, tp_stream_t *stream) {
  tp_stream_t *inside = tp_graph_begin_while(graph, loop->going, stream);
  enter(inside);
  CHECK(count(loop, 100));
  enter(tp_graph_begin_if(graph, loop->going, inside));
  CHECK(count(loop, -99));
  leave(graph, inside);
  CHECK(compare(loop));
  leave(graph, stream);
}

static void test_a_loop_over_many_orders(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  loop_t loop = make_loop(5);
  CHECK_OK(tp_device_synchronize(0));
  tp_graph_t *graph = begin(stream, TP_CAPTURE_GLOBAL);
  CHECK(count(&loop, 0));
  capture_loop(graph, &loop, stream);
  CHECK(count(&loop, 1000));
  end(graph);
  for (uint64_t seed = 0; seed < 24; seed++) {
    tp_emulated_set_seed(seed);
    CHECK_OK(tp_stream_set_current(stream));
    CHECK_OK(tp_tensor_fill_int(loop.n, 0));
    CHECK_OK(tp_tensor_fill_int(loop.going, true));
    CHECK_OK(tp_graph_replay(graph, NULL));
    CHECK(value_of(loop.n) == 1005);
    CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  }
  tp_graph_release(graph);
  release_loop(&loop);
  clear();
}

static void test_bodies_have_streams_of_their_own(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, -1);
  tp_stream_t *body = tp__stream_body(stream, "test"), *nested = tp__stream_body(body, "test");
  CHECK(body && nested && body != stream && nested != body && tp__stream_body(stream, "test") == body);
  tp_stream_t *beside = tp__stream_body(other, "test");
  CHECK(beside != body && tp_stream_priority(beside) == tp_stream_priority(other));
  CHECK(tp__stream_id(body) != tp__stream_id(nested) && !tp__stream_is_external(body));
  CHECK(tp_stream_external(0, tp_stream_handle(body)) == body);
  tp_stream_t *another = tp_stream_from_pool(0, 0);
  CHECK(tp_emulated_fail("cudaStreamCreateWithPriority", 1, cudaErrorUnknown) == 0);
  CHECK(!tp__stream_body(another, "test") && tp_error_status() == TP_CUDA);
  CHECK(tp__stream_body(another, "test"));
}

static void test_every_status(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *apart = tp_stream_from_pool(0, 0);
  loop_t loop = make_loop(1);
  tp_graph_t *graph = make_graph();
  CHECK(!tp_graph_begin_if(graph, loop.going, stream) && tp_error_status() == TP_STATE);
  CHECK(tp_graph_end_body(graph) == TP_STATE && !tp_graph_is_capturing(graph, stream));
  tp_graph_abandon_body(graph);
  tp_graph_release(graph);

  graph = begin(stream, TP_CAPTURE_GLOBAL);
  CHECK(tp_graph_is_capturing(graph, stream) && !tp_graph_is_capturing(graph, apart));
  CHECK(!tp_graph_begin_while(graph, loop.going, apart) && tp_error_status() == TP_STATE);
  CHECK(!tp_graph_begin_if(graph, loop.n, stream) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_graph_begin_else(graph, stream) && tp_error_status() == TP_STATE);
  CHECK(tp_graph_set_condition(graph, loop.going, stream) == TP_STATE);
  tp_stream_t *inside = tp_graph_begin_if(graph, loop.going, stream);
  enter(inside);
  CHECK(tp_graph_is_capturing(graph, inside) && tp_graph_is_capturing(graph, stream));
  CHECK(tp_graph_set_condition(graph, loop.going, stream) == TP_STATE);
  CHECK(tp_graph_set_condition(graph, loop.n, inside) == TP_DTYPE);
  CHECK_OK(tp_graph_set_condition(graph, loop.going, inside));
  leave(graph, stream);
  enter(tp_graph_begin_while(graph, loop.going, stream));
  CHECK(count(&loop, 1));
  CHECK(tp_graph_end_body(graph) == TP_STATE && strstr(tp_error_text(), "would never end"));
  CHECK_OK(tp_stream_set_current(stream));
  CHECK(!tp_graph_begin_if(graph, loop.going, stream) && tp_error_status() == TP_STATE);
  CHECK(tp_graph_capture_end(graph) == TP_STATE && !tp_stream_is_capturing(stream));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_graph_release(graph);
  release_loop(&loop);
  clear();
}

/* A graph is released in a body in a body; and an exception leaves one. */
static void test_bodies_that_never_end(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  loop_t loop = make_loop(3);
  for (int leaves = 0; leaves < 3; leaves++) {
    tp_graph_t *graph = begin(stream, TP_CAPTURE_GLOBAL);
    tp_stream_t *inside = tp_graph_begin_if(graph, loop.going, stream);
    enter(inside);
    tp__block_t *block = take(1000, inside);
    enter(tp_graph_begin_while(graph, loop.going, inside));
    for (int i = 0; i < leaves; i++) tp_graph_abandon_body(graph);
    CHECK(tp_stream_is_capturing(stream) && tp_stream_is_capturing(inside) == (leaves == 1));
    CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
    tp_graph_release(graph);
    CHECK(!tp_stream_is_capturing(stream) && !tp_stream_is_capturing(inside) && !tp__captures_underway());
    drop(block);
    CHECK(tp_mempool_list(0, 0, NULL) == 0 && cudaPeekAtLastError() == cudaSuccess);
  }
  release_loop(&loop);
  clear();
}

/* Each call fails in its turn: the graph is right, or its capture ends with an error and leaves nothing. */
static void test_any_call_may_fail(void) {
  static const char *const calls[] = {
      "cudaStreamGetCaptureInfo", "cudaGraphConditionalHandleCreate", "cudaLaunchKernel", "cudaGraphAddNode",
      "cudaStreamUpdateCaptureDependencies", "cudaStreamBeginCapture", "cudaGraphAddChildGraphNode",
      "cudaGraphGetNodes", "cudaGraphNodeGetType", "cudaDriverGetVersion", "cudaGraphInstantiate"};
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  loop_t loop = make_loop(2);
  int failures = 0;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    for (int nth = 1; nth <= 12; nth++) {
      tp_graph_t *graph = begin(stream, TP_CAPTURE_THREAD_LOCAL);
      CHECK(tp_emulated_fail(calls[i], nth, cudaErrorUnknown) == 0);
      bool fails = !count(&loop, 0);
      tp_stream_t *inside = fails ? NULL : tp_graph_begin_while(graph, loop.going, stream);
      fails = fails || !inside;
      if (!fails) enter(inside);
      fails = fails || !count(&loop, 1);
      tp_stream_t *nested = fails ? NULL : tp_graph_begin_if(graph, loop.going, inside);
      fails = fails || !nested || tp_graph_end_body(graph) || !compare(&loop) || tp_graph_end_body(graph);
      CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
      if (fails) tp_graph_capture_abandon(graph);
      fails = fails || tp_graph_capture_end(graph);
      tp_emulated_reset();
      CHECK(!tp_stream_is_capturing(stream) && !tp__captures_underway());
      validate_heap(0);
      CHECK_OK(tp_tensor_fill_int(loop.n, 0));
      CHECK_OK(tp_tensor_fill_int(loop.going, true));
      CHECK((tp_graph_replay(graph, tp_stream_default(0)) == TP_STATE) == fails);
      CHECK(value_of(loop.n) == (fails ? 0 : 2));
      failures += fails;
      tp_graph_release(graph);
      CHECK(tp_mempool_list(0, 0, NULL) == 0);
    }
  }
  CHECK(failures > 25);
  release_loop(&loop);
  clear();
}

/* ---- memory of streams that were forked in a body ---- */

static void test_blocks_in_every_state_are_handed_over(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *side = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  for (int grows = 0; grows < 2; grows++) {
    CHECK_OK(tp_memory_set_settings(grows ? "expandable_segments:True" : ""));
    loop_t loop = make_loop(1);
    tp_graph_t *graph = begin(stream, TP_CAPTURE_GLOBAL);
    tp_stream_t *inside = tp_graph_begin_if(graph, loop.going, stream);
    CHECK_OK(tp_stream_wait_stream(side, inside));
    CHECK_OK(tp_stream_wait_stream(user, side));
    tp__block_t *live = take(1000, side), *freed = take(1000, side), *pending = take(3 * TP_MiB, side);
    CHECK_OK(tp__alloc_record_stream(pending, user));
    drop(freed);
    drop(pending);
    CHECK(pending->state == TP_BLOCK_PENDING && live->stream == side);
    CHECK_OK(tp_stream_wait_stream(inside, side));
    CHECK_OK(tp_stream_wait_stream(inside, user));
    CHECK_OK(tp_graph_end_body(graph));
    validate_heap(0);
    CHECK(live->stream == inside && live->uses && pending->stream == inside);
    for (const tp__segment_t *segment = tp__heap(0)->segments; segment; segment = segment->next)
      for (const tp__block_t *block = segment->first; block; block = block->next) CHECK(block->stream != side);
    end(graph);
    drop(live);
    tp_graph_release(graph);
    release_loop(&loop);
    CHECK_OK(tp_memory_set_settings(""));
    for (int i = 0; i < 2; i++) { /* the first request after the capture records events, the next one asks them */
      drop(take(30 * TP_MiB, stream));
      CHECK_OK(tp_device_synchronize(0));
    }
    clear();
  }
}

/* ---- threads ---- */

static void *capture_and_replay(void *context) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  (void)context;
  CHECK_OK(tp_stream_set_current(stream));
  for (int i = 0; i < 20; i++) {
    loop_t loop = make_loop(3);
    CHECK_OK(tp_stream_synchronize(stream));
    tp_graph_t *graph = begin(stream, TP_CAPTURE_THREAD_LOCAL);
    capture_loop(graph, &loop, stream);
    CHECK_OK(tp_graph_capture_end(graph));
    CHECK_OK(tp_graph_replay(graph, NULL));
    CHECK(value_of(loop.n) == 3);
    tp_graph_release(graph);
    release_loop(&loop);
  }
  return NULL;
}

static void test_threads_capture_bodies_at_once(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, capture_and_replay, NULL) == 0);
  for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  clear();
}

int main(void) {
  CHECK_OK(tp_kernels_set_path(TP_TEST_KERNELS));
  CHECK_OK(tp_device_set(0));
  clear();
  test_a_loop_over_many_orders();
  test_bodies_have_streams_of_their_own();
  test_every_status();
  test_bodies_that_never_end();
  test_any_call_may_fail();
  test_blocks_in_every_state_are_handed_over();
  test_threads_capture_bodies_at_once();
  return 0;
}
