/* Which captured work comes before the next node of a captured stream: the nodes that it depends on now, and theirs.
 * They are looked at from the latest on, and only until the question is answered. Where that would take too long, and
 * where an edge is not a whole one (CUDA then refuses to leave its data out), the answer is no. */
#include <stdlib.h>

#include "../captured.h"
#include "past.h"

enum { NODE_LIMIT = 4096, SLOT_COUNT = 2 * NODE_LIMIT, DEPENDENCY_LIMIT = 64 };

struct tp__past {
  uint64_t capture;
  int32_t count;
  int32_t looked_at;                 /* of the nodes: their dependencies are here as well */
  cudaGraphNode_t nodes[NODE_LIMIT]; /* in the order in which they were found */
  cudaGraphNode_t slots[SLOT_COUNT]; /* the same, by their addresses */
};

/* Where the node is, or would be: there are more slots than nodes. */
static cudaGraphNode_t *slot_of(tp__past_t *past, cudaGraphNode_t node) {
  size_t slot = (uintptr_t)node * 0x9E3779B97F4A7C15u >> 40;
  while (past->slots[slot % SLOT_COUNT] && past->slots[slot % SLOT_COUNT] != node) slot++;
  return &past->slots[slot % SLOT_COUNT];
}

static void add(tp__past_t *past, const cudaGraphNode_t *nodes, size_t count) {
  for (size_t i = 0; i < count && past->count < NODE_LIMIT; i++) {
    cudaGraphNode_t *slot = slot_of(past, nodes[i]);
    if (!*slot) *slot = past->nodes[past->count++] = nodes[i];
  }
}

static void look_further(tp__past_t *past) {
  cudaGraphNode_t found[DEPENDENCY_LIMIT];
  size_t count = DEPENDENCY_LIMIT;
  if (cudaGraphNodeGetDependencies(past->nodes[past->looked_at++], found, NULL, &count)) {
    (void)cudaGetLastError();
    return;
  }
  add(past, found, count);
}

static bool holds(tp__past_t *past, cudaGraphNode_t node) {
  while (!*slot_of(past, node)) {
    if (past->looked_at == past->count) return false;
    look_further(past);
  }
  return true;
}

tp__past_t *tp__past_new(const tp_stream_t *stream) {
  uint64_t capture = tp__stream_capture(stream);
  const cudaGraphNode_t *tail;
  size_t count;
  if (!tp__captured_tail(stream, capture, &tail, &count)) return NULL;
  tp__past_t *past = calloc(1, sizeof *past);
  if (!past) return NULL;
  past->capture = capture;
  add(past, tail, count);
  return past;
}

void tp__past_delete(tp__past_t *past) { free(past); }

bool tp__past_holds(tp__past_t *past, const tp_stream_t *other) {
  const cudaGraphNode_t *tail;
  size_t count;
  if (!tp__captured_tail(other, past->capture, &tail, &count)) return false;
  for (size_t i = 0; i < count; i++) {
    if (!holds(past, tail[i])) return false;
  }
  return true;
}
