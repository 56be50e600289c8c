/* Private pools: whose requests they serve, that nobody else has their blocks, and how long their memory stays. */
#include <pthread.h>

#include "alloc_case.h"

static tp_mempool_t *make(int32_t flags) {
  tp_mempool_t *mempool = tp_mempool_create(flags, NULL, NULL);
  CHECK(mempool && tp_mempool_use_count(mempool) == 1);
  return mempool;
}

static tp_mempool_scope_t *enter(tp_mempool_t *mempool) {
  tp_mempool_scope_t *scope = tp_mempool_enter(mempool, 0);
  CHECK(scope);
  return scope;
}

static tp_mempool_t *owner_of(const tp__block_t *block) {
  return block->segment->pool->owner ? block->segment->pool->owner->mempool : NULL;
}

static int64_t reserved_of(const tp_mempool_t *mempool) {
  tp_mempool_figures_t all[8];
  int64_t first, second;
  tp_mempool_id(mempool, &first, &second);
  int32_t count = tp_mempool_list(0, 8, all);
  for (int32_t i = 0; i < count; i++) {
    if (all[i].id[0] == first && all[i].id[1] == second) return all[i].reserved;
  }
  return 0;
}

static void test_ids(void) {
  tp_mempool_t *handle = make(0), *other = make(0), *capture = make(TP_MEMPOOL_OF_CAPTURE);
  int64_t ids[3][2];
  tp_mempool_id(handle, &ids[0][0], &ids[0][1]);
  tp_mempool_id(other, &ids[1][0], &ids[1][1]);
  tp_mempool_id(capture, &ids[2][0], &ids[2][1]);
  CHECK(ids[0][0] == 0 && ids[0][1] > 0 && ids[1][1] != ids[0][1] && ids[2][0] > 0 && ids[2][1] == 0);
  CHECK(tp_mempool_find(ids[0][0], ids[0][1]) == handle && tp_mempool_use_count(handle) == 2);
  tp_mempool_release(handle);
  tp_mempool_release(handle);
  CHECK(!tp_mempool_find(ids[0][0], ids[0][1]) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_mempool_find(0, 0));
  CHECK(!tp_mempool_create(8, NULL, NULL) && tp_error_status() == TP_INVALID_ARGUMENT);
  tp_mempool_release(other);
  tp_mempool_release(capture);
  tp_mempool_release(NULL);
}

static void test_a_scope_is_of_one_thread_and_one_device(void) {
  tp_mempool_t *outer = make(0), *inner = make(0);
  tp_stream_t *stream = tp_stream_default(0), *elsewhere = tp_stream_default(1);
  tp_mempool_scope_t *first = enter(outer), *second = enter(inner);
  CHECK(tp_mempool_use_count(outer) == 2);
  tp__block_t *inside = take(1000, stream), *other = tp__alloc(1000, elsewhere);
  CHECK(owner_of(inside) == inner && other && !owner_of(other));
  tp_mempool_leave(first); /* in whatever order */
  tp__block_t *still = take(3 * TP_MiB, stream);
  CHECK(owner_of(still) == inner);
  tp_mempool_leave(second);
  tp__block_t *outside = take(1000, stream);
  CHECK(!owner_of(outside) && !tp__route.pool);
  CHECK(tp_mempool_use_count(outer) == 1 && tp_mempool_use_count(inner) == 1);
  CHECK(reserved_of(inner) == (int64_t)(22 * TP_MiB) && reserved_of(outer) == 0);
  drop(inside);
  drop(still);
  drop(outside);
  tp__alloc_free(other);
  tp_mempool_release(outer);
  tp_mempool_release(inner);
  CHECK_OK(tp_memory_empty_cache(1));
  clear();
}

static void *leave_scope(void *scope) {
  tp_mempool_leave(scope);
  return NULL;
}

static void test_a_scope_may_be_left_by_another_thread(void) {
  tp_mempool_t *mempool = make(0);
  tp_mempool_scope_t *scope = enter(mempool);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, leave_scope, scope) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(tp_mempool_use_count(mempool) == 1);
  tp__block_t *block = take(1000, tp_stream_default(0));
  CHECK(!owner_of(block) && !tp__route.pool);
  drop(block);
  tp_mempool_release(mempool);
  clear();
}

static tp_mempool_t *entered;

static void *end_in_scopes(void *argument) {
  tp_mempool_scope_t **scopes = argument;
  for (int i = 0; i < 3; i++) scopes[i] = enter(entered);
  tp_mempool_leave(scopes[1]); /* which is not the innermost one, so its record stays until then */
  return NULL;
}

/* Nothing of the scopes stays behind, which the address sanitizer sees. */
static void test_a_thread_may_end_in_scopes(void) {
  tp_mempool_scope_t *scopes[3];
  pthread_t thread;
  entered = make(0);
  CHECK(pthread_create(&thread, NULL, end_in_scopes, scopes) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(tp_mempool_use_count(entered) == 3);
  tp_mempool_leave(scopes[2]);
  tp_mempool_leave(scopes[0]);
  CHECK(tp_mempool_use_count(entered) == 1);
  tp_mempool_release(entered);
  clear();
}

static void test_nobody_else_has_its_blocks(void) {
  tp_stream_t *first = tp_stream_from_pool(0, 0), *second = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make(0);
  tp_mempool_scope_t *scope = enter(mempool);
  tp__block_t *block = take(4 * TP_MiB, first);
  char *address = block->address;
  drop(block);
  tp__block_t *other = take(4 * TP_MiB, second); /* another stream, though the first one is idle */
  CHECK(other->segment->first->address != address && owner_of(other) == mempool);
  tp__block_t *again = take(4 * TP_MiB, first);
  CHECK(again->address == address);
  drop(again);
  drop(other);
  tp_mempool_leave(scope);
  tp__block_t *outside = take(4 * TP_MiB, first); /* the same stream, another pool */
  CHECK(!owner_of(outside) && CURRENT(segment) == 3);
  CHECK_OK(tp_memory_empty_cache(0)); /* the pool has a user: it keeps what is idle */
  CHECK(reserved_of(mempool) == (int64_t)(40 * TP_MiB));
  CHECK(!tp__alloc(240 * TP_MiB, first) && tp_error_status() == TP_OUT_OF_MEMORY);
  validate_heap(0);
  CHECK(reserved_of(mempool) == (int64_t)(40 * TP_MiB));
  drop(outside);
  tp_mempool_release(mempool);
  clear();
}

static void test_memory_goes_back_with_the_last_need(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *user = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make(TP_MEMPOOL_OF_CAPTURE);
  tp_mempool_scope_t *scope = enter(mempool);
  tp__block_t *small = take(1000, stream), *large = take(4 * TP_MiB, stream), *own = take(30 * TP_MiB, stream);
  drop(own);
  tp_mempool_release(mempool);
  CHECK(tp_mempool_use_count(mempool) == 1 && CURRENT(segment) == 3);
  tp_mempool_leave(scope);
  validate_heap(0);
  CHECK(CURRENT(segment) == 2 && tp_mempool_list(0, 0, NULL) == 1); /* live blocks keep theirs, nothing else */
  drop(small);
  CHECK(CURRENT(segment) == 1);
  CHECK_OK(tp__alloc_record_stream(large, user));
  keep_busy(user, large->address);
  drop(large);
  CHECK(CURRENT(segment) == 1);
  CHECK_OK(tp_stream_synchronize(user));
  drop(take(1000, stream)); /* an allocation looks */
  CHECK(tp_mempool_list(0, 0, NULL) == 0 && CURRENT(segment) == 1);
  clear();
}

static void test_a_last_replay_may_still_work_there(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0), *elsewhere = tp_stream_from_pool(0, 0);
  tp_mempool_t *mempool = make(0);
  tp_mempool_scope_t *scope = enter(mempool);
  tp__block_t *block = take(1000, stream);
  keep_busy(elsewhere, block->address);
  drop(block);
  tp_mempool_leave(scope);
  tp_mempool_release(mempool); /* waits for the device: a kernel that reached freed memory would end it */
  CHECK(CURRENT(segment) == 0);
  CHECK_OK(tp_device_synchronize(0));
  clear();
}

static void test_blocks_may_be_whole_segments(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_mempool_t *mempool = make(TP_MEMPOOL_NO_SPLIT);
  tp_mempool_scope_t *scope = enter(mempool);
  tp__block_t *small = take(1000, stream), *large = take(5 * TP_MiB, stream), *second = take(1000, stream);
  CHECK(small->nbytes == TP_SEGMENT_UNIT && large->nbytes == 6 * TP_MiB && second->segment != small->segment);
  CHECK(!small->next && CURRENT(inactive_split) == 0 && CURRENT(requested_bytes) == 2000 + 5 * (int64_t)TP_MiB);
  drop(small);
  drop(large);
  drop(second);
  tp_mempool_leave(scope);
  tp_mempool_release(mempool);
  clear();
}

static void test_a_pool_may_help_out(void) {
  tp_stream_t *stream = tp_stream_default(0), *other = tp_stream_from_pool(0, 0);
  tp_mempool_t *helps = make(TP_MEMPOOL_USE_ON_OOM), *keeps = make(0);
  tp_mempool_scope_t *scope = enter(helps);
  tp__block_t *block = take(100 * TP_MiB, stream);
  drop(block);
  tp_mempool_scope_t *inner = enter(keeps);
  drop(take(100 * TP_MiB, stream));
  CHECK(!tp__alloc(100 * TP_MiB, other)); /* not for private pools, nor for another stream */
  tp_mempool_leave(inner);
  tp_mempool_leave(scope);
  CHECK(!tp__alloc(90 * TP_MiB, other));
  tp_memory_shortage_t shortage;
  CHECK_OK(tp_memory_shortage(&shortage));
  CHECK(shortage.private_pools == 200 * TP_MiB && shortage.returnable == 0 && shortage.largest_free == 0);
  int64_t retries = STAT(num_alloc_retries, CURRENT);
  block = take(90 * TP_MiB, stream);
  CHECK(owner_of(block) == helps && STAT(num_alloc_retries, CURRENT) == retries);
  drop(block); /* returns to where it came from */
  CHECK(reserved_of(helps) == 100 * (int64_t)TP_MiB);
  tp_mempool_release(helps);
  tp_mempool_release(keeps);
  clear();
}

/* ---- segments from another source ---- */

static int sources_open;
static char *source_memory;

static void *source_allocate(ptrdiff_t nbytes, int32_t device, void *stream) {
  CHECK(device == 0 && nbytes == (ptrdiff_t)TP_SMALL_SEGMENT && stream == NULL);
  if (sources_open > 0) return NULL;
  sources_open++;
  CHECK(cudaMalloc((void **)&source_memory, (size_t)nbytes) == cudaSuccess);
  return source_memory;
}

static void source_free(void *address, ptrdiff_t nbytes, int32_t device, void *stream) {
  CHECK(address == source_memory && device == 0 && nbytes == (ptrdiff_t)TP_SMALL_SEGMENT && stream == NULL);
  sources_open--;
  CHECK(cudaFree(address) == cudaSuccess);
}

static void test_segments_may_come_from_elsewhere(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK(!tp_mempool_create(0, source_allocate, NULL) && tp_error_status() == TP_INVALID_ARGUMENT);
  tp_mempool_t *mempool = tp_mempool_create(0, source_allocate, source_free);
  tp_mempool_scope_t *scope = enter(mempool);
  tp__block_t *block = take(1000, stream), *second = take(TP_MiB, stream);
  CHECK(block->address == source_memory && second->segment == block->segment);
  CHECK(!tp__alloc(TP_MiB, stream) && tp_error_status() == TP_OUT_OF_MEMORY); /* it has no more room */
  validate_heap(0);
  drop(block);
  drop(second);
  CHECK(sources_open == 1);
  tp_mempool_leave(scope);
  tp_mempool_release(mempool);
  CHECK(sources_open == 0);
  clear();
}

static void test_failures_lose_nothing(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp_mempool_t *mempool = make(0);
  tp_mempool_scope_t *scope = enter(mempool);
  CHECK(tp_emulated_fail("cudaMalloc", 1, tp_emulated_error_code("cudaErrorUnknown")) == 0);
  CHECK(!tp__alloc(1000, stream) && tp_error_status() == TP_CUDA);
  validate_heap(0);
  drop(take(1000, stream));
  CHECK(!tp_mempool_enter(mempool, 2) && tp_error_status() == TP_DEVICE);
  CHECK(tp_mempool_list(2, 0, NULL) == TP_DEVICE);
  tp_mempool_leave(scope);
  /* Giving back fails without a word, and is made good by the next one that asks. */
  int64_t failed = (int64_t)tp_error_status();
  CHECK(tp_emulated_fail("cudaFree", 1, tp_emulated_error_code("cudaErrorUnknown")) == 0);
  tp_mempool_release(mempool);
  CHECK(tp_error_status() == failed && CURRENT(segment) == 1);
  CHECK_OK(tp_memory_empty_cache(0));
  CHECK(CURRENT(segment) == 0 && tp_mempool_list(0, 0, NULL) == 0);
  clear();
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 200 };

static void *use_pools(void *shared) {
  static atomic_uint started;
  unsigned seed = atomic_fetch_add(&started, 1);
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  for (int i = 0; i < ROUNDS; i++) {
    tp_mempool_t *own = i % 8 == 0 ? tp_mempool_create(0, NULL, NULL) : NULL;
    tp_mempool_scope_t *scope = tp_mempool_enter(own ? own : shared, 0);
    tp_mempool_release(own); /* the scope keeps it */
    tp__block_t *block = tp__alloc(512 + (size_t)rand_r(&seed) % (TP_MiB / 2), stream);
    CHECK(scope && block && block->segment->pool->owner);
    tp_mempool_leave(scope);
    tp__block_t *outside = tp__alloc(1000, stream);
    CHECK(outside && !outside->segment->pool->owner);
    tp__alloc_free(block); /* maybe the last of its pool */
    tp__alloc_free(outside);
    if (i % 50 == 0) CHECK_OK(tp_memory_empty_cache(0));
    CHECK(tp_mempool_list(0, 0, NULL) >= 0);
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[THREADS];
  tp_mempool_t *shared = make(0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, use_pools, shared) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  validate_heap(0);
  CHECK(tp_mempool_use_count(shared) == 1 && tp_mempool_list(0, 0, NULL) <= 1);
  tp_mempool_release(shared);
  CHECK(tp_mempool_list(0, 0, NULL) == 0);
  clear();
}

int main(void) {
  CHECK_OK(tp__device_enter(0, "test"));
  clear();
  test_ids();
  test_a_scope_is_of_one_thread_and_one_device();
  test_a_scope_may_be_left_by_another_thread();
  test_a_thread_may_end_in_scopes();
  test_nobody_else_has_its_blocks();
  test_memory_goes_back_with_the_last_need();
  test_a_last_replay_may_still_work_there();
  test_blocks_may_be_whole_segments();
  test_a_pool_may_help_out();
  test_segments_may_come_from_elsewhere();
  test_failures_lose_nothing();
  test_threads();
  return 0;
}
