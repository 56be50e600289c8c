/* Inputs that are staged and a replay, in one launch. */
#include <pthread.h>
#include <string.h>

#include "../../kernels/args_stage.h"
#include "stage_scene.h"

enum { MOST = 160 };

/* Its bytes, taken from the generator of values; out has a copy. */
static void randomise(tp_tensor_t *tensor, unsigned char *out) {
  size_t nbytes = (size_t)tensor->numel * tp__dtype_size(tensor->dtype);
  for (size_t i = 0; i < nbytes; i++) out[i] = (unsigned char)values_bits();
  CHECK_OK(tp_tensor_copy_from_host(tensor, out, nbytes));
}

static void check_bytes(const tp_tensor_t *tensor, const unsigned char *expected) {
  static unsigned char found[1 << 20];
  size_t nbytes = (size_t)tensor->numel * tp__dtype_size(tensor->dtype);
  CHECK(nbytes <= sizeof found);
  CHECK_OK(tp_tensor_copy_to_host(tensor, found, nbytes));
  CHECK(!memcmp(found, expected, nbytes));
}

/* ---- what is copied ---- */

static void test_any_bytes_at_any_address_arrive_and_nothing_beside_them(void) {
  static unsigned char bytes[MOST][3 * TP_STAGE_TILE], before[8 * TP_STAGE_TILE];
  for (int round = 0; round < 20; round++) {
    int32_t count = (int32_t)values_between(1, round < 10 ? 8 : MOST);
    tp_tensor_t *whole[MOST], *targets[MOST], *sources[MOST];
    for (int32_t i = 0; i < count; i++) {
      int64_t room = values_between(1, round % 2 ? 600 : 3 * TP_STAGE_TILE), at = values_between(0, 40);
      whole[i] = make(TP_DTYPE_uint8, room + 80);
      tp_tensor_t *lent = make(TP_DTYPE_uint8, room + 80);
      CHECK_OK(tp_tensor_fill_int(whole[i], 7));
      int64_t shift = round % 3 ? at : values_between(0, 40);
      CHECK((targets[i] = tp_tensor_slice(whole[i], 0, at, at + room, 1)));
      CHECK((sources[i] = tp_tensor_slice(lent, 0, shift, shift + room, 1)));
      randomise(sources[i], bytes[i]);
      tp_tensor_release(lent);
    }
    tp_tensor_t *out = make(TP_DTYPE_uint8, targets[0]->numel);
    tp_graph_t *graph = capture_copy(out, targets[0]);
    CHECK_OK(tp_graph_stage_and_launch(graph, count, targets, sources));
    check_bytes(out, bytes[0]);
    for (int32_t i = 0; i < count; i++) {
      memset(before, 7, sizeof before);
      memcpy(before + targets[i]->offset, bytes[i], (size_t)targets[i]->numel);
      check_bytes(whole[i], before);
      tp_tensor_release(whole[i]);
      tp_tensor_release(targets[i]);
      tp_tensor_release(sources[i]);
    }
    tp_graph_release(graph);
    tp_tensor_release(out);
  }
}

static void test_what_is_not_plain_is_copied_as_always(void) {
  tp_tensor_t *wide = filled(6, 0), *cast = filled(3, 0), *spread = filled(3, 0), *moved = filled(3, 0);
  tp_tensor_t *plain = filled(3, 0), *none = filled(0, 0), *out = filled(3, 0);
  tp_tensor_t *strided = tp_tensor_slice(wide, 0, 0, 6, 2);
  tp_tensor_t *numbers = make(TP_DTYPE_int64, 3), *one = filled(1, 6), *fresh = filled(3, 9);
  tp_tensor_t *far = tp_tensor_empty_1d(TP_DTYPE_float32, 1, 3);
  CHECK_OK(tp_tensor_fill_int(numbers, 5));
  CHECK_OK(tp_tensor_fill_float(far, 8));
  tp_graph_t *graph = capture_copy(out, plain);
  tp_tensor_t *targets[] = {strided, cast, spread, moved, none, plain, fresh};
  tp_tensor_t *sources[] = {numbers, numbers, one, far, none, fresh, fresh};
  CHECK_OK(tp_graph_stage_and_launch(graph, 7, targets, sources));
  check_all(strided, 5);
  check_all(cast, 5);
  check_all(spread, 6);
  check_all(moved, 8);
  check_all(out, 9);
  tp_tensor_t *every_second = tp_tensor_slice(wide, 0, 1, 6, 2);
  check_all(every_second, 0);
  tp_graph_release(graph);
  tp_tensor_t *all[] = {wide, cast, spread, moved, plain, none, out, strided, numbers, one, fresh, far, every_second};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tp_tensor_release(all[i]);
}

/* Pairs that have memory in common are copied in the order of the list. */
static void test_tangled_pairs_act_in_order(void) {
  const float results[][4] = {{3, 3, 3, 3}, {2, 3, 3, 1}, {1, 3, 3, 1}};
  for (int i = 0; i < 3; i++) {
    tp_tensor_t *a = filled(4, 1), *b = filled(4, 2), *c = filled(4, 3), *out = filled(4, 0);
    tp_tensor_t *low = tp_tensor_slice(a, 0, 0, 2, 1), *high = tp_tensor_slice(a, 0, 1, 3, 1);
    tp_tensor_t *two = tp_tensor_slice(b, 0, 0, 2, 1), *three = tp_tensor_slice(c, 0, 0, 2, 1);
    tp_graph_t *graph = capture_copy(out, a);
    /* A chain; targets that overlap; a source that overlaps its own target, and the next one. */
    tp_tensor_t *targets[][2] = {{b, a}, {low, high}, {high, high}};
    tp_tensor_t *sources[][2] = {{c, b}, {two, three}, {low, three}};
    CHECK_OK(tp_graph_stage_and_launch(graph, 2, targets[i], sources[i]));
    check_bytes(out, (const unsigned char *)results[i]);
    tp_graph_release(graph);
    tp_tensor_t *all[] = {a, b, c, out, low, high, two, three};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) tp_tensor_release(all[k]);
  }
}

/* ---- how ---- */

static void test_plain_pairs_are_one_launch_whose_table_is_renewed_when_it_differs(void) {
  scene_t scene = set_up();
  const int order[] = {0, 0, 1, 1, 0};
  const int64_t renewed[] = {0, 0, 1, 1, 2};
  tp_emulated_clear_call_counts();
  for (int i = 0; i < 5; i++) {
    CHECK_OK(run(&scene, order[i]));
    CHECK(calls("cudaGraphExecKernelNodeSetParams") == renewed[i] && calls("cudaGraphLaunch") == i + 1);
    CHECK(calls("cudaLaunchKernel") == 0 && calls("cudaMemcpyAsync") == 0 && calls("cudaGraphInstantiate") == 1);
  }
  check_all(scene.out, N - 1);
  CHECK_OK(tp_tensor_fill_float(scene.targets[N - 1], 50));
  CHECK_OK(tp_graph_replay(scene.graph, NULL)); /* as it was captured */
  check_all(scene.out, 50);
  tear_down(&scene);
}

/* What is queued keeps the table that it was queued with. */
static void test_launches_that_wait_do_not_change(void) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    tp_emulated_set_seed(seed);
    scene_t scene = set_up();
    tp_tensor_t *kept = filled(NUMEL, 0);
    CHECK(tp_emulated_hold(0, tp_stream_handle(stream)) == 0);
    CHECK_OK(run(&scene, 0));
    CHECK_OK(tp_tensor_copy(kept, scene.out));
    CHECK_OK(run(&scene, 1));
    CHECK(tp_emulated_release(0, tp_stream_handle(stream)) == 0);
    check_all(kept, N - 1);
    check_all(scene.out, 10 + N - 1);
    tp_tensor_release(kept);
    tear_down(&scene);
  }
}

static void test_inputs_may_be_dropped_at_once(void) {
  tp_stream_t *other = tp_stream_from_pool(0, 0);
  scene_t scene = set_up();
  CHECK(tp_emulated_hold(0, tp_stream_handle(stream)) == 0);
  CHECK_OK(tp_stream_set_current(other));
  tp_tensor_t *input = filled(NUMEL, 77);
  CHECK_OK(tp_stream_set_current(stream));
  CHECK_OK(tp_stream_wait_stream(stream, other));
  CHECK_OK(tp_graph_stage_and_launch(scene.graph, 1, &scene.targets[N - 1], &input));
  uintptr_t address = tp_tensor_data(input);
  tp_tensor_release(input);
  CHECK_OK(tp_stream_set_current(other));
  tp_tensor_t *next = filled(NUMEL, 5); /* must not take its place */
  CHECK(tp_tensor_data(next) != address);
  CHECK_OK(tp_stream_synchronize(other));
  CHECK_OK(tp_stream_set_current(stream));
  CHECK(tp_emulated_release(0, tp_stream_handle(stream)) == 0);
  check_all(scene.out, 77);
  tp_tensor_release(next);
  tear_down(&scene);
}

static void test_numbers_are_drawn_on_from_where_the_generator_stands(void) {
  tp_tensor_t *x = filled(16, 0), *fresh = filled(16, 1), *out = filled(16, 0), *drawn = filled(16, 0);
  tp_graph_t *graph = begin_graph(stream, TP_CAPTURE_GLOBAL);
  CHECK_OK(tp_random_uniform(drawn, 0, 1));
  CHECK_OK(tp_tensor_copy(out, x));
  CHECK_OK(tp_graph_capture_end(graph));
  double *eager[4];
  CHECK_OK(tp_generator_seed(0, 12));
  for (int i = 0; i < 4; i++) {
    CHECK_OK(tp_random_uniform(drawn, 0, 1));
    eager[i] = values_download(drawn);
  }
  CHECK_OK(tp_generator_seed(0, 12));
  for (int i = 0; i < 4; i++) {
    CHECK_OK(i % 2 ? tp_graph_replay(graph, NULL) : tp_graph_stage_and_launch(graph, 1, &x, &fresh));
    double *found = values_download(drawn);
    CHECK(!memcmp(found, eager[i], 16 * sizeof *found));
    free(found);
    free(eager[i]);
  }
  check_all(out, 1);
  tp_graph_release(graph);
  tp_tensor_t *all[] = {x, fresh, out, drawn};
  for (int i = 0; i < 4; i++) tp_tensor_release(all[i]);
}

/* CUDA neither clones a graph with conditions nor compiles it twice. */
static void test_a_graph_with_conditions_is_staged_by_a_launch_of_its_own(void) {
  scene_t scene = set_up();
  tp_tensor_t *out = filled(NUMEL, 0);
  tp_graph_t *graph = begin_graph(stream, TP_CAPTURE_RELAXED);
  cudaStream_t cuda = tp__stream_cuda(stream), side;
  enum cudaStreamCaptureStatus status;
  cudaGraph_t captured;
  CHECK(cudaStreamGetCaptureInfo(cuda, &status, NULL, &captured, NULL, NULL, NULL) == cudaSuccess);
  cudaGraphConditionalHandle handle;
  cudaGraphNode_t node;
  CHECK(cudaGraphConditionalHandleCreate(&handle, captured, 1, cudaGraphCondAssignDefault) == cudaSuccess);
  struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  CHECK(cudaGraphAddNode(&node, captured, NULL, NULL, 0, &params) == cudaSuccess);
  CHECK(cudaStreamUpdateCaptureDependencies(cuda, &node, NULL, 1, cudaStreamSetCaptureDependencies) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaStreamBeginCaptureToGraph(side, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                      cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMemcpyAsync(out->data, scene.targets[0]->data, NUMEL * sizeof(float), cudaMemcpyDeviceToDevice, side) ==
        cudaSuccess);
  CHECK(cudaStreamEndCapture(side, &captured) == cudaSuccess);
  CHECK_OK(tp_graph_capture_end(graph));
  tp_emulated_clear_call_counts();
  for (int k = 0; k < 2; k++) {
    CHECK_OK(tp_graph_stage_and_launch(graph, N, scene.targets, scene.sources[k]));
    CHECK(calls("cudaLaunchKernel") == k + 1 && calls("cudaGraphLaunch") == k + 1 && calls("cudaGraphClone") == 1);
    double *found = values_download(out);
    CHECK(found[NUMEL - 1] == 10 * k);
    free(found);
  }
  tp_graph_release(graph);
  tp_tensor_release(out);
  tear_down(&scene);
  CHECK(cudaStreamDestroy(side) == cudaSuccess);
}

/* ---- refusals ---- */

static void test_nothing_is_queued_where_one_pair_is_refused(void) {
  scene_t scene = set_up();
  tp_tensor_t *short_one = filled(NUMEL - 1, 1), *one = filled(1, 0);
  const int64_t shape = NUMEL;
  tp_tensor_t *expanded = tp_tensor_expand(one, 1, &shape), *right = scene.sources[0][2];
  CHECK_OK(tp_device_synchronize(0));
  scene.sources[0][2] = short_one;
  CHECK(run(&scene, 0) == TP_SHAPE && strstr(tp_error_text(), "stage_and_launch: "));
  scene.sources[0][2] = right;
  tp_tensor_t *target = scene.targets[4];
  scene.targets[4] = expanded;
  CHECK(run(&scene, 0) == TP_INVALID_ARGUMENT);
  scene.targets[4] = target;
  CHECK(tp_emulated_queued(0) == 0);
  tp_graph_t *empty = make_graph();
  CHECK(tp_graph_stage_and_launch(empty, N, scene.targets, scene.sources[0]) == TP_STATE);
  CHECK_OK(tp_graph_capture_begin(empty, stream, NULL, TP_CAPTURE_GLOBAL));
  CHECK(run(&scene, 0) == TP_STATE && strstr(tp_error_text(), "the stream is captured"));
  CHECK(tp_graph_replay(scene.graph, NULL) == TP_STATE);
  CHECK_OK(tp_graph_capture_end(empty)); /* which that does not spoil */
  tp_graph_release(empty);
  CHECK_OK(run(&scene, 1));
  check_all(scene.out, 10 + N - 1);
  tp_tensor_release(short_one);
  tp_tensor_release(one);
  tp_tensor_release(expanded);
  tear_down(&scene);
}

static void test_a_call_that_fails_leaves_a_graph_that_works(void) {
  static const struct {
    const char *name;
    int32_t nth;
    bool first; /* only the first use makes it */
  } failures[] = {{"cudaGraphClone", 1, true},           {"cudaGraphAddKernelNode", 1, true},
                  {"cudaGraphGetRootNodes", 1, true},    {"cudaGraphGetRootNodes", 2, true},
                  {"cudaGraphAddDependencies", 1, true}, {"cudaGraphInstantiate", 1, true},
                  {"cudaGraphLaunch", 1, true},          {"cudaGraphExecKernelNodeSetParams", 1, false},
                  {"cudaGraphLaunch", 1, false}};
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    scene_t scene = set_up();
    if (!failures[i].first) CHECK_OK(run(&scene, 0));
    CHECK(tp_emulated_fail(failures[i].name, failures[i].nth, cudaErrorInvalidValue) == 0);
    CHECK(run(&scene, 1) == TP_CUDA && strstr(tp_error_text(), failures[i].name));
    for (int k = 0; k < 2; k++) {
      CHECK_OK(run(&scene, k));
      check_all(scene.out, 10 * k + N - 1);
    }
    CHECK_OK(tp_graph_reset(scene.graph));
    tear_down(&scene);
  }
}

static void test_what_is_staged_is_ordered_like_any_work(void) {
  tp_stream_t *other = tp_stream_from_pool(0, 0);
  scene_t scene = set_up();
  CHECK_OK(tp_order_set_mode(TP_ORDER_ERROR));
  tp_graph_release(scene.graph);
  scene.graph = capture_copy(scene.out, scene.targets[N - 1]);
  CHECK_OK(tp_stream_set_current(other));
  CHECK_OK(tp_tensor_fill_float(scene.sources[0][1], 3));
  CHECK_OK(tp_stream_set_current(stream));
  CHECK(run(&scene, 0) == TP_ORDER);
  CHECK_OK(tp_stream_wait_stream(stream, other));
  CHECK_OK(run(&scene, 0));
  CHECK_OK(tp_stream_set_current(other));
  tp_tensor_t *used[] = {scene.targets[0], scene.sources[0][1], scene.out};
  for (int i = 0; i < 3; i++) CHECK(tp_tensor_fill_float(used[i], 1) == TP_ORDER);
  CHECK(run(&scene, 0) == TP_OK); /* one launch comes after the other */
  CHECK(tp_graph_replay(scene.graph, NULL) == TP_OK);
  CHECK_OK(tp_stream_set_current(stream));
  CHECK(tp_graph_replay(scene.graph, NULL) == TP_OK);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_order_set_mode(TP_ORDER_OFF));
  tear_down(&scene);
}

/* Their owners destroy them when the work is done; until then, they are waited for. */
static void test_launches_come_behind_those_on_streams_that_may_be_gone(void) {
  for (int staged = 0; staged < 2; staged++) {
    scene_t scene = set_up();
    cudaStream_t theirs;
    CHECK(!cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking));
    tp_stream_t *external = tp_stream_external(0, (uintptr_t)theirs);
    CHECK(external);
    for (int round = 0; round < 2; round++) {
      CHECK_OK(tp_stream_set_current(external));
      CHECK(tp_emulated_hold(0, (uintptr_t)theirs) == 0);
      CHECK_OK(staged ? run(&scene, 1) : tp_graph_replay(scene.graph, NULL));
      if (round) {
        CHECK_OK(tp_stream_synchronize(external));
        CHECK(!cudaStreamDestroy(theirs));
      }
      CHECK_OK(tp_stream_set_current(stream));
      CHECK_OK(staged ? tp_graph_replay(scene.graph, NULL) : run(&scene, 0));
      check_all(scene.out, staged ? 10 + N - 1 : N - 1);
    }
    tear_down(&scene);
  }
}

static void test_the_first_use_may_come_beside_a_capture(void) {
  scene_t scene = set_up();
  tp_stream_t *other = tp_stream_from_pool(0, 0);
  tp_graph_t *graph = begin_graph(other, TP_CAPTURE_GLOBAL);
  CHECK_OK(run(&scene, 0));
  tear_down(&scene);
  CHECK_OK(tp_graph_capture_end(graph));
  tp_graph_release(graph);
}

/* ---- threads ---- */

static void *stage_many(void *shared_scene) {
  scene_t *shared = shared_scene;
  CHECK_OK(tp_stream_set_current(tp_stream_from_pool(0, 0)));
  scene_t own;
  for (int i = 0; i < N; i++) {
    own.targets[i] = filled(NUMEL, 0);
    for (int k = 0; k < 2; k++) own.sources[k][i] = filled(NUMEL, 10 * k + i);
  }
  own.out = filled(NUMEL, 0);
  tp_stream_t *mine = tp_stream_current(0);
  own.graph = begin_graph(mine, TP_CAPTURE_THREAD_LOCAL);
  CHECK_OK(tp_tensor_copy(own.out, own.targets[1]));
  CHECK_OK(tp_graph_capture_end(own.graph));
  for (int k = 0; k < 20; k++) {
    CHECK_OK(run(&own, k % 2));
    CHECK_OK(run(shared, k % 2)); /* one after the other, though nobody knows whose is last */
    check_all(own.out, 10 * (k % 2) + 1);
  }
  CHECK_OK(tp_stream_synchronize(mine));
  tear_down(&own);
  return NULL;
}

static void test_threads_stage_their_own_graphs_and_one_graph(void) {
  scene_t shared = set_up();
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, stage_many, &shared) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK_OK(tp_device_synchronize(0));
  double *found = values_download(shared.out);
  for (int i = 0; i < NUMEL; i++) CHECK(found[i] == found[0] && (found[i] == N - 1 || found[i] == 10 + N - 1));
  free(found);
  tear_down(&shared);
}

int main(void) {
  scene_start();
  test_any_bytes_at_any_address_arrive_and_nothing_beside_them();
  test_what_is_not_plain_is_copied_as_always();
  test_tangled_pairs_act_in_order();
  test_plain_pairs_are_one_launch_whose_table_is_renewed_when_it_differs();
  test_launches_that_wait_do_not_change();
  test_inputs_may_be_dropped_at_once();
  test_numbers_are_drawn_on_from_where_the_generator_stands();
  test_a_graph_with_conditions_is_staged_by_a_launch_of_its_own();
  test_nothing_is_queued_where_one_pair_is_refused();
  test_a_call_that_fails_leaves_a_graph_that_works();
  test_what_is_staged_is_ordered_like_any_work();
  test_launches_come_behind_those_on_streams_that_may_be_gone();
  test_the_first_use_may_come_beside_a_capture();
  test_threads_stage_their_own_graphs_and_one_graph();
  return 0;
}
