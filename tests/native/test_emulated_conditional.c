/* The emulated device's conditional nodes: CUDA's rules, and kernels that set conditions. */
#include "conditional_rules.h"
#include "graph_kernels.h"
#include "tp_emulated.h"

#define SEEDS 32

static void test_the_rules(void) {
  CHECK_RULES(conditional_rules);
  CHECK(differences == 0);
}

#if TP_CUDA_SECOND_BODIES
/* In CUDA's form, as far as that is known. */
static void test_a_switch_is_printed(void) {
  CHECK(names_body(cudaGraphCondTypeSwitch, "{Conditional Type| SWITCH}\n| {0 | "));
}
#endif

/* A kernel decides at each launch, by what memory holds then. */
static void test_a_kernel_sets_the_condition(void) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body, captured;
  enum cudaStreamCaptureStatus status;
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  CHECK_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &captured, NULL, NULL, NULL));
  CHECK_OK(cudaGraphConditionalHandleCreate(&handle, captured, 0, cudaGraphCondAssignDefault));
  CHECK_OK(kernel("test", (graph_arguments_t){numbers, 0, 0, handle}, stream));
  const cudaGraphNode_t *tail;
  cudaGraphNode_t node;
  size_t count;
  CHECK_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &captured, &tail, NULL, &count));
  struct cudaGraphNodeParams params = conditional(handle, cudaGraphCondTypeIf, 1);
  CHECK_OK(cudaGraphAddNode(&node, captured, tail, NULL, count, &params));
  CHECK_OK(cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1, cudaStreamSetCaptureDependencies));
  body = params.conditional.phGraph_out[0];
  begin_body(side, body);
  CHECK_OK(kernel("store", (graph_arguments_t){numbers, 1, 5, 0}, side));
  end_body(side, body);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  CHECK_OK(cudaGraphDestroy(graph));
  for (int value = 0; value < 4; value++) {
    clear_numbers();
    CHECK_OK(kernel("store", (graph_arguments_t){numbers, 0, value % 2, 0}, stream));
    launch(exec, stream);
    CHECK(number(1) == (value % 2 ? 5 : 0));
  }
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A loop that counts numbers[1] up from -rounds to 0, and appends `letter` in each round; it is entered. */
static void capture_loop(cudaStream_t stream, cudaStream_t side, int place, int rounds, int letter) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body;
  CHECK_OK(kernel("store", (graph_arguments_t){numbers + 32, place, -rounds, 0}, stream));
  capture_conditional(stream, cudaGraphCondTypeWhile, 1, 1, &handle, &body);
  begin_body(side, body);
  CHECK_OK(kernel("append", (graph_arguments_t){numbers, 0, letter, 0}, side));
  CHECK_OK(kernel("count_up", (graph_arguments_t){numbers + 32, place, 1, handle}, side));
  end_body(side, body);
}

static void test_a_loop_ends_where_its_body_says(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  capture_loop(stream, side, 0, 5, 7);
  CHECK_OK(kernel("append", (graph_arguments_t){numbers, 0, 9, 0}, stream));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    tp_emulated_set_seed(seed);
    clear_numbers();
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(cudaStreamSynchronize(stream));
    CHECK(number(0) == 12 && number(5) == 7 && number(6) == 9 && number(7) == 7 && number(12) == 9);
  }
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* The inner loop is entered anew in each round: its condition is set in the body, for defaults come once a launch. */
static void test_a_loop_in_a_loop(void) {
  cudaGraphConditionalHandle outer, inner;
  cudaGraph_t body, nested, captured;
  enum cudaStreamCaptureStatus status;
  const cudaGraphNode_t *tail;
  cudaGraphNode_t node;
  size_t count;
  cudaStream_t stream = begin(GLOBAL), side = make_stream(), far = make_stream();
  CHECK_OK(kernel("store", (graph_arguments_t){numbers + 32, 0, -3, 0}, stream));
  capture_conditional(stream, cudaGraphCondTypeWhile, 1, 1, &outer, &body);
  begin_body(side, body);
  CHECK_OK(cudaStreamGetCaptureInfo(side, &status, NULL, &captured, NULL, NULL, NULL));
  CHECK(captured == body);
  CHECK_OK(cudaGraphConditionalHandleCreate(&inner, body, 0, cudaGraphCondAssignDefault));
  CHECK_OK(kernel("store", (graph_arguments_t){numbers + 32, 1, -2, 0}, side));
  CHECK_OK(kernel("count_up", (graph_arguments_t){numbers + 32, 1, 0, inner}, side));
  CHECK_OK(cudaStreamGetCaptureInfo(side, &status, NULL, &captured, &tail, NULL, &count));
  struct cudaGraphNodeParams params = conditional(inner, cudaGraphCondTypeWhile, 1);
  CHECK_OK(cudaGraphAddNode(&node, body, tail, NULL, count, &params));
  CHECK_OK(cudaStreamUpdateCaptureDependencies(side, &node, NULL, 1, cudaStreamSetCaptureDependencies));
  nested = params.conditional.phGraph_out[0];
  begin_body(far, nested);
  CHECK_OK(kernel("append", (graph_arguments_t){numbers, 0, 1, 0}, far));
  CHECK_OK(kernel("count_up", (graph_arguments_t){numbers + 32, 1, 1, inner}, far));
  end_body(far, nested);
  CHECK_OK(kernel("append", (graph_arguments_t){numbers, 0, 2, 0}, side));
  CHECK_OK(kernel("count_up", (graph_arguments_t){numbers + 32, 0, 1, outer}, side));
  end_body(side, body);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    tp_emulated_set_seed(seed);
    clear_numbers();
    launch(exec, stream);
    static const int expected[] = {9, 1, 1, 2, 1, 1, 2, 1, 1, 2};
    for (int i = 0; i < 10; i++) CHECK(number(i) == expected[i]);
  }
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(far));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Other streams' work runs in between the rounds of a loop, and an event behind the loop waits for its last. */
static void test_a_loop_is_no_unit(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream(), other = make_stream();
  cudaEvent_t event = make_event();
  capture_loop(stream, side, 0, 4, 1);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  bool seen[5] = {false};
  for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
    tp_emulated_set_seed(seed);
    clear_numbers();
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(cudaEventRecord(event, stream));
    CHECK_OK(kernel("append", (graph_arguments_t){numbers, 0, 2, 0}, other));
    CHECK_OK(cudaEventSynchronize(event));
    CHECK(number(0) >= 4); /* all rounds */
    CHECK_OK(cudaDeviceSynchronize());
    CHECK(number(0) == 5);
    int place = 1;
    while (number(place) != 2) place++;
    seen[place - 1] = true;
  }
  for (int i = 0; i < 5; i++) CHECK(seen[i]);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaEventDestroy(event));
  CHECK_OK(cudaStreamDestroy(other));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A loop that would go on for ever ends with the device, here by a kernel's fault. */
static void test_a_fault_ends_a_loop(void) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body;
  int *gone = NULL;
  CHECK_OK(cudaMalloc((void **)&gone, BYTES));
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  capture_conditional(stream, cudaGraphCondTypeWhile, 1, 1, &handle, &body);
  begin_body(side, body);
  CHECK_OK(kernel("append", (graph_arguments_t){gone, 0, 1, 0}, side));
  end_body(side, body);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  CHECK_OK(cudaFree(gone));
  CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK_OK(cudaGraphExecDestroy(exec)); /* the loop keeps what it needs */
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(strstr(tp_emulated_fault_text(), "kernel append"));
  tp_emulated_reset();
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

static void test_a_kernel_sets_no_condition_that_is_none(void) {
  CHECK_OK(kernel("test", (graph_arguments_t){numbers, 0, 0, 1u << 30}, NULL));
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(strstr(tp_emulated_fault_text(), "no conditional handle"));
  tp_emulated_reset();
}

/* A body that is being captured when its graph goes: the capture is spoiled, and ends as such. */
static void test_a_graph_goes_while_its_body_is_captured(void) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body, graph = NULL;
  cudaGraphExec_t exec;
  cudaStream_t stream = begin(RELAXED), side = make_stream();
  capture_conditional(stream, cudaGraphCondTypeIf, 1, 1, &handle, &body);
  begin_body(side, body);
  CHECK_OK(fill(side, 0, 1));
  CHECK(cudaStreamQuery(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && !graph);
  end_spoiled(side);
  CHECK_OK(cudaStreamDestroy(stream));

  stream = begin(RELAXED);
  side = make_stream();
  capture_conditional(stream, cudaGraphCondTypeIf, 1, 1, &handle, &body);
  begin_body(side, body);
  graph = end(stream);
  CHECK(cudaGraphDestroy(graph) == cudaErrorInvalidValue);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorInvalidValue);
  end_body(side, body);
  CHECK(cudaGraphDestroy(body) == cudaErrorInvalidValue); /* it is the node's */
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A given graph would go with a spoiled capture, but a body is its node's: captured anew, it runs. */
static void test_a_body_outlives_a_spoiled_capture(void) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body, out;
  cudaStream_t stream = begin(RELAXED), side = make_stream();
  capture_conditional(stream, cudaGraphCondTypeIf, 1, 1, &handle, &body);
  begin_body(side, body);
  CHECK(cudaStreamQuery(side) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(side, &out) == cudaErrorStreamCaptureInvalidated && !out);
  begin_body(side, body);
  CHECK_OK(fill(side, 0, 4));
  end_body(side, body);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  write_memory(0, 1);
  launch(exec, stream);
  CHECK(read_memory(0) == 4);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Of the graph for which it was made: CUDA does not insist on that, we do. */
static void test_a_condition_belongs_to_one_node(void) {
  cudaGraph_t graph, other;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle, stranger;
  CHECK_OK(cudaGraphCreate(&graph, 0));
  CHECK_OK(cudaGraphCreate(&other, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2) == cudaErrorInvalidValue);
  CHECK_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
  CHECK_OK(cudaGraphConditionalHandleCreate(&stranger, other, 0, 0));
  struct cudaGraphNodeParams params = conditional(stranger, cudaGraphCondTypeIf, 1);
  CHECK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params) == cudaErrorInvalidValue);
  params = conditional(handle, cudaGraphCondTypeIf, 1);
  CHECK_OK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  CHECK(nodes_of(params.conditional.phGraph_out[0]) == 0);
  enum cudaGraphNodeType type;
  CHECK_OK(cudaGraphNodeGetType(node, &type));
  CHECK(type == cudaGraphNodeTypeConditional);
  params = conditional(handle, cudaGraphCondTypeIf, 1);
  CHECK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params) == cudaErrorInvalidValue);
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaGraphDestroy(other));
}

static void test_each_call_can_be_made_to_fail(void) {
  int32_t code = tp_emulated_error_code("cudaErrorNotSupported");
  cudaGraph_t graph;
  cudaGraphNode_t node = NULL;
  cudaGraphConditionalHandle handle;
  CHECK_OK(cudaGraphCreate(&graph, 0));
  CHECK(tp_emulated_fail("cudaGraphConditionalHandleCreate", 1, code) == 0);
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0) == cudaErrorNotSupported);
  CHECK_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  struct cudaGraphNodeParams params = conditional(handle, cudaGraphCondTypeIf, 1);
  CHECK(tp_emulated_fail("cudaGraphAddNode", 1, code) == 0);
  CHECK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params) == cudaErrorNotSupported && !node);
  CHECK_OK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  CHECK_OK(cudaGraphDestroy(graph));
}

int main(void) {
  make_memory();
  load_kernels();
  test_the_rules();
#if TP_CUDA_SECOND_BODIES
  test_a_switch_is_printed();
#endif
  test_a_kernel_sets_the_condition();
  test_a_loop_ends_where_its_body_says();
  test_a_loop_in_a_loop();
  test_a_loop_is_no_unit();
  test_a_fault_ends_a_loop();
  test_a_kernel_sets_no_condition_that_is_none();
  test_a_graph_goes_while_its_body_is_captured();
  test_a_body_outlives_a_spoiled_capture();
  test_a_condition_belongs_to_one_node();
  test_each_call_can_be_made_to_fail();
  CHECK(differences == 0);
  return 0;
}
