/* CUDA's rules of graphs: what is in them, and what their launches do. */
#ifndef TP_GRAPH_RULES_H
#define TP_GRAPH_RULES_H

#include "cuda_rules.h"

/* ---- short forms ---- */

static inline cudaGraph_t end(cudaStream_t stream) {
  cudaGraph_t graph = NULL;
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

static inline cudaGraphExec_t executable(cudaGraph_t graph) {
  cudaGraphExec_t exec = NULL;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

static inline void launch(cudaGraphExec_t exec, cudaStream_t stream) {
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
}

/* The first byte of a piece of device memory. */
static inline int read_memory(int i) {
  unsigned char byte = 0;
  EXPECT_OK(cudaMemcpy(&byte, memory[i], 1, cudaMemcpyDeviceToHost));
  return byte;
}

static inline void write_memory(int i, int value) {
  EXPECT_OK(cudaMemsetAsync(memory[i], value, BYTES, NULL));
  EXPECT_OK(cudaDeviceSynchronize());
}

static inline cudaError_t fill(cudaStream_t stream, int i, int value) {
  return cudaMemsetAsync(memory[i], value, BYTES, stream);
}

/* ---- launches ---- */

static void rule_a_launch_runs_what_was_captured(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, 5));
  EXPECT_OK(cudaMemcpyAsync(memory[1], memory[0], BYTES, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  EXPECT_OK(cudaGraphDestroy(graph)); /* the executable graph needs it no more */
  EXPECT_OK(cudaGraphUpload(exec, stream));
  for (int run = 0; run < 3; run++) {
    write_memory(1, 1);
    launch(exec, stream);
    EXPECT_EQUAL(5, read_memory(1));
  }
  launch(exec, NULL);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_launches_need_a_graph_and_a_flag_that_is_known(void) {
  cudaStream_t stream = make_stream();
  cudaGraph_t graph;
  cudaGraphExec_t exec = NULL;
  EXPECT(cudaErrorInvalidValue, cudaGraphLaunch(NULL, stream));
  EXPECT(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, NULL, 0));
  EXPECT(cudaErrorInvalidValue, cudaGraphDestroy(NULL));
  EXPECT(cudaErrorInvalidValue, cudaGraphExecDestroy(NULL));
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 1 << 20));
  EXPECT_OK(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
  launch(exec, stream); /* of nothing */
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_an_executable_graph_does_not_change_with_the_graph(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, 5));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  EXPECT_OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, GLOBAL));
  EXPECT_OK(fill(stream, 1, 6));
  EXPECT_EQUAL(1, end(stream) == graph);
  write_memory(1, 1);
  launch(exec, stream);
  EXPECT_EQUAL(1, read_memory(1));
  cudaGraphExec_t both = executable(graph);
  launch(both, stream);
  EXPECT_EQUAL(6, read_memory(1));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphExecDestroy(both));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* Host memory is read and written when the graph runs, pageable memory too. */
static void rule_copies_touch_host_memory_at_each_launch(void) {
  unsigned char from[BYTES], to[BYTES] = {0};
  cudaStream_t stream = begin(GLOBAL);
  memset(from, 1, BYTES);
  memset(pinned, 1, BYTES);
  EXPECT_OK(cudaMemcpyAsync(memory[0], from, BYTES, cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(to, memory[0], BYTES, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaMemcpyAsync(memory[1], pinned, BYTES, cudaMemcpyHostToDevice, stream));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  for (int value = 2; value < 4; value++) {
    memset(from, value, BYTES);
    memset(pinned, value, BYTES);
    launch(exec, stream);
    EXPECT_EQUAL(value, to[0]);
    EXPECT_EQUAL(value, read_memory(1));
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static char called[16];

static inline void note_letter(void *letter) {
  size_t length = strlen(called);
  called[length] = (char)(uintptr_t)letter;
  called[length + 1] = 0;
}

static inline cudaError_t call_letter(cudaStream_t stream, char letter) {
  return cudaLaunchHostFunc(stream, note_letter, (void *)(uintptr_t)letter);
}

static void rule_host_functions_run_in_order(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  EXPECT_OK(call_letter(stream, 'a'));
  fork_to(stream, side);
  EXPECT_OK(call_letter(side, 'b'));
  fork_to(side, stream);
  EXPECT_OK(call_letter(stream, 'c'));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  called[0] = 0;
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaGraphLaunch(exec, side)); /* after the first */
  EXPECT_OK(cudaStreamSynchronize(side));
  EXPECT_EQUAL(0, strcmp(called, "abcabc"));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_an_executable_graph_may_go_while_it_runs(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, 9));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQUAL(9, read_memory(0));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* ---- events ---- */

static void rule_external_events_are_nodes(void) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  EXPECT(cudaErrorInvalidValue, cudaEventRecordWithFlags(event, stream, 4));
  EXPECT_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, GLOBAL));
  EXPECT_OK(fill(stream, 0, 1));
  EXPECT_OK(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  EXPECT_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  cudaGraph_t graph = end(stream);
  EXPECT_EQUAL(3, (long long)nodes_of(graph));
  EXPECT_OK(cudaEventQuery(event)); /* it is not captured */
  static const enum cudaGraphNodeType types[] = {cudaGraphNodeTypeMemset, cudaGraphNodeTypeWaitEvent,
                                                 cudaGraphNodeTypeEventRecord};
  cudaGraphNode_t nodes[3] = {0};
  size_t count = 3;
  EXPECT_OK(cudaGraphGetNodes(graph, nodes, &count));
  for (int i = 0; i < 3; i++) {
    enum cudaGraphNodeType type;
    EXPECT_OK(cudaGraphNodeGetType(nodes[i], &type));
    EXPECT_EQUAL(types[i], type);
  }
  cudaGraphExec_t exec = executable(graph);
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_external_flags_are_for_captures(void) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = make_stream();
  EXPECT(cudaErrorIllegalState, cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT(cudaErrorIllegalState, cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* ---- nodes by hand, children ---- */

static void rule_nodes_are_added_behind_nodes_of_their_graph(void) {
  cudaGraph_t graph, other;
  cudaGraphNode_t first, second, third, stranger;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphCreate(&other, 0));
  EXPECT_OK(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
  EXPECT_OK(cudaGraphAddEmptyNode(&second, graph, &first, 1));
  struct cudaGraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = cudaGraphNodeTypeEmpty;
  EXPECT_OK(cudaGraphAddNode(&third, graph, &second, NULL, 1, &params));
  EXPECT(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&second, graph, NULL, 1));
  EXPECT_OK(cudaGraphAddEmptyNode(&stranger, other, NULL, 0));
  EXPECT(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&second, graph, &stranger, 1));
  cudaGraphNode_t from[2] = {0}, to[2] = {0};
  size_t count = 2;
  EXPECT_OK(cudaGraphGetEdges(graph, from, to, NULL, &count));
  EXPECT_EQUAL(2, (long long)count);
  EXPECT_EQUAL(1, from[0] == first && to[0] == second && from[1] == second && to[1] == third);
  enum cudaGraphNodeType type;
  EXPECT_OK(cudaGraphNodeGetType(third, &type));
  EXPECT_EQUAL(cudaGraphNodeTypeEmpty, type);
  struct cudaKernelNodeParams kernel;
  EXPECT(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(third, &kernel));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphDestroy(other));
}

static void rule_a_child_runs_with_its_parent(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, 7));
  cudaGraph_t child = end(stream), parent;
  cudaGraphNode_t node;
  EXPECT_OK(cudaGraphCreate(&parent, 0));
  EXPECT_OK(cudaGraphAddChildGraphNode(&node, parent, NULL, 0, child));
  EXPECT_OK(cudaGraphDestroy(child));
  cudaGraphExec_t exec = executable(parent);
  write_memory(0, 1);
  launch(exec, stream);
  EXPECT_EQUAL(7, read_memory(0));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(parent));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static cudaGraph_t capture_fill_of(int value) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, value));
  cudaGraph_t graph = end(stream);
  EXPECT_OK(cudaStreamDestroy(stream));
  return graph;
}

static void rule_a_clone_is_a_graph_of_its_own(void) {
  cudaGraph_t graph = capture_fill_of(7), clone;
  cudaGraphNode_t node, found, extra;
  size_t count = 1;
  EXPECT_OK(cudaGraphGetNodes(graph, &node, &count));
  EXPECT_OK(cudaGraphClone(&clone, graph));
  EXPECT_OK(cudaGraphNodeFindInClone(&found, node, clone));
  EXPECT_EQUAL(0, found == node);
  EXPECT_OK(cudaGraphAddEmptyNode(&extra, clone, NULL, 0));
  EXPECT_OK(cudaGraphAddDependencies(clone, &extra, &found, NULL, 1));
  EXPECT(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, extra, clone));
  EXPECT(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, node, graph));
  EXPECT_EQUAL(1, nodes_of(graph));
  EXPECT_EQUAL(2, nodes_of(clone));
  EXPECT_OK(cudaGraphDestroy(graph));
  cudaStream_t stream = make_stream();
  cudaGraphExec_t exec = executable(clone);
  write_memory(0, 1);
  launch(exec, stream);
  EXPECT_EQUAL(7, read_memory(0));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(clone));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT(cudaErrorInvalidValue, cudaGraphClone(&clone, NULL));
}

static void rule_a_launch_is_not_captured(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, 7));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  EXPECT_OK(cudaStreamBeginCapture(stream, GLOBAL));
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaGraphLaunch(exec, stream));
  end_spoiled(stream);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

/* ---- changing, and pictures ---- */

/* One fill of a value, or two. */
static cudaGraph_t capture_fill(cudaStream_t stream, int value, bool twice) {
  EXPECT_OK(cudaStreamBeginCapture(stream, GLOBAL));
  EXPECT_OK(fill(stream, 0, value));
  if (twice) EXPECT_OK(fill(stream, 1, value));
  return end(stream);
}

static void rule_an_update_takes_a_graph_of_the_same_form(void) {
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = capture_fill(stream, 1, false), same = capture_fill(stream, 2, false);
  cudaGraph_t longer = capture_fill(stream, 3, true);
  cudaGraphExec_t exec = executable(graph);
  cudaGraphExecUpdateResultInfo info;
  EXPECT_OK(cudaGraphExecUpdate(exec, same, &info));
  EXPECT_EQUAL(cudaGraphExecUpdateSuccess, info.result);
  launch(exec, stream);
  EXPECT_EQUAL(2, read_memory(0));
  EXPECT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, longer, &info));
  EXPECT_EQUAL(cudaGraphExecUpdateErrorTopologyChanged, info.result);
  launch(exec, stream);
  EXPECT_EQUAL(2, read_memory(0));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphDestroy(same));
  EXPECT_OK(cudaGraphDestroy(longer));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* A graph in the language DOT, until the next call. */
static inline const char *printed(cudaGraph_t graph, unsigned int flags) {
  static char text[4096];
  char path[] = "/tmp/tensorplay-rules-XXXXXX";
  int file = mkstemp(path);
  EXPECT_EQUAL(1, file >= 0);
  EXPECT_OK(cudaGraphDebugDotPrint(graph, path, flags));
  ssize_t length = read(file, text, sizeof text - 1);
  text[length > 0 ? length : 0] = 0;
  close(file);
  unlink(path);
  return text;
}

/* Whether a second graph is printed beside the first, and named in it behind these letters. */
static inline bool names_second(const char *text, const char *letters) {
  const char *begin = "\n}\nsubgraph cluster_", *second = strstr(text, begin);
  char named[64];
  snprintf(named, sizeof named, "%sgraph_%d", letters, second ? atoi(second + strlen(begin)) : 0);
  const char *place = strstr(text, named);
  return second && place && place < second;
}

static void rule_a_graph_is_printed_with_its_child(void) {
  cudaStream_t stream = make_stream();
  cudaGraph_t child = capture_fill(stream, 1, true), graph;
  cudaGraphNode_t node;
  const char *text = printed(child, cudaGraphDebugDotFlagsVerbose);
  EXPECT_EQUAL(1, strstr(text, "digraph") != NULL && strstr(text, "->") != NULL);
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
  EXPECT_EQUAL(1, names_second(printed(graph, 0), "\"0\n"));
  EXPECT(cudaErrorOperatingSystem, cudaGraphDebugDotPrint(graph, "/nowhere/at/all", 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphDestroy(child));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static const rule_t graph_rules[] = {
    RULE(a_launch_runs_what_was_captured),
    RULE(launches_need_a_graph_and_a_flag_that_is_known),
    RULE(an_executable_graph_does_not_change_with_the_graph),
    RULE(copies_touch_host_memory_at_each_launch),
    RULE(host_functions_run_in_order),
    RULE(an_executable_graph_may_go_while_it_runs),
    RULE(external_events_are_nodes),
    RULE(external_flags_are_for_captures),
    RULE(nodes_are_added_behind_nodes_of_their_graph),
    RULE(a_child_runs_with_its_parent),
    RULE(a_clone_is_a_graph_of_its_own),
    RULE(a_launch_is_not_captured),
    RULE(an_update_takes_a_graph_of_the_same_form),
    RULE(a_graph_is_printed_with_its_child),
};

#endif
