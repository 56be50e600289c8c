/* Budgets: which blocks count where, limits, and how long a budget lives. */
#include <pthread.h>

#include "alloc_case.h"

/* The figures of the budget of that name; false when there is none. */
static bool find(const char *name, tp_budget_figures_t *out) {
  tp_budget_figures_t all[16];
  validate_budgets();
  int32_t count = tp_budget_list(16, all);
  for (int32_t i = 0; i < count; i++) {
    if (strcmp(all[i].name, name) == 0) {
      *out = all[i];
      return true;
    }
  }
  return false;
}

static size_t live(const char *name) {
  tp_budget_figures_t found;
  CHECK(find(name, &found));
  return found.live;
}

static tp_budget_t *make(const char *name, size_t limit) {
  tp_budget_t *budget = tp_budget_create(name, limit);
  CHECK(budget);
  return budget;
}

static void test_a_block_counts_in_every_budget_around_it(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_budget_t *outer = make("outer", TP_NO_LIMIT), *inner = make("inner", TP_NO_LIMIT);
  tp_budget_scope_t *in_outer = tp_budget_enter(outer);
  tp__block_t *first = take(1000, stream);
  tp_budget_scope_t *in_inner = tp_budget_enter(inner);
  tp_budget_scope_t *again = tp_budget_enter(outer); /* in which it counts once */
  tp__block_t *second = take(5000, stream);
  tp_budget_leave(again);
  tp_budget_leave(in_inner);
  tp__block_t *third = take(512, stream);
  tp_budget_leave(in_outer);
  tp__block_t *outside = take(4096, stream);
  CHECK(!outside->budget && !tp__budget_current());
  CHECK(live("outer") == 1024 + 5120 + 512 && live("inner") == 5120);
  tp_budget_figures_t figures;
  CHECK(find("outer", &figures) && figures.requested == 6512 && figures.peak == 6656 && figures.limit == TP_NO_LIMIT);
  drop(second);
  CHECK(live("outer") == 1536 && live("inner") == 0);
  drop(first);
  drop(third);
  drop(outside);
  CHECK(find("outer", &figures) && figures.live == 0 && figures.peak == 6656);
  tp_budget_release(inner);
  tp_budget_release(outer);
  CHECK(tp_budget_list(0, NULL) == 0);
  clear();
}

static void test_a_limit_is_kept_before_the_driver_is_asked(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_budget_t *outer = make("outer", 30 * TP_MiB), *inner = make("inner", TP_NO_LIMIT);
  tp_budget_scope_t *in_outer = tp_budget_enter(outer), *in_inner = tp_budget_enter(inner);
  tp__block_t *block = take(20 * TP_MiB, stream);
  int64_t asked = tp_emulated_call_count("cudaMalloc", -1), failures = STAT(num_ooms, CURRENT);
  CHECK(!tp__alloc(11 * TP_MiB, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK(tp_emulated_call_count("cudaMalloc", -1) == asked && STAT(num_ooms, CURRENT) == failures + 1);
  CHECK(strstr(tp_error_text(), "the budget 'outer' has no room for 11.00 MiB (11534336 bytes). It holds 20.00 MiB of "
                                "its limit of 30.00 MiB."));
  tp_memory_shortage_t found;
  CHECK_OK(tp_memory_shortage(&found));
  CHECK(found.cause == TP_SHORTAGE_BUDGET && !strcmp(found.budget.name, "outer") && !found.is_hopeless);
  CHECK(found.budget.live == 20 * TP_MiB && found.budget.limit == 30 * TP_MiB && found.allocated == 20 * TP_MiB);
  CHECK(live("outer") == 20 * TP_MiB && live("inner") == 20 * TP_MiB);
  CHECK(!tp__alloc(31 * TP_MiB, stream) && !tp_memory_shortage(&found) && found.is_hopeless);
  drop(take(10 * TP_MiB, stream)); /* to the last byte */

  /* The limit is the budget's: who names it again sets it for all, or leaves it. */
  tp_budget_t *more = make("outer", 40 * TP_MiB), *same = make("outer", TP_NO_LIMIT);
  CHECK(more == outer && same == outer);
  drop(take(11 * TP_MiB, stream));
  tp_budget_release(more);
  tp_budget_release(same);
  tp_budget_release(make("outer", 5 * TP_MiB)); /* what is there stays */
  CHECK(!tp__alloc(512, stream));
  drop(block);
  tp_budget_leave(in_inner);
  tp_budget_leave(in_outer);
  tp_budget_release(inner);
  tp_budget_release(outer);
  clear();
}

static void test_a_refused_request_leaves_no_trace(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_budget_t *budget = make("one", TP_NO_LIMIT);
  tp_budget_scope_t *scope = tp_budget_enter(budget);
  CHECK(!tp__alloc(TP_GiB, stream));
  tp_emulated_fail("cudaMalloc", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(!tp__alloc(100, stream) && tp_error_status() == TP_CUDA);
  tp_budget_figures_t figures;
  CHECK(find("one", &figures) && figures.live == 0 && figures.peak == 0 && figures.requested == 0);
  tp_budget_leave(scope);
  tp_budget_release(budget);
  CHECK(tp_budget_list(0, NULL) == 0);
  clear();
}

static void test_a_budget_lives_with_its_blocks(void) {
  tp_stream_t *stream = tp_stream_default(0), *user = tp_stream_from_pool(0, 0);
  tp_budget_t *budget = make("short", 20 * TP_MiB);
  tp_budget_scope_t *scope = tp_budget_enter(budget);
  tp_budget_release(budget);
  tp__block_t *block = take(2 * TP_MiB, stream);
  tp_budget_leave(scope);
  CHECK(live("short") == 2 * TP_MiB);
  budget = make("short", TP_NO_LIMIT); /* found, with its limit */
  tp_budget_figures_t figures;
  CHECK(find("short", &figures) && figures.limit == 20 * TP_MiB);
  tp_budget_release(budget);
  /* Given back to the allocator it no longer counts, even while another stream uses it. */
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, block->address);
  drop(block);
  CHECK(tp_budget_list(0, NULL) == 0 && CURRENT(active) == 1);
  clear();
}

static void test_scopes_are_left_in_any_order(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_budget_t *first = make("first", TP_NO_LIMIT), *second = make("second", TP_NO_LIMIT);
  tp_budget_scope_t *in_first = tp_budget_enter(first), *in_second = tp_budget_enter(second);
  tp_budget_leave(in_first);
  tp__block_t *block = take(512, stream); /* where it was when the second began */
  CHECK(live("first") == 512 && live("second") == 512);
  tp_budget_leave(in_second);
  CHECK(!tp__route.budget);
  drop(block);
  tp_budget_release(first);
  tp_budget_release(second);
  CHECK(tp_budget_list(0, NULL) == 0);
}

static void test_both_devices_count(void) {
  tp_budget_t *budget = make("both", 4 * TP_MiB);
  tp_budget_scope_t *scope = tp_budget_enter(budget);
  CHECK_OK(tp__device_enter(1, "test"));
  tp__block_t *there = tp__alloc(3 * TP_MiB, tp_stream_default(1));
  CHECK_OK(tp__device_enter(0, "test"));
  tp__block_t *here = take(TP_MiB, tp_stream_default(0));
  CHECK(there && live("both") == 4 * TP_MiB && !tp__alloc(1, tp_stream_default(0)));
  tp__alloc_free(there);
  drop(here);
  tp_budget_leave(scope);
  tp_budget_release(budget);
  CHECK_OK(tp_memory_empty_cache(1));
  clear();
}

/* ---- threads ---- */

static tp_budget_t *shared;

static void *leave_elsewhere(void *argument) {
  CHECK(!tp__budget_current()); /* nothing is inherited */
  tp_budget_leave(argument);
  return NULL;
}

static void *free_elsewhere(void *argument) {
  tp__alloc_free(argument);
  return NULL;
}

static void in_a_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run, argument) == 0 && pthread_join(thread, NULL) == 0);
}

static void test_other_threads_leave_and_free(void) {
  shared = make("shared", TP_NO_LIMIT);
  tp_budget_scope_t *scope = tp_budget_enter(shared);
  tp__block_t *block = take(512, tp_stream_default(0));
  in_a_thread(free_elsewhere, block);
  CHECK(live("shared") == 0);
  in_a_thread(leave_elsewhere, scope);
  CHECK(!tp__budget_current());
  tp_budget_release(shared);
  CHECK(tp_budget_list(0, NULL) == 0);
}

static void *end_in_scopes(void *argument) {
  tp_budget_scope_t **scopes = argument;
  for (int i = 0; i < 3; i++) {
    tp_budget_t *budget = make((const char *[]){"outer", "middle", "inner"}[i], TP_NO_LIMIT);
    CHECK(scopes[i] = tp_budget_enter(budget));
    tp_budget_release(budget);
  }
  tp_budget_leave(scopes[1]);
  return NULL;
}

/* Their handles alone keep the scopes; the address sanitizer sees what stays behind. */
static void test_a_thread_may_end_in_scopes(void) {
  tp_budget_scope_t *scopes[3];
  in_a_thread(end_in_scopes, scopes);
  CHECK(tp_budget_list(0, NULL) == 3); /* the innermost one knows those around it */
  tp_budget_leave(scopes[2]);
  CHECK(tp_budget_list(0, NULL) == 1);
  tp_budget_leave(scopes[0]);
  CHECK(tp_budget_list(0, NULL) == 0);
}

enum { THREADS = 8, ROUNDS = 200, LIMIT = 4 * 4096 };

static void *fill(void *argument) {
  (void)argument;
  CHECK_OK(tp__device_enter(0, "test"));
  for (int round = 0; round < ROUNDS; round++) {
    tp_budget_scope_t *scope = tp_budget_enter(shared);
    tp__block_t *blocks[] = {tp__alloc(4096, tp_stream_default(0)), tp__alloc(4096, tp_stream_default(0))};
    tp_budget_leave(scope);
    for (int i = 0; i < 2; i++) {
      if (blocks[i]) tp__alloc_free(blocks[i]);
    }
  }
  return NULL;
}

static void test_a_limit_holds_among_threads(void) {
  shared = make("shared", LIMIT);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, fill, NULL) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  tp_budget_figures_t figures;
  CHECK(find("shared", &figures) && figures.live == 0 && figures.peak <= LIMIT && figures.peak >= 4096);
  tp_budget_release(shared);
  validate_heap(0);
  clear();
}

static void test_names(void) {
  char name[TP_BUDGET_NAME_ROOM + 1];
  memset(name, 'x', sizeof name);
  name[TP_BUDGET_NAME_ROOM] = '\0';
  CHECK(!tp_budget_create("", 0) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_budget_create(NULL, 0) && !tp_budget_create(name, 0));
  CHECK(strstr(tp_error_text(), "got a name of 64 bytes, expected 1 to 63"));
  name[TP_BUDGET_NAME_ROOM - 1] = '\0';
  tp_budget_t *longest = make(name, 0), *before = make("a", 0);
  tp_budget_figures_t found[1];
  CHECK(tp_budget_list(1, found) == 2 && !strcmp(found[0].name, "a")); /* there are more than there is room for */
  tp_budget_release(longest);
  tp_budget_release(before);
  tp_budget_release(NULL);
  tp_budget_leave(NULL);
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  test_a_block_counts_in_every_budget_around_it();
  test_a_limit_is_kept_before_the_driver_is_asked();
  test_a_refused_request_leaves_no_trace();
  test_a_budget_lives_with_its_blocks();
  test_scopes_are_left_in_any_order();
  test_both_devices_count();
  test_other_threads_leave_and_free();
  test_a_thread_may_end_in_scopes();
  test_a_limit_holds_among_threads();
  test_names();
  return 0;
}
