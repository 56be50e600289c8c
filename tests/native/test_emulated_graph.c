/* The emulated device's graphs: CUDA's rules, the orders that launches take, kernel nodes, and what CUDA leaves
 * undefined. */
#include "edge_rules.h"
#include "graph_kernels.h"
#include "tp_emulated.h"

#define SEEDS 64

static void restart(uint64_t seed) {
  CHECK_OK(cudaDeviceSynchronize());
  tp_emulated_reset();
  tp_emulated_set_seed(seed);
  called[0] = 0;
}

static void test_the_rules(void) {
  CHECK_RULES(graph_rules);
  CHECK_RULES(edge_rules);
  CHECK(differences == 0);
}

/* a; then b, c on one branch and d on another; then e. */
static cudaGraphExec_t make_branches(cudaStream_t stream) {
  cudaStream_t side = make_stream();
  CHECK_OK(cudaStreamBeginCapture(stream, GLOBAL));
  CHECK_OK(call_letter(stream, 'a'));
  fork_to(stream, side);
  CHECK_OK(call_letter(stream, 'b'));
  CHECK_OK(call_letter(side, 'd'));
  CHECK_OK(call_letter(stream, 'c'));
  fork_to(side, stream);
  CHECK_OK(call_letter(stream, 'e'));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(side));
  return exec;
}

/* Every order that the dependencies allow occurs, and no other; the same seed gives the same one. */
static void test_branches_take_every_legal_order(void) {
  static const char *const legal[] = {"abcde", "abdce", "adbce"};
  cudaStream_t stream = make_stream();
  cudaGraphExec_t exec = make_branches(stream);
  bool seen[3] = {false};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    char first[sizeof called];
    for (int run = 0; run < 2; run++) {
      restart(seed);
      CHECK_OK(cudaGraphLaunch(exec, stream));
      CHECK(tp_emulated_stream_queued(0, (uintptr_t)stream) == 7 && !called[0]);
      CHECK_OK(cudaStreamSynchronize(stream));
      if (run == 0) memcpy(first, called, sizeof first);
    }
    CHECK(!strcmp(first, called));
    int which = 0;
    while (which < 3 && strcmp(called, legal[which])) which++;
    CHECK(which < 3);
    seen[which] = true;
  }
  CHECK(seen[0] && seen[1] && seen[2]);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A launch is no unit to other streams: their work runs before, in the middle of, and after it. */
static void test_other_streams_run_in_between(void) {
  cudaStream_t stream = make_stream(), other = make_stream();
  cudaGraphExec_t exec = make_branches(stream);
  bool before = false, between = false, after = false;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    restart(seed);
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(call_letter(other, 'x'));
    CHECK_OK(cudaStreamSynchronize(stream));
    CHECK_OK(cudaDeviceSynchronize());
    CHECK(strlen(called) == 6);
    before |= called[0] == 'x';
    after |= called[5] == 'x';
    between |= called[0] != 'x' && called[5] != 'x';
  }
  CHECK(before && between && after);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaStreamDestroy(other));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Launches of one executable graph in several streams are one after another; those of two are not. */
static void test_launches_of_one_executable_graph_do_not_overlap(void) {
  cudaStream_t stream = make_stream(), other = make_stream();
  cudaGraphExec_t exec = make_branches(stream), second = make_branches(stream);
  bool overlap = false;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    restart(seed);
    tp_emulated_hold(0, (uintptr_t)stream);
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(cudaGraphLaunch(exec, other));
    CHECK_OK(cudaStreamSynchronize(other));
    CHECK(strlen(called) == 10 && called[4] == 'e' && called[5] == 'a');
    restart(seed);
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(cudaGraphLaunch(second, other));
    CHECK_OK(cudaDeviceSynchronize());
    overlap |= called[5] != 'a';
  }
  CHECK(overlap);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphExecDestroy(second));
  CHECK_OK(cudaStreamDestroy(other));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* 1 microsecond for each piece of work, whatever the seed. */
static void test_a_launch_takes_virtual_time(void) {
  cudaStream_t stream = make_stream();
  cudaGraphExec_t exec = make_branches(stream);
  cudaEvent_t first, last;
  CHECK_OK(cudaEventCreateWithFlags(&first, cudaEventDefault));
  CHECK_OK(cudaEventCreateWithFlags(&last, cudaEventDefault));
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    float ms = 0;
    restart(seed);
    CHECK_OK(cudaEventRecord(first, stream));
    CHECK_OK(cudaGraphLaunch(exec, stream));
    CHECK_OK(cudaEventRecord(last, stream));
    CHECK_OK(cudaEventSynchronize(last));
    CHECK_OK(cudaEventElapsedTime(&ms, first, last));
    CHECK(ms > 0.00499f && ms < 0.00501f);
  }
  CHECK_OK(cudaEventDestroy(first));
  CHECK_OK(cudaEventDestroy(last));
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* More nodes than a stream holds: the launch is whole all the same. */
static void test_a_launch_may_be_longer_than_a_queue(void) {
  cudaStream_t stream = begin(GLOBAL);
  CHECK_OK(kernel("store", (graph_arguments_t){numbers, 0, 0, 0}, stream));
  for (int i = 0; i < 1500; i++) CHECK_OK(kernel("store", (graph_arguments_t){numbers, i % 8, i, 0}, stream));
  cudaGraph_t graph = end(stream);
  CHECK(nodes_of(graph) == 1501 && edges_of(graph) == 1500);
  cudaGraphExec_t exec = executable(graph);
  for (int run = 0; run < 3; run++) CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK(number(1499 % 8) == 1499);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Arguments are those of the call, whatever becomes of the caller's variables. */
static void test_kernel_nodes(void) {
  cudaStream_t stream = begin(GLOBAL);
  CHECK_OK(kernel("store", (graph_arguments_t){numbers, 1, 5, 0}, stream));
  cudaGraph_t graph = end(stream);
  cudaGraphNode_t node, added;
  size_t count = 1;
  CHECK_OK(cudaGraphGetNodes(graph, &node, &count));
  struct cudaKernelNodeParams params, got;
  CHECK_OK(cudaGraphKernelNodeGetParams(node, &params));
  const graph_arguments_t *arguments = params.kernelParams[0];
  CHECK(params.gridDim.x == 1 && params.blockDim.x == 1 && arguments->place == 1 && arguments->value == 5);
  graph_arguments_t changed = *arguments;
  changed.place = 2;
  void *pointers[] = {&changed};
  params.kernelParams = pointers;
  CHECK_OK(cudaGraphAddKernelNode(&added, graph, &node, 1, &params));
  cudaGraphExec_t exec = executable(graph);
  clear_numbers();
  launch(exec, stream);
  CHECK(number(1) == 5 && number(2) == 5);

  changed.value = 9; /* of the executable graph only */
  CHECK_OK(cudaGraphExecKernelNodeSetParams(exec, added, &params));
  changed.value = 0;
  launch(exec, stream);
  CHECK(number(1) == 5 && number(2) == 9);
  CHECK_OK(cudaGraphKernelNodeGetParams(added, &got));
  CHECK(((const graph_arguments_t *)got.kernelParams[0])->value == 5);
  params.gridDim.x = 0;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, added, &params) == cudaErrorInvalidConfiguration);
  CHECK(cudaGraphAddKernelNode(&added, graph, NULL, 0, &params) == cudaErrorInvalidConfiguration);
  CHECK(cudaGraphAddKernelNode(&added, graph, NULL, 0, NULL) == cudaErrorInvalidValue);
  CHECK(cudaGraphExecKernelNodeSetParams(exec, (cudaGraphNode_t)graph, &params) == cudaErrorInvalidValue);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A node by the general call, and in a child. */
static void test_kernel_nodes_in_children(void) {
  cudaGraph_t child, parent;
  cudaGraphNode_t node, outer;
  cudaKernel_t function;
  cudaStream_t stream = make_stream();
  graph_arguments_t arguments = {numbers, 3, 7, 0};
  void *pointers[] = {&arguments};
  struct cudaGraphNodeParams params;
  memset(&params, 0, sizeof params);
  CHECK_OK(cudaLibraryGetKernel(&function, kernels, "store"));
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = (void *)function;
  params.kernel.gridDim = params.kernel.blockDim = (dim3){1, 1, 1};
  params.kernel.kernelParams = pointers;
  CHECK_OK(cudaGraphCreate(&child, 0));
  CHECK_OK(cudaGraphCreate(&parent, 0));
  CHECK_OK(cudaGraphAddNode(&node, child, NULL, NULL, 0, &params));
  memset(&params, 0, sizeof params);
  params.type = cudaGraphNodeTypeGraph;
  params.graph.graph = child;
  CHECK_OK(cudaGraphAddNode(&outer, parent, NULL, NULL, 0, &params));
  params.graph.graph = parent;
  CHECK(cudaGraphAddNode(&outer, parent, NULL, NULL, 0, &params) == cudaErrorInvalidValue);
  params.type = cudaGraphNodeTypeMemAlloc;
  CHECK(cudaGraphAddNode(&outer, parent, NULL, NULL, 0, &params) == cudaErrorNotSupported);
  cudaGraphExec_t exec = executable(parent);
  clear_numbers();
  launch(exec, stream);
  CHECK(number(3) == 7);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(parent));
  CHECK_OK(cudaGraphDestroy(child));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A graph that is being captured is neither run nor destroyed. */
static void test_a_graph_in_a_capture_is_left_alone(void) {
  cudaStream_t stream = begin(GLOBAL);
  enum cudaStreamCaptureStatus status;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  CHECK_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL));
  CHECK(cudaGraphDestroy(graph) == cudaErrorInvalidValue);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorInvalidValue);
  end_in_order(stream, 0, 0);
  CHECK(cudaGraphDestroy(graph) == cudaErrorInvalidValue); /* a handle of what is gone */
}

/* Memory that is gone when a graph runs ends the device as a kernel's fault does. */
static void test_freed_memory(void) {
  cudaStream_t stream = begin(GLOBAL);
  void *gone = NULL;
  set_mode(RELAXED);
  CHECK_OK(cudaMalloc(&gone, BYTES));
  set_mode(GLOBAL);
  CHECK_OK(cudaMemcpyAsync(gone, memory[0], BYTES, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  CHECK_OK(cudaFree(gone));
  CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(strstr(tp_emulated_fault_text(), "copy: 256 bytes at "));
  CHECK(cudaGraphLaunch(exec, stream) == cudaErrorIllegalAddress);
  tp_emulated_reset();
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Nodes run on the device on which they were captured. */
static void test_two_devices(void) {
  int *other = NULL, value = 0;
  cudaStream_t stream = begin(GLOBAL);
  cudaEvent_t event = make_event(), back = NULL;
  set_mode(RELAXED);
  CHECK_OK(cudaSetDevice(1));
  CHECK_OK(cudaMalloc((void **)&other, BYTES));
  cudaStream_t side = make_stream();
  CHECK_OK(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
  set_mode(GLOBAL);
  CHECK_OK(cudaEventRecord(event, stream));
  CHECK_OK(cudaStreamWaitEvent(side, event, 0));
  CHECK_OK(kernel("store", (graph_arguments_t){other, 0, 4, 0}, side)); /* device 0 has no access to it */
  CHECK_OK(cudaEventRecord(back, side));
  CHECK_OK(cudaSetDevice(0));
  CHECK_OK(cudaStreamWaitEvent(stream, back, 0));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  launch(exec, stream);
  CHECK_OK(cudaMemcpy(&value, other, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == 4);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaFree(other));
  CHECK_OK(cudaEventDestroy(event));
  CHECK_OK(cudaEventDestroy(back));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* An event node whose event is gone does nothing. */
static void test_a_destroyed_external_event(void) {
  cudaStream_t stream = begin(GLOBAL);
  cudaEvent_t event = make_event();
  CHECK_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  CHECK_OK(cudaEventDestroy(event));
  launch(exec, stream);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

static void test_each_call_can_be_made_to_fail(void) {
  int32_t code = tp_emulated_error_code("cudaErrorMemoryAllocation");
  cudaStream_t stream = make_stream();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK_OK(cudaGraphCreate(&graph, 0));
  CHECK(tp_emulated_fail("cudaGraphInstantiate", 1, code) == 0);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorMemoryAllocation);
  exec = executable(graph);
  CHECK(tp_emulated_fail("cudaGraphLaunch", 2, code) == 0);
  CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphLaunch(exec, stream) == cudaErrorMemoryAllocation);
  cudaGraphNode_t node = NULL;
  CHECK(tp_emulated_fail("cudaGraphAddEmptyNode", 1, code) == 0);
  CHECK(cudaGraphAddEmptyNode(&node, graph, NULL, 0) == cudaErrorMemoryAllocation && !node);
  CHECK(tp_emulated_call_count("cudaGraphLaunch", 0) >= 2);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* A programmatic edge orders as a plain one, is kept by clones, and is lost by nobody who does not ask for its data. */
static void test_programmatic_edges(void) {
  const cudaGraphEdgeData early = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                   .type = cudaGraphDependencyTypeProgrammatic};
  cudaGraphNode_t nodes[3], from[2], to[2];
  cudaGraphEdgeData data[2];
  size_t count = 3, one;
  cudaStream_t stream = make_stream();
  CHECK_OK(cudaStreamBeginCapture(stream, GLOBAL));
  for (int i = 0; i < 3; i++) CHECK_OK(kernel("append", (graph_arguments_t){.numbers = numbers, .value = i}, stream));
  cudaGraph_t graph = end(stream), clone;
  CHECK_OK(cudaGraphGetNodes(graph, nodes, &count));
  CHECK_OK(cudaGraphRemoveDependencies(graph, &nodes[1], &nodes[2], NULL, 1));
  CHECK_OK(cudaGraphAddDependencies(graph, &nodes[1], &nodes[2], &early, 1));
  CHECK(cudaGraphRemoveDependencies(graph, &nodes[1], &nodes[2], NULL, 1) == cudaErrorInvalidValue);
  CHECK_OK(cudaGraphClone(&clone, graph));
  for (int i = 0; i < 2; i++) {
    cudaGraph_t either = i ? clone : graph;
    count = 2;
    CHECK_OK(cudaGraphGetEdges(either, NULL, NULL, NULL, &count));
    CHECK(count == 2 && cudaGraphGetEdges(either, from, to, NULL, &count) == cudaErrorLossyQuery);
    CHECK_OK(cudaGraphGetEdges(either, from, to, data, &count));
    CHECK(count == 2 && !data[0].type && !memcmp(&data[1], &early, sizeof early));
  }
  one = 1;
  CHECK_OK(cudaGraphNodeGetDependencies(nodes[1], from, NULL, &one));
  CHECK(cudaGraphNodeGetDependencies(nodes[2], from, NULL, &one) == cudaErrorLossyQuery);
  CHECK(cudaGraphNodeGetDependentNodes(nodes[1], to, NULL, &one) == cudaErrorLossyQuery);
  CHECK_OK(cudaGraphNodeGetDependentNodes(nodes[1], to, data, &one));
  CHECK(to[0] == nodes[2] && !memcmp(data, &early, sizeof early));
  (void)cudaGetLastError();
  cudaGraphExec_t exec = executable(clone);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    restart(seed);
    clear_numbers();
    launch(exec, stream);
    for (int i = 0; i < 3; i++) CHECK(number(i + 1) == i);
  }
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(clone));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

int main(void) {
  make_memory();
  load_kernels();
  test_the_rules();
  test_branches_take_every_legal_order();
  test_other_streams_run_in_between();
  test_launches_of_one_executable_graph_do_not_overlap();
  test_a_launch_takes_virtual_time();
  test_a_launch_may_be_longer_than_a_queue();
  test_kernel_nodes();
  test_kernel_nodes_in_children();
  test_a_graph_in_a_capture_is_left_alone();
  test_freed_memory();
  test_two_devices();
  test_programmatic_edges();
  test_a_destroyed_external_event();
  test_each_call_can_be_made_to_fail();
  CHECK(differences == 0);
  return 0;
}
