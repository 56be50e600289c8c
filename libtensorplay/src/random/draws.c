/* Random numbers in graphs. The kernels of a graph read where to begin from a state in device memory, the graph's own,
 * and add how many words the capture has drawn before them. A node in front of the first draw sets that state to where
 * the generator stands, anew at each replay, and the generator moves on by all that the graph draws.
 *
 * What a body of a conditional node draws depends on the device. So it moves the state on itself, as its last act; what
 * stands around it does not count its words. The nodes of the graph that write the state, the first one and those with
 * such bodies, are ordered with all draws around them, also across streams. Inside of a body that needs no edges: its
 * pieces, and the nodes between them, are a chain. */
#include <stdlib.h>

#include "../alloc/capture.h"
#include "../captured.h"
#include "random.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what is drawn by captures underway */

static tp__draws_t *outermost(tp__draws_t *draws) {
  while (draws->around) draws = draws->around;
  return draws;
}

/* ---- the order of nodes ---- */

/* The nodes that a node comes right behind; to be freed, NULL where there are none. */
static tp_status_t dependencies_of(cudaGraphNode_t node, cudaGraphNode_t **out, size_t *out_count,
                                   const char *operation) {
  *out = NULL;
  TP_TRY_CUDA(cudaGraphNodeGetDependencies(node, NULL, NULL, out_count), operation);
  if (*out_count == 0) return TP_OK; /* arrays without room are invalid */
  cudaGraphNode_t *nodes = calloc(*out_count, sizeof *nodes);
  cudaGraphEdgeData *edges = calloc(*out_count, sizeof *edges); /* CUDA insists where an edge is not a plain one */
  cudaError_t error = nodes && edges ? cudaGraphNodeGetDependencies(node, nodes, edges, out_count) : cudaSuccess;
  bool complete = nodes && edges && !error;
  free(edges);
  if (complete) {
    *out = nodes;
    return TP_OK;
  }
  free(nodes);
  return error ? tp__error_set_cuda(error, operation, "cudaGraphNodeGetDependencies")
               : tp__error_set(TP_HOST_MEMORY, operation, "no host memory to order %zu nodes", *out_count);
}

/* One node comes behind another one of the graph. */
static tp_status_t put_behind(cudaGraph_t graph, cudaGraphNode_t node, cudaGraphNode_t other, const char *operation) {
  cudaGraphNode_t *nodes;
  size_t count;
  TP_TRY(dependencies_of(node, &nodes, &count, operation));
  bool found = node == other;
  for (size_t i = 0; i < count; i++) found = found || nodes[i] == other;
  free(nodes);
  if (!found) TP_TRY_CUDA(cudaGraphAddDependencies(graph, &other, &node, NULL, 1), operation);
  return TP_OK;
}

/* The node that was captured last on the stream, a kernel. */
static tp_status_t last_node(const tp_stream_t *stream, cudaGraph_t *out_graph, cudaGraphNode_t *out_node,
                             const char *operation) {
  enum cudaStreamCaptureStatus status;
  const cudaGraphNode_t *tail;
  size_t count;
  cudaError_t error = tp__captured_info(stream, &status, NULL, out_graph, &tail, NULL, &count);
  if (error) return tp__error_set_cuda(error, operation, "cudaStreamGetCaptureInfo");
  if (status != cudaStreamCaptureStatusActive || count != 1)
    return tp__error_set(TP_STATE, operation, "the capture ended in the middle of the call");
  *out_node = tail[0];
  return TP_OK;
}

/* A node reads the state, the last one of the stream. */
static tp_status_t note_reader(tp__draws_t *draws, tp_stream_t *stream, const char *operation) {
  cudaGraphNode_t node;
  TP_TRY(last_node(stream, &draws->graph, &node, operation));
  tp__reader_t *reader = draws->readers;
  while (reader && reader->stream != stream) reader = reader->next;
  if (reader) { /* behind its former one, which is behind the mover */
    reader->node = node;
    return TP_OK;
  }
  reader = malloc(sizeof *reader);
  if (!reader) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note a draw");
  *reader = (tp__reader_t){stream, node, draws->readers};
  draws->readers = reader;
  if (!draws->mover || draws->mover_stream == stream) return TP_OK;
  return put_behind(draws->graph, node, draws->mover, operation);
}

static void forget_readers(tp__draws_t *draws) {
  for (tp__reader_t *reader; (reader = draws->readers);) {
    draws->readers = reader->next;
    free(reader);
  }
}

/* A node, behind which the stream is, writes the state. */
static tp_status_t note_mover(tp__draws_t *draws, cudaGraphNode_t node, tp_stream_t *stream, const char *operation) {
  if (draws->mover) TP_TRY(put_behind(draws->graph, node, draws->mover, operation));
  for (const tp__reader_t *reader = draws->readers; reader; reader = reader->next)
    TP_TRY(put_behind(draws->graph, node, reader->node, operation));
  forget_readers(draws);
  draws->mover = node;
  draws->mover_stream = stream;
  return TP_OK;
}

/* ---- the state ---- */

static tp_generator_state_t *state_of(const tp__draws_t *outer) { return tp__alloc_address(outer->state); }

/* Sets the state in front of the draw that comes next on the stream. */
static tp_status_t capture_setter(tp__draws_t *outer, tp_stream_t *stream, const char *operation) {
  const tp_generator_args_t args = {.target = state_of(outer)};
  TP_TRY(tp__generator_move(&args, stream, operation));
  TP_TRY(last_node(stream, &outer->graph, &outer->setter, operation));
  return note_mover(outer, outer->setter, stream, operation);
}

/* Sets it where the conditional node of a body is, which stands in the graph itself, and comes behind it once the body
 * has ended. */
static tp_status_t insert_setter(tp__draws_t *outer, const tp__draws_t *body, const char *operation) {
  const tp_generator_args_t args = {.target = state_of(outer)};
  enum cudaStreamCaptureStatus status;
  struct cudaKernelNodeParams params;
  void *list[1];
  cudaGraphNode_t *nodes;
  size_t count;
  TP_TRY(tp__generator_params(&args, tp_stream_device(body->stream), list, &params, operation));
  cudaError_t error = tp__captured_info(body->stream, &status, NULL, &outer->graph, NULL, NULL, NULL);
  if (error) return tp__error_set_cuda(error, operation, "cudaStreamGetCaptureInfo");
  TP_TRY(dependencies_of(body->node, &nodes, &count, operation));
  error = cudaGraphAddKernelNode(&outer->setter, outer->graph, nodes, count, &params);
  free(nodes);
  if (error) return tp__error_set_cuda(error, operation, "cudaGraphAddKernelNode");
  return note_mover(outer, outer->setter, body->stream, operation);
}

/* Sees to it that the graph has a state. It is taken where memory that the graph uses before the setter may be taken
 * from, and kept. */
static tp_status_t make_state(tp__draws_t *draws, tp_stream_t *stream, const char *operation) {
  tp__draws_t *outer = outermost(draws), *body = draws;
  while (body->around && body->around != outer) body = body->around;
  pthread_mutex_lock(&lock);
  bool exists = outer->state;
  pthread_mutex_unlock(&lock);
  if (exists) return TP_OK;
  tp__block_t *block = tp__alloc(sizeof(tp_generator_state_t), body == outer ? stream : body->stream);
  if (!block) return tp_error_status();
  tp_status_t status = TP_OK;
  pthread_mutex_lock(&lock);
  if (!outer->state) {
    tp__capture_disown(block);
    outer->state = block;
    block = NULL;
    status = body == outer ? capture_setter(outer, stream, operation) : insert_setter(outer, body, operation);
    outer->is_broken = status;
  }
  pthread_mutex_unlock(&lock);
  if (block) tp__alloc_free(block); /* another thread was first */
  return status;
}

/* ---- drawing ---- */

static tp_status_t check(tp__draws_t *draws, const tp_stream_t *stream, const char *operation) {
  int32_t device = tp_stream_device(stream), other = tp_stream_device(outermost(draws)->stream);
  if (device != other)
    return tp__error_set(TP_STATE, operation, "got cuda:%d in a capture that began on cuda:%d: a graph draws random "
                                              "numbers of one device", (int)device, (int)other);
  if (draws->is_closed)
    return tp__error_set(TP_STATE, operation, "a body of a conditional node is open: random numbers are drawn on its "
                                              "stream, or when it has ended");
  if (draws->is_late)
    return tp__error_set(TP_STATE, operation, "another stream has drawn random numbers since the if node: draw them "
                                              "before it, or behind the else");
  return TP_OK;
}

/* Status STATE, and what allocations return. */
static tp_status_t begin(tp__draw_t *draw, const char *operation) {
  tp__draws_t *draws = draw->draws;
  TP_TRY(check(draws, draw->stream, operation));
  TP_TRY(tp__device_enter(tp_stream_device(draw->stream), operation));
  TP_TRY(make_state(draws, draw->stream, operation));
  draw->base = state_of(outermost(draws));
  pthread_mutex_lock(&lock);
  draw->state.offset = draws->words;
  draws->words += draw->words;
  pthread_mutex_unlock(&lock);
  return TP_OK;
}

tp_status_t tp__draw_begin(tp__draw_t *draw, const char *operation) {
  draw->draws = tp__capture_draws(draw->stream);
  return draw->draws ? begin(draw, operation) : tp__generator_take(draw, operation);
}

tp_status_t tp__draw_end(tp__draw_t *draw, tp_status_t status, const char *operation) {
  if (draw->copy) tp__alloc_free(draw->copy);
  if (status || !draw->draws || draw->draws->around) return status;
  pthread_mutex_lock(&lock);
  status = note_reader(draw->draws, draw->stream, operation);
  if (status) draw->draws->is_broken = true;
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- captures and bodies ---- */

void tp__draws_begin(tp__draws_t *draws, tp_stream_t *stream, tp__draws_t *around, cudaGraphNode_t node) {
  *draws = (tp__draws_t){.stream = stream, .around = around, .node = node};
  if (!around) return;
  pthread_mutex_lock(&lock);
  bool is_other = around->body_node == node;
  if (!is_other) around->body_first = around->words;
  around->body_node = node;
  around->is_closed = true;
  draws->first = draws->words = around->body_first;
  draws->is_late = is_other && around->words != around->body_first;
  pthread_mutex_unlock(&lock);
}

static tp_status_t end_body(tp__draws_t *draws, tp_stream_t *inside, const char *operation) {
  if (draws->words != draws->first) {
    tp_generator_state_t *state = state_of(outermost(draws));
    const tp_generator_args_t args = {.source = state, .next = state, .words = draws->words - draws->first};
    TP_TRY(tp__generator_move(&args, inside, operation));
    draws->moves = true;
  }
  if (!draws->moves) return TP_OK;
  tp__draws_t *around = draws->around;
  around->moves = true;
  return around->around ? TP_OK : note_mover(around, draws->node, draws->stream, operation);
}

tp_status_t tp__draws_end_body(tp__draws_t *draws, tp_stream_t *inside, const char *operation) {
  pthread_mutex_lock(&lock);
  tp_status_t status = end_body(draws, inside, operation);
  if (status) outermost(draws)->is_broken = true;
  pthread_mutex_unlock(&lock);
  return status;
}

void tp__draws_end(tp__draws_t *draws) {
  pthread_mutex_lock(&lock);
  forget_readers(draws);
  if (draws->around) draws->around->is_closed = false;
  pthread_mutex_unlock(&lock);
}

void tp__draws_forget(tp__draws_t *draws) {
  if (draws->state) tp__alloc_free(draws->state);
  *draws = (tp__draws_t){0};
}

/* ---- replays ---- */

tp_status_t tp__draws_prepare(const tp__draws_t *draws, const char *operation) {
  if (draws->is_broken) return tp__error_set(TP_STATE, operation, "a draw of random numbers has failed in the capture");
  return draws->moves ? tp__generator_prepare(tp_stream_device(draws->stream), operation) : TP_OK;
}

static tp_status_t set_setter(const tp_generator_args_t *args, cudaGraphExec_t exec, cudaGraphNode_t setter,
                              int32_t device, const char *operation) {
  struct cudaKernelNodeParams params;
  void *list[1];
  TP_TRY(tp__generator_params(args, device, list, &params, operation));
  TP_TRY_CUDA(cudaGraphExecKernelNodeSetParams(exec, setter, &params), operation);
  return TP_OK;
}

/* Under the generator's lock. */
static tp_status_t launch(tp__generator_t *generator, const tp__draws_t *draws, cudaGraphExec_t exec,
                          cudaGraphNode_t setter, tp_stream_t *stream, bool *out_queued, const char *operation) {
  tp_generator_state_t *state = state_of(draws), *place = generator->place;
  tp_generator_args_t set = {.target = state, .state = generator->state};
  const tp_generator_args_t store = {.source = state, .next = place, .words = draws->words};
  if (generator->is_on_device) set.source = place;
  if (generator->is_on_device && !draws->moves) {
    set.next = place;
    set.words = draws->words;
  }
  if (generator->is_on_device || draws->moves) TP_TRY(tp__generator_wait(generator, stream, operation));
  TP_TRY(set_setter(&set, exec, setter, tp_stream_device(stream), operation));
  TP_TRY_CUDA(cudaGraphLaunch(exec, tp__stream_cuda(stream)), operation);
  *out_queued = true;
  if (draws->moves) {
    generator->is_on_device = true;
    TP_TRY(tp__generator_move(&store, stream, operation));
  }
  if (generator->is_on_device) return tp__generator_note(generator, stream, operation);
  generator->state.offset += draws->words;
  return TP_OK;
}

tp_status_t tp__draws_launch(const tp__draws_t *draws, cudaGraphExec_t exec, cudaGraphNode_t setter,
                             tp_stream_t *stream, bool *out_queued, const char *operation) {
  *out_queued = false;
  if (!draws->state) {
    TP_TRY_CUDA(cudaGraphLaunch(exec, tp__stream_cuda(stream)), operation);
    *out_queued = true;
    return TP_OK;
  }
  tp__generator_t *generator = tp__generator_lock(tp_stream_device(stream));
  tp_status_t status = launch(generator, draws, exec, setter, stream, out_queued, operation);
  tp__generator_unlock(generator);
  return status;
}
