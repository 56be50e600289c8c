/* Edges of captured graphs: programmatic between our kernels, plain beside all else, and the same results. */
#include <string.h>

#include "alloc/alloc.h"
#include "graph/graph.h"
#include "host_device.h"
#include "tp_emulated.h"
#include "values.h"

enum {
#define TP_UNARY(name, ...)
#define TP_BINARY(name, code, ...) BINARY_##name = code,
#include "../../libtensorplay/kernels/ops.def"
#undef TP_UNARY
#undef TP_BINARY
};

enum { ROOM = 64 };

static tp_stream_t *stream, *side;

static void check_settled(void) {
  CHECK_OK(tp_device_synchronize(0));
  CHECK(!tp__captures_underway());
}

/* ---- work ---- */

static tp_tensor_t *numbers(int64_t value) {
  tp_tensor_t *tensor = tp_tensor_empty_1d(TP_DTYPE_int64, 0, 4);
  CHECK(tensor);
  CHECK_OK(tp_tensor_fill_int(tensor, value));
  return tensor;
}

static int64_t value_of(const tp_tensor_t *tensor) {
  int64_t values[4];
  CHECK_OK(tp_tensor_copy_to_host(tensor, values, sizeof values));
  return values[0];
}

/* a += b, by a kernel of ours. */
static tp_status_t add(tp_tensor_t *a, const tp_tensor_t *b) {
  tp_tensor_t *same = tp_binary(BINARY_add, a, b, a);
  tp_tensor_release(same);
  return same ? TP_OK : tp_error_status();
}

/* One that waits for nothing by itself. */
static void foreign(const void *p) { (void)p; }

static tp_status_t launch_foreign(void) {
  static cudaKernel_t kernel;
  static cudaLibrary_t library; /* for as long as the kernel */
  if (!kernel) {
    tp_host_register_kernel("foreign", "foreign", 1, false, foreign);
    CHECK(!cudaLibraryLoadData(&library, "emulated:foreign\n", NULL, NULL, 0, NULL, NULL, 0));
    CHECK(!cudaLibraryGetKernel(&kernel, library, "foreign"));
  }
  char argument = 0;
  void *pointers[] = {&argument};
  dim3 one = {1, 1, 1};
  CHECK(!cudaLaunchKernel((const void *)kernel, one, one, pointers, 0, tp__stream_cuda(tp__stream_current(0))));
  return TP_OK;
}

static tp_status_t fill(tp_tensor_t *a) {
  CHECK(!cudaMemsetAsync(a->data, 0, 8, tp__stream_cuda(tp__stream_current(0))));
  return TP_OK;
}

static tp_status_t copy(tp_tensor_t *a, tp_tensor_t *b) {
  CHECK(!cudaMemcpyAsync(a->data, b->data, 32, cudaMemcpyDeviceToDevice, tp__stream_cuda(tp__stream_current(0))));
  return TP_OK;
}

static tp_graph_t *begin(void) {
  tp_graph_t *graph = tp_graph_create();
  CHECK(graph);
  CHECK_OK(tp_graph_capture_begin(graph, stream, NULL, TP_CAPTURE_THREAD_LOCAL));
  CHECK_OK(tp_stream_set_current(stream));
  return graph;
}

static tp_status_t end(tp_graph_t *graph) {
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  return tp_graph_capture_end(graph);
}

static void replay(tp_graph_t *graph) {
  CHECK_OK(tp_graph_replay(graph, stream));
  CHECK_OK(tp_stream_synchronize(stream));
}

/* ---- counting ---- */

typedef struct counts {
  size_t plain, programmatic;
} counts_t;

static counts_t count_edges(cudaGraph_t graph) {
  cudaGraphNode_t from[ROOM], to[ROOM];
  cudaGraphEdgeData data[ROOM];
  size_t count = ROOM;
  counts_t counts = {0};
  CHECK(!cudaGraphGetEdges(graph, from, to, data, &count));
  for (size_t i = 0; i < count; i++) {
    bool is_plain = !data[i].from_port && !data[i].to_port && !data[i].type;
    CHECK(is_plain || (data[i].from_port == cudaGraphKernelNodePortProgrammatic && !data[i].to_port &&
                       data[i].type == cudaGraphDependencyTypeProgrammatic));
    counts.plain += is_plain;
    counts.programmatic += !is_plain;
  }
  return counts;
}

static void check_edges(const tp_graph_t *graph, size_t plain, size_t programmatic) {
  counts_t counts = count_edges(graph->graph);
  CHECK(counts.plain == plain && counts.programmatic == programmatic);
}

/* ---- what becomes of edges ---- */

static void test_kernels_in_a_row(void) {
  tp_tensor_t *a = numbers(1), *b = numbers(2);
  CHECK_OK(add(a, b)); /* so that its image is there */
  tp_graph_t *graph = begin();
  for (int i = 0; i < 5; i++) CHECK_OK(add(i % 2 ? b : a, i % 2 ? a : b));
  CHECK_OK(end(graph));
  check_edges(graph, 0, 4);
  CHECK_OK(tp_tensor_fill_int(a, 1));
  CHECK_OK(tp_tensor_fill_int(b, 1));
  CHECK_OK(tp_device_synchronize(0));
  replay(graph);
  CHECK(value_of(a) == 13 && value_of(b) == 8);
  tp_graph_release(graph);
  tp_tensor_release(a);
  tp_tensor_release(b);
  check_settled();
}

static void test_what_is_not_ours_keeps_plain_edges(void) {
  tp_tensor_t *a = numbers(0), *b = numbers(3);
  tp_graph_t *graph = begin();
  CHECK_OK(add(a, b));
  CHECK_OK(add(a, b)); /* programmatic: all others are plain */
  CHECK_OK(launch_foreign());
  CHECK_OK(launch_foreign());
  CHECK_OK(add(a, b));
  CHECK_OK(fill(b));
  CHECK_OK(add(b, a));
  CHECK_OK(copy(a, b));
  CHECK_OK(add(b, a));
  CHECK_OK(end(graph));
  check_edges(graph, 7, 1);
  for (int run = 0; run < 3; run++) {
    CHECK_OK(tp_tensor_fill_int(a, run));
    CHECK_OK(tp_tensor_fill_int(b, 3));
    CHECK_OK(tp_device_synchronize(0));
    replay(graph);
    CHECK(value_of(a) == run + 9 && value_of(b) == 2 * (run + 9));
  }
  tp_graph_release(graph);
  tp_tensor_release(a);
  tp_tensor_release(b);
  check_settled();
}

/* A node behind a kernel of ours and a copy has one edge of each kind; those of forks are as all others. */
static void test_forks_over_many_orders(void) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    tp_emulated_set_seed(seed);
    tp_tensor_t *a = numbers(1), *b = numbers(2), *c = numbers(0);
    tp_graph_t *graph = begin();
    CHECK_OK(add(a, b));
    CHECK_OK(tp_stream_wait_stream(side, stream));
    CHECK_OK(add(a, a));
    CHECK_OK(tp_stream_set_current(side));
    CHECK_OK(add(b, b));
    CHECK_OK(copy(c, b));
    CHECK_OK(tp_stream_set_current(stream));
    CHECK_OK(tp_stream_wait_stream(stream, side));
    CHECK_OK(add(c, a));
    CHECK_OK(end(graph));
    check_edges(graph, 2, 3);
    CHECK_OK(tp_device_synchronize(0));
    replay(graph);
    replay(graph);
    CHECK(value_of(a) == 20 && value_of(b) == 8 && value_of(c) == 28);
    tp_graph_release(graph);
    tp_tensor_release(a);
    tp_tensor_release(b);
    tp_tensor_release(c);
  }
  check_settled();
}

static void test_kernels_of_two_devices_keep_plain_edges(void) {
  tp_tensor_t *a = numbers(1);
  CHECK_OK(tp_device_set(1));
  tp_tensor_t *there = tp_tensor_empty_1d(TP_DTYPE_int64, 1, 4);
  tp_stream_t *other = tp_stream_from_pool(1, 0);
  CHECK(there && other);
  CHECK_OK(tp_stream_set_current(other));
  CHECK_OK(tp_tensor_fill_int(there, 1));
  CHECK_OK(add(there, there));
  CHECK_OK(tp_device_synchronize(1));
  CHECK_OK(tp_device_set(0));
  for (int first = 0; first < 2; first++) { /* nodes of either number */
    tp_graph_t *graph = begin();
    for (int i = 0; i <= first; i++) CHECK_OK(add(a, a));
    CHECK_OK(tp_stream_wait_stream(other, stream));
    CHECK_OK(add(there, there));
    CHECK_OK(tp_stream_wait_stream(stream, other));
    CHECK_OK(add(a, a));
    CHECK_OK(end(graph));
    check_edges(graph, 2, (size_t)first + 1); /* the join is behind the fork too */
    tp_graph_release(graph);
  }
  CHECK_OK(tp_stream_set_current(tp_stream_default(1)));
  CHECK_OK(tp_device_set(0));
  tp_tensor_release(there);
  tp_tensor_release(a);
  check_settled();
}

static void test_random_numbers_and_stage(void) {
  tp_tensor_t *a = numbers(1), *input = numbers(5), *drawn = tp_tensor_empty_1d(TP_DTYPE_float32, 0, 64);
  CHECK(drawn);
  tp_graph_t *graph = begin();
  CHECK_OK(tp_random_uniform(drawn, 0, 1));
  CHECK_OK(tp_random_uniform(drawn, 0, 1));
  CHECK_OK(add(a, a));
  CHECK_OK(end(graph));
  check_edges(graph, 0, 3); /* the setter is one of the kernels */
  CHECK_OK(tp_device_synchronize(0));
  for (int run = 1; run < 4; run++) { /* whose arguments are renewed */
    CHECK_OK(tp_tensor_fill_int(input, run));
    CHECK_OK(tp_device_synchronize(0));
    CHECK_OK(tp_stream_set_current(stream));
    CHECK_OK(tp_graph_stage_and_launch(graph, 1, &a, &input));
    CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
    CHECK_OK(tp_stream_synchronize(stream));
    CHECK(value_of(a) == 2 * run);
  }
  tp_graph_release(graph);
  tp_tensor_release(a);
  tp_tensor_release(input);
  tp_tensor_release(drawn);
  check_settled();
}

static int64_t calls(const char *name) { return tp_emulated_call_count(name, -1); }

static void test_bodies(void) {
  tp_tensor_t *a = numbers(1), *predicate = tp_tensor_empty(TP_DTYPE_bool, 0, 0, NULL);
  CHECK(predicate);
  CHECK_OK(tp_tensor_fill_int(predicate, 1));
  CHECK_OK(tp_device_synchronize(0));
  int64_t before = calls("cudaGraphRemoveDependencies");
  tp_graph_t *graph = begin();
  tp_stream_t *inside = tp_graph_begin_if(graph, predicate, stream);
  CHECK(inside);
  CHECK_OK(tp_stream_set_current(inside));
  for (int i = 0; i < 3; i++) CHECK_OK(add(a, a));
  CHECK_OK(tp_graph_end_body(graph));
  CHECK(calls("cudaGraphRemoveDependencies") == before + 1);
  CHECK_OK(tp_stream_set_current(stream));
  CHECK_OK(add(a, a));
  CHECK_OK(end(graph));
  check_edges(graph, 2, 0); /* into the node and out of it */
  replay(graph);
  CHECK(value_of(a) == 16);
  tp_graph_release(graph);
  tp_tensor_release(a);
  tp_tensor_release(predicate);
  check_settled();
}

/* ---- failures ---- */

/* An edge that cannot be asked about stays plain; one that cannot be exchanged ends the capture. */
static void test_any_call_may_fail(void) {
  static const struct {
    const char *call;
    bool ends;
  } calls_that_fail[] = {
      {"cudaGetDriverEntryPointByVersion", true}, {"cudaGraphGetEdges", true},
      {"cudaGraphRemoveDependencies", true},      {"cudaGraphAddDependencies", true},
      {"cudaGraphNodeGetType", false},            {"cuCtxGetCurrent", false},
      {"cuLibraryGetModule", false},              {"cuKernelGetFunction", false},
      {"cuFuncGetModule", false},                 {"cuGraphKernelNodeGetParams", false},
  };
  tp_tensor_t *a = numbers(1);
  for (size_t i = 0; i < sizeof calls_that_fail / sizeof *calls_that_fail; i++) {
    for (int n = 1;; n++) {
      tp_graph_t *graph = begin();
      for (int k = 0; k < 4; k++) CHECK_OK(add(a, a));
      int64_t before = calls(calls_that_fail[i].call);
      CHECK_OK(tp_emulated_fail(calls_that_fail[i].call, n, cudaErrorUnknown));
      tp_status_t status = end(graph);
      bool met = calls(calls_that_fail[i].call) - before >= n;
      CHECK_OK(tp_emulated_fail(calls_that_fail[i].call, 0, cudaSuccess));
      CHECK(met || n > 1);
      CHECK(status == (met && calls_that_fail[i].ends ? TP_CUDA : TP_OK));
      CHECK(cudaGetLastError() == cudaSuccess);
      if (!status) {
        counts_t counts = count_edges(graph->graph);
        CHECK(counts.plain + counts.programmatic == 3 && (met ? counts.plain > 0 || i == 6 : counts.plain == 0));
        CHECK_OK(tp_tensor_fill_int(a, 1));
        CHECK_OK(tp_device_synchronize(0));
        replay(graph);
        CHECK(value_of(a) == 16);
      } else {
        CHECK(graph->state == TP_GRAPH_EMPTY);
      }
      tp_graph_release(graph);
      check_settled();
      if (!met) break;
    }
  }
  tp_tensor_release(a);
}

int main(void) {
  CHECK_OK(tp_kernels_set_path(TP_TEST_KERNELS));
  CHECK_OK(tp_device_set(0));
  stream = tp_stream_from_pool(0, 0);
  side = tp_stream_from_pool(0, 0);
  CHECK(stream && side);
  test_kernels_in_a_row();
  test_what_is_not_ours_keeps_plain_edges();
  test_forks_over_many_orders();
  test_kernels_of_two_devices_keep_plain_edges();
  test_random_numbers_and_stage();
  test_bodies();
  test_any_call_may_fail();
  return 0;
}
