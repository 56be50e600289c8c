/* The emulated device's captures: CUDA's rules, and what CUDA has no call to see. */
#include "capture_limits_rules.h"
#include "capture_rules.h"
#include "check.h"
#include "tp_emulated.h"

static void test_the_rules(void) {
  CHECK_RULES(capture_rules);
  CHECK_RULES(capture_limits_rules);
  CHECK(differences == 0);
}

/* Captured work is in no queue, and asking runs nothing of it. */
static void test_captured_work_is_not_queued(void) {
  cudaStream_t stream = begin(GLOBAL), other = make_stream();
  CHECK_OK(work(stream, 0));
  CHECK(tp_emulated_stream_queued(0, (uintptr_t)stream) == 0);
  CHECK_OK(work(other, 1));
  enum cudaStreamCaptureStatus status = status_of(stream);
  CHECK(status == cudaStreamCaptureStatusActive && tp_emulated_stream_queued(0, (uintptr_t)other) == 1);
  CHECK(cudaStreamQuery(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(tp_emulated_stream_queued(0, (uintptr_t)other) == 1);
  end_spoiled(stream);
  CHECK_OK(cudaStreamSynchronize(other));
  CHECK_OK(cudaStreamDestroy(other));
}

/* A capture goes with its origin, for it could never end. */
static void test_the_origin_is_destroyed(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  CHECK_OK(work(stream, 0));
  fork_to(stream, side);
  CHECK_OK(cudaStreamDestroy(stream));
  CHECK(status_of(side) == cudaStreamCaptureStatusNone);
  CHECK_OK(cudaStreamSynchronize(side));
  CHECK_OK(cudaStreamDestroy(side));
}

static void test_a_destroyed_stream_must_be_joined(void) {
  cudaStream_t stream = begin(GLOBAL), side = make_stream();
  cudaGraph_t graph;
  fork_to(stream, side);
  CHECK_OK(work(side, 0));
  CHECK_OK(cudaStreamDestroy(side));
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined && !graph);
  CHECK_OK(cudaStreamDestroy(stream));
}

/* The graph of an end without a place for it is there for those who know it, and so is a given one. */
static void test_a_graph_outlives_an_end_without_a_place(void) {
  cudaStream_t stream = begin(GLOBAL);
  enum cudaStreamCaptureStatus status;
  cudaGraph_t graph = NULL;
  CHECK_OK(work(stream, 0));
  CHECK_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL));
  CHECK_OK(cudaStreamEndCapture(stream, NULL));
  CHECK_OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, GLOBAL));
  CHECK_OK(work(stream, 1));
  CHECK_OK(cudaStreamEndCapture(stream, NULL));
  CHECK(nodes_of(graph) == 2);
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
}

static void test_each_call_can_be_made_to_fail(void) {
  int32_t error = tp_emulated_error_code("cudaErrorStreamCaptureUnsupported");
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = NULL;
  CHECK(tp_emulated_fail("cudaStreamBeginCapture", 1, error) == 0);
  CHECK(cudaStreamBeginCapture(stream, GLOBAL) == cudaErrorStreamCaptureUnsupported);
  CHECK(status_of(stream) == cudaStreamCaptureStatusNone);
  CHECK_OK(cudaStreamBeginCapture(stream, GLOBAL));
  CHECK(tp_emulated_fail("cudaStreamEndCapture", 1, error) == 0);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnsupported && !graph);
  end_in_order(stream, 0, 0);
  CHECK(tp_emulated_fail("cudaGraphCreate", 1, error) == 0);
  CHECK(cudaGraphCreate(&graph, 0) == cudaErrorStreamCaptureUnsupported);
}

int main(void) {
  make_memory();
  test_the_rules();
  test_captured_work_is_not_queued();
  test_the_origin_is_destroyed();
  test_a_destroyed_stream_must_be_joined();
  test_a_graph_outlives_an_end_without_a_place();
  test_each_call_can_be_made_to_fail();
  CHECK(differences == 0);
  return 0;
}
