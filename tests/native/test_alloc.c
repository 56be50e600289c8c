/* The allocator with one thread: sizes, splitting, best fit, merging, counters, addresses, all without the threads'
 * caches, and long random runs without and with them. */
#include "alloc_case.h"

/* ---- sizes ---- */

static void test_sizes(void) {
  static const struct {
    size_t asked, block, segment;
  } cases[] = {
      {1, 512, 2 * TP_MiB},
      {512, 512, 2 * TP_MiB},
      {513, 1024, 2 * TP_MiB},
      {TP_MiB, TP_MiB, 2 * TP_MiB},
      {TP_MiB + 1, TP_MiB + 512, 20 * TP_MiB},
      {10 * TP_MiB - 512, 10 * TP_MiB - 512, 20 * TP_MiB},
      {10 * TP_MiB - 1, 10 * TP_MiB, 10 * TP_MiB},
      {10 * TP_MiB, 10 * TP_MiB, 10 * TP_MiB},
      /* The rest is 1 MiB or less: it stays with the block. */
      {11 * TP_MiB, 12 * TP_MiB, 12 * TP_MiB},
      /* The rest is above 1 MiB: it is a block of its own. */
      {10 * TP_MiB + 512, 10 * TP_MiB + 512, 12 * TP_MiB},
      {33 * TP_MiB - 1, 34 * TP_MiB, 34 * TP_MiB},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__block_t *block = take(cases[i].asked, tp_stream_default(0));
    CHECK(block->nbytes == cases[i].block && block->segment->nbytes == cases[i].segment);
    CHECK((uintptr_t)tp__alloc_address(block) % 512 == 0);
    CHECK(CURRENT(requested_bytes) == (int64_t)cases[i].asked);
    CHECK(CURRENT(allocated_bytes) == (int64_t)cases[i].block);
    CHECK(CURRENT(reserved_bytes) == (int64_t)cases[i].segment);
    drop(block);
    clear();
  }
}

static void test_small_and_large_do_not_mix(void) {
  tp__block_t *small = take(1000, tp_stream_default(0));
  tp__block_t *large = take(2 * TP_MiB, tp_stream_default(0));
  tp__block_t *smaller = take(2000, tp_stream_default(0));
  CHECK(smaller->segment == small->segment && large->segment != small->segment);
  CHECK(tp_memory_stat(0, TP_STAT_allocation + 4 * TP_CLASS_SMALL) == 2);
  CHECK(tp_memory_stat(0, TP_STAT_allocation + 4 * TP_CLASS_LARGE) == 1);
  CHECK(CURRENT(allocation) == 3 && CURRENT(segment) == 2);
  drop(small);
  drop(large);
  drop(smaller);
  clear();
}

static void test_sizes_at_the_edge(void) {
  tp_stream_t *stream = tp_stream_default(0);
  static const struct {
    size_t asked;
    tp_status_t status;
  } cases[] = {
      {(size_t)-1, TP_OVERFLOW},          {(size_t)-300, TP_OVERFLOW},
      {(size_t)1 << 63, TP_OVERFLOW},     {((size_t)1 << 63) - 1, TP_OVERFLOW},
      {(size_t)1 << 62, TP_OUT_OF_MEMORY}, {TP_GiB, TP_OUT_OF_MEMORY},
  };
  tp__block_t *kept = take(1000, stream);
  tp__block_t *cached = take(30 * TP_MiB, stream);
  drop(cached);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t before[TP_STAT_COUNT], after[TP_STAT_COUNT];
    CHECK_OK(tp_memory_stats(0, before, TP_STAT_COUNT));
    CHECK(!tp_memory_alloc(cases[i].asked, stream));
    CHECK(tp_error_status() == cases[i].status);
    CHECK_OK(tp_memory_stats(0, after, TP_STAT_COUNT));
    before[TP_STAT_num_ooms] += cases[i].status == TP_OUT_OF_MEMORY;
    CHECK(memcmp(before, after, sizeof before) == 0);
    tp__block_t *first = take(1, stream);
    tp__block_t *second = take(1, stream);
    CHECK(first->address != second->address);
    drop(first);
    drop(second);
  }
  CHECK(!tp_memory_alloc(0, stream) && tp_error_status() == TP_OK);
  CHECK(!tp_memory_alloc(10, NULL) && tp_error_status() == TP_INVALID_ARGUMENT);
  drop(kept);
  clear();
}

/* ---- where a block comes from ---- */

static void test_best_fit(void) {
  tp_stream_t *stream = tp_stream_default(0);
  /* Holes of 4, 2, 3 and again 2 KiB, kept apart by blocks in use. */
  static const size_t sizes[] = {4096, 2048, 3072, 2048};
  tp__block_t *holes[4], *walls[4];
  for (int i = 0; i < 4; i++) {
    holes[i] = take(sizes[i], stream);
    walls[i] = take(512, stream);
  }
  char *addresses[4];
  for (int i = 0; i < 4; i++) {
    addresses[i] = holes[i]->address;
    drop(holes[i]);
  }
  CHECK(CURRENT(inactive_split) == 5);
  tp__block_t *first = take(2000, stream); /* the smallest that fits, of equals the one freed last */
  tp__block_t *second = take(2000, stream);
  tp__block_t *third = take(2000, stream);
  CHECK(first->address == addresses[3] && second->address == addresses[1] && third->address == addresses[2]);
  CHECK(third->nbytes == 2048);
  drop(first);
  drop(second);
  drop(third);
  for (int i = 0; i < 4; i++) drop(walls[i]);
  CHECK(CURRENT(inactive_split) == 0); /* all merged again */
  clear();
}

static void test_merging(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[3];
  for (int order = 0; order < 6; order++) {
    for (int i = 0; i < 3; i++) blocks[i] = take(512 * 1024, stream);
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 3; i++) drop(blocks[orders[order][i]]);
    CHECK(CURRENT(inactive_split) == 0 && CURRENT(segment) == 1);
  }
  clear();
}

/* ---- counters ---- */

static void test_peaks_and_sums(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *held = take(8 * TP_MiB, stream);
  drop(take(16 * TP_MiB, stream));
  int64_t freed = STAT(allocated_bytes, FREED);
  CHECK(STAT(allocated_bytes, PEAK) == 24 * (int64_t)TP_MiB);
  CHECK_OK(tp_memory_reset_peak_stats(0));
  CHECK(STAT(allocated_bytes, PEAK) == 8 * (int64_t)TP_MiB);
  CHECK(CURRENT(allocated_bytes) == 8 * (int64_t)TP_MiB);
  drop(take(2 * TP_MiB, stream));
  CHECK(STAT(allocated_bytes, PEAK) == 10 * (int64_t)TP_MiB);
  CHECK(STAT(allocated_bytes, FREED) == freed + 2 * (int64_t)TP_MiB);
  drop(held);
  clear();
}

static void test_keys(void) {
  int64_t values[TP_STAT_COUNT];
  CHECK(TP_STAT_COUNT == 108 + 8 + 7);
  CHECK(tp_memory_stats(0, values, 3) == TP_INVALID_ARGUMENT);
  CHECK(tp_memory_stat(0, TP_STAT_COUNT) == TP_INVALID_ARGUMENT);
  CHECK(tp_memory_stat(0, -1) == TP_INVALID_ARGUMENT);
}

/* ---- addresses ---- */

static void test_addresses(void) {
  enum { COUNT = 3000 };
  static void *addresses[COUNT];
  tp_stream_t *stream = tp_stream_default(0);
  for (int i = 0; i < COUNT; i++) CHECK((addresses[i] = tp_memory_alloc(512, stream)));
  CHECK(CURRENT(allocation) == COUNT);
  for (int i = 0; i < COUNT; i += 2) tp_memory_free(addresses[i]);
  for (int i = 0; i < COUNT; i += 2) tp_memory_free(addresses[i]); /* no longer ours: ignored */
  tp_memory_free((char *)addresses[1] + 1);
  CHECK(CURRENT(allocation) == COUNT / 2);
  for (int i = 1; i < COUNT; i += 2) tp_memory_free(addresses[i]);
  CHECK(CURRENT(allocation) == 0);
  clear();
}

/* ---- everything at random, checked after each step ---- */

static size_t random_size(uint32_t *state) {
  uint32_t kind = next_random(state) % 16;
  if (kind < 10) return 1 + next_random(state) % (64 * TP_KiB);
  if (kind < 13) return 1 + next_random(state) % TP_MiB;
  return 1 + next_random(state) % (14 * TP_MiB);
}

static void test_long_random_run(uint32_t seed) {
  enum { BLOCKS = 200, STEPS = 10000 };
  static tp__block_t *blocks[BLOCKS];
  tp_stream_t *streams[5] = {tp_stream_default(0)};
  uint32_t state = seed;
  int refused = 0;
  for (int i = 1; i < 5; i++) streams[i] = tp_stream_from_pool(0, -(i % 2));
  for (int step = 0; step < STEPS; step++) {
    tp__block_t **block = &blocks[next_random(&state) % BLOCKS];
    tp_stream_t *stream = streams[next_random(&state) % 5];
    uint32_t action = next_random(&state) % 128;
    if (action == 0) {
      CHECK_OK(tp_memory_empty_cache(0));
    } else if (action == 1) {
      CHECK_OK(tp_stream_synchronize(stream));
    } else if (*block && action < 32) {
      CHECK_OK(tp__alloc_record_stream(*block, stream));
      CHECK(cudaMemsetAsync((*block)->address, 0, 512, tp__stream_cuda(stream)) == cudaSuccess);
    } else if (*block) {
      tp__alloc_free(*block);
      *block = NULL;
    } else {
      *block = tp__alloc(random_size(&state), stream);
      if (!*block) CHECK(tp_error_status() == TP_OUT_OF_MEMORY);
      refused += !*block;
    }
    validate_heap(0);
  }
  CHECK(refused > 0); /* the run has been through every attempt */
  for (int i = 0; i < BLOCKS; i++) {
    if (blocks[i]) drop(blocks[i]);
    blocks[i] = NULL;
  }
  clear();
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  tp__cache_suspend();
  test_sizes();
  test_small_and_large_do_not_mix();
  test_sizes_at_the_edge();
  test_best_fit();
  test_merging();
  test_peaks_and_sums();
  test_keys();
  test_addresses();
  test_long_random_run(1);
  tp__cache_resume();
  test_long_random_run(2);
  return 0;
}
