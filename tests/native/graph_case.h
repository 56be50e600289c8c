/* What tests of graphs share. */
#ifndef TP_TESTS_GRAPH_CASE_H
#define TP_TESTS_GRAPH_CASE_H

#include "check.h"

static inline tp_graph_t *make_graph(void) {
  tp_graph_t *graph = tp_graph_create();
  CHECK(graph);
  return graph;
}

/* A new graph that captures the stream. */
static inline tp_graph_t *begin_graph(tp_stream_t *stream, int32_t mode) {
  tp_graph_t *graph = make_graph();
  CHECK_OK(tp_graph_capture_begin(graph, stream, NULL, mode));
  return graph;
}

#endif
