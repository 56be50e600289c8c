/* History: which entries are noted in which order, with whose origin; the ring; readings while threads work. */
#include <pthread.h>

#include "alloc_case.h"

static const int32_t EVERYTHING = TP_HISTORY_ORIGINS | TP_HISTORY_ENTRIES | TP_HISTORY_FREES;

static _Atomic int64_t asked;

/* A listener that needs what others hold under locks: it would never return if it was asked under one. */
static int64_t number_of_call(void) {
  CHECK(tp_memory_stat(0, TP_STAT_num_ooms) >= 0);
  tp_memory_snapshot_release(tp_memory_snapshot_take(0, false));
  return atomic_fetch_add(&asked, 1) + 1;
}

static void record(int32_t mode, int64_t most) {
  CHECK_OK(tp_memory_record_history(mode, most));
  tp_origin_set_hook(mode & TP_HISTORY_ORIGINS ? number_of_call : NULL);
  atomic_store(&asked, 0);
}

static void check_entry(const tp_memory_snapshot_t *taken, int64_t place, tp__action_t action, const void *address,
                        int64_t nbytes, int64_t origin) {
  CHECK(place < taken->entry_count);
  const tp_memory_entry_t *entry = &taken->entries[place];
  CHECK(entry->action == (int64_t)action);
  CHECK(entry->address == (int64_t)(uintptr_t)address);
  CHECK(entry->nbytes == nbytes && entry->origin == origin);
  CHECK(entry->time_us > 0 && (place == 0 || entry->time_us >= entry[-1].time_us));
}

static void test_entries_of_a_block(tp_stream_t *stream) {
  clear();
  record(EVERYTHING, 100);
  tp__block_t *block = tp__alloc(700, stream);
  CHECK(block && block->origin == 1 && block->segment->origin == 1);
  void *address = tp__alloc_address(block);
  tp__alloc_free(block);
  CHECK_OK(tp_memory_empty_cache(0));
  tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, true);
  CHECK(taken && taken->segment_count == 0 && taken->entry_count == 6);
  check_entry(taken, 0, TP_TRACE_segment_alloc, address, TP_SMALL_SEGMENT, 1);
  check_entry(taken, 1, TP_TRACE_alloc, address, 700, 1);
  check_entry(taken, 2, TP_TRACE_free_requested, address, 700, 2);
  check_entry(taken, 3, TP_TRACE_free_completed, address, 700, 2);
  check_entry(taken, 4, TP_TRACE_segment_free, address, TP_SMALL_SEGMENT, 3);
  check_entry(taken, 5, TP_TRACE_snapshot, NULL, 0, 4);
  CHECK(taken->entries[1].stream == (int64_t)tp_stream_handle(stream));
  tp_memory_snapshot_release(taken);
  record(0, 1);
}

static void test_a_refusal_has_the_free_bytes(tp_stream_t *stream) {
  clear();
  record(EVERYTHING, 100);
  CHECK(!tp__alloc(1024 * TP_MiB, stream));
  tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, true);
  CHECK(taken && taken->entry_count == 2);
  check_entry(taken, 0, TP_TRACE_oom, (void *)(256 * TP_MiB), 1024 * (int64_t)TP_MiB, 1);
  tp_memory_snapshot_release(taken);
  record(0, 1);
}

/* Without TP_HISTORY_FREES, what happens later has the allocation's origin. */
static void test_origins_of_frees(tp_stream_t *stream, tp_stream_t *other) {
  clear();
  record(TP_HISTORY_ORIGINS | TP_HISTORY_ENTRIES, 100);
  tp__block_t *block = take(700, stream);
  CHECK_OK(tp__alloc_record_stream(block, other));
  drop(block);
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_memory_empty_cache(0));
  tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, true);
  CHECK(taken && atomic_load(&asked) == 1);
  check_entry(taken, 2, TP_TRACE_free_requested, (void *)taken->entries[1].address, 700, 1);
  check_entry(taken, 3, TP_TRACE_free_completed, (void *)taken->entries[1].address, 700, 1);
  check_entry(taken, 4, TP_TRACE_segment_free, (void *)taken->entries[1].address, TP_SMALL_SEGMENT, 0);
  tp_memory_snapshot_release(taken);
  record(0, 1);
}

static void test_ring_keeps_the_latest(tp_stream_t *stream) {
  clear();
  const int64_t rooms[] = {1, 7, 1023, 1024, 1025, 3000, 5000};
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
    record(TP_HISTORY_ENTRIES, rooms[i]);
    for (int64_t n = 1; n <= 1200; n++) tp__alloc_free(tp__alloc((size_t)n, stream));
    /* Three entries for each block, one for the first one's segment, one for the reading. */
    int64_t noted = 3 * 1200 + (i == 0) + 1;
    tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, true);
    CHECK(taken && taken->entry_count == (noted < rooms[i] ? noted : rooms[i]));
    for (int64_t last = taken->entry_count - 1, k = 1; k <= last && k <= 3 * 1200; k++) {
      CHECK(taken->entries[last - k].nbytes == 1200 - (k - 1) / 3);
    }
    tp_memory_snapshot_release(taken);
  }
  record(0, 1);
  tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, true);
  CHECK(taken && taken->entry_count == 0);
  tp_memory_snapshot_release(taken);
}

static void test_a_reading_of_the_state(tp_stream_t *stream, tp_stream_t *other) {
  clear();
  tp__block_t *live = take(700, stream);
  tp__block_t *pending = take(5000, stream);
  void *address = tp__alloc_address(pending);
  CHECK_OK(tp__alloc_record_stream(pending, other));
  keep_busy(other, address);
  drop(pending);
  tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, false);
  CHECK(taken && taken->segment_count == 1 && taken->block_count == 3 && taken->entry_count == 0);
  const tp_memory_block_t *blocks = taken->blocks;
  CHECK(blocks[0].nbytes == 1024 && blocks[0].requested_nbytes == 700 && blocks[0].state == TP_MEMORY_ALLOCATED);
  CHECK(blocks[1].nbytes == 5120 && blocks[1].requested_nbytes == 5000 && blocks[1].state == TP_MEMORY_PENDING_FREE);
  CHECK(blocks[2].requested_nbytes == 0 && blocks[2].state == TP_MEMORY_INACTIVE && blocks[2].origin == 0);
  CHECK(taken->segments[0].address == (int64_t)(uintptr_t)tp__alloc_address(live));
  CHECK(taken->segments[0].block_count == 3 && !taken->segments[0].is_large);
  tp_memory_snapshot_release(taken);
  drop(live);
  clear();
}

static void test_refused_arguments(void) {
  CHECK(!tp_memory_snapshot_take(99, false) && tp_error_status() == TP_DEVICE);
  CHECK(tp_memory_record_history(8, 1) == TP_INVALID_ARGUMENT);
  CHECK(tp_memory_record_history(TP_HISTORY_WITHOUT << (TP_TRACE_oom + 1), 1) == TP_INVALID_ARGUMENT);
  CHECK(tp_memory_record_history(EVERYTHING, 0) == TP_INVALID_ARGUMENT);
  tp_memory_snapshot_release(NULL);
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 300 };

static int64_t same_number(void) { return 5; }

static void *work(void *context) {
  tp_stream_t *stream = context;
  for (int i = 0; i < ROUNDS; i++) {
    tp__block_t *block = tp__alloc(512 + 100 * (size_t)i, stream);
    CHECK(block);
    tp__alloc_free(block);
  }
  return NULL;
}

static void test_switching_and_reading_while_threads_work(tp_stream_t *stream) {
  clear();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK_OK(pthread_create(&threads[i], NULL, work, stream));
  for (int i = 0; i < ROUNDS; i++) {
    CHECK_OK(tp_memory_record_history(i % 3 ? EVERYTHING : 0, 50 + i));
    tp_origin_set_hook(i % 3 ? same_number : NULL);
    tp_memory_snapshot_t *taken = tp_memory_snapshot_take(0, true);
    CHECK(taken && taken->entry_count <= 50 + i);
    tp_memory_snapshot_release(taken);
  }
  for (int i = 0; i < THREADS; i++) CHECK_OK(pthread_join(threads[i], NULL));
  record(0, 1);
  clear();
}

int main(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_stream_t *other = tp_stream_from_pool(0, 0);
  CHECK(stream && other);
  test_entries_of_a_block(stream);
  test_a_refusal_has_the_free_bytes(stream);
  test_origins_of_frees(stream, other);
  test_ring_keeps_the_latest(stream);
  test_a_reading_of_the_state(stream, other);
  test_refused_arguments();
  test_switching_and_reading_while_threads_work(stream);
  return 0;
}
