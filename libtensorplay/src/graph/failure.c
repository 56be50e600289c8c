/* What broke a capture, in words. CUDA tells it once, to the call that it refuses, which may be of another thread and
 * whose failure the program may pass over; all that comes later, the capture's end too, only learns that the capture is
 * broken. So each such failure is noted with the captures that it has broken, and the end names the first one. */
#include <stdio.h>
#include <string.h>

#include "../captured.h"
#include "graph.h"

/* Its address names the thread. It is set while the thread's failure is that of an end, which breaks nothing. */
static _Thread_local bool is_ending;

/* ---- noting ---- */

static bool is_broken(const tp_stream_t *stream) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (tp__captured_status(stream, &status)) (void)cudaGetLastError();
  return status == cudaStreamCaptureStatusInvalidated;
}

static void add_capture(const tp_stream_t *stream) {
  tp__error_add("; the capture that began on stream %#llx of cuda:%d", (unsigned long long)tp_stream_handle(stream),
                tp_stream_device(stream));
}

/* Says of a capture that is broken by what. */
static void add_cause(const tp__failure_t *failure, const tp_stream_t *stream) {
  add_capture(stream);
  tp__error_add(" was broken");
  if (!failure->number || failure->is_foreign) tp__error_add(" by a call that is not TensorPlay's");
  if (!failure->number) return;
  if (failure->is_foreign) tp__error_add(", which was first met");
  if (*failure->place) tp__error_add(" at %s", failure->place);
  tp__error_add(" by %s", failure->text);
}

typedef struct told {
  cudaError_t error;
  size_t length; /* of the text before anything was added */
} told_t;

/* A forbidden call of the thread that captures is named rather than one of another thread: whose was first is not known
 * where both fail at once. */
static bool is_better(const tp__failure_t *failure, cudaError_t error) {
  if (!failure->number) return true;
  bool is_own = failure->owner == &is_ending, was_own = failure->thread == failure->owner;
  return is_own && !was_own && error != cudaErrorStreamCaptureInvalidated;
}

static void note(tp__capture_t *capture, void *context) {
  const told_t *told = context;
  const tp_stream_t *stream = capture->stream;
  tp__failure_t *failure = &capture->failure;
  if (!is_broken(stream)) return;
  if (!is_better(failure, told->error)) {
    add_cause(failure, stream);
    return;
  }
  failure->thread = &is_ending;
  failure->number = tp__error_number();
  failure->is_foreign = told->error == cudaErrorStreamCaptureInvalidated;
  failure->place[0] = '\0';
  snprintf(failure->text, sizeof failure->text, "%.*s", (int)told->length, tp_error_text());
  add_capture(stream);
  tp__error_add(failure->is_foreign ? " was broken by a call that is not TensorPlay's" : " is broken by it");
}

static void listen(cudaError_t error) {
  told_t told = {.error = error, .length = strlen(tp_error_text())};
  if (!is_ending) tp__capture_each(note, &told);
}

void tp__failure_begin(tp__capture_t *capture) {
  tp__error_listen(listen);
  capture->failure.owner = &is_ending;
}

static void note_place(tp__capture_t *capture, void *context) {
  tp__failure_t *failure = &capture->failure;
  if (failure->thread != &is_ending || failure->number != tp__error_number()) return;
  snprintf(failure->place, sizeof failure->place, "%s", (const char *)context);
}

void tp_capture_note_place(const char *place) { tp__capture_each(note_place, (void *)place); }

/* ---- the end ---- */

typedef struct search {
  tp__ending_t *ending;
  uint64_t capture;
  const cudaGraphNode_t *joined; /* the end's own tail */
  size_t joined_count;
} search_t;

/* Whether the node ends a branch that the stream where the capture began does not wait for. */
static bool is_loose(const search_t *search, cudaGraphNode_t node) {
  size_t dependents = 0;
  for (size_t i = 0; i < search->joined_count; i++) {
    if (search->joined[i] == node) return false;
  }
  if (!cudaGraphNodeGetDependentNodes(node, NULL, NULL, &dependents)) return dependents == 0;
  (void)cudaGetLastError();
  return false;
}

static void look_for_loose_end(const tp_stream_t *stream, void *context) {
  const search_t *search = context;
  const cudaGraphNode_t *tail;
  size_t count;
  bool loose = false;
  if (!tp__captured_tail(stream, search->capture, &tail, &count)) return;
  for (size_t i = 0; i < count && !loose; i++) loose = is_loose(search, tail[i]);
  size_t length = strlen(search->ending->loose);
  if (loose)
    snprintf(search->ending->loose + length, sizeof search->ending->loose - length, "%sstream %#llx of cuda:%d",
             length ? ", " : "", (unsigned long long)tp_stream_handle(stream), tp_stream_device(stream));
}

/* Under the lock: another thread may be noting something. */
static void copy_failure(tp__capture_t *capture, void *context) {
  tp__ending_t *ending = context;
  if (capture == ending->capture) ending->failure = capture->failure;
}

void tp__failure_look(tp__capture_t *capture, tp__ending_t *out) {
  *out = (tp__ending_t){.capture = capture, .stream = capture->stream};
  tp__capture_each(copy_failure, out);
  search_t search = {.ending = out, .capture = tp__capture_id(capture)};
  if (!tp__captured_tail(out->stream, search.capture, &search.joined, &search.joined_count)) return;
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) tp__stream_each(device, look_for_loose_end, &search);
}

tp_status_t tp__failure_set(const tp__ending_t *ending, cudaError_t error, const char *operation) {
  is_ending = true;
  tp_status_t status = tp__error_set_cuda(error, operation, "cudaStreamEndCapture");
  is_ending = false;
  if (error == cudaErrorStreamCaptureInvalidated) add_cause(&ending->failure, ending->stream);
  if (error == cudaErrorStreamCaptureUnjoined)
    tp__error_add("; not joined: %s", *ending->loose ? ending->loose : "a stream that is not TensorPlay's");
  return status;
}
