/* Idle pages of growing segments move to where a request needs them, in the place of fresh memory: never those on which
 * work is left, and never so that a failure loses one. */
#include "alloc/growing.h"
#include "alloc_case.h"

#define MIB ((int64_t)TP_MiB)
enum { COUNT = 12 };

static int64_t calls(const char *name) { return tp_emulated_call_count(name, -1); }

/* Pages that moved since the counts were cleared. */
static int64_t moved(void) { return calls("cuMemRetainAllocationHandle"); }

static void fill(const tp__block_t *block, int byte) {
  CHECK(cudaMemsetAsync(block->address, byte, block->nbytes, tp__stream_cuda(block->stream)) == cudaSuccess);
}

/* The ends and the middle. */
static void check(const tp__block_t *block, int byte) {
  size_t places[] = {0, block->nbytes / 2, block->nbytes - 1};
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (size_t i = 0; i < 3; i++) {
    unsigned char found = 0;
    CHECK(cudaMemcpy(&found, block->address + places[i], 1, cudaMemcpyDeviceToHost) == cudaSuccess && found == byte);
  }
}

/* Blocks beside each other, each with bytes of its own, of which every other one is dropped. */
static void scatter(tp__block_t **blocks, size_t nbytes, tp_stream_t *stream) {
  int64_t before = CURRENT(reserved_bytes);
  for (int i = 0; i < COUNT; i++) fill(blocks[i] = take(nbytes, stream), i);
  CHECK(CURRENT(reserved_bytes) == before + COUNT * (int64_t)nbytes);
  CHECK_OK(tp_stream_synchronize(stream));
  for (int i = 0; i < COUNT; i += 2) drop(blocks[i]);
  tp_emulated_clear_call_counts();
}

static void check_rest(tp__block_t **blocks) {
  for (int i = 1; i < COUNT; i += 2) check(blocks[i], i);
}

static void drop_rest(tp__block_t **blocks) {
  for (int i = 1; i < COUNT; i += 2) drop(blocks[i]);
}

/* 120 MiB were active, so 120 + 5 + 16 may be reserved, in whole pages. What was before the cache was emptied does not
 * count. */
static void test_what_is_reserved_has_a_bound(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[COUNT];
  drop(take(200 * TP_MiB, stream));
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK_OK(tp_memory_reset_peak_stats(0));
  scatter(blocks, 10 * TP_MiB, stream);
  tp__block_t *within = take(20 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 140 * MIB && moved() == 0);
  tp__block_t *large = take(40 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 140 * MIB && STAT(reserved_bytes, PEAK) == 140 * MIB && moved() == 20);
  CHECK(calls("cuMemUnmap") == 4 && tp_emulated_used(0) == 140 * MIB);
  CHECK(large->address == within->address + within->nbytes);
  fill(large, 77);
  check(large, 77);
  check_rest(blocks);
  /* The places of the pages that moved fill again. */
  drop(large);
  tp__block_t *again = take(10 * TP_MiB, stream);
  fill(again, 78);
  check(again, 78);
  check_rest(blocks);
  drop(again);
  drop(within);
  drop_rest(blocks);
  clear();
}

/* Where the device has less than that, more pages move before anybody waits. */
static void test_a_device_without_room(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 20 * TP_MiB, stream);
  tp__block_t *large = take(100 * TP_MiB, stream); /* 266 MiB may be reserved, 256 are there */
  CHECK(CURRENT(reserved_bytes) == 256 * MIB && moved() == 42 && calls("cudaStreamSynchronize") == 0);
  fill(large, 55);
  check(large, 55);
  check_rest(blocks);
  drop(large);
  drop_rest(blocks);
  clear();
}

/* The same requests again and again are served from the cache. */
static void test_a_steady_program_moves_nothing(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[COUNT];
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < COUNT; i++) blocks[i] = take((size_t)(1 + i * 7 % COUNT) * 2 * TP_MiB, stream);
    for (int i = 0; i < COUNT; i++) drop(blocks[i * 5 % COUNT]);
    if (round == 0) tp_emulated_clear_call_counts();
  }
  CHECK(moved() == 0 && calls("cuMemMap") == 0 && calls("cuMemUnmap") == 0);
  clear();
}

static void test_pages_with_work_to_come_stay(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 10 * TP_MiB, stream);
  keep_busy(stream, blocks[0]->address);
  tp__block_t *large = take(40 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 160 * MIB && moved() == 0 && tp_stream_query(stream) == 0);
  CHECK(calls("cudaStreamSynchronize") == 0);
  CHECK_OK(tp_stream_synchronize(stream));
  drop(large);
  large = take(50 * TP_MiB, stream);
  CHECK(CURRENT(reserved_bytes) == 160 * MIB && moved() == 5);
  drop(large);
  drop_rest(blocks);
  clear();
}

/* A stream is never idle, and still passes what was freed. */
static void test_pages_move_behind_a_busy_stream(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  uintptr_t handle = tp_stream_handle(stream);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 10 * TP_MiB, stream);
  keep_busy(stream, blocks[0]->address);
  tp__block_t *large = take(40 * TP_MiB, stream); /* behind the work comes the mark */
  CHECK(moved() == 0 && calls("cudaEventRecord") == 1);
  fill(large, 1);
  fill(blocks[1], 1);
  drop(blocks[1]);
  CHECK(tp_emulated_release(0, handle) == 0 && tp_emulated_step(2) == 2 && tp_emulated_hold(0, handle) == 0);
  CHECK(tp_stream_query(stream) == 0);
  /* 30 MiB around blocks[1] have work to come, 40 have none. */
  drop(large);
  large = take(90 * TP_MiB, stream);
  CHECK(moved() == 20 && CURRENT(reserved_bytes) == 170 * MIB && tp_stream_query(stream) == 0);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  drop(large);
  for (int i = 3; i < COUNT; i += 2) drop(blocks[i]);
  clear();
}

/* What another stream left of a block that it took behind an event has the first one's work to come. */
static void test_pages_of_a_block_that_was_taken_over(void) {
  tp_stream_t *owner = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, 0);
  tp__block_t *held = take(150 * TP_MiB, owner), *block = take(100 * TP_MiB, owner);
  keep_busy(owner, block->address + 90 * TP_MiB);
  drop(block);
  CHECK_OK(tp_memory_set_limit(0, 254 * TP_MiB));
  tp__block_t *taken = take(50 * TP_MiB, other);
  CHECK(taken->address == block->address && tp_stream_query(owner) == 0);
  tp_emulated_clear_call_counts();
  tp__block_t *more = take(52 * TP_MiB, other); /* with the memory that went back to the driver after a wait */
  CHECK(moved() == 0 && tp_stream_query(owner) == 1 && cudaDeviceSynchronize() == cudaSuccess);
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  drop(more);
  drop(taken);
  drop(held);
  clear();
}

static void test_external_streams_are_not_asked(void) {
  cudaStream_t own;
  CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) == cudaSuccess);
  tp_stream_t *stream = tp_stream_external(0, (uintptr_t)own);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 10 * TP_MiB, stream);
  drop_rest(blocks);
  tp__block_t *large = take(40 * TP_MiB, tp_stream_default(0));
  CHECK(moved() == 0 && CURRENT(reserved_bytes) == 160 * MIB);
  drop(large);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(cudaStreamDestroy(own) == cudaSuccess);
  clear();
}

/* From stream to stream, and from the small pool to the large one; a limit counts what is mapped. */
static void test_pages_move_between_segments(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp__block_t *blocks[COUNT], *small[40];
  CHECK_OK(tp_memory_set_limit(0, 168 * TP_MiB));
  for (int i = 0; i < 40; i++) small[i] = take(TP_MiB, first);
  scatter(blocks, 10 * TP_MiB, first);
  for (int i = 0; i < 40; i++) drop(small[i]);
  CHECK(CURRENT(reserved_bytes) == 160 * MIB);
  tp__block_t *large = take(90 * TP_MiB, second);
  CHECK(large->segment != blocks[1]->segment && CURRENT(reserved_bytes) == 168 * MIB && moved() == 41);
  CHECK(tp_memory_stat(0, TP_STAT_reserved_bytes + 4 * TP_CLASS_SMALL) == 0); /* most lay there */
  CHECK(calls("cudaStreamSynchronize") == 0 && calls("cudaDeviceSynchronize") == 0);
  fill(large, 99);
  check(large, 99);
  check_rest(blocks);
  CHECK_OK(tp_memory_set_limit(0, TP_NO_LIMIT));
  drop(large);
  drop_rest(blocks);
  clear();
}

/* A private pool takes pages, and keeps its own. */
static void test_private_pools(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 10 * TP_MiB, stream);
  tp_mempool_t *mempool = tp_mempool_create(0, NULL, NULL);
  tp_mempool_scope_t *scope = tp_mempool_enter(mempool, 0);
  tp__block_t *own = take(80 * TP_MiB, stream);
  CHECK(own->segment->pool->owner && moved() == 20 && CURRENT(reserved_bytes) == 160 * MIB);
  drop(own);
  tp_mempool_leave(scope);
  tp__block_t *large = take(40 * TP_MiB, stream);
  CHECK(moved() == 30 && CURRENT(reserved_bytes) == 180 * MIB); /* 20 MiB were left, 80 lie idle in the pool */
  drop(large);
  tp_mempool_release(mempool);
  drop_rest(blocks);
  clear();
}

static void test_nothing_moves_in_captures(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *other = tp_stream_from_pool(0, 0);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 10 * TP_MiB, stream);
  tp_mempool_t *mempool = tp_mempool_create(TP_MEMPOOL_OF_CAPTURE, NULL, NULL);
  tp__capture_t *capture = tp__capture_begin(mempool, other);
  tp_emulated_clear_call_counts();
  tp__block_t *large = take(40 * TP_MiB, stream);
  CHECK(moved() == 0 && calls("cudaStreamQuery") == 0 && CURRENT(reserved_bytes) == 160 * MIB);
  tp__capture_end(capture);
  tp_mempool_release(mempool);
  drop(large);
  large = take(44 * TP_MiB, stream);
  CHECK(moved() == 2);
  drop(large);
  /* Another library's: the stream's pages stay, whoever asks. */
  cudaGraph_t graph;
  tp_stream_t *asking[] = {stream, other};
  for (size_t i = 0; i < 2; i++) {
    CHECK(cudaStreamBeginCapture(tp__stream_cuda(stream), cudaStreamCaptureModeRelaxed) == cudaSuccess);
    large = take((48 + 4 * i) * TP_MiB, asking[i]);
    CHECK(moved() == 2);
    drop(large);
    CHECK(cudaStreamEndCapture(tp__stream_cuda(stream), &graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  }
  drop_rest(blocks);
  clear();
}

static void test_peers_reach_pages_that_moved(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *blocks[COUNT];
  scatter(blocks, 10 * TP_MiB, stream);
  CHECK_OK(tp__alloc_enable_peer(1, 0));
  tp__block_t *large = take(60 * TP_MiB, stream);
  CHECK(moved() == 20);
  CHECK_OK(tp__device_enter(1, "test"));
  CHECK(cudaMemsetAsync(large->address, 5, large->nbytes, tp__stream_cuda(tp_stream_default(1))) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK_OK(tp__device_enter(0, "test"));
  check(large, 5);
  drop(large);
  drop_rest(blocks);
  clear();
}

/* Whichever call fails: neighbours keep their contents, nothing is lost, and the request can be repeated. */
static void test_every_call_of_a_move_fails_in_its_turn(void) {
  static const char *const names[] = {
      "cuMemRetainAllocationHandle", "cuMemMap",        "cuMemRelease",   "cuMemSetAccess", "cuMemUnmap", "cuMemCreate",
      "cudaStreamQuery",             "cudaEventRecord", "cudaEventQuery",
  };
  static const char *const errors[] = {"cudaErrorUnknown", "cudaErrorMemoryAllocation"};
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  for (size_t name = 0; name < sizeof names / sizeof *names; name++) {
    for (int64_t nth = 1, reached = 1; reached; nth++) {
      tp__block_t *blocks[COUNT];
      bool moves = strncmp(names[name], "cuMem", 5) == 0, busy = strncmp(names[name], "cudaEvent", 9) == 0;
      scatter(blocks, 4 * TP_MiB, stream);
      if (busy) keep_busy(stream, blocks[0]->address);
      CHECK_OK(tp_emulated_fail(names[name], nth, tp_emulated_error_code(errors[nth % 2])));
      tp__block_t *large = tp__alloc(26 * TP_MiB, stream);
      validate_heap(0);
      CHECK(tp_emulated_used(0) == CURRENT(reserved_bytes));
      tp__block_t *again = large ? NULL : take(26 * TP_MiB, stream);
      CHECK(!moves || moved() >= 3 || CURRENT(reserved_bytes) < 68 * MIB);
      tp__block_t *second = busy ? take(30 * TP_MiB, stream) : NULL;
      CHECK(!busy || moved() == 0);
      reached = calls(names[name]) >= nth;
      CHECK(reached || nth > 1);
      fill(large ? large : again, 50);
      check(large ? large : again, 50);
      check_rest(blocks);
      drop(large ? large : again);
      if (second) drop(second);
      drop_rest(blocks);
      clear();
    }
  }
}

int main(void) {
  clear();
  CHECK_OK(tp__device_enter(0, "test"));
  CHECK_OK(tp_memory_set_settings("expandable_segments:True"));
  test_what_is_reserved_has_a_bound();
  test_a_device_without_room();
  test_a_steady_program_moves_nothing();
  test_pages_with_work_to_come_stay();
  test_pages_move_behind_a_busy_stream();
  test_pages_of_a_block_that_was_taken_over();
  test_external_streams_are_not_asked();
  test_pages_move_between_segments();
  test_private_pools();
  test_nothing_moves_in_captures();
  test_every_call_of_a_move_fails_in_its_turn();
  test_peers_reach_pages_that_moved();
  return 0;
}
