/* Graphs that copy one tensor, and inputs for them: what the tests of stage_and_launch share. */
#ifndef STAGE_SCENE_H
#define STAGE_SCENE_H

#include "graph/graph.h"
#include "graph_case.h"
#include "tp_emulated.h"
#include "values.h"

static tp_stream_t *stream; /* of the pool, of device 0, and current */

static inline tp_tensor_t *make(int32_t dtype, int64_t numel) {
  tp_tensor_t *tensor = tp_tensor_empty_1d(dtype, 0, numel);
  CHECK(tensor);
  return tensor;
}

/* All elements, as numbers. */
static inline void check_all(const tp_tensor_t *tensor, double expected) {
  double *found = values_download(tensor);
  for (int64_t i = 0; i < tensor->numel; i++) CHECK(found[i] == expected);
  free(found);
}

static inline tp_tensor_t *filled(int64_t numel, double value) {
  tp_tensor_t *tensor = make(TP_DTYPE_float32, numel);
  CHECK_OK(tp_tensor_fill_float(tensor, value));
  return tensor;
}

/* A graph that copies `from` to `to`. */
static inline tp_graph_t *capture_copy(tp_tensor_t *to, const tp_tensor_t *from) {
  tp_graph_t *graph = begin_graph(stream, TP_CAPTURE_GLOBAL);
  CHECK_OK(tp_tensor_copy(to, from));
  CHECK_OK(tp_graph_capture_end(graph));
  return graph;
}

static inline int64_t calls(const char *name) { return tp_emulated_call_count(name, -1); }

enum { N = 5, NUMEL = 100 };

/* Five static inputs, the last of which the graph copies to `out`, and two sets of inputs. */
typedef struct scene {
  tp_tensor_t *targets[N], *sources[2][N], *out;
  tp_graph_t *graph;
} scene_t;

static inline scene_t set_up(void) {
  scene_t scene;
  for (int i = 0; i < N; i++) {
    scene.targets[i] = filled(NUMEL, 0);
    for (int k = 0; k < 2; k++) scene.sources[k][i] = filled(NUMEL, 10 * k + i);
  }
  scene.out = filled(NUMEL, 0);
  scene.graph = capture_copy(scene.out, scene.targets[N - 1]);
  CHECK_OK(tp_device_synchronize(0));
  return scene;
}

static inline void tear_down(scene_t *scene) {
  tp_graph_release(scene->graph);
  tp_tensor_release(scene->out);
  for (int i = 0; i < N; i++) {
    tp_tensor_release(scene->targets[i]);
    for (int k = 0; k < 2; k++) tp_tensor_release(scene->sources[k][i]);
  }
}

static inline tp_status_t run(scene_t *scene, int k) {
  return tp_graph_stage_and_launch(scene->graph, N, scene->targets, scene->sources[k]);
}

static inline void scene_start(void) {
  values_start();
  CHECK((stream = tp_stream_from_pool(0, 0)));
  CHECK_OK(tp_stream_set_current(stream));
}

#endif
