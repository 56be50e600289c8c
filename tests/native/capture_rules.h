/* CUDA's rules of stream capture: begin and end, forks and joins, events. */
#ifndef TP_CAPTURE_RULES_H
#define TP_CAPTURE_RULES_H

#include "cuda_rules.h"

/* ---- begin and end ---- */

static void rule_nothing_runs_in_a_capture(void) {
  memset(pinned, 1, BYTES);
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(stream));
  EXPECT_OK(work(stream, 2));
  EXPECT_OK(cudaMemcpyAsync(pinned, memory[2], BYTES, cudaMemcpyDeviceToHost, stream));
  end_in_order(stream, 2, 1);
  EXPECT_EQUAL(1, pinned[0]);
}

static void rule_an_empty_capture_is_a_graph(void) { end_in_order(begin(GLOBAL), 0, 0); }

static void rule_the_legacy_stream_is_not_captured(void) {
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(NULL, GLOBAL));
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(cudaStreamLegacy, RELAXED));
  cudaGraph_t graph;
  EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(NULL, &graph));
}

static void rule_begin_takes_three_modes(void) {
  cudaStream_t stream = make_stream();
  EXPECT(cudaErrorInvalidValue, cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)3));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_a_stream_has_one_capture(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  EXPECT(cudaErrorIllegalState, cudaStreamBeginCapture(stream, GLOBAL));
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(stream));
  fork_to(stream, side);
  EXPECT(cudaErrorIllegalState, cudaStreamBeginCapture(side, GLOBAL));
  end_in_order(stream, 0, 0);
  EXPECT_OK(cudaStreamDestroy(side));
}

static void rule_an_end_needs_a_capture(void) {
  cudaStream_t stream = make_stream();
  cudaGraph_t graph;
  EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_an_end_needs_no_place_for_the_graph(void) {
  cudaStream_t stream = begin(GLOBAL);
  cudaGraph_t graph;
  EXPECT_OK(cudaStreamEndCapture(stream, NULL));
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(stream));
  EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* 903 */
static void rule_a_capture_ends_where_it_began(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  cudaGraph_t graph;
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(side, &graph));
  EXPECT_EQUAL(cudaStreamCaptureStatusInvalidated, status_of(side));
  end_spoiled(stream);
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(side));
  EXPECT_OK(cudaStreamDestroy(side));
}

static void *end_in_thread(void *stream) {
  cudaGraph_t graph = NULL;
  EXPECT(cudaErrorStreamCaptureWrongThread, cudaStreamEndCapture((cudaStream_t)stream, &graph));
  return NULL;
}

static void *end_relaxed_in_thread(void *stream) {
  end_in_order((cudaStream_t)stream, 1, 0);
  return NULL;
}

/* A capture that begins in this mode and ends in another thread, for ever. */
static void end_elsewhere(enum cudaStreamCaptureMode mode) {
  cudaStream_t stream = begin(mode);
  cudaGraph_t graph;
  EXPECT_OK(work(stream, 0));
  in_thread(end_in_thread, stream);
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(stream));
  EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* 908 */
static void rule_a_capture_ends_in_its_thread(void) {
  end_elsewhere(GLOBAL);
  end_elsewhere(LOCAL);
  cudaStream_t stream = begin(RELAXED);
  EXPECT_OK(work(stream, 0));
  in_thread(end_relaxed_in_thread, stream);
}

static void rule_captures_have_numbers(void) {
  cudaStream_t first = begin(RELAXED), second = begin(RELAXED), third = make_stream();
  enum cudaStreamCaptureStatus status;
  unsigned long long one = 0, two = 0, none = 77;
  cudaGraph_t graph = NULL, other = NULL, null = (cudaGraph_t)first;
  EXPECT_OK(cudaStreamGetCaptureInfo(first, &status, &one, &graph, NULL, NULL, NULL));
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status);
  EXPECT_OK(cudaStreamGetCaptureInfo(second, &status, &two, &other, NULL, NULL, NULL));
  EXPECT_EQUAL(1, one != 0 && two != 0 && one != two && graph && other && graph != other);
  EXPECT_OK(cudaStreamGetCaptureInfo(third, &status, &none, &null, NULL, NULL, NULL));
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status);
  EXPECT_EQUAL(77, (long long)none);
  EXPECT_EQUAL(1, null == (cudaGraph_t)first);
  EXPECT(cudaErrorInvalidValue, cudaStreamGetCaptureInfo(first, NULL, NULL, NULL, NULL, NULL, NULL));
  EXPECT(cudaErrorInvalidValue, cudaStreamIsCapturing(first, NULL));
  end_in_order(first, 0, 0);
  end_in_order(second, 0, 0);
  EXPECT_OK(cudaStreamDestroy(third));
}

static void rule_work_before_a_capture_runs(void) {
  cudaStream_t stream = make_stream();
  memset(pinned, 1, BYTES);
  EXPECT_OK(work(stream, 2));
  EXPECT_OK(cudaMemcpyAsync(pinned, memory[2], BYTES, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, RELAXED));
  end_in_order(stream, 0, 0);
  EXPECT_EQUAL(2, pinned[0]);
}

/* ---- forks and joins ---- */

static void rule_a_diamond_has_four_edges(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_EQUAL(cudaStreamCaptureStatusActive, status_of(side));
  EXPECT_OK(work(side, 1));
  EXPECT_OK(work(stream, 2));
  fork_to(side, stream);
  EXPECT_OK(work(stream, 3));
  end_in_order(stream, 4, 4);
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(side));
  EXPECT_OK(cudaStreamDestroy(side));
}

/* What a join brings is added to the tail, also where it comes after what is there. */
static void rule_a_join_adds_to_the_tail(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  enum cudaStreamCaptureStatus status;
  const cudaGraphNode_t *tail = NULL;
  const cudaGraphEdgeData *edges = NULL;
  size_t count = 0;
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_OK(work(side, 1));
  fork_to(side, stream);
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &tail, &edges, &count));
  EXPECT_EQUAL(2, (long long)count);
  EXPECT_OK(work(stream, 2));
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &tail, NULL, &count));
  EXPECT_EQUAL(1, (long long)count);
  end_in_order(stream, 3, 3);
  EXPECT_OK(cudaStreamDestroy(side));
}

/* 904 */
static void rule_a_fork_with_work_must_be_joined(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  cudaGraph_t graph = (cudaGraph_t)stream;
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_OK(work(side, 1));
  EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQUAL(1, graph == NULL);
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(stream));
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(side));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void rule_a_fork_without_work_needs_no_join(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_OK(work(stream, 1));
  end_in_order(stream, 2, 1);
  EXPECT_OK(cudaStreamDestroy(side));
}

static void rule_work_after_the_join_must_be_joined_too(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  cudaGraph_t graph = NULL;
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_OK(work(side, 1));
  fork_to(side, stream);
  EXPECT_OK(work(side, 2));
  EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* How the ends of branches are found in a graph that is being captured. */
static void rule_a_branch_ends_at_a_node_without_dependents(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  enum cudaStreamCaptureStatus status;
  const cudaGraphNode_t *tail = NULL;
  size_t count = 0, dependents = 7;
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_OK(work(side, 1));
  EXPECT_OK(cudaStreamGetCaptureInfo(side, &status, NULL, NULL, &tail, NULL, &count));
  EXPECT_EQUAL(1, (long long)count);
  EXPECT_OK(cudaGraphNodeGetDependentNodes(tail[0], NULL, NULL, &dependents));
  EXPECT_EQUAL(0, (long long)dependents);
  fork_to(side, stream);
  EXPECT_OK(work(stream, 2));
  cudaGraphNode_t nodes[2] = {0};
  dependents = 2;
  EXPECT_OK(cudaGraphNodeGetDependentNodes(tail[0], nodes, NULL, &dependents));
  EXPECT_EQUAL(1, (long long)dependents);
  EXPECT_EQUAL(1, nodes[0] && !nodes[1]);
  EXPECT(cudaErrorInvalidValue, cudaGraphNodeGetDependentNodes(tail[0], NULL, NULL, NULL));
  end_in_order(stream, 3, 3);
  EXPECT_OK(cudaStreamDestroy(side));
}

static void rule_a_fork_may_be_joined_through_another(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream(), far = make_stream();
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  fork_to(side, far);
  EXPECT_OK(work(far, 1));
  fork_to(far, side);
  EXPECT_OK(work(side, 2));
  fork_to(side, stream);
  end_in_order(stream, 3, 3);
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(far));
}

static void rule_an_event_is_recorded_anew(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  cudaEvent_t event = make_event();
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaEventRecord(event, side)); /* an ordinary record: the event has left the capture */
  EXPECT(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, event, 0));
  end_spoiled(stream);
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(side));
}

static void rule_a_joined_stream_may_be_destroyed(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  EXPECT_OK(work(stream, 0));
  fork_to(stream, side);
  EXPECT_OK(work(side, 1));
  fork_to(side, stream);
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(work(stream, 2));
  end_in_order(stream, 3, 3);
}

/* 902 */
static void rule_captures_do_not_merge(void) {
  cudaStream_t one = begin(RELAXED), two = begin(RELAXED);
  cudaEvent_t event = make_event();
  EXPECT_OK(work(one, 0));
  EXPECT_OK(cudaEventRecord(event, one));
  EXPECT(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(two, event, 0));
  end_spoiled(one);
  end_spoiled(two);
  EXPECT_OK(cudaEventDestroy(event));
}

/* 905 */
static void rule_a_capture_does_not_wait_for_other_work(void) {
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(cudaStreamSynchronize(other));
  cudaStream_t stream = begin(RELAXED);
  EXPECT(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, event, 0));
  end_spoiled(stream);
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(other));
}

static void rule_an_event_without_a_record_is_no_other_work(void) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(cudaStreamWaitEvent(stream, event, 0));
  end_in_order(stream, 0, 0);
  EXPECT_OK(cudaEventDestroy(event));
}

/* ---- events of a capture ---- */

/* 907 */
static void rule_a_captured_event_is_not_asked(void) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = begin(RELAXED);
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT(cudaErrorCapturedEvent, cudaEventQuery(event));
  end_spoiled(stream);
  stream = begin(GLOBAL);
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT(cudaErrorCapturedEvent, cudaEventSynchronize(event));
  end_spoiled(stream);
  EXPECT_OK(cudaEventDestroy(event));
}

static void rule_a_captured_event_has_no_time(void) {
  cudaEvent_t first, second;
  float ms;
  EXPECT_OK(cudaEventCreateWithFlags(&first, cudaEventDefault));
  EXPECT_OK(cudaEventCreateWithFlags(&second, cudaEventDefault));
  cudaStream_t other = make_stream();
  EXPECT_OK(cudaEventRecord(first, other));
  EXPECT_OK(cudaStreamSynchronize(other));
  cudaStream_t stream = begin(RELAXED);
  EXPECT_OK(cudaEventRecord(second, stream));
  EXPECT(cudaErrorCapturedEvent, cudaEventElapsedTime(&ms, first, second));
  end_in_order(stream, 0, 0); /* asking spoils nothing */
  EXPECT_OK(cudaEventDestroy(first));
  EXPECT_OK(cudaEventDestroy(second));
  EXPECT_OK(cudaStreamDestroy(other));
}

static void rule_an_event_leads_nowhere_after_the_end(void) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = begin(GLOBAL), other = make_stream();
  EXPECT_OK(work(stream, 0));
  EXPECT_OK(cudaEventRecord(event, stream));
  end_in_order(stream, 1, 0);
  EXPECT(cudaErrorInvalidValue, cudaEventQuery(event));
  EXPECT(cudaErrorInvalidValue, cudaEventSynchronize(event));
  EXPECT(cudaErrorInvalidValue, cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(other));
}

static void rule_events_of_spoiled_captures_lead_nowhere(void) {
  cudaEvent_t event = make_event();
  cudaStream_t stream = begin(RELAXED), other = make_stream();
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  EXPECT(cudaErrorInvalidValue, cudaStreamWaitEvent(other, event, 0));
  EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamWaitEvent(stream, event, 0));
  EXPECT(cudaErrorStreamCaptureInvalidated, cudaEventRecord(event, stream));
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(other));
  end_spoiled(stream);
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamDestroy(other));
}

static const rule_t capture_rules[] = {
    RULE(nothing_runs_in_a_capture),
    RULE(an_empty_capture_is_a_graph),
    RULE(the_legacy_stream_is_not_captured),
    RULE(begin_takes_three_modes),
    RULE(a_stream_has_one_capture),
    RULE(an_end_needs_a_capture),
    RULE(an_end_needs_no_place_for_the_graph),
    RULE(a_capture_ends_where_it_began),
    RULE(a_capture_ends_in_its_thread),
    RULE(captures_have_numbers),
    RULE(work_before_a_capture_runs),
    RULE(a_diamond_has_four_edges),
    RULE(a_join_adds_to_the_tail),
    RULE(a_fork_with_work_must_be_joined),
    RULE(a_fork_without_work_needs_no_join),
    RULE(work_after_the_join_must_be_joined_too),
    RULE(a_branch_ends_at_a_node_without_dependents),
    RULE(a_fork_may_be_joined_through_another),
    RULE(an_event_is_recorded_anew),
    RULE(a_joined_stream_may_be_destroyed),
    RULE(captures_do_not_merge),
    RULE(a_capture_does_not_wait_for_other_work),
    RULE(an_event_without_a_record_is_no_other_work),
    RULE(a_captured_event_is_not_asked),
    RULE(a_captured_event_has_no_time),
    RULE(an_event_leads_nowhere_after_the_end),
    RULE(events_of_spoiled_captures_lead_nowhere),
};

#endif
