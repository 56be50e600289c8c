/* The allocator with one thread: sizes, splitting, best fit, counters, other streams, shortage. The device
 * has 256 MiB. */
#include <string.h>

#include "tp_emulated.h"
#include "validate_heap.h"

#define STAT(name, figure) tp_memory_stat(0, TP_STAT_##name + TP_FIGURE_##figure)
#define CURRENT(name) STAT(name, CURRENT)

static tp__block_t *take(size_t nbytes, tp_stream_t *stream) {
  tp__block_t *block = tp__alloc(nbytes, stream);
  CHECK(block);
  validate_heap(0);
  return block;
}

static void drop(tp__block_t *block) {
  tp__alloc_free(block);
  validate_heap(0);
}

/* The heap as it was at first, but for peaks and sums. */
static void clear(void) {
  tp_emulated_reset();
  CHECK(tp_emulated_set_capacity(0, 256 * TP_MiB) == 0);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_memory_empty_cache(0));
  validate_heap(0);
  CHECK(CURRENT(active) == 0 && CURRENT(reserved_bytes) == 0 && CURRENT(segment) == 0);
  CHECK_OK(tp_memory_reset_peak_stats(0));
  CHECK(tp_emulated_used(0) == 0);
}

/* Puts work on a stream that stays there until somebody waits for it. */
static void keep_busy(tp_stream_t *stream, void *memory) {
  CHECK_OK(tp__device_enter(tp_stream_device(stream), "test"));
  CHECK(tp_emulated_hold(tp_stream_device(stream), tp_stream_handle(stream)) == 0);
  CHECK(cudaMemsetAsync(memory, 1, 512, tp__stream_cuda(stream)) == cudaSuccess);
}

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
  tp__block_t *first = take(2000, stream); /* the smallest that fits, of equals the lowest */
  tp__block_t *second = take(2000, stream);
  tp__block_t *third = take(2000, stream);
  CHECK(first->address == addresses[1] && second->address == addresses[3] && third->address == addresses[2]);
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

static void test_streams_have_their_own_blocks(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, first);
  char *address = block->address;
  keep_busy(first, address);
  drop(block);
  tp__block_t *other = take(1000, second); /* the first stream is busy: the driver is asked */
  CHECK(CURRENT(segment) == 2 && other->address != address);
  tp__block_t *again = take(1000, first); /* its own order makes it safe at once */
  CHECK(again->address == address);
  drop(other);
  drop(again);
  clear();
}

static void test_blocks_of_idle_streams_are_taken_over(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp__block_t *kept = take(1000, first);
  tp__block_t *block = take(1000, second); /* out of the rest of the first one's segment */
  CHECK(block->segment == kept->segment && block->stream == second);
  CHECK(CURRENT(segment) == 1 && STAT(num_device_alloc, CURRENT) > 0);
  drop(kept);
  drop(block); /* not merged: its neighbour belongs to another stream */
  CHECK(CURRENT(inactive_split) == 2);
  clear(); /* but the segment as a whole goes back */
}

/* ---- other streams that use a block ---- */

static void test_recorded_streams_keep_a_block(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(4 * TP_MiB, owner);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, owner)); /* nothing to note */
  CHECK(!block->uses);
  CHECK_OK(tp__alloc_record_stream(block, user));
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, address);
  drop(block);
  CHECK(CURRENT(allocation) == 0 && CURRENT(active) == 1 && CURRENT(active_bytes) == 4 * (int64_t)TP_MiB);
  tp__block_t *other = take(4 * TP_MiB, owner);
  CHECK(other->address != address);
  CHECK_OK(tp_stream_synchronize(user));
  tp__block_t *again = take(4 * TP_MiB, owner); /* the very next allocation has it */
  CHECK(again->address == address && CURRENT(active) == 2);
  drop(other);
  drop(again);
  clear();
}

static void test_recording_makes_no_events_for_long(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  int64_t made = 0;
  for (int i = 0; i < 100; i++) {
    tp__block_t *block = take(1000, owner);
    CHECK_OK(tp__alloc_record_stream(block, user));
    drop(block);
    if (i % 10 == 9) CHECK_OK(tp_stream_synchronize(user));
    if (i == 19) made = tp_emulated_call_count("cudaEventCreateWithFlags", -1);
  }
  CHECK(tp_emulated_call_count("cudaEventCreateWithFlags", -1) == made);
  CHECK(tp_emulated_call_count("cudaEventDestroy", -1) == 0);
  clear();
}

static void test_streams_of_another_device(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_default(1);
  void *memory = tp_memory_alloc(512, user);
  tp__block_t *block = take(1000, owner);
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, memory);
  CHECK_OK(tp__device_enter(0, "test"));
  drop(block);
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0); /* a release leaves it alone */
  drop(take(1000, owner));
  CHECK(CURRENT(active) == 1);
  CHECK_OK(tp_stream_synchronize(user));
  drop(take(1000, owner));
  CHECK(CURRENT(active) == 0);
  tp_memory_free(memory);
  CHECK_OK(tp_memory_empty_cache(1));
  clear();
}

static void test_empty_cache_waits_for_recorded_streams(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(1000, owner);
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, block->address);
  drop(block);
  tp__block_t *kept = take(2 * TP_MiB, owner);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(CURRENT(active) == 1 && CURRENT(segment) == 1 && CURRENT(reserved_bytes) == 20 * (int64_t)TP_MiB);
  CHECK(tp_stream_query(user) == 1);
  drop(kept);
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
  CHECK(TP_STAT_COUNT == 108 + 8 + 6);
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

/* ---- when memory is short ---- */

static void expect_shortage(size_t nbytes, const char *text) {
  int64_t failures = STAT(num_ooms, CURRENT);
  CHECK(!tp__alloc(nbytes, tp_stream_default(0)));
  CHECK(tp_error_status() == TP_OUT_OF_MEMORY && strstr(tp_error_text(), text));
  CHECK(tp_error_cuda_code() == cudaErrorMemoryAllocation && cudaPeekAtLastError() == cudaSuccess);
  CHECK(STAT(num_ooms, CURRENT) == failures + 1);
  validate_heap(0);
}

static void test_the_cache_is_released_before_giving_up(void) {
  tp_stream_t *stream = tp_stream_default(0);
  int64_t retries = STAT(num_alloc_retries, CURRENT);
  tp__block_t *blocks[8];
  for (int i = 0; i < 8; i++) blocks[i] = take(30 * TP_MiB, stream);
  for (int i = 0; i < 8; i++) drop(blocks[i]);
  tp__block_t *block = take(200 * TP_MiB, stream);
  CHECK(STAT(num_alloc_retries, CURRENT) == retries + 1 && CURRENT(segment) == 1);
  drop(block);
  clear();
}

static void test_a_busy_streams_block_before_the_cache_is_released(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  int64_t retries = STAT(num_alloc_retries, CURRENT);
  tp__block_t *block = take(200 * TP_MiB, first);
  char *address = block->address;
  keep_busy(first, address);
  drop(block);
  tp__block_t *taken = take(200 * TP_MiB, second);
  CHECK(taken->address == address && taken->stream == second);
  CHECK(STAT(num_alloc_retries, CURRENT) == retries);
  CHECK(tp_stream_query(first) == 0 && tp_stream_query(second) == 0); /* the host has not waited */
  CHECK_OK(tp_stream_synchronize(second));
  CHECK(tp_stream_query(first) == 1); /* the second stream has */
  drop(taken);
  clear();
}

static void test_blocks_in_use_elsewhere_are_waited_for(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(200 * TP_MiB, owner);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, user));
  keep_busy(user, address);
  drop(block);
  tp__block_t *again = take(150 * TP_MiB, owner);
  CHECK(again->address == address && tp_stream_query(user) == 1);
  drop(again);
  clear();
}

static void test_texts_of_a_shortage(void) {
  tp_stream_t *stream = tp_stream_default(0);
  expect_shortage(TP_GiB, "The request is larger than the device");
  tp__block_t *held = take(200 * TP_MiB, stream);
  expect_shortage(100 * TP_MiB, "Tensors of this process hold most of it");
  CHECK(strstr(tp_error_text(), "allocate: cuda:0 has no room for 100.00 MiB (104857600 bytes)."));
  CHECK(strstr(tp_error_text(), "The device has 256.00 MiB, of which 56.00 MiB are free"));
  CHECK(strstr(tp_error_text(), "200.00 MiB are reserved here and 0 bytes are used by others"));
  drop(held);
  clear();

  /* Twelve segments of 20 MiB, each kept by a small block. */
  tp__block_t *walls[12], *middles[12], *ends[12];
  for (int i = 0; i < 12; i++) {
    walls[i] = take(2 * TP_MiB, stream);
    middles[i] = take(9 * TP_MiB, stream);
    ends[i] = take(9 * TP_MiB, stream);
    CHECK(ends[i]->segment == walls[i]->segment && !ends[i]->next);
  }
  for (int i = 0; i < 12; i++) {
    drop(middles[i]);
    drop(ends[i]);
  }
  expect_shortage(50 * TP_MiB, "lies in pieces");
  CHECK(strstr(tp_error_text(), "the largest free block has 18.00 MiB and 0 bytes can be returned"));
  for (int i = 0; i < 12; i++) drop(walls[i]);
  clear();

  /* Another library has most of it. */
  void *foreign = NULL;
  CHECK(cudaMalloc(&foreign, 200 * TP_MiB) == cudaSuccess);
  expect_shortage(100 * TP_MiB, "used by other processes or libraries");
  CHECK(cudaFree(foreign) == cudaSuccess);
  clear();
}

static void test_other_failures_of_the_driver(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_emulated_fail("cudaMalloc", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(!tp__alloc(100, stream) && tp_error_status() == TP_CUDA);
  validate_heap(0);
  drop(take(100, stream));
  tp_emulated_fail("cudaFree", 1, tp_emulated_error_code("cudaErrorInvalidValue"));
  CHECK(tp_memory_empty_cache(0) == TP_CUDA);
  validate_heap(0);
  CHECK(CURRENT(segment) == 1);
  clear();
}

static void test_the_same_size_is_reached_again(void) {
  enum { MOST = 64 };
  tp__block_t *blocks[MOST];
  int first_count = 0;
  for (int round = 0; round < 10; round++) {
    int count = 0;
    while ((blocks[count] = tp__alloc(20 * TP_MiB, tp_stream_default(0)))) CHECK(++count < MOST);
    if (round == 0) first_count = count;
    CHECK(count == first_count && count == 12);
    while (count > 0) drop(blocks[--count]);
  }
  clear();
}

/* ---- everything at random, checked after each step ---- */

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

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
  test_sizes();
  test_small_and_large_do_not_mix();
  test_sizes_at_the_edge();
  test_best_fit();
  test_merging();
  test_streams_have_their_own_blocks();
  test_blocks_of_idle_streams_are_taken_over();
  test_recorded_streams_keep_a_block();
  test_recording_makes_no_events_for_long();
  test_streams_of_another_device();
  test_empty_cache_waits_for_recorded_streams();
  test_peaks_and_sums();
  test_keys();
  test_addresses();
  test_the_cache_is_released_before_giving_up();
  test_a_busy_streams_block_before_the_cache_is_released();
  test_blocks_in_use_elsewhere_are_waited_for();
  test_texts_of_a_shortage();
  test_other_failures_of_the_driver();
  test_the_same_size_is_reached_again();
  test_long_random_run(1);
  test_long_random_run(2);
  return 0;
}
