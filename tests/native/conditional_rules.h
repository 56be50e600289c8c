/* CUDA's rules of conditional nodes, as far as they show without a kernel that sets a condition. */
#ifndef TP_CONDITIONAL_RULES_H
#define TP_CONDITIONAL_RULES_H

#include "graph_rules.h"

static inline struct cudaGraphNodeParams conditional(cudaGraphConditionalHandle handle,
                                              enum cudaGraphConditionalNodeType type, unsigned int size) {
  struct cudaGraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  return params;
}

/* Adds a conditional node to the capture of a stream, as its new tail; its bodies are written to `bodies`. */
static inline void capture_conditional(cudaStream_t stream, enum cudaGraphConditionalNodeType type, unsigned int size,
                                unsigned int initial, cudaGraphConditionalHandle *handle, cudaGraph_t *bodies) {
  enum cudaStreamCaptureStatus status;
  cudaGraph_t graph = NULL;
  const cudaGraphNode_t *tail = NULL;
  cudaGraphNode_t node = NULL;
  size_t count = 0;
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &tail, NULL, &count));
  EXPECT_OK(cudaGraphConditionalHandleCreate(handle, graph, initial, cudaGraphCondAssignDefault));
  struct cudaGraphNodeParams params = conditional(*handle, type, size);
  EXPECT_OK(cudaGraphAddNode(&node, graph, tail, NULL, count, &params));
  EXPECT_OK(cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1, cudaStreamSetCaptureDependencies));
  for (unsigned int i = 0; i < size; i++) bodies[i] = params.conditional.phGraph_out[i];
}

static inline void begin_body(cudaStream_t stream, cudaGraph_t body) {
  EXPECT_OK(cudaStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, RELAXED));
}

static inline void end_body(cudaStream_t stream, cudaGraph_t body) { EXPECT_EQUAL(1, end(stream) == body); }

/* Runs a graph with one conditional node whose bodies write 10 + their number to memory 0, which held 1. */
static int run_conditional(enum cudaGraphConditionalNodeType type, unsigned int size, unsigned int value) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t bodies[4];
  cudaStream_t stream = begin(RELAXED), side = make_stream();
  EXPECT_OK(fill(stream, 0, 1));
  capture_conditional(stream, type, size, value, &handle, bodies);
  for (unsigned int i = 0; i < size; i++) {
    begin_body(side, bodies[i]);
    EXPECT_OK(fill(side, 0, 10 + (int)i));
    end_body(side, bodies[i]);
  }
  EXPECT_OK(cudaMemcpyAsync(memory[1], memory[0], BYTES, cudaMemcpyDeviceToDevice, stream)); /* after the body */
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  launch(exec, stream);
  launch(exec, stream); /* the condition begins anew */
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
  return read_memory(1);
}

static void rule_an_if_runs_its_body_where_the_value_is_not_zero(void) {
  EXPECT_EQUAL(1, run_conditional(cudaGraphCondTypeIf, 1, 0));
  EXPECT_EQUAL(10, run_conditional(cudaGraphCondTypeIf, 1, 1));
  EXPECT_EQUAL(10, run_conditional(cudaGraphCondTypeIf, 1, 7));
}

static void rule_a_while_with_zero_runs_nothing(void) {
  EXPECT_EQUAL(1, run_conditional(cudaGraphCondTypeWhile, 1, 0));
}

#if TP_CUDA_SECOND_BODIES
static void rule_an_if_may_have_a_second_body(void) {
  EXPECT_EQUAL(11, run_conditional(cudaGraphCondTypeIf, 2, 0));
  EXPECT_EQUAL(10, run_conditional(cudaGraphCondTypeIf, 2, 1));
}

static void rule_a_switch_runs_the_body_of_its_value(void) {
  EXPECT_EQUAL(10, run_conditional(cudaGraphCondTypeSwitch, 3, 0));
  EXPECT_EQUAL(12, run_conditional(cudaGraphCondTypeSwitch, 3, 2));
  EXPECT_EQUAL(1, run_conditional(cudaGraphCondTypeSwitch, 3, 3));
}
#endif

static void rule_conditional_nodes_may_be_nested(void) {
  cudaGraphConditionalHandle outer, inner;
  cudaGraph_t body, nested;
  cudaStream_t stream = begin(RELAXED), side = make_stream(), far = make_stream();
  capture_conditional(stream, cudaGraphCondTypeIf, 1, 1, &outer, &body);
  begin_body(side, body);
  EXPECT_OK(fill(side, 0, 2));
  capture_conditional(side, cudaGraphCondTypeIf, 1, 1, &inner, &nested);
  begin_body(far, nested);
  EXPECT_OK(fill(far, 1, 3));
  end_body(far, nested);
  end_body(side, body);
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  write_memory(0, 1);
  write_memory(1, 1);
  launch(exec, stream);
  EXPECT_EQUAL(2, read_memory(0));
  EXPECT_EQUAL(3, read_memory(1));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(far));
}

static void rule_a_while_has_one_body(void) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
  struct cudaGraphNodeParams params = conditional(handle, cudaGraphCondTypeWhile, 2);
  EXPECT(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  EXPECT_OK(cudaGraphDestroy(graph));
}

static void rule_a_condition_without_a_node_is_not_instantiated(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphConditionalHandle handle;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
  EXPECT(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
}

/* Instantiates an IF whose body is what `capture` adds. */
static cudaError_t instantiate_body(void (*capture)(cudaStream_t)) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body;
  cudaGraphExec_t exec;
  cudaStream_t stream = begin(RELAXED), side = make_stream();
  capture_conditional(stream, cudaGraphCondTypeIf, 1, 1, &handle, &body);
  begin_body(side, body);
  capture(side);
  end_body(side, body);
  cudaGraph_t graph = end(stream);
  cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
  if (!error) EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
  return error;
}

static void capture_host(cudaStream_t stream) { EXPECT_OK(call_letter(stream, 'x')); }

static void capture_pinned_copy(cudaStream_t stream) {
  EXPECT_OK(cudaMemcpyAsync(pinned, memory[0], BYTES, cudaMemcpyDeviceToHost, stream));
}

static void capture_pageable_copy(cudaStream_t stream) {
  static unsigned char pageable[BYTES];
  EXPECT_OK(cudaMemcpyAsync(pageable, memory[0], BYTES, cudaMemcpyDeviceToHost, stream));
}

static void capture_external_record(cudaStream_t stream) {
  static cudaEvent_t event;
  if (!event) event = make_event();
  EXPECT_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
}

static void rule_a_body_has_only_work_of_the_device(void) {
  EXPECT_OK(instantiate_body(capture_pinned_copy));
  EXPECT(cudaErrorInvalidValue, instantiate_body(capture_host));
  EXPECT(cudaErrorInvalidValue, instantiate_body(capture_pageable_copy));
  EXPECT(cudaErrorInvalidValue, instantiate_body(capture_external_record));
}

/* A graph whose one node is an IF with an empty body. */
static cudaGraph_t make_if(void) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
  struct cudaGraphNodeParams params = conditional(handle, cudaGraphCondTypeIf, 1);
  EXPECT_OK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  return graph;
}

static void rule_a_graph_with_conditions_has_one_executable_graph(void) {
  cudaGraph_t graph = make_if();
  cudaGraphExec_t exec = executable(graph), second;
  EXPECT(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  exec = executable(graph);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

static void rule_a_graph_with_conditions_is_no_child(void) {
  cudaGraph_t graph = make_if(), parent;
  cudaGraphNode_t node;
  EXPECT_OK(cudaGraphCreate(&parent, 0));
  EXPECT(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
  EXPECT_OK(cudaGraphDestroy(parent));
  EXPECT_OK(cudaGraphDestroy(graph));
}

static void rule_a_graph_with_conditions_is_not_cloned(void) {
  cudaGraph_t graph = make_if(), copy;
  EXPECT(cudaErrorNotSupported, cudaGraphClone(&copy, graph));
  EXPECT_OK(cudaGraphDestroy(graph));
}

/* What a body holds may come from a capture of its own, which can fail without harm. */
static void rule_a_body_may_hold_a_child(void) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body;
  cudaGraphNode_t node;
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  EXPECT_OK(fill(stream, 0, 1));
  capture_conditional(stream, cudaGraphCondTypeIf, 1, 1, &handle, &body);
  EXPECT_OK(cudaStreamBeginCapture(side, RELAXED));
  EXPECT_OK(fill(side, 0, 2));
  cudaGraph_t child = end(side);
  EXPECT_OK(cudaGraphAddChildGraphNode(&node, body, NULL, 0, child));
  EXPECT_OK(cudaGraphDestroy(child));
  EXPECT_OK(cudaMemcpyAsync(memory[1], memory[0], BYTES, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph = end(stream);
  cudaGraphExec_t exec = executable(graph);
  launch(exec, stream);
  EXPECT_EQUAL(2, read_memory(1));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static inline bool names_body(enum cudaGraphConditionalNodeType type, const char *letters) {
  cudaGraphConditionalHandle handle;
  cudaGraph_t body;
  cudaStream_t stream = begin(RELAXED);
  capture_conditional(stream, type, 1, 0, &handle, &body);
  cudaGraph_t graph = end(stream);
  bool is_named = names_second(printed(graph, 0), letters);
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
  return is_named;
}

static void rule_a_body_is_printed_beside_its_graph(void) {
  EXPECT_EQUAL(1, names_body(cudaGraphCondTypeWhile, "{Conditional Type| WHILE}\n| {True|"));
  EXPECT_EQUAL(1, names_body(cudaGraphCondTypeIf, "{Conditional Type| IF}\n| {True|"));
}

static const rule_t conditional_rules[] = {
    RULE(an_if_runs_its_body_where_the_value_is_not_zero),
    RULE(a_while_with_zero_runs_nothing),
#if TP_CUDA_SECOND_BODIES
    RULE(an_if_may_have_a_second_body),
    RULE(a_switch_runs_the_body_of_its_value),
#endif
    RULE(conditional_nodes_may_be_nested),
    RULE(a_while_has_one_body),
    RULE(a_condition_without_a_node_is_not_instantiated),
    RULE(a_body_has_only_work_of_the_device),
    RULE(a_graph_with_conditions_has_one_executable_graph),
    RULE(a_graph_with_conditions_is_no_child),
    RULE(a_graph_with_conditions_is_not_cloned),
    RULE(a_body_may_hold_a_child),
    RULE(a_body_is_printed_beside_its_graph),
};

#endif
