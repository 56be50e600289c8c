/* Captures: streams whose work becomes nodes of a graph instead of being queued, and what CUDA forbids
 * meanwhile. What would tie captured work to other work spoils the capture: then nothing more can be captured,
 * and its end returns no graph. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

struct emu_capture {
  emu_capture_t *next; /* of all that are under way */
  int references;      /* one while it is under way, and one for each event that was recorded in it */
  unsigned long long id;
  emu_stream_t *origin; /* where it began; NULL once it has ended */
  uint64_t thread;      /* that began it */
  enum cudaStreamCaptureMode mode;
  bool spoiled;
  emu_graph_t *graph; /* NULL once it was freed, which spoils */
  emu_nodes_t left; /* tails of streams that were destroyed */
};

static emu_capture_t *captures;
static unsigned long long last_id;
static uint64_t last_thread;
static _Thread_local uint64_t thread; /* addresses and pthread_t come again when a thread has ended; numbers do not */
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static uint64_t this_thread(void) {
  if (!thread) thread = ++last_thread;
  return thread;
}

emu_capture_t *emu_capture_retain(emu_capture_t *capture) {
  capture->references++;
  return capture;
}

void emu_capture_release(emu_capture_t *capture) {
  if (capture && --capture->references == 0) free(capture);
}

void emu_capture_spoil(emu_capture_t *capture) { capture->spoiled = true; }

void emu_capture_forget(const emu_graph_t *graph) {
  for (emu_capture_t *capture = captures; capture; capture = capture->next) {
    if (capture->graph != graph) continue;
    emu_capture_spoil(capture);
    capture->graph = NULL;
  }
}

/* ---- what is forbidden meanwhile ---- */

/* Whether one of the device's captured streams answers; those captures are spoiled on request. */
static bool any_captured(int device, bool only_blocking, bool spoil) {
  emu_stream_t *const *all;
  bool any = false;
  size_t count = captures ? emu_streams(&all) : 0;
  for (size_t i = 0; i < count; i++) {
    if (!all[i]->capture || all[i]->device != device || (only_blocking && !emu_stream_blocking(all[i]))) continue;
    if (spoil) emu_capture_spoil(all[i]->capture);
    any = true;
  }
  return any;
}

/* With this error, which spoils the capture. */
static cudaError_t refuse(emu_capture_t *capture, cudaError_t error) {
  emu_capture_spoil(capture);
  return error;
}

cudaError_t emu_capture_check(emu_stream_t *stream) {
  if (stream == emu_stream_legacy(stream->device) && any_captured(stream->device, true, true))
    return cudaErrorStreamCaptureImplicit;
  return stream->capture && stream->capture->spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t emu_capture_check_unsafe(void) {
  bool refused = false;
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (emu_capture_t *capture = captures; capture; capture = capture->next) {
    bool forbids = capture->thread == this_thread()
                       ? capture->mode != cudaStreamCaptureModeRelaxed
                       : capture->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    if (forbids) emu_capture_spoil(capture);
    refused |= forbids;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t emu_capture_check_wait(emu_stream_t *stream) {
  if (stream->capture) return refuse(stream->capture, cudaErrorStreamCaptureUnsupported);
  cudaError_t error = emu_capture_check(stream);
  return error ? error : emu_capture_check_unsafe();
}

cudaError_t emu_capture_check_launch(emu_stream_t *stream) {
  cudaError_t error = emu_capture_check(stream);
  return !error && stream->capture ? refuse(stream->capture, cudaErrorStreamCaptureUnsupported) : error;
}

cudaError_t emu_capture_check_event(emu_capture_t *capture) {
  return capture->origin ? refuse(capture, cudaErrorCapturedEvent) : cudaErrorInvalidValue;
}

cudaError_t emu_capture_check_device_wait(int device) {
  return any_captured(device, false, true) ? cudaErrorStreamCaptureUnsupported : emu_capture_check_unsafe();
}

/* The mode is not looked at. */
static cudaError_t exchange_mode(enum cudaStreamCaptureMode *mode) {
  if (!mode) return cudaErrorInvalidValue;
  enum cudaStreamCaptureMode former = thread_mode;
  thread_mode = *mode;
  *mode = former;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  EMU_RETURN(cudaThreadExchangeStreamCaptureMode, false, exchange_mode(mode));
}

/* ---- streams in a capture ---- */

/* Replaces a stream's tail; the stream's own nodes may be among the new ones. */
static bool set_tail(emu_stream_t *stream, emu_node_t *const *items, size_t count) {
  emu_nodes_t tail = {0};
  if (!emu_nodes_add(&tail, items, count)) return false;
  emu_nodes_clear(&stream->tail);
  stream->tail = tail;
  return true;
}

static void leave(emu_stream_t *stream) {
  emu_nodes_clear(&stream->tail);
  free(stream->edges);
  stream->edges = NULL;
  stream->capture = NULL;
}

cudaError_t emu_enqueue(emu_stream_t *stream, emu_piece_t *piece) {
  cudaError_t error = emu_capture_check(stream);
  piece->device = stream->device;
  if (!error && !stream->capture) {
    emu_push(stream, piece);
    return cudaSuccess;
  }
  emu_node_t *node = NULL;
  if (!error) {
    node = emu_graph_add(stream->capture->graph, piece, &stream->tail);
    if (!node || !set_tail(stream, &node, 1)) error = cudaErrorMemoryAllocation;
  }
  if (!node) emu_piece_free(piece);
  return error;
}

cudaError_t emu_capture_join(emu_stream_t *stream, emu_capture_t *capture, const emu_nodes_t *tail) {
  emu_capture_t *own = stream->capture;
  if (!capture->origin) return cudaErrorInvalidValue;
  if (own && own != capture) {
    emu_capture_spoil(own);
    return refuse(capture, cudaErrorStreamCaptureMerge);
  }
  if (capture->spoiled) return cudaErrorInvalidValue;
  if (stream == emu_stream_legacy(stream->device)) return refuse(capture, cudaErrorStreamCaptureImplicit);
  if (!emu_nodes_add(&stream->tail, tail->items, tail->count)) return cudaErrorMemoryAllocation;
  stream->capture = capture;
  return cudaSuccess;
}

/* ---- begin and end ---- */

static cudaError_t begin(cudaStream_t handle, emu_graph_t *graph, const cudaGraphNode_t *dependencies, size_t count,
                         enum cudaStreamCaptureMode mode) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if ((int)mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  if (stream == emu_stream_legacy(stream->device)) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  emu_capture_t *capture = calloc(1, sizeof *capture);
  bool own_graph = !graph;
  if (own_graph && capture) graph = emu_graph_new();
  if (!capture || !graph || !emu_nodes_add(&stream->tail, (emu_node_t *const *)dependencies, count)) {
    if (own_graph && graph) emu_graph_free(graph);
    free(capture);
    return cudaErrorMemoryAllocation;
  }
  *capture = (emu_capture_t){.next = captures, .references = 1, .id = ++last_id, .origin = stream,
                             .thread = this_thread(), .mode = mode, .graph = graph};
  captures = capture;
  graph->captures++;
  stream->capture = capture;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  EMU_RETURN(cudaStreamBeginCapture, true, begin(stream, NULL, NULL, 0, mode));
}

static cudaError_t begin_to_graph(cudaStream_t stream, cudaGraph_t handle, const cudaGraphNode_t *dependencies,
                                  size_t count, enum cudaStreamCaptureMode mode) {
  emu_graph_t *graph = emu_graph_find(handle);
  if (!graph || !emu_graph_has(graph, dependencies, count)) return cudaErrorInvalidValue;
  return begin(stream, graph, dependencies, count, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode) {
  (void)edges; /* every edge is a whole one */
  EMU_RETURN(cudaStreamBeginCaptureToGraph, true, begin_to_graph(stream, graph, dependencies, count, mode));
}

/* Whether the origin's next node would come after everything that the other streams captured. */
static bool joined(const emu_capture_t *capture) {
  emu_stream_t *const *all;
  const emu_nodes_t *tail = &capture->origin->tail;
  size_t count = emu_streams(&all);
  for (size_t i = 0; i < count; i++)
    if (all[i]->capture == capture && !emu_nodes_reach(capture->graph, tail, &all[i]->tail)) return false;
  return emu_nodes_reach(capture->graph, tail, &capture->left);
}

/* Its streams are free again. The graph, if it is still there, is in the caller's hands; after an error it is gone,
 * unless a node owns it. */
static emu_graph_t *finish(emu_capture_t *capture, cudaError_t error) {
  emu_stream_t *const *all;
  emu_graph_t *graph = capture->graph;
  size_t count = emu_streams(&all);
  for (size_t i = 0; i < count; i++)
    if (all[i]->capture == capture) leave(all[i]);
  emu_capture_t **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  emu_nodes_clear(&capture->left);
  if (graph) graph->captures--;
  capture->origin = NULL;
  emu_capture_release(capture);
  if (error && graph && !graph->owned) emu_graph_free(graph);
  return error ? NULL : graph;
}

static cudaError_t end(cudaStream_t handle, cudaGraph_t *out) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (out) *out = NULL;
  emu_capture_t *capture = stream->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream) return refuse(capture, cudaErrorStreamCaptureUnmatched);
  bool wrong_thread = capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != this_thread();
  cudaError_t error = wrong_thread       ? cudaErrorStreamCaptureWrongThread
                      : capture->spoiled ? cudaErrorStreamCaptureInvalidated
                      : !joined(capture) ? cudaErrorStreamCaptureUnjoined
                                         : cudaSuccess;
  emu_graph_t *graph = finish(capture, error);
  if (out) *out = (cudaGraph_t)graph; /* else it lives on: the program may know it from the capture's info */
  return error;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  EMU_RETURN(cudaStreamEndCapture, true, end(stream, graph));
}

/* Without its origin a capture can never end: it goes with it. */
void emu_capture_leave(emu_stream_t *stream) {
  emu_capture_t *capture = stream->capture;
  if (capture->origin == stream) {
    (void)finish(capture, cudaErrorStreamCaptureInvalidated);
    return;
  }
  if (!emu_nodes_add(&capture->left, stream->tail.items, stream->tail.count)) emu_capture_spoil(capture);
  leave(stream);
}

/* ---- asking, and changing a tail ---- */

/* Asking the legacy stream spoils nothing. */
static cudaError_t status(cudaStream_t handle, enum cudaStreamCaptureStatus *out, emu_stream_t **out_stream) {
  emu_stream_t *stream = *out_stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!out) return cudaErrorInvalidValue;
  if (stream == emu_stream_legacy(stream->device) && any_captured(stream->device, true, false))
    return cudaErrorStreamCaptureImplicit;
  *out = !stream->capture          ? cudaStreamCaptureStatusNone
         : stream->capture->spoiled ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

static cudaError_t is_capturing(cudaStream_t handle, enum cudaStreamCaptureStatus *out) {
  emu_stream_t *stream;
  return status(handle, out, &stream);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *out) {
  EMU_RETURN(cudaStreamIsCapturing, true, is_capturing(handle, out));
}

/* Outside of an active capture only the status is given. */
static cudaError_t get_info(cudaStream_t handle, enum cudaStreamCaptureStatus *out, unsigned long long *out_id,
                            cudaGraph_t *out_graph, const cudaGraphNode_t **out_tail,
                            const cudaGraphEdgeData **out_edges, size_t *out_count) {
  emu_stream_t *stream;
  cudaError_t error = status(handle, out, &stream);
  if (error || *out != cudaStreamCaptureStatusActive) return error;
  if (out_edges) {
    cudaGraphEdgeData *edges = calloc(stream->tail.count + 1, sizeof *edges);
    if (!edges) return cudaErrorMemoryAllocation;
    free(stream->edges);
    *out_edges = stream->edges = edges;
  }
  if (out_id) *out_id = stream->capture->id;
  if (out_graph) *out_graph = (cudaGraph_t)stream->capture->graph;
  if (out_tail) *out_tail = (const cudaGraphNode_t *)stream->tail.items;
  if (out_count) *out_count = stream->tail.count;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *out, unsigned long long *out_id,
                                     cudaGraph_t *out_graph, const cudaGraphNode_t **out_tail,
                                     const cudaGraphEdgeData **out_edges, size_t *out_count) {
  EMU_RETURN(cudaStreamGetCaptureInfo, true,
             get_info(handle, out, out_id, out_graph, out_tail, out_edges, out_count));
}

static cudaError_t update(cudaStream_t handle, cudaGraphNode_t *nodes, size_t count, unsigned int flags) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (flags > cudaStreamSetCaptureDependencies) return cudaErrorInvalidValue;
  if (!stream->capture) return cudaErrorIllegalState;
  if (stream->capture->spoiled) return cudaErrorStreamCaptureInvalidated;
  if (!emu_graph_has(stream->capture->graph, nodes, count)) return cudaErrorInvalidValue;
  emu_node_t *const *items = (emu_node_t *const *)nodes;
  bool done = flags == cudaStreamSetCaptureDependencies ? set_tail(stream, items, count)
                                                        : emu_nodes_add(&stream->tail, items, count);
  return done ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                const cudaGraphEdgeData *edges, size_t count, unsigned int flags) {
  (void)edges;
  EMU_RETURN(cudaStreamUpdateCaptureDependencies, true, update(stream, nodes, count, flags));
}
