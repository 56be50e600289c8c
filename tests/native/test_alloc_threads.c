/* The allocator with sixteen threads: no two live blocks overlap, streams are recorded from any thread, blocks are
 * freed by other threads than took them, caches are emptied, suspended and read meanwhile, and the counters are exact
 * when all is done. */
#include <pthread.h>
#include <string.h>

#include "tp_emulated.h"
#include "validate_heap.h"

enum { THREADS = 16, SLOTS = 64, STEPS = 2000, DEVICES = 2 };

/* Blocks are handed between threads through these; the owner of an entry has exchanged it for NULL. */
static _Atomic(tp__block_t *) slots[DEVICES][SLOTS];

static size_t random_size(uint32_t *state) {
  size_t limit = next_random(state) % 8 ? 32 * TP_KiB : 6 * TP_MiB;
  return 1 + next_random(state) % limit;
}

/* Work that writes to the block, ordered behind what the block's own stream holds, if it is another. */
static void use_block(tp__block_t *block, tp_stream_t *stream) {
  CHECK_OK(tp__device_enter(tp_stream_device(stream), "test"));
  CHECK(cudaMemsetAsync(tp__alloc_address(block), 1, 512, tp__stream_cuda(stream)) == cudaSuccess);
  CHECK_OK(tp__alloc_record_stream(block, stream));
}

/* What reads or drains the caches of all threads; seldom, so that they are used in between. */
static void disturb(uint32_t choice, int device) {
  tp_memory_snapshot_t *snapshot;
  switch (choice) {
    case 0:
      CHECK_OK(tp_memory_empty_cache(device));
      break;
    case 1:
      snapshot = tp_memory_snapshot_take(device, 0);
      CHECK(snapshot);
      tp_memory_snapshot_release(snapshot);
      break;
    case 2:
      tp__cache_suspend();
      tp__cache_resume();
      break;
    default:
      break;
  }
}

static void step(uint32_t *state, tp_stream_t *const *streams) {
  int device = next_random(state) % DEVICES;
  tp_stream_t *stream = streams[device];
  _Atomic(tp__block_t *) *slot = &slots[device][next_random(state) % SLOTS];
  tp__block_t *block = atomic_exchange(slot, NULL);
  if (!block) {
    block = tp__alloc(random_size(state), stream);
    CHECK(block);
  }
  switch (next_random(state) % 4) {
    case 0:
      use_block(block, stream);
      break;
    case 1:
      tp__alloc_free(block);
      block = NULL;
      break;
    case 2:
      CHECK(tp_memory_stat(device, TP_STAT_allocated_bytes) >= (int64_t)block->nbytes);
      break;
    default:
      disturb(next_random(state) % 128, device);
      break;
  }
  tp__block_t *other = block ? atomic_exchange(slot, block) : NULL;
  if (other) tp__alloc_free(other);
}

static void *run_thread(void *argument) {
  uint32_t state = (uint32_t)(uintptr_t)argument;
  tp_stream_t *streams[DEVICES];
  for (int device = 0; device < DEVICES; device++) {
    streams[device] = state % 2 ? tp_stream_from_pool(device, 0) : tp_stream_default(device);
    CHECK(streams[device]);
  }
  for (int i = 0; i < STEPS; i++) step(&state, streams);
  return NULL;
}

static void run_all(void *(*function)(void *)) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, function, (void *)(i + 1)) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void test_blocks_passed_between_threads(void) {
  run_all(run_thread);
  for (int device = 0; device < DEVICES; device++) {
    validate_heap(device);
    for (int i = 0; i < SLOTS; i++) {
      tp__block_t *block = atomic_exchange(&slots[device][i], NULL);
      if (block) tp__alloc_free(block);
    }
    CHECK_OK(tp_memory_empty_cache(device));
    validate_heap(device);
    CHECK(tp_memory_stat(device, TP_STAT_active) == 0 && tp_memory_stat(device, TP_STAT_reserved_bytes) == 0);
    CHECK(tp_emulated_used(device) == 0);
  }
}

/* Each thread keeps many raw addresses; all of them together must be disjoint. */
enum { EACH = 500 };

static struct {
  char *address;
  size_t nbytes;
} held[THREADS * EACH];

static void *hold_addresses(void *argument) {
  uint32_t number = (uint32_t)(uintptr_t)argument - 1;
  uint32_t state = number + 77;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < EACH; i++) {
      size_t nbytes = 1 + next_random(&state) % (16 * TP_KiB);
      char *address = tp_memory_alloc(nbytes, tp_stream_default(0));
      CHECK(address);
      held[number * EACH + (uint32_t)i].address = address;
      held[number * EACH + (uint32_t)i].nbytes = nbytes;
    }
    if (round == 2) break;
    for (int i = 0; i < EACH; i++) tp_memory_free(held[number * EACH + (uint32_t)i].address);
  }
  return NULL;
}

static int by_address(const void *a, const void *b) {
  char *const *first = a;
  char *const *second = b;
  return (*first > *second) - (*first < *second);
}

static void test_live_blocks_are_disjoint(void) {
  run_all(hold_addresses);
  validate_heap(0);
  CHECK(tp_memory_stat(0, TP_STAT_allocation) == THREADS * EACH);
  qsort(held, THREADS * EACH, sizeof *held, by_address);
  for (int i = 0; i + 1 < THREADS * EACH; i++) CHECK(held[i].address + held[i].nbytes <= held[i + 1].address);
  for (int i = 0; i < THREADS * EACH; i++) tp_memory_free(held[i].address);
  validate_heap(0);
  CHECK(tp_memory_stat(0, TP_STAT_allocation) == 0);
}

/* All threads meet the first uses at once: of a device, a priority, an event's first record. */
static tp_event_t *shared_event;

static void *use_first(void *argument) {
  tp_stream_t *stream = tp_stream_from_pool(0, -1);
  CHECK(stream);
  CHECK_OK(tp_event_record(shared_event, stream));
  CHECK(tp_event_query(shared_event) >= 0);
  CHECK_OK(tp_event_synchronize(shared_event));
  return argument;
}

static void test_first_uses_at_once(void) {
  shared_event = tp_event_create(0);
  CHECK(shared_event);
  run_all(use_first);
  CHECK(tp_emulated_call_count("cudaStreamCreateWithPriority", -1) == 32);
  CHECK(tp_emulated_call_count("cudaHostAlloc", -1) == 1);
  CHECK(tp_emulated_call_count("cudaEventCreateWithFlags", -1) == 1);
  tp_event_release(shared_event);
}

int main(void) {
  test_first_uses_at_once();
  test_blocks_passed_between_threads();
  test_live_blocks_are_disjoint();
  return 0;
}
