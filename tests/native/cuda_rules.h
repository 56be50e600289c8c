/* What tests of CUDA's rules share. Such a test is told by what calls of the runtime return, and needs nothing but
 * a runtime: test_emulated_*.c hold the emulated device to it, and cuda_rules.c a real one.
 *
 * EXPECT(code, call) counts a call that returns something else and goes on, so that one run shows every difference. */
#ifndef TP_CUDA_RULES_H
#define TP_CUDA_RULES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

typedef struct rule {
  const char *name;
  void (*check)(void);
} rule_t;

#define RULE(name) {#name, rule_##name}

static const char *current_rule;
static int differences;

static inline void note_difference(const char *file, int line, const char *what, long expected, long got) {
  fprintf(stderr, "%s:%d: %s: %s: expected %ld, got %ld\n", file, line, current_rule, what, expected, got);
  differences++;
}

#define EXPECT(code, call)                                                                     \
  do {                                                                                         \
    cudaError_t got__ = (call);                                                                \
    if (got__ != (code)) note_difference(__FILE__, __LINE__, #call, (long)(code), (long)got__); \
  } while (0)
#define EXPECT_OK(call) EXPECT(cudaSuccess, call)
#define EXPECT_EQUAL(expected, value)                                                                          \
  do {                                                                                                         \
    long long got__ = (long long)(value);                                                                      \
    if (got__ != (long long)(expected)) note_difference(__FILE__, __LINE__, #value, (long)(expected), (long)got__); \
  } while (0)

#define GLOBAL cudaStreamCaptureModeGlobal
#define LOCAL cudaStreamCaptureModeThreadLocal
#define RELAXED cudaStreamCaptureModeRelaxed

#define BYTES 256
static unsigned char *memory[4]; /* BYTES each, of the device */
static unsigned char *pinned;    /* BYTES */

/* ---- short forms ---- */

static inline cudaStream_t make_stream(void) {
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static inline cudaStream_t make_blocking_stream(void) {
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
  return stream;
}

static inline cudaEvent_t make_event(void) {
  cudaEvent_t event;
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

static inline cudaStream_t begin(enum cudaStreamCaptureMode mode) {
  cudaStream_t stream = make_stream();
  EXPECT_OK(cudaStreamBeginCapture(stream, mode));
  return stream;
}

static inline cudaError_t work(cudaStream_t stream, int i) { return cudaMemsetAsync(memory[i], i, BYTES, stream); }

static inline enum cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  enum cudaStreamCaptureStatus status = (enum cudaStreamCaptureStatus)-1;
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  return status;
}

static inline size_t nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, NULL, &count));
  return count;
}

static inline size_t edges_of(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_OK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
  return count;
}

/* Ends a capture that is in order; the graph has this many nodes and edges. */
static inline void end_in_order(cudaStream_t stream, size_t nodes, size_t edges) {
  cudaGraph_t graph = NULL;
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(stream));
  if (graph) {
    EXPECT_EQUAL((long long)nodes, nodes_of(graph));
    EXPECT_EQUAL((long long)edges, edges_of(graph));
    EXPECT_OK(cudaGraphDestroy(graph));
  }
  EXPECT_OK(work(stream, 0)); /* the stream runs work again */
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* The capture is spoiled: nothing more can be captured, and its end gives the code and no graph. */
static inline void end_spoiled(cudaStream_t stream) {
  cudaGraph_t graph = (cudaGraph_t)stream;
  EXPECT_EQUAL(cudaStreamCaptureStatusInvalidated, status_of(stream));
  EXPECT(cudaErrorStreamCaptureInvalidated, work(stream, 0));
  EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQUAL(1, graph == NULL);
  EXPECT_EQUAL(cudaStreamCaptureStatusNone, status_of(stream));
  (void)cudaGetLastError();
  EXPECT_OK(work(stream, 0));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* The side stream joins the capture behind what `stream` has captured. */
static inline void fork_to(cudaStream_t stream, cudaStream_t side) {
  cudaEvent_t event = make_event();
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(side, event, 0));
  EXPECT_OK(cudaEventDestroy(event));
}

/* Runs a function in another thread and waits for it. */
static inline void in_thread(void *(*function)(void *), void *argument) {
  pthread_t other;
  if (pthread_create(&other, NULL, function, argument)) abort();
  pthread_join(other, NULL);
}

static inline void set_mode(enum cudaStreamCaptureMode mode) { EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode)); }

/* ---- running rules ---- */

static inline void make_memory(void) {
  for (int i = 0; i < 4; i++) EXPECT_OK(cudaMalloc((void **)&memory[i], BYTES));
  EXPECT_OK(cudaHostAlloc((void **)&pinned, BYTES, cudaHostAllocDefault));
}

static inline void check_rule(const rule_t *rule) {
  current_rule = rule->name;
  rule->check();
  (void)cudaGetLastError();
}

#define CHECK_RULES(rules) \
  for (size_t i__ = 0; i__ < sizeof(rules) / sizeof *(rules); i__++) check_rule(&(rules)[i__])

#endif
