/* Random numbers in graphs: replays draw what eager work would draw in their place. */
#include <pthread.h>

#include "draws_case.h"

/* ---- replays and eager work ---- */

static void test_replays_draw_on(void) {
  static const uint64_t offsets[] = {0, 4, 0xfffffffcu, 0xffffffffffffffccu}; /* the last one wraps inside a replay */
  fills_t fills = make_fills();
  uint64_t seed = values_bits();
  CHECK_OK(tp_generator_seed(0, seed));
  tp_graph_t *graph = capture_fills(&fills);
  check_state(seed, 0); /* a capture draws nothing */
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    CHECK_OK(tp_generator_set_state(0, seed, offsets[i]));
    for (uint64_t n = 0; n < 3; n++) {
      replay(graph);
      check_drawn(&fills, seed, offsets[i] + n * WORDS);
      check_state(seed, offsets[i] + (n + 1) * WORDS);
    }
  }
  tp_graph_release(graph);
  release_fills(&fills);
}

static void test_replays_and_eager_work_take_turns(void) {
  fills_t fills = make_fills(), others = make_fills();
  tp_graph_t *graph = capture_fills(&fills);
  uint64_t seed = values_bits(), offset = 0;
  CHECK_OK(tp_generator_seed(0, seed));
  for (int n = 0; n < 8; n++, offset += WORDS) {
    bool eager = values_between(0, 2);
    if (eager)
      fill(&others);
    else
      replay(graph);
    check_drawn(eager ? &others : &fills, seed, offset);
  }
  tp_graph_release(graph);
  release_fills(&fills);
  release_fills(&others);
}

/* Reseeding between replays changes seed and counter, and a state that was kept brings its numbers back. */
static void test_seeds_and_states_between_replays(void) {
  fills_t fills = make_fills();
  tp_graph_t *graph = capture_fills(&fills);
  CHECK_OK(tp_generator_seed(0, 1));
  replay(graph);
  numbers_t first = numbers_of(&fills);
  CHECK_OK(tp_generator_seed(0, 2));
  replay(graph);
  numbers_t other = numbers_of(&fills);
  replay(graph);
  numbers_t next = numbers_of(&fills);
  uint64_t seed, offset;
  CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  replay(graph);
  numbers_t kept = numbers_of(&fills);
  CHECK_OK(tp_generator_seed(0, 1));
  replay(graph);
  numbers_t again = numbers_of(&fills);
  CHECK(equal(&first, &again) && !equal(&first, &other) && !equal(&other, &next) && !equal(&next, &kept));
  CHECK_OK(tp_generator_set_state(0, seed, offset));
  replay(graph);
  again = numbers_of(&fills);
  CHECK(equal(&kept, &again));
  tp_graph_release(graph);
  release_fills(&fills);
}

static void test_states_are_refused_in_a_capture(void) {
  fills_t fills = make_fills();
  CHECK_OK(tp_generator_set_state(0, 3, 8));
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  fill(&fills);
  uint64_t seed, offset;
  CHECK(tp_generator_get_state(0, &seed, &offset) == TP_STATE && strstr(tp_error_text(), "get_rng_state: "));
  CHECK(tp_generator_set_state(0, 1, 0) == TP_STATE && strstr(tp_error_text(), "set_rng_state: "));
  CHECK(tp_generator_seed(0, 1) == TP_STATE && strstr(tp_error_text(), "manual_seed: "));
  CHECK(strstr(tp_error_text(), "being captured") && strstr(tp_error_text(), "between replays"));
  CHECK_OK(tp_generator_seed(1, 5)); /* no part of the capture */
  fill(&fills);
  /* Beside it, and on other streams, the generator is as always. */
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  CHECK(seed == 3 && offset == 8);
  fills_t others = make_fills();
  fill(&others);
  CHECK_OK(tp_graph_capture_end(graph));
  check_drawn(&others, 3, 8);
  check_state(3, 8 + WORDS);
  replay(graph);
  check_drawn(&fills, 3, 8 + 2 * WORDS); /* by the second of the two that were captured */
  check_state(3, 8 + 3 * WORDS);
  tp_graph_release(graph);
  release_fills(&fills);
  release_fills(&others);
}

/* ---- several graphs, streams, threads ---- */

static void test_two_captures_at_once_and_their_replays_in_turn(void) {
  fills_t fills[2] = {make_fills(), make_fills()};
  tp_graph_t *first = begin(tp_stream_from_pool(0, 0));
  tp_stream_t *stream = tp_stream_current(0);
  fill(&fills[0]);
  tp_stream_t *other = tp_stream_from_pool(0, 0);
  tp_graph_t *second = begin_graph(other, TP_CAPTURE_RELAXED);
  CHECK_OK(tp_stream_set_current(other));
  fill(&fills[1]);
  CHECK_OK(tp_stream_set_current(stream));
  fill(&fills[0]);
  end(first);
  CHECK_OK(tp_graph_capture_end(second));
  CHECK_OK(tp_generator_seed(0, 4));
  for (uint64_t turn = 0; turn < 3; turn++) {
    replay(second);
    replay(first);
    check_drawn(&fills[1], 4, turn * 3 * WORDS);
    check_drawn(&fills[0], 4, (turn * 3 + 2) * WORDS);
  }
  tp_graph_release(first);
  replay(second);
  check_drawn(&fills[1], 4, 9 * WORDS);
  tp_graph_release(second);
  for (int i = 0; i < 2; i++) release_fills(&fills[i]);
}

/* Launches of one graph run one after the other, each with its own numbers, and those of two graphs side by side. */
static void test_replays_on_several_streams(void) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    tp_emulated_set_seed(seed);
    fills_t fills[2] = {make_fills(), make_fills()};
    tp_tensor_t *kept[4];
    tp_stream_t *streams[4];
    tp_graph_t *graphs[2] = {capture_fills(&fills[0]), capture_fills(&fills[1])};
    CHECK_OK(tp_device_synchronize(0));
    CHECK_OK(tp_generator_seed(0, seed));
    for (int i = 0; i < 4; i++) {
      streams[i] = tp_stream_from_pool(0, 0);
      if (i >= 2) CHECK_OK(tp_stream_wait_stream(streams[i], streams[i - 2])); /* which still reads what it filled */
      CHECK_OK(tp_stream_set_current(streams[i]));
      replay(graphs[i % 2]);
      kept[i] = tp_tensor_empty_like(fills[i % 2].uniform);
      CHECK_OK(tp_tensor_copy(kept[i], fills[i % 2].uniform));
    }
    CHECK_OK(tp_device_synchronize(0));
    CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
    for (uint64_t i = 0; i < 4; i++) {
      float got[NUMBERS];
      numbers_t expected = drawn_from(seed, i * WORDS);
      CHECK_OK(tp_tensor_copy_to_host(kept[i], got, sizeof got));
      CHECK(memcmp(got, expected.bytes, sizeof got) == 0);
      tp_tensor_release(kept[i]);
    }
    for (int i = 0; i < 2; i++) {
      tp_graph_release(graphs[i]);
      release_fills(&fills[i]);
    }
  }
}

/* Draws on streams that fork and join, the first one on the side: every order that CUDA may choose is right. */
static void test_draws_on_forked_streams(void) {
  fills_t fills[3] = {make_fills(), make_fills(), make_fills()};
  tp_stream_t *side = tp_stream_from_pool(0, 0);
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  tp_stream_t *stream = tp_stream_current(0);
  CHECK_OK(tp_stream_wait_stream(side, stream));
  CHECK_OK(tp_stream_set_current(side));
  fill(&fills[0]);
  CHECK_OK(tp_stream_set_current(stream));
  fill(&fills[1]);
  CHECK_OK(tp_stream_set_current(side));
  fill(&fills[2]);
  CHECK_OK(tp_stream_wait_stream(stream, side));
  end(graph);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    tp_emulated_set_seed(seed);
    CHECK_OK(tp_generator_seed(0, seed));
    for (uint64_t n = 0; n < 2; n++) {
      replay(graph);
      for (uint64_t i = 0; i < 3; i++) check_drawn(&fills[i], seed, (3 * n + i) * WORDS);
    }
  }
  tp_graph_release(graph);
  for (int i = 0; i < 3; i++) release_fills(&fills[i]);
}

enum { THREADS = 4, REPLAYS = 20 };

static void *replay_often(void *argument) {
  numbers_t *numbers = argument;
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_stream_set_current(stream));
  fills_t fills = make_fills();
  tp_graph_t *graph = begin_graph(stream, TP_CAPTURE_THREAD_LOCAL);
  fill(&fills);
  CHECK_OK(tp_graph_capture_end(graph));
  for (int i = 0; i < REPLAYS; i++) {
    replay(graph);
    numbers[i] = numbers_of(&fills);
  }
  tp_graph_release(graph);
  release_fills(&fills);
  return NULL;
}

/* Each replay takes numbers of its own: together they are those of one thread, in some order. */
static void test_threads_get_disjoint_numbers(void) {
  static numbers_t numbers[THREADS * REPLAYS];
  static bool seen[THREADS * REPLAYS];
  pthread_t threads[THREADS];
  CHECK_OK(tp_generator_seed(0, 6));
  for (int t = 0; t < THREADS; t++) CHECK(pthread_create(&threads[t], NULL, replay_often, &numbers[t * REPLAYS]) == 0);
  for (int t = 0; t < THREADS; t++) CHECK(pthread_join(threads[t], NULL) == 0);
  check_state(6, THREADS * REPLAYS * WORDS);
  for (uint64_t place = 0; place < THREADS * REPLAYS; place++) {
    numbers_t expected = drawn_from(6, place * WORDS);
    for (int i = 0; i < THREADS * REPLAYS; i++) seen[i] = seen[i] || equal(&numbers[i], &expected);
  }
  for (int i = 0; i < THREADS * REPLAYS; i++) CHECK(seen[i]);
}

/* ---- memory ---- */

static void fill_and_drop(void) {
  tp_tensor_t *tensor = tp_tensor_empty(TP_DTYPE_int64, 0, 1, (int64_t[]){2});
  CHECK_OK(tp_tensor_fill_int(tensor, 77));
  tp_tensor_release(tensor);
}

/* The graph's state is none of the program's blocks, and not where earlier work of the graph is. */
static void test_the_state_is_the_graphs_own(void) {
  for (uint64_t seed = 0; seed < 4; seed++) {
    fills_t fills = make_fills();
    tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
    fill_and_drop();
    fill(&fills);
    fill_and_drop();
    fill(&fills);
    end(graph);
    tp_emulated_set_seed(seed);
    CHECK_OK(tp_generator_seed(0, seed));
    for (uint64_t n = 0; n < 2; n++) {
      replay(graph);
      check_drawn(&fills, seed, (2 * n + 1) * WORDS);
    }
    int64_t used = tp_emulated_used(0);
    CHECK_OK(tp_graph_reset(graph));
    CHECK(tp_emulated_used(0) < used);
    CHECK(tp_graph_replay(graph, NULL) == TP_STATE);
    CHECK_OK(tp_graph_capture_begin(graph, tp_stream_from_pool(0, 0), NULL, TP_CAPTURE_GLOBAL));
    tp_graph_capture_abandon(graph);
    tp_graph_release(graph);
    release_fills(&fills);
  }
}

/* ---- failures ---- */

static void test_another_device_is_refused(void) {
  tp_stream_t *other = tp_stream_from_pool(1, 0);
  tp_tensor_t *there = tp_tensor_empty(TP_DTYPE_float32, 1, 1, (int64_t[]){4});
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  CHECK_OK(tp_stream_wait_stream(other, tp_stream_current(0)));
  CHECK_OK(tp_stream_set_current(other));
  CHECK(tp_random_uniform(there, 0, 1) == TP_STATE);
  CHECK(strstr(tp_error_text(), "got cuda:1 in a capture that began on cuda:0"));
  CHECK_OK(tp_stream_set_current(tp_stream_default(1)));
  tp_graph_capture_abandon(graph);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_graph_release(graph);
  tp_tensor_release(there);
}

/* A draw that fails in the middle, and is forgiven, spoils the graph, whose numbers would be wrong. */
static void test_a_draw_that_fails_spoils_the_capture(void) {
  static const struct {
    const char *function;
    int64_t nth;
  } failures[] = {{"cudaLaunchKernel", 1}, {"cudaStreamGetCaptureInfo", 3}, {"cudaGraphNodeGetDependencies", 1}};
  fills_t fills = make_fills();
  CHECK_OK(tp_generator_seed(0, 1));
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    tp_stream_t *side = tp_stream_from_pool(0, 0);
    tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
    tp_stream_t *stream = tp_stream_current(0);
    CHECK_OK(tp_stream_wait_stream(side, stream));
    if (i == 2) {
      CHECK_OK(tp_random_uniform(fills.uniform, 0, 1));
      CHECK_OK(tp_stream_set_current(side));
    }
    CHECK(tp_emulated_fail(failures[i].function, failures[i].nth, cudaErrorUnknown) == 0);
    CHECK(tp_random_bits(fills.bits) == TP_CUDA);
    CHECK_OK(tp_stream_wait_stream(stream, side));
    CHECK(tp_graph_capture_end(graph) == TP_STATE && strstr(tp_error_text(), "a draw of random numbers has failed"));
    CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
    tp_graph_release(graph);
    tp_emulated_fail(failures[i].function, 0, 0);
  }
  check_state(1, 0);
  tp_graph_t *graph = capture_fills(&fills);
  replay(graph);
  check_drawn(&fills, 1, 0);
  tp_graph_release(graph);
  release_fills(&fills);
}

static void test_a_state_without_memory(void) {
  fills_t fills = make_fills();
  CHECK_OK(tp_memory_empty_cache(0));
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  CHECK(tp_emulated_fail("cudaMalloc", 1, cudaErrorMemoryAllocation) == 0);
  CHECK(tp_random_bits(fills.bits) == TP_OUT_OF_MEMORY);
  fill(&fills); /* there is some by now */
  end(graph);
  CHECK_OK(tp_generator_seed(0, 2));
  replay(graph);
  check_drawn(&fills, 2, 0);
  tp_graph_release(graph);
  release_fills(&fills);
}

static void test_a_replay_that_fails_draws_nothing(void) {
  static const char *const functions[] = {"cudaGraphExecKernelNodeSetParams", "cudaGraphLaunch"};
  fills_t fills = make_fills();
  tp_graph_t *graph = capture_fills(&fills);
  CHECK_OK(tp_generator_seed(0, 9));
  for (int i = 0; i < 2; i++) {
    CHECK(tp_emulated_fail(functions[i], 1, cudaErrorUnknown) == 0);
    CHECK(tp_graph_replay(graph, NULL) == TP_CUDA && strstr(tp_error_text(), "replay: "));
    check_state(9, 0);
  }
  replay(graph);
  check_drawn(&fills, 9, 0);
  tp_graph_release(graph);
  release_fills(&fills);
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; fibres++) {
    tp_emulated_set_fibres(fibres);
    test_replays_draw_on();
    test_replays_and_eager_work_take_turns();
    test_seeds_and_states_between_replays();
    test_states_are_refused_in_a_capture();
    test_two_captures_at_once_and_their_replays_in_turn();
    test_replays_on_several_streams();
    test_draws_on_forked_streams();
    test_the_state_is_the_graphs_own();
  }
  tp_emulated_set_fibres(0);
  test_threads_get_disjoint_numbers();
  test_another_device_is_refused();
  test_a_draw_that_fails_spoils_the_capture();
  test_a_state_without_memory();
  test_a_replay_that_fails_draws_nothing();
  return 0;
}
