/* CUDA's rules of edges in graphs, as far as they show without kernels. */
#ifndef TP_EDGE_RULES_H
#define TP_EDGE_RULES_H

#include "graph_rules.h"

/* Edges between nodes that exist, also while the graph is being captured: what is added last may come first. */
static void rule_an_edge_orders_nodes_that_exist(void) {
  cudaStream_t stream = begin(GLOBAL);
  EXPECT_OK(fill(stream, 0, 7));
  cudaStream_t side = make_stream();
  fork_to(stream, side);
  EXPECT_OK(fill(stream, 1, 5));
  EXPECT_OK(fill(side, 2, 6));
  enum cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t *last;
  size_t count = 0;
  cudaGraphNode_t nodes[2], first;
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &last, NULL, &count));
  EXPECT_EQUAL(1, count);
  nodes[0] = last[0];
  EXPECT_OK(cudaStreamGetCaptureInfo(side, &status, &id, &graph, &last, NULL, &count));
  nodes[1] = last[0];
  EXPECT_OK(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
  EXPECT_EQUAL(3, edges_of(graph));
  EXPECT(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1)); /* it exists */
  EXPECT(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &nodes[0], &nodes[0], NULL, 1));
  EXPECT_OK(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
  EXPECT_OK(cudaGraphAddDependencies(graph, &first, &nodes[0], NULL, 1));
  EXPECT_OK(cudaGraphAddDependencies(graph, NULL, NULL, NULL, 0));
  EXPECT(cudaErrorInvalidValue, cudaGraphAddDependencies(NULL, NULL, NULL, NULL, 0));
  fork_to(side, stream);
  EXPECT_OK(fill(stream, 3, 8));
  EXPECT_EQUAL(1, end(stream) == graph);
  EXPECT_EQUAL(5, nodes_of(graph));
  EXPECT_EQUAL(6, edges_of(graph));
  cudaGraphExec_t exec = executable(graph);
  launch(exec, stream);
  const int expected[] = {7, 5, 6, 8};
  for (int i = 0; i < 4; i++) EXPECT_EQUAL(expected[i], read_memory(i));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(side));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* An edge is removed by its ends and its data; the nodes stay. */
static void rule_edges_are_removed(void) {
  cudaGraph_t graph;
  cudaGraphNode_t nodes[3], from, to;
  cudaGraphEdgeData edge, early;
  size_t count = 1;
  memset(&early, 0, sizeof early);
  early.from_port = cudaGraphKernelNodePortProgrammatic;
  early.type = cudaGraphDependencyTypeProgrammatic;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
  EXPECT_OK(cudaGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
  EXPECT_OK(cudaGraphAddEmptyNode(&nodes[2], graph, &nodes[1], 1));
  EXPECT(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[2], NULL, 1));
  EXPECT_OK(cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
  EXPECT_OK(cudaGraphRemoveDependencies(graph, NULL, NULL, NULL, 0));
  EXPECT_OK(cudaGraphGetEdges(graph, &from, &to, &edge, &count));
  EXPECT_EQUAL(1, (long long)count);
  EXPECT_EQUAL(1, from == nodes[1] && to == nodes[2] && !edge.from_port && !edge.to_port && !edge.type);
  /* Programmatic ones are between kernels only. */
  EXPECT(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], &early, 1));
  EXPECT_OK(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], &edge, 1));
  EXPECT_EQUAL(2, edges_of(graph));
  EXPECT_EQUAL(3, nodes_of(graph));
  EXPECT_OK(cudaGraphDestroy(graph));
}

static void rule_a_list_of_dependencies_needs_room(void) {
  cudaGraph_t graph;
  cudaGraphNode_t node, found[2];
  cudaGraphEdgeData edges[2];
  size_t count = 2;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
  EXPECT_OK(cudaGraphNodeGetDependencies(node, NULL, NULL, &count));
  EXPECT_EQUAL(0, count);
  EXPECT(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(node, found, edges, &count));
  (void)cudaGetLastError();
  EXPECT_OK(cudaGraphDestroy(graph));
}

static const rule_t edge_rules[] = {
    RULE(an_edge_orders_nodes_that_exist),
    RULE(edges_are_removed),
    RULE(a_list_of_dependencies_needs_room),
};

#endif
