/* Growing segments: pages are mapped where blocks need them, and unmapped where whole ones are free. */
#include "alloc/growing.h"
#include "alloc_case.h"

#define PAGE ((int64_t)TP_PAGE)

static void enable(bool on) { CHECK_OK(tp_memory_set_settings(on ? "expandable_segments:True" : "")); }

static const char *const driver_calls[] = {
    "cuMemAddressReserve", "cuMemCreate", "cuMemMap",         "cuMemRelease",
    "cuMemSetAccess",      "cuMemUnmap",  "cuMemAddressFree",
};
enum { DRIVER_CALLS = sizeof driver_calls / sizeof *driver_calls };

static void test_one_segment_grows_and_shrinks(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *first = take(15 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 8 * PAGE && tp_emulated_used(0) == 8 * PAGE && CURRENT(segment) == 1);
  /* The free end of the last page counts: 30 MiB more are 15 pages. */
  tp__block_t *second = take(30 * TP_MiB, stream);
  CHECK(second->segment == first->segment && second->address == first->address + 15 * TP_MiB);
  CHECK(CURRENT(reserved_bytes) == 23 * PAGE && CURRENT(segment) == 1);
  /* What remains is split however small it is, and not counted as a piece. */
  tp__block_t *third = take(3 * TP_MiB - 512, stream);
  CHECK(CURRENT(reserved_bytes) == 24 * PAGE && third->next->nbytes == 512 && CURRENT(inactive_split) == 0);
  drop(second);
  CHECK_OK(tp_memory_empty_cache(0)); /* 15 to 45 MiB are free: the pages from 16 to 44 go */
  validate_heap(0);
  CHECK(CURRENT(reserved_bytes) == 10 * PAGE && tp_emulated_used(0) == 10 * PAGE);
  CHECK(CURRENT(inactive_split) == 0);
  /* The hole fills again, with its free neighbours. */
  second = take(30 * TP_MiB, stream);
  CHECK(second->address == first->address + 15 * TP_MiB && CURRENT(reserved_bytes) == 24 * PAGE);
  drop(second);
  drop(first);
  drop(third);
  CHECK((int64_t)first->nbytes == 24 * PAGE && CURRENT(reserved_bytes) == 24 * PAGE);
  clear();
}

static void test_small_blocks_grow_by_the_same_pages(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[9];
  for (int i = 0; i < 9; i++) blocks[i] = take(TP_MiB, stream);
  CHECK(CURRENT(segment) == 1 && CURRENT(reserved_bytes) == (int64_t)(5 * TP_SMALL_SEGMENT));
  for (int i = 0; i < 8; i++) drop(blocks[i]);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(CURRENT(reserved_bytes) == (int64_t)TP_SMALL_SEGMENT);
  /* In front of the free block, of which there is none, or behind it: the block with the free MiB behind it is used. */
  tp__block_t *block = take(TP_MiB, stream);
  CHECK(block->address == blocks[8]->address + TP_MiB && CURRENT(reserved_bytes) == (int64_t)TP_SMALL_SEGMENT);
  drop(block);
  drop(blocks[8]);
  clear();
}

/* Blocks of both kinds are never in a cache together, since they count differently. */
static void test_threads_caches_hold_small_blocks(void) {
  tp_stream_t *stream = tp_stream_default(0);
  enable(false);
  tp__block_t *fixed = take(1024, stream), *half = take(TP_MiB, stream), *rest = take(TP_MiB - 1024, stream);
  enable(true);
  tp__block_t *growing = take(1024, stream);
  CHECK(!fixed->segment->grows_for && growing->segment->grows_for);
  drop(fixed);
  CHECK(fixed->cached && CURRENT(inactive_split) == 1);
  drop(growing);
  CHECK(growing->cached && !fixed->cached && CURRENT(inactive_split) == 1);
  CHECK(take(1024, stream) == growing);
  validate_heap(0);
  drop(growing);
  fixed = take(512, stream); /* the stream's shelf has a free piece */
  CHECK(!fixed->segment->grows_for);
  drop(fixed);
  CHECK(fixed->cached && !growing->cached && CURRENT(active) == 2);
  /* Pages under cached blocks are unmapped when the cache is emptied. */
  growing = take(1024, stream);
  drop(half);
  drop(rest);
  drop(growing);
  CHECK(growing->cached);
  clear();
}

/* A hole whose end lies before a free block is filled from its end. */
static void test_holes_are_filled_from_the_side_that_takes_fewer_pages(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *low = take(109 * TP_MiB, stream), *wall = take(20 * TP_MiB, stream);
  drop(low);
  CHECK_OK(tp_memory_empty_cache(0)); /* 0 to 108 MiB go, 1 MiB stays free, 20 are held, 1 is free */
  CHECK(CURRENT(reserved_bytes) == 11 * PAGE);
  tp__block_t *block = take(25 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 23 * PAGE && block->address == wall->address - 25 * TP_MiB);
  drop(block);
  drop(wall);
  clear();
}

static void test_a_shortage_waits_for_pages_in_use(void) {
  enum { COUNT = 12 };
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp__block_t *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = take(20 * TP_MiB, stream);
  keep_busy(stream, blocks[0]->address);
  for (int i = 0; i < COUNT; i += 2) drop(blocks[i]);
  /* 120 MiB are free in pieces of 20, and no more on the device than 16: one block of 100 can be had. */
  tp__block_t *large = take(100 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 110 * PAGE && STAT(num_ooms, CURRENT) == 0);
  CHECK(tp_stream_query(stream) == 1 && cudaDeviceSynchronize() == cudaSuccess);
  drop(large);
  for (int i = 1; i < COUNT; i += 2) drop(blocks[i]);
  clear();
}

static void test_a_shortage_says_what_can_be_returned(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *held = take(90 * TP_MiB, stream), *free = take(100 * TP_MiB, stream);
  drop(free);
  int64_t failures = STAT(num_ooms, CURRENT);
  CHECK(!tp__alloc(200 * TP_MiB, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK(STAT(num_ooms, CURRENT) == failures + 1);
  validate_heap(0);
  CHECK(CURRENT(reserved_bytes) == 45 * PAGE && CURRENT(allocated_bytes) == 90 * TP_MiB);
  CHECK(!tp__alloc(TP_GiB * 1024, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  validate_heap(0);
  drop(held);
  clear();
}

static void test_pages_that_are_in_use_stay(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0);
  tp__block_t *block = take(20 * TP_MiB, owner);
  keep_busy(owner, block->address);
  drop(block);
  CHECK(tp_stream_query(owner) == 0);
  CHECK_OK(tp_memory_empty_cache(0)); /* waits, so that the fill finds its memory */
  CHECK(tp_stream_query(owner) == 1 && cudaDeviceSynchronize() == cudaSuccess);
  CHECK(CURRENT(reserved_bytes) == 0 && CURRENT(segment) == 0);
  clear();
}

/* Blocks may go to another stream; a page that several streams' free blocks share is unmapped all the same. */
static void test_pieces_of_several_streams(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp__block_t *low = take(15 * TP_MiB, first), *high = take(25 * TP_MiB, first);
  drop(low);
  tp__block_t *taken = take(15 * TP_MiB, second);
  CHECK(taken->address == low->address && taken->stream == second && CURRENT(reserved_bytes) == 20 * PAGE);
  drop(high);
  drop(taken);
  CHECK_OK(tp_memory_empty_cache(0));
  validate_heap(0);
  CHECK(CURRENT(reserved_bytes) == 0);
  /* Each stream grows its own. */
  low = take(5 * TP_MiB, first);
  high = take(18 * TP_MiB, second);
  CHECK(low->segment != high->segment && CURRENT(segment) == 2);
  drop(low);
  drop(high);
  clear();
}

static void test_limits_count_what_is_mapped(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_memory_set_limit(0, 28 * PAGE));
  tp__block_t *first = take(30 * TP_MiB, stream), *second = take(25 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 28 * PAGE);
  CHECK(!tp__alloc(6 * TP_MiB, stream) && tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  drop(first);
  drop(second);
  clear();
}

/* A life of a segment, in which any call of the driver may fail: the heap stays whole, and all can be had again. */
static bool live(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *first = tp__alloc(6 * TP_MiB, stream), *second = tp__alloc(8 * TP_MiB, stream);
  validate_heap(0);
  if (first) tp__alloc_free(first);
  validate_heap(0);
  bool emptied = tp_memory_empty_cache(0) == TP_OK;
  validate_heap(0);
  tp__block_t *third = tp__alloc(5 * TP_MiB, stream);
  validate_heap(0);
  if (second) tp__alloc_free(second);
  if (third) tp__alloc_free(third);
  emptied &= tp_memory_empty_cache(0) == TP_OK;
  validate_heap(0);
  return first && second && third && emptied;
}

static void test_every_call_of_the_driver_fails_in_its_turn(void) {
  static const char *const errors[] = {"cudaErrorUnknown", "cudaErrorMemoryAllocation"};
  for (int call = 0; call < DRIVER_CALLS; call++) {
    int64_t most = 0;
    for (size_t error = 0; error < sizeof errors / sizeof *errors; error++) {
      for (int64_t nth = 1;; nth++) {
        tp_emulated_clear_call_counts();
        CHECK_OK(tp_emulated_fail(driver_calls[call], nth, tp_emulated_error_code(errors[error])));
        (void)live(); /* a refusal may be mended by another attempt */
        bool reached = tp_emulated_call_count(driver_calls[call], -1) >= nth;
        clear(); /* nothing is mapped, reserved or counted */
        CHECK(live());
        if (!reached) break;
        most = nth;
      }
    }
    CHECK(most >= 1);
  }
  clear();
}

static void test_without_virtual_memory(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_emulated_fail("cuMemAddressReserve", 1, tp_emulated_error_code("cudaErrorNotSupported")));
  CHECK(!tp__alloc(100, stream) && tp_error_status() == TP_UNAVAILABLE);
  CHECK(strstr(tp_error_text(), "allocate: cuda:0 or its driver has no virtual memory"));
  CHECK(strstr(tp_error_text(), "set expandable_segments:False"));
  enable(false);
  drop(take(100, stream));
  enable(true);
  clear();
}

/* The first to look for the driver's calls: none is found, then one. */
static void test_a_driver_that_lacks_the_calls(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_emulated_fail("cudaGetDriverEntryPointByVersion", 3, tp_emulated_error_code("cudaErrorSymbolNotFound")));
  CHECK(!tp__alloc(100, stream) && tp_error_status() == TP_UNAVAILABLE);
  CHECK(strstr(tp_error_text(), "has no virtual memory") && cudaPeekAtLastError() == cudaSuccess);
  CHECK_OK(tp_emulated_fail("cudaGetDriverEntryPointByVersion", 1, tp_emulated_error_code("cudaErrorUnknown")));
  CHECK(!tp__alloc(100, stream) && tp_error_status() == TP_CUDA);
  validate_heap(0);
  CHECK(CURRENT(segment) == 0);
}

/* A private pool grows for itself, keeps its pages while it has users, and gives them back with the last one. */
static void test_private_pools(void) {
  tp_stream_t *stream = tp_stream_default(0);
  for (int whole = 0; whole < 2; whole++) {
    tp_mempool_t *mempool = tp_mempool_create(whole ? TP_MEMPOOL_NO_SPLIT : 0, NULL, NULL);
    tp_mempool_scope_t *scope = tp_mempool_enter(mempool, 0);
    tp__block_t *first = take(12 * TP_MiB, stream), *second = take(12 * TP_MiB, stream);
    tp_mempool_leave(scope);
    CHECK((first->segment == second->segment) == !whole);
    CHECK(first->segment->grows_for == (whole ? NULL : stream));
    CHECK(CURRENT(reserved_bytes) == 12 * PAGE);
    drop(first);
    CHECK_OK(tp_memory_empty_cache(0));
    CHECK(CURRENT(reserved_bytes) == 12 * PAGE);
    tp_mempool_release(mempool);
    drop(second);
    CHECK(CURRENT(reserved_bytes) == 0 && CURRENT(segment) == 0);
    clear();
  }
}

/* Segments of both kinds live side by side. */
static void test_the_setting_holds_for_what_is_obtained_from_then_on(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *growing = take(12 * TP_MiB, stream);
  enable(false);
  tp__block_t *plain = take(12 * TP_MiB, stream);
  CHECK(growing->segment->grows_for == stream && !plain->segment->grows_for);
  CHECK(CURRENT(reserved_bytes) == 6 * PAGE + 12 * (int64_t)TP_MiB);
  drop(growing);
  drop(plain);
  enable(true);
  clear();
}

/* Later peers get access to pages that there are, and pages that come later are theirs too. */
static void test_peers(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *before = take(5 * TP_MiB, stream);
  tp_emulated_clear_call_counts();
  CHECK_OK(tp__alloc_enable_peer(1, 0));
  CHECK_OK(tp__alloc_enable_peer(1, 0));
  CHECK(tp__device_has_peer(1, 0) && !tp__device_has_peer(0, 1));
  CHECK(tp_emulated_call_count("cuMemSetAccess", -1) == 1);
  CHECK_OK(tp__device_enter(1, "test"));
  tp__block_t *there = tp__alloc(5 * TP_MiB, tp_stream_default(1));
  CHECK(there);
  CHECK(cudaMemsetAsync(before->address, 7, 4, tp__stream_cuda(tp_stream_default(1))) == cudaSuccess);
  CHECK(cudaMemcpyPeerAsync(there->address, 1, before->address, 0, 4, NULL) == cudaSuccess);
  int32_t read = 0;
  CHECK(cudaMemcpy(&read, there->address, 4, cudaMemcpyDeviceToHost) == cudaSuccess && read == 0x07070707);
  tp__alloc_free(there);
  CHECK_OK(tp_memory_empty_cache(1));
  validate_heap(1);
  CHECK_OK(tp__device_enter(0, "test"));
  drop(before);
  clear();
}

static void test_random_runs(void) {
  enum { SLOTS = 40, STEPS = 1000 };
  tp_stream_t *streams[3] = {tp_stream_default(0), tp_stream_from_pool(0, 0), tp_stream_from_pool(0, 0)};
  tp__block_t *blocks[SLOTS] = {NULL};
  uint32_t random = 12345;
  for (int step = 0; step < STEPS; step++) {
    random = random * 1664525u + 1013904223u;
    uint32_t slot = (random >> 8) % SLOTS, choice = (random >> 16) % 100;
    tp_stream_t *stream = streams[(random >> 4) % 3];
    if (choice < 2) {
      (void)tp_memory_empty_cache(0);
    } else if (choice < 4) {
      enable(choice == 2 || step % 4);
    } else if (blocks[slot]) {
      if (choice < 20) CHECK_OK(tp__alloc_record_stream(blocks[slot], stream));
      tp__alloc_free(blocks[slot]);
      blocks[slot] = NULL;
    } else {
      size_t nbytes = choice < 60 ? 1 + random % (2 * TP_MiB) : 1 + random % (30 * TP_MiB);
      blocks[slot] = tp__alloc(nbytes, stream);
      CHECK(blocks[slot] || tp_error_status() == TP_OUT_OF_MEMORY);
    }
    validate_heap(0);
    CHECK(tp_emulated_used(0) == CURRENT(reserved_bytes));
  }
  for (int i = 0; i < SLOTS; i++)
    if (blocks[i]) tp__alloc_free(blocks[i]);
  enable(true);
  clear();
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  enable(true);
  test_a_driver_that_lacks_the_calls();
  test_one_segment_grows_and_shrinks();
  test_small_blocks_grow_by_the_same_pages();
  test_threads_caches_hold_small_blocks();
  test_holes_are_filled_from_the_side_that_takes_fewer_pages();
  test_a_shortage_waits_for_pages_in_use();
  test_a_shortage_says_what_can_be_returned();
  test_pages_that_are_in_use_stay();
  test_pieces_of_several_streams();
  test_limits_count_what_is_mapped();
  test_every_call_of_the_driver_fails_in_its_turn();
  test_without_virtual_memory();
  test_the_setting_holds_for_what_is_obtained_from_then_on();
  test_private_pools();
  test_peers();
  test_random_runs();
  return 0;
}
