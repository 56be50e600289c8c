/* What stage_and_launch keeps from call to call: it may never show. */
#include "../../kernels/args_stage.h"
#include "stage_scene.h"

/* Static inputs of a call after another one: other tensors of the same memory, of other sizes, in another order. */
static void test_only_what_the_static_inputs_are_now_counts(void) {
  enum { COLUMNS = 4, ROWS = NUMEL / COLUMNS };
  scene_t scene = set_up();
  CHECK_OK(run(&scene, 0));
  for (int i = 0; i < N; i++) check_all(scene.targets[i], i);
  tp_tensor_t **last = &scene.targets[N - 1], **input = &scene.sources[1][N - 1];
  const int64_t shape[] = {ROWS, COLUMNS}, swapped[] = {COLUMNS, ROWS};
  tp_tensor_t *flat = *last, *numbers = *input;
  CHECK((*last = tp_tensor_view(flat, 2, shape)));
  CHECK(run(&scene, 1) == TP_SHAPE); /* 100 numbers onto 25 x 4 */
  CHECK((*input = tp_tensor_view(numbers, 2, swapped)));
  CHECK(run(&scene, 1) == TP_SHAPE); /* as many elements, and as many dimensions */
  tp_tensor_release(*input);
  CHECK((*input = tp_tensor_view(numbers, 2, shape)));
  CHECK_OK(run(&scene, 1));
  for (int i = 0; i < N; i++) check_all(scene.targets[i], 10 + i);
  tp_tensor_release(*input);
  tp_tensor_release(*last);
  CHECK((*last = tp_tensor_slice(flat, 0, 0, NUMEL / 2, 1))); /* begins where the former one did */
  CHECK((*input = tp_tensor_slice(scene.sources[0][0], 0, 0, NUMEL / 2, 1)));
  CHECK_OK(run(&scene, 1));
  check_all(*last, 0);
  tp_tensor_t *rest = tp_tensor_slice(flat, 0, NUMEL / 2, NUMEL, 1);
  check_all(rest, 10 + N - 1);
  tp_tensor_release(*input);
  tp_tensor_release(*last);
  *last = flat;
  *input = numbers;
  CHECK_OK(run(&scene, 1));
  tp_tensor_t *first = scene.targets[0];
  scene.targets[0] = scene.targets[1];
  scene.targets[1] = first;
  CHECK_OK(run(&scene, 0));
  check_all(first, 1);
  check_all(scene.targets[0], 0);
  tp_tensor_release(rest);
  tear_down(&scene);
}

/* Memory of static inputs that were dropped comes back as other tensors. */
static void test_a_dropped_static_input_is_forgotten(void) {
  scene_t scene = set_up();
  for (int round = 0; round < 6; round++) {
    CHECK_OK(run(&scene, round % 2));
    check_all(scene.targets[0], 10 * (round % 2));
    uintptr_t address = tp_tensor_data(scene.targets[0]);
    tp_tensor_release(scene.targets[0]);
    int32_t dtype = round % 3 == 0 ? TP_DTYPE_int32 : TP_DTYPE_float32;
    scene.targets[0] = make(dtype, round % 3 == 1 ? NUMEL - 1 : NUMEL);
    CHECK(tp_tensor_data(scene.targets[0]) == address);
    CHECK_OK(tp_tensor_fill_int(scene.targets[0], 77));
    tp_status_t status = run(&scene, (round + 1) % 2);
    CHECK(status == (round % 3 == 1 ? TP_SHAPE : TP_OK));
    check_all(scene.targets[0], status ? 77 : 10 * ((round + 1) % 2));
    tp_tensor_release(scene.targets[0]);
    scene.targets[0] = filled(NUMEL, 0);
  }
  tear_down(&scene);
}

/* With the static inputs of the last call, an input that lies in one of them: the kernel may not have it. */
static void test_inputs_that_are_static_inputs_act_in_order(void) {
  scene_t scene = set_up();
  tp_tensor_t *two = scene.sources[0][2], *three = scene.sources[0][3];
  for (int round = 0; round < 2; round++) {
    CHECK_OK(run(&scene, 0));
    scene.sources[0][3] = scene.targets[2];
    if (round) scene.sources[0][2] = scene.targets[3];
    CHECK_OK(tp_tensor_fill_float(scene.targets[3], 40));
    tp_emulated_clear_call_counts();
    CHECK_OK(run(&scene, 0));
    CHECK(calls("cudaMemcpyAsync") + calls("cudaLaunchKernel") >= N - 1);
    check_all(scene.targets[2], round ? 40 : 2);
    check_all(scene.targets[3], round ? 40 : 2);
    scene.sources[0][3] = three;
  }
  scene.sources[0][2] = two;
  CHECK_OK(run(&scene, 0));
  check_all(scene.targets[2], 2);
  tear_down(&scene);
}

/* The node's kernel and grid grow with the batches, and serve smaller ones afterwards. */
static void test_batches_grow_and_shrink(void) {
  enum { MANY = TP_STAGE_PAIRS };
  const int counts[] = {3, 9, 8, 33, 64, 1, 20};
  tp_tensor_t *targets[MANY], *sources[MANY], *out = filled(NUMEL, 0);
  for (int i = 0; i < MANY; i++) {
    int64_t numel = i % 7 == 6 ? 3 * TP_STAGE_TILE : NUMEL;
    targets[i] = filled(numel, 0);
    sources[i] = filled(numel, 0);
  }
  tp_graph_t *graph = capture_copy(out, targets[0]);
  for (int k = 0; k < 7; k++) {
    for (int i = 0; i < MANY; i++) {
      CHECK_OK(tp_tensor_fill_float(targets[i], -1));
      CHECK_OK(tp_tensor_fill_float(sources[i], 100 * k + i));
    }
    tp_emulated_clear_call_counts();
    CHECK_OK(tp_graph_stage_and_launch(graph, counts[k], targets, sources));
    CHECK(calls("cudaGraphExecKernelNodeSetParams") == (k > 0) && calls("cudaLaunchKernel") == 0);
    CHECK(calls("cudaGraphInstantiate") == (k == 0) && calls("cudaGraphLaunch") == 1);
    check_all(out, 100 * k);
    for (int i = 0; i < MANY; i++) check_all(targets[i], i < counts[k] ? 100 * k + i : -1);
  }
  tp_graph_release(graph);
  tp_tensor_release(out);
  for (int i = 0; i < MANY; i++) {
    tp_tensor_release(targets[i]);
    tp_tensor_release(sources[i]);
  }
}

/* A stream of another library, where inputs were copied and the launch behind them failed, may be gone by then. */
static void test_a_stream_where_a_launch_failed_is_forgotten(void) {
  scene_t scene = set_up();
  cudaStream_t theirs;
  CHECK(!cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking));
  tp_stream_t *external = tp_stream_external(0, (uintptr_t)theirs);
  tp_tensor_t *whole = make(TP_DTYPE_int32, NUMEL); /* it is copied by itself, in front of the launch */
  CHECK(external);
  CHECK_OK(tp_tensor_fill_int(whole, 7));
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_stream_set_current(external));
  CHECK(tp_emulated_fail("cudaGraphLaunch", 1, cudaErrorInvalidValue) == 0);
  CHECK(tp_graph_stage_and_launch(scene.graph, 1, &scene.targets[N - 1], &whole) == TP_CUDA);
  CHECK_OK(tp_stream_synchronize(external));
  CHECK(!cudaStreamDestroy(theirs));
  CHECK_OK(tp_stream_set_current(stream));
  CHECK_OK(tp_graph_replay(scene.graph, NULL));
  check_all(scene.out, 7);
  tp_tensor_release(whole);
  tear_down(&scene);
}

int main(void) {
  scene_start();
  test_only_what_the_static_inputs_are_now_counts();
  test_a_dropped_static_input_is_forgotten();
  test_inputs_that_are_static_inputs_act_in_order();
  test_batches_grow_and_shrink();
  test_a_stream_where_a_launch_failed_is_forgotten();
  return 0;
}
