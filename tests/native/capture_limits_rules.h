/* CUDA's rules of stream capture: what is forbidden meanwhile, and what calls become. */
#ifndef TP_CAPTURE_LIMITS_RULES_H
#define TP_CAPTURE_LIMITS_RULES_H

#include "cuda_rules.h"

/* ---- 900: what is forbidden ---- */

static void rule_a_captured_stream_is_not_waited_for(void) {
  cudaStream_t stream = begin(RELAXED);
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  end_spoiled(stream);
  stream = begin(RELAXED);
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
  end_spoiled(stream);
}

static void rule_a_spoiled_stream_is_not_waited_for(void) {
  cudaStream_t stream = begin(RELAXED);
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  EXPECT(cudaErrorStreamCaptureInvalidated, cudaMemcpyAsync(memory[0], memory[1], BYTES, cudaMemcpyDefault, stream));
  end_spoiled(stream);
}

static void rule_a_device_with_a_capture_is_not_waited_for(void) {
  cudaStream_t stream = begin(RELAXED);
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  end_spoiled(stream);
}

/* The calls that captures do not see. */
enum { MALLOC, FREE, HOST_ALLOC, FREE_HOST, EVENT_QUERY, EVENT_SYNCHRONIZE, STREAM_QUERY, STREAM_SYNCHRONIZE, UNSAFE };
static const char *const unsafe_names[] = {"cudaMalloc",   "cudaFree",       "cudaHostAlloc",
                                           "cudaFreeHost", "cudaEventQuery", "cudaEventSynchronize",
                                           "cudaStreamQuery", "cudaStreamSynchronize"};

typedef struct unsafe {
  void *device, *host;
  cudaEvent_t event; /* recorded, done */
  cudaStream_t idle;
} unsafe_t;

static unsafe_t make_unsafe(void) {
  unsafe_t self;
  EXPECT_OK(cudaMalloc(&self.device, BYTES));
  EXPECT_OK(cudaHostAlloc(&self.host, BYTES, cudaHostAllocDefault));
  self.event = make_event();
  self.idle = make_stream();
  EXPECT_OK(cudaEventRecord(self.event, self.idle));
  EXPECT_OK(cudaStreamSynchronize(self.idle));
  return self;
}

static void drop_unsafe(unsafe_t *self) {
  if (self->device) EXPECT_OK(cudaFree(self->device));
  if (self->host) EXPECT_OK(cudaFreeHost(self->host));
  EXPECT_OK(cudaEventDestroy(self->event));
  EXPECT_OK(cudaStreamDestroy(self->idle));
}

static cudaError_t call_unsafe(unsafe_t *self, int which) {
  cudaError_t error = cudaSuccess;
  void *fresh = NULL;
  switch (which) {
    case MALLOC:
      error = cudaMalloc(&fresh, BYTES);
      if (!error) (void)cudaFree(fresh);
      return error;
    case FREE:
      error = cudaFree(self->device);
      if (!error) self->device = NULL;
      return error;
    case HOST_ALLOC:
      error = cudaHostAlloc(&fresh, BYTES, cudaHostAllocDefault);
      if (!error) (void)cudaFreeHost(fresh);
      return error;
    case FREE_HOST:
      error = cudaFreeHost(self->host);
      if (!error) self->host = NULL;
      return error;
    case EVENT_QUERY: return cudaEventQuery(self->event);
    case EVENT_SYNCHRONIZE: return cudaEventSynchronize(self->event);
    case STREAM_QUERY: return cudaStreamQuery(self->idle);
    default: return cudaStreamSynchronize(self->idle);
  }
}

typedef struct attempt {
  unsafe_t unsafe;
  int which;
  enum cudaStreamCaptureMode mode; /* of the thread that calls */
  cudaError_t error;
} attempt_t;

static void *attempt_unsafe(void *argument) {
  attempt_t *self = argument;
  set_mode(self->mode);
  self->error = call_unsafe(&self->unsafe, self->which);
  (void)cudaGetLastError();
  set_mode(GLOBAL); /* that of every thread at first; the caller may go on */
  return NULL;
}

/* Calls each while a capture of one mode is under way, from a thread of the other mode. */
static void expect_unsafe(enum cudaStreamCaptureMode capture, enum cudaStreamCaptureMode caller, bool elsewhere,
                          bool forbidden) {
  for (int which = 0; which < UNSAFE; which++) {
    attempt_t attempt = {.unsafe = make_unsafe(), .which = which, .mode = caller};
    cudaStream_t stream = begin(capture);
    if (elsewhere)
      in_thread(attempt_unsafe, &attempt);
    else
      attempt_unsafe(&attempt);
    if ((attempt.error != cudaSuccess) != forbidden)
      fprintf(stderr, "%s, capture %d, caller %d, %s thread:\n", unsafe_names[which], (int)capture, (int)caller,
              elsewhere ? "another" : "its");
    EXPECT_EQUAL(forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess, attempt.error);
    if (status_of(stream) != cudaStreamCaptureStatusActive)
      end_spoiled(stream);
    else
      end_in_order(stream, 0, 0);
    drop_unsafe(&attempt.unsafe);
  }
}

static void rule_modes_forbid_unsafe_calls_of_their_thread(void) {
  expect_unsafe(GLOBAL, GLOBAL, false, true);
  expect_unsafe(GLOBAL, LOCAL, false, true);
  expect_unsafe(GLOBAL, RELAXED, false, false);
  expect_unsafe(LOCAL, GLOBAL, false, true);
  expect_unsafe(LOCAL, LOCAL, false, true);
  expect_unsafe(LOCAL, RELAXED, false, false);
  expect_unsafe(RELAXED, GLOBAL, false, false);
  expect_unsafe(RELAXED, LOCAL, false, false);
}

static void rule_modes_forbid_unsafe_calls_of_other_threads(void) {
  expect_unsafe(GLOBAL, GLOBAL, true, true);
  expect_unsafe(GLOBAL, LOCAL, true, false);
  expect_unsafe(GLOBAL, RELAXED, true, false);
  expect_unsafe(LOCAL, GLOBAL, true, false);
  expect_unsafe(RELAXED, GLOBAL, true, false);
}

static void rule_safe_calls_stay_allowed(void) {
  cudaStream_t stream = begin(GLOBAL), other = NULL;
  cudaEvent_t event = NULL;
  size_t free_nbytes, total_nbytes;
  struct cudaPointerAttributes attributes;
  int priority;
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(work(other, 1)); /* other streams run work */
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(other));
  EXPECT_OK(cudaMemGetInfo(&free_nbytes, &total_nbytes));
  EXPECT_OK(cudaPointerGetAttributes(&attributes, memory[0]));
  EXPECT_OK(cudaStreamGetPriority(stream, &priority));
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(stream));
  end_in_order(stream, 0, 0);
}

static void rule_modes_are_exchanged(void) {
  enum cudaStreamCaptureMode mode = RELAXED;
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQUAL(GLOBAL, mode);
  mode = LOCAL;
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQUAL(RELAXED, mode);
  mode = GLOBAL;
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQUAL(LOCAL, mode);
  mode = (enum cudaStreamCaptureMode)3; /* is not looked at */
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  set_mode(GLOBAL);
}

/* ---- 906: the legacy stream ---- */

static void rule_the_legacy_stream_is_out_of_use_beside_a_blocking_one(void) {
  for (int which = 0; which < 6; which++) {
    cudaStream_t stream = make_blocking_stream();
    cudaEvent_t event = make_event();
    EXPECT_OK(cudaStreamBeginCapture(stream, RELAXED));
    enum cudaStreamCaptureStatus status;
    EXPECT(cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing(NULL, &status));
    EXPECT(cudaErrorStreamCaptureImplicit, cudaStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL));
    EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(stream)); /* asking spoils nothing */
    cudaError_t error = which == 0   ? work(NULL, 0)
                        : which == 1 ? cudaStreamSynchronize(NULL)
                        : which == 2 ? cudaStreamQuery(NULL)
                        : which == 3 ? cudaEventRecord(event, NULL)
                        : which == 4 ? cudaMemcpy(pinned, memory[0], BYTES, cudaMemcpyDeviceToHost)
                                     : cudaMemcpyAsync(pinned, memory[0], BYTES, cudaMemcpyDefault, cudaStreamLegacy);
    if (error != cudaErrorStreamCaptureImplicit) fprintf(stderr, "use %d of the legacy stream:\n", which);
    EXPECT_EQUAL(cudaErrorStreamCaptureImplicit, error);
    (void)cudaGetLastError();
    end_spoiled(stream);
    EXPECT_OK(work(NULL, 0));
    EXPECT_OK(cudaEventDestroy(event));
  }
}

static void rule_the_legacy_stream_works_beside_a_non_blocking_one(void) {
  cudaStream_t stream = begin(RELAXED);
  enum cudaStreamCaptureStatus status;
  EXPECT_OK(work(NULL, 0));
  EXPECT_OK(cudaStreamIsCapturing(NULL, &status));
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status);
  EXPECT_OK(cudaStreamSynchronize(NULL));
  EXPECT_OK(cudaMemcpy(pinned, memory[0], BYTES, cudaMemcpyDeviceToHost));
  end_in_order(stream, 0, 0);
}

static void rule_the_legacy_stream_joins_no_capture(void) {
  cudaStream_t stream = begin(RELAXED);
  cudaEvent_t event = make_event();
  EXPECT_OK(work(stream, 0));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT(cudaErrorStreamCaptureImplicit, cudaStreamWaitEvent(NULL, event, 0));
  end_spoiled(stream);
  EXPECT_OK(cudaEventDestroy(event));
}

static void rule_a_copy_that_waits_is_allowed(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(cudaMemcpy(pinned, memory[0], BYTES, cudaMemcpyDeviceToHost));
  end_in_order(stream, 0, 0);
}

/* ---- what becomes of calls ---- */

static void nothing(void *argument) { (void)argument; }

static void rule_calls_become_nodes(void) {
  cudaStream_t stream = begin(GLOBAL);
  cudaGraph_t graph = NULL;
  unsigned char pageable[BYTES] = {0};
  EXPECT_OK(cudaMemsetAsync(memory[0], 1, BYTES, stream));
  EXPECT_OK(cudaMemcpyAsync(memory[1], memory[0], BYTES, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(pinned, memory[1], BYTES, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaMemcpyAsync(memory[1], pinned, BYTES, cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(memory[1], pageable, BYTES, cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(pageable, memory[1], BYTES, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaLaunchHostFunc(stream, nothing, NULL));
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  static const enum cudaGraphNodeType types[] = {cudaGraphNodeTypeMemset, cudaGraphNodeTypeMemcpy,
                                                 cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemcpy,
                                                 cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemcpy,
                                                 cudaGraphNodeTypeHost};
  cudaGraphNode_t nodes[7] = {0};
  size_t count = 7;
  EXPECT_OK(cudaGraphGetNodes(graph, nodes, &count));
  EXPECT_EQUAL(7, (long long)count);
  EXPECT_EQUAL(6, (long long)edges_of(graph));
  for (size_t i = 0; i < count; i++) {
    enum cudaGraphNodeType type;
    size_t dependencies = 0;
    EXPECT_OK(cudaGraphNodeGetType(nodes[i], &type));
    EXPECT_EQUAL((long long)types[i], type);
    EXPECT_OK(cudaGraphNodeGetDependencies(nodes[i], NULL, NULL, &dependencies));
    EXPECT_EQUAL(i > 0, (long long)dependencies);
  }
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_nothing_to_do_is_no_node(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(cudaMemcpyAsync(memory[0], memory[1], 0, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaMemsetAsync(memory[0], 0, 0, stream));
  end_in_order(stream, 0, 0);
}

static void rule_a_wrong_argument_spoils_nothing(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT(cudaErrorInvalidValue, cudaLaunchHostFunc(stream, NULL, NULL));
  EXPECT(cudaErrorInvalidMemcpyDirection,
         cudaMemcpyAsync(memory[0], memory[1], BYTES, (enum cudaMemcpyKind)9, stream));
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(stream));
  end_in_order(stream, 0, 0);
}

/* ---- tails and given graphs ---- */

static void rule_a_tail_is_set_or_added_to(void) {
  cudaStream_t stream = begin(GLOBAL);
  enum cudaStreamCaptureStatus status;
  const cudaGraphNode_t *tail = NULL;
  cudaGraphNode_t first;
  cudaGraph_t graph = NULL;
  size_t count = 0;
  EXPECT_OK(work(stream, 0));
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &tail, NULL, &count));
  EXPECT_EQUAL(1, (long long)count);
  first = tail[0];
  EXPECT_OK(cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, cudaStreamSetCaptureDependencies));
  EXPECT_OK(work(stream, 1)); /* a second root */
  EXPECT_OK(cudaStreamUpdateCaptureDependencies(stream, &first, NULL, 1, cudaStreamAddCaptureDependencies));
  EXPECT_OK(work(stream, 2));
  EXPECT(cudaErrorInvalidValue, cudaStreamUpdateCaptureDependencies(stream, &first, NULL, 1, 2));
  end_in_order(stream, 3, 2);
  stream = make_stream();
  EXPECT(cudaErrorIllegalState, cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 0));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_a_node_that_left_the_tail_needs_no_join(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(work(stream, 0));
  EXPECT_OK(cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, cudaStreamSetCaptureDependencies));
  end_in_order(stream, 1, 0);
}

static void rule_a_capture_adds_to_a_given_graph(void) {
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = NULL, out = NULL;
  cudaGraphNode_t nodes[3];
  size_t count = 1;
  EXPECT(cudaErrorInvalidValue, cudaGraphCreate(&graph, 1));
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, GLOBAL));
  EXPECT_OK(work(stream, 0));
  EXPECT_OK(cudaStreamEndCapture(stream, &out));
  EXPECT_EQUAL(1, out == graph);
  EXPECT_OK(cudaGraphGetNodes(graph, nodes, &count));
  EXPECT_OK(cudaStreamBeginCaptureToGraph(stream, graph, nodes, NULL, 1, GLOBAL));
  EXPECT_OK(work(stream, 1));
  EXPECT_OK(cudaStreamEndCapture(stream, &out));
  EXPECT_EQUAL(2, (long long)nodes_of(graph));
  EXPECT_EQUAL(1, (long long)edges_of(graph));
  count = 0;
  EXPECT_OK(cudaGraphGetRootNodes(graph, NULL, &count));
  EXPECT_EQUAL(1, (long long)count);
  count = 3;
  EXPECT_OK(cudaGraphGetNodes(graph, nodes, &count)); /* more room than nodes: the rest is NULL */
  EXPECT_EQUAL(2, (long long)count);
  EXPECT_EQUAL(1, nodes[2] == NULL);
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_a_given_graph_goes_with_a_spoiled_capture(void) {
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = NULL, out = NULL;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, RELAXED));
  EXPECT_OK(work(stream, 0));
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
  EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &out));
  EXPECT_EQUAL(1, out == NULL);
  EXPECT(cudaErrorInvalidValue, cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static const rule_t capture_limits_rules[] = {
    RULE(a_captured_stream_is_not_waited_for),
    RULE(a_spoiled_stream_is_not_waited_for),
    RULE(a_device_with_a_capture_is_not_waited_for),
    RULE(modes_forbid_unsafe_calls_of_their_thread),
    RULE(modes_forbid_unsafe_calls_of_other_threads),
    RULE(safe_calls_stay_allowed),
    RULE(modes_are_exchanged),
    RULE(the_legacy_stream_is_out_of_use_beside_a_blocking_one),
    RULE(the_legacy_stream_works_beside_a_non_blocking_one),
    RULE(the_legacy_stream_joins_no_capture),
    RULE(a_copy_that_waits_is_allowed),
    RULE(calls_become_nodes),
    RULE(nothing_to_do_is_no_node),
    RULE(a_wrong_argument_spoils_nothing),
    RULE(a_tail_is_set_or_added_to),
    RULE(a_node_that_left_the_tail_needs_no_join),
    RULE(a_capture_adds_to_a_given_graph),
    RULE(a_given_graph_goes_with_a_spoiled_capture),
};

#endif
