/* The threads' caches: what enters, what it costs others, who empties them, and that no counter can tell them apart
 * from the pools. */
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_case.h"

/* The cache of the only thread that has one. */
static tp__cache_t *cache(void) { return tp__heap(0)->caches; }

static void run_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, function, argument) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- what enters ---- */

static void test_a_hit_needs_no_lock_of_the_heap(void) {
  tp_stream_t *stream = tp_stream_default(0);
  drop(take(1000, stream));
  tp__heap_t *heap = tp__heap(0);
  pthread_mutex_lock(&heap->lock);
  for (int i = 0; i < 100; i++) { /* would wait for ever */
    tp__block_t *block = tp__alloc(1000, stream);
    CHECK(block);
    tp__alloc_free(block);
  }
  pthread_mutex_unlock(&heap->lock);
  validate_heap(0);
  CHECK(STAT(allocation, ALLOCATED) - STAT(allocation, FREED) == 0);
  clear();
}

static void test_a_block_returns_for_its_stream_and_size_only(void) {
  tp_stream_t *stream = tp_stream_default(0), *other = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(3000, stream);
  char *address = block->address;
  keep_busy(stream, address); /* so that its blocks are not taken over */
  drop(block);
  tp__block_t *elsewhere = take(3000, other);
  tp__block_t *smaller = take(2000, stream);
  tp__block_t *larger = take(3073, stream);
  CHECK(elsewhere->address != address && larger->address != address);
  tp__block_t *again = take(2561, stream);
  CHECK(again->nbytes == 3072 && again->requested_nbytes == 2561);
  CHECK(CURRENT(requested_bytes) == 3000 + 2000 + 3073 + 2561);
  drop(elsewhere);
  drop(smaller);
  drop(larger);
  drop(again);
  clear();
}

static void test_what_does_not_enter(void) {
  tp_stream_t *stream = tp_stream_default(0), *other = tp_stream_from_pool(0, 0);
  drop(take(1000, stream)); /* there is a cache now */
  CHECK_OK(tp_memory_empty_cache(0));
  drop(take(TP_CACHE_BLOCK_LIMIT + 1, stream));
  drop(take(2 * TP_MiB, stream));
  tp__block_t *used = take(1000, stream);
  CHECK_OK(tp__alloc_record_stream(used, other));
  drop(used);
  tp_budget_t *budget = tp_budget_create("part", TP_NO_LIMIT);
  tp_budget_scope_t *scope = tp_budget_enter(budget);
  CHECK(scope);
  tp__block_t *counted = take(1000, stream);
  tp_budget_leave(scope);
  drop(counted);
  tp_budget_release(budget);
  tp__cache_suspend();
  drop(take(1000, stream));
  tp__cache_resume();
  CHECK(cache()->nbytes == 0);
  drop(take(1000, stream));
  CHECK(cache()->nbytes == 1024);
  clear();
}

static void test_a_budget_takes_nothing_from_a_cache(void) {
  tp_stream_t *stream = tp_stream_default(0);
  drop(take(1000, stream));
  tp_budget_t *budget = tp_budget_create("part", 512);
  tp_budget_scope_t *scope = tp_budget_enter(budget);
  CHECK(scope && !tp__alloc(1000, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  tp_budget_leave(scope);
  tp_budget_release(budget);
  clear();
}

/* ---- bounds ---- */

static void test_a_cache_is_bounded(void) {
  enum { COUNT = 3000 };
  static tp__block_t *blocks[COUNT];
  tp_stream_t *stream = tp_stream_default(0);
  for (int i = 0; i < COUNT; i++) CHECK((blocks[i] = tp__alloc(512, stream)));
  size_t largest = 0;
  for (int i = 0; i < COUNT; i++) {
    tp__alloc_free(blocks[i]);
    CHECK(cache()->nbytes <= TP_CACHE_NBYTES);
    if (cache()->nbytes > largest) largest = cache()->nbytes;
  }
  CHECK(largest == TP_CACHE_NBYTES);
  CHECK(cache()->nbytes == (COUNT - TP_CACHE_NBYTES / 512) * 512); /* all had gone back at once */
  validate_heap(0);
  clear();
}

static void test_a_cache_serves_few_streams(void) {
  enum { COUNT = 2 * TP_CACHE_STREAMS + 1 };
  tp__block_t *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = take(512, tp_stream_from_pool(0, 0));
  for (int i = 0; i < COUNT; i++) {
    drop(blocks[i]);
    int shelf = i % TP_CACHE_STREAMS; /* when all are taken, all are emptied */
    CHECK(cache()->stream_count == shelf + 1 && cache()->streams[shelf] == blocks[i]->stream);
  }
  clear();
}

/* ---- who empties them ---- */

static void test_the_driver_is_asked_for_nothing_that_waits_in_caches(void) {
  enum { COUNT = 2 * TP_MiB / TP_CACHE_BLOCK_LIMIT };
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = take(TP_CACHE_BLOCK_LIMIT, stream);
  CHECK(CURRENT(segment) == 1);
  for (int i = 0; i < COUNT / 2; i++) drop(blocks[i]);
  CHECK(cache()->nbytes == TP_MiB);
  tp__block_t *whole = take(TP_MiB, stream);
  CHECK(CURRENT(segment) == 1 && whole->address == blocks[0]->address && cache()->nbytes == 0);
  drop(whole);
  for (int i = COUNT / 2; i < COUNT; i++) drop(blocks[i]);
  clear();
}

static void test_a_shortage_empties_the_caches_of_all_threads(void) {
  tp_stream_t *stream = tp_stream_default(0);
  drop(take(1000, stream)); /* keeps a segment of 2 MiB, without which the next would not fit */
  tp__block_t *all = take(256 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 256 * (int64_t)TP_MiB);
  drop(all);
  clear();
}

static void *give_and_end(void *block) {
  tp__alloc_free(block);
  drop(take(5000, tp_stream_default(0)));
  CHECK(cache()->nbytes == 1024 + 5120);
  return NULL;
}

static void test_the_end_of_a_thread_empties_its_cache(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK(cache() && !cache()->next);
  tp__block_t *block = take(1000, stream);
  run_thread(give_and_end, block);
  CHECK(cache() && !cache()->next);
  validate_heap(0);
  CHECK(CURRENT(allocation) == 0 && CURRENT(inactive_split) == 0); /* merged to a whole segment */
  clear();
}

static void test_a_snapshot_sees_free_blocks(void) {
  tp__block_t *kept = take(1000, tp_stream_default(0));
  drop(take(2000, tp_stream_default(0)));
  tp_memory_snapshot_t *snapshot = tp_memory_snapshot_take(0, 0);
  CHECK(snapshot && snapshot->block_count == 2);
  CHECK(snapshot->blocks[0].state == TP_MEMORY_ALLOCATED && snapshot->blocks[1].state == TP_MEMORY_INACTIVE);
  tp_memory_snapshot_release(snapshot);
  drop(kept);
  clear();
}

/* ---- counters ---- */

/* What one thread does with few sizes and streams; the figures are those of a model. */
static void test_counters_and_peaks_are_exact(void) {
  enum { BLOCKS = 300, STEPS = 20000 };
  static tp__block_t *blocks[BLOCKS];
  static size_t requested[BLOCKS];
  tp_stream_t *streams[2] = {tp_stream_default(0), tp_stream_from_pool(0, 0)};
  int64_t live = 0, nbytes = 0, asked = 0, peak_live = 0, peak_nbytes = 0, peak_asked = 0;
  int64_t allocated = STAT(allocation, ALLOCATED), freed = STAT(requested_bytes, FREED);
  uint32_t state = 1;
  for (int step = 0; step < STEPS; step++) {
    state = state * 1664525u + 1013904223u;
    uint32_t choice = state >> 8;
    int i = (int)(choice / 16 % BLOCKS);
    if (choice % 512 == 0) { /* forgets peaks, in the middle of it */
      CHECK_OK(tp_memory_reset_peak_stats(0));
      peak_live = live, peak_nbytes = nbytes, peak_asked = asked;
    }
    if (blocks[i]) {
      live--, nbytes -= (int64_t)blocks[i]->nbytes, asked -= (int64_t)requested[i];
      freed += (int64_t)requested[i];
      tp__alloc_free(blocks[i]);
      blocks[i] = NULL;
    } else {
      requested[i] = 1 + choice % 7000 % (choice % 3 ? 2000 : 7000);
      CHECK((blocks[i] = tp__alloc(requested[i], streams[choice % 2])));
      live++, nbytes += (int64_t)blocks[i]->nbytes, asked += (int64_t)requested[i];
      allocated++;
    }
    if (live > peak_live) peak_live = live;
    if (nbytes > peak_nbytes) peak_nbytes = nbytes;
    if (asked > peak_asked) peak_asked = asked;
    if (choice % 8) continue; /* most steps are counted by the thread alone */
    CHECK(CURRENT(allocation) == live && CURRENT(allocated_bytes) == nbytes && CURRENT(requested_bytes) == asked);
    CHECK(STAT(allocation, PEAK) == peak_live && STAT(active, PEAK) == peak_live);
    CHECK(STAT(allocated_bytes, PEAK) == peak_nbytes && STAT(active_bytes, PEAK) == peak_nbytes);
    CHECK(STAT(requested_bytes, PEAK) == peak_asked);
    CHECK(STAT(allocation, ALLOCATED) == allocated && STAT(requested_bytes, FREED) == freed);
    validate_heap(0);
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (blocks[i]) tp__alloc_free(blocks[i]);
  }
  clear();
}

/* Blocks of one size may be asked for with 1 byte and given back with 512: the heap hears of it before the peaks of
 * several threads are off by more than a cache may hold. */
static void test_requested_bytes_do_not_drift_away(void) {
  enum { COUNT = 4000 };
  static tp__block_t *blocks[COUNT];
  tp_stream_t *stream = tp_stream_default(0);
  for (int i = 0; i < COUNT; i++) CHECK((blocks[i] = tp__alloc(i % 2 ? 1 : 512, stream)));
  for (int round = 1; round <= 4; round++) {
    for (int i = 0; i < COUNT; i++) {
      tp__alloc_free(blocks[i]);
      CHECK((blocks[i] = tp__alloc(round % 2 ? 512 : 1, stream)));
      CHECK(cache()->requested.high - cache()->requested.low <= (int64_t)(TP_CACHE_NBYTES + 512));
    }
    CHECK(CURRENT(requested_bytes) == COUNT * (round % 2 ? 512 : 1));
  }
  for (int i = 0; i < COUNT; i++) tp__alloc_free(blocks[i]);
  clear();
}

/* ---- forks ---- */

static void test_a_child_leaves_caches_alone(void) {
  tp__block_t *block = take(1000, tp_stream_default(0));
  drop(take(1000, tp_stream_default(0)));
  cache()->locked = true; /* as if a thread that the child lacks were in the middle of it */
  pid_t child = fork();
  if (child == 0) {
    tp__alloc_free(block);
    tp__cache_suspend();
    bool refused = !tp_memory_alloc(1000, tp_stream_default(0));
    _exit(refused && cache()->nbytes == 1024 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  cache()->locked = false;
  drop(block);
  clear();
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  test_a_hit_needs_no_lock_of_the_heap();
  test_a_block_returns_for_its_stream_and_size_only();
  test_what_does_not_enter();
  test_a_budget_takes_nothing_from_a_cache();
  test_a_cache_is_bounded();
  test_a_cache_serves_few_streams();
  test_the_driver_is_asked_for_nothing_that_waits_in_caches();
  test_a_shortage_empties_the_caches_of_all_threads();
  test_the_end_of_a_thread_empties_its_cache();
  test_a_snapshot_sees_free_blocks();
  test_counters_and_peaks_are_exact();
  test_requested_bytes_do_not_drift_away();
  test_a_child_leaves_caches_alone();
  return 0;
}
