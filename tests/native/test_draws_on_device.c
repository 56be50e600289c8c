/* Generators that stand on the device, behind replays of graphs whose bodies draw: what fails, threads, forks. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "draws_case.h"
#include "random/random.h"

/* Fills in front of an if node, in it, and behind it. */
typedef struct branch {
  tp_graph_t *graph;
  tp_tensor_t *predicate;
  fills_t before, inside, behind;
} branch_t;

static void make_branch(branch_t *branch, bool taken) {
  branch->before = make_fills();
  branch->inside = make_fills();
  branch->behind = make_fills();
  branch->predicate = tp_tensor_empty(TP_DTYPE_bool, 0, 0, NULL);
  CHECK_OK(tp_tensor_fill_int(branch->predicate, taken));
  CHECK_OK(tp_device_synchronize(0));
}

/* Everything but the end. */
static void capture_branch(branch_t *branch) {
  branch->graph = begin(tp_stream_from_pool(0, 0));
  tp_stream_t *stream = tp_stream_current(0);
  fill(&branch->before);
  tp_stream_t *inside = tp_graph_begin_if(branch->graph, branch->predicate, stream);
  CHECK(inside);
  CHECK_OK(tp_stream_set_current(inside));
  fill(&branch->inside);
  CHECK_OK(tp_graph_end_body(branch->graph));
  CHECK_OK(tp_stream_set_current(stream));
  fill(&branch->behind);
}

static branch_t new_branch(bool taken) {
  branch_t branch;
  make_branch(&branch, taken);
  capture_branch(&branch);
  end(branch.graph);
  return branch;
}

static void release_branch(branch_t *branch) {
  tp_graph_release(branch->graph);
  tp_tensor_release(branch->predicate);
  release_fills(&branch->before);
  release_fills(&branch->inside);
  release_fills(&branch->behind);
}

static void fail(const char *function, int64_t nth) { CHECK(tp_emulated_fail(function, nth, cudaErrorUnknown) == 0); }

static void test_a_branch_draws_or_leaves_out(void) {
  for (int taken = 0; taken < 2; taken++) {
    branch_t branch = new_branch(taken);
    CHECK_OK(tp_generator_set_state(0, 3, 0xffffffffffffffb0u)); /* wraps in the middle */
    for (uint64_t n = 0, offset = 0xffffffffffffffb0u; n < 3; n++, offset += (uint64_t)(2 + taken) * WORDS) {
      replay(branch.graph);
      check_state(3, offset + (uint64_t)(2 + taken) * WORDS);
      check_drawn(&branch.before, 3, offset);
      if (taken) check_drawn(&branch.inside, 3, offset + WORDS);
      check_drawn(&branch.behind, 3, offset + (uint64_t)(1 + taken) * WORDS);
    }
    release_branch(&branch);
  }
}

/* ---- failures ---- */

static void test_a_generator_without_a_place(void) {
  branch_t branch;
  make_branch(&branch, true);
  capture_branch(&branch);
  CHECK(tp_emulated_fail("cudaMalloc", 1, cudaErrorMemoryAllocation) == 0);
  CHECK(tp_graph_capture_end(branch.graph) == TP_OUT_OF_MEMORY && strstr(tp_error_text(), "capture_end: "));
  CHECK(tp_graph_replay(branch.graph, NULL) == TP_STATE);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_graph_release(branch.graph);
  capture_branch(&branch);
  end(branch.graph);
  CHECK_OK(tp_generator_seed(0, 1));
  replay(branch.graph);
  check_state(1, 3 * WORDS);
  release_branch(&branch);
}

static void test_a_body_that_cannot_move_the_state(void) {
  branch_t branch;
  make_branch(&branch, true);
  branch.graph = begin(tp_stream_from_pool(0, 0));
  tp_stream_t *inside = tp_graph_begin_if(branch.graph, branch.predicate, tp_stream_current(0));
  CHECK_OK(tp_stream_set_current(inside));
  fill(&branch.inside);
  fail("cudaLaunchKernel", 1);
  CHECK(tp_graph_end_body(branch.graph) == TP_CUDA);
  CHECK(tp_graph_capture_end(branch.graph) < 0);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  release_branch(&branch);
}

static void test_a_first_draw_in_a_body_that_cannot_set_the_state(void) {
  static const char *const functions[] = {"cudaGraphAddKernelNode", "cudaGraphNodeGetDependencies"};
  for (int i = 0; i < 2; i++) {
    branch_t branch;
    make_branch(&branch, true);
    branch.graph = begin(tp_stream_from_pool(0, 0));
    tp_stream_t *stream = tp_stream_current(0);
    tp_stream_t *inside = tp_graph_begin_if(branch.graph, branch.predicate, stream);
    CHECK_OK(tp_stream_set_current(inside));
    fail(functions[i], 1);
    CHECK(tp_random_bits(branch.inside.bits) == TP_CUDA);
    fill(&branch.inside);
    CHECK_OK(tp_graph_end_body(branch.graph));
    CHECK(tp_graph_capture_end(branch.graph) == TP_STATE);
    CHECK(strstr(tp_error_text(), "a draw of random numbers has failed"));
    CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
    release_branch(&branch);
  }
}

/* What fails draws nothing, whatever the call, and the state is still found where it was. */
static void test_eager_draws_and_questions_that_fail(void) {
  branch_t branch = new_branch(true);
  fills_t fills = make_fills();
  CHECK_OK(tp_generator_seed(0, 5));
  replay(branch.graph);
  fail("cudaStreamWaitEvent", 1);
  CHECK(tp_random_bits(fills.bits) == TP_CUDA && strstr(tp_error_text(), "random_bits_: "));
  fail("cudaLaunchKernel", 1);
  CHECK(tp_random_bits(fills.bits) == TP_CUDA);
  uint64_t seed, offset;
  fail("cudaStreamWaitEvent", 1);
  CHECK(tp_generator_get_state(0, &seed, &offset) == TP_CUDA && strstr(tp_error_text(), "get_rng_state: "));
  fail("cudaMemcpyAsync", 1);
  CHECK(tp_generator_get_state(0, &seed, &offset) == TP_CUDA);
  fail("cudaStreamSynchronize", 1);
  CHECK(tp_generator_get_state(0, &seed, &offset) == TP_CUDA);
  fill(&fills); /* still from the device's place */
  check_state(5, 4 * WORDS);
  check_drawn(&fills, 5, 3 * WORDS);
  fail("cudaStreamWaitEvent", 1);
  CHECK(tp_graph_replay(branch.graph, NULL) == TP_CUDA);
  check_state(5, 4 * WORDS);
  release_fills(&fills);
  release_branch(&branch);
}

static void test_an_eager_draw_without_memory(void) {
  branch_t branch = new_branch(true);
  fills_t fills = make_fills();
  CHECK_OK(tp_generator_seed(0, 5));
  replay(branch.graph);
  tp_stream_t *stream = tp_stream_from_pool(0, 0); /* which has no memory yet */
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK_OK(tp_stream_set_current(stream));
  tp_budget_t *budget = tp_budget_create("draws", 0);
  CHECK(budget);
  tp_budget_scope_t *scope = tp_budget_enter(budget);
  CHECK(tp_random_bits(fills.bits) == TP_OUT_OF_MEMORY);
  tp_budget_leave(scope);
  tp_budget_release(budget);
  check_state(5, 3 * WORDS);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  release_fills(&fills);
  release_branch(&branch);
}

/* ---- threads and forks ---- */

enum { THREADS = 3, FILLS = 20 };

static void *fill_often(void *argument) {
  numbers_t *numbers = argument;
  CHECK_OK(tp_stream_set_current(tp_stream_from_pool(0, 0)));
  fills_t fills = make_fills();
  for (int i = 0; i < FILLS; i++) {
    CHECK_OK(tp_random_normal(fills.normal, 0, 1)); /* 24 words */
    memset(&numbers[i], 0, sizeof *numbers);
    CHECK_OK(tp_tensor_copy_to_host(fills.normal, numbers[i].bytes, 11 * 8));
  }
  release_fills(&fills);
  return NULL;
}

/* Eager draws of threads, replays that bring the generator to the device, and questions that bring it back: each draw
 * has numbers of its own. */
static void test_threads_get_disjoint_numbers(void) {
  static numbers_t numbers[THREADS * FILLS];
  pthread_t threads[THREADS];
  branch_t branch = new_branch(true);
  CHECK_OK(tp_generator_seed(0, 8));
  for (int t = 0; t < THREADS; t++) CHECK(pthread_create(&threads[t], NULL, fill_often, &numbers[t * FILLS]) == 0);
  uint64_t seed, offset, replays = 12;
  for (uint64_t n = 0; n < replays; n++) {
    replay(branch.graph);
    if (n % 4 == 3) CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  }
  for (int t = 0; t < THREADS; t++) CHECK(pthread_join(threads[t], NULL) == 0);
  check_state(8, replays * 3 * WORDS + THREADS * FILLS * 24);
  for (int i = 0; i < THREADS * FILLS; i++)
    for (int j = 0; j < i; j++) CHECK(!equal(&numbers[i], &numbers[j]));
  release_branch(&branch);
}

/* A thread that the child lacks holds the lock for ever. */
static void test_a_forked_child_can_be_seeded(void) {
  tp__generator_t *generator = tp__generator_lock(0);
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    uint64_t seed = 0, offset = 0;
    bool done = !tp_generator_seed(0, 7) && !tp_generator_get_state(0, &seed, &offset) && seed == 7 && offset == 0;
    _exit(!done);
  }
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  tp__generator_unlock(generator);
}

int main(void) {
  values_start();
  test_a_generator_without_a_place(); /* before there is one */
  test_a_branch_draws_or_leaves_out();
  test_a_body_that_cannot_move_the_state();
  test_a_first_draw_in_a_body_that_cannot_set_the_state();
  test_eager_draws_and_questions_that_fail();
  test_an_eager_draw_without_memory();
  test_threads_get_disjoint_numbers();
  test_a_forked_child_can_be_seeded();
  return 0;
}
