/* Each thread's own small blocks, in front of the pools of a device: a block that is given back waits here and is
 * handed out again to the same thread for the same stream and size, under no lock that another thread needs.
 *
 * To the heap a cached block is one in use, until it is drained; its counters follow what the thread has counted here
 * as soon as somebody reads or changes them. A cache is bounded in bytes and streams; when either is spent, all of it
 * goes back to the pools at once. So it cannot fill with sizes that nobody asks for any more, and a thread that only
 * gives back what others took pays for the heap's lock once for many blocks.
 *
 * A cache has a lock of its own, which its thread takes for the few instructions of a hit, and others only to drain or
 * count it. They hold the heap's lock as well, so its thread may count under the heap's lock alone. A pthread mutex
 * would cost more than all the rest of a hit. */
#include <sched.h>
#include <stdlib.h>

#include "alloc.h"

static _Atomic int32_t suspended;

static _Thread_local tp__cache_t *mine[TP_MAX_DEVICES];
static _Thread_local bool registered; /* the key holds `mine`, so that it is drained when the thread ends */
static pthread_key_t mine_key;
static pthread_once_t mine_once = PTHREAD_ONCE_INIT;

static void lock(tp__cache_t *cache) {
  while (atomic_exchange_explicit(&cache->locked, true, memory_order_acquire)) sched_yield();
}

static void unlock(tp__cache_t *cache) { atomic_store_explicit(&cache->locked, false, memory_order_release); }

/* Suspending drains every cache under its lock: whoever takes that lock later sees that it is suspended. Who sees that
 * it no longer is comes after all that was done in between, such as reading blocks. And requested bytes may drift away
 * from those of the cached blocks, block by block: the heap hears of it in time. */
static bool may_serve(const tp__cache_t *cache) {
  if (atomic_load_explicit(&suspended, memory_order_acquire)) return false;
  return cache->requested.high - cache->requested.low <= (int64_t)TP_CACHE_NBYTES;
}

/* The stream's shelf in the cache, -1 when there is none. */
static int find_shelf(const tp__cache_t *cache, const tp_stream_t *stream) {
  for (int i = 0; i < cache->stream_count; i++) {
    if (cache->streams[i] == stream) return i;
  }
  return -1;
}

static int size_of(size_t nbytes) { return (int)(nbytes / TP_BLOCK_UNIT) - 1; }

tp__block_t *tp__cache_take(size_t requested_nbytes, size_t nbytes, tp_stream_t *stream) {
  tp__cache_t *cache = mine[tp_stream_device(stream)];
  if (!cache || nbytes > TP_CACHE_BLOCK_LIMIT || tp__route.pool || tp__route.budget) return NULL;
  lock(cache);
  int shelf = may_serve(cache) ? find_shelf(cache, stream) : -1;
  tp__block_t *block = shelf < 0 ? NULL : cache->shelves[shelf][size_of(nbytes)];
  if (block) {
    cache->shelves[shelf][size_of(nbytes)] = block->right;
    cache->nbytes -= nbytes;
    tp__tally_out(&cache->blocks, 1);
    tp__tally_out(&cache->block_nbytes, (int64_t)nbytes);
    tp__tally_out(&cache->requested, (int64_t)requested_nbytes);
    block->requested_nbytes = requested_nbytes;
    block->cached = false;
  }
  unlock(cache);
  return block;
}

/* ---- to the heap and back; under its lock ---- */

/* Adds to the heap's counters what was counted here. */
static void count(tp__cache_t *cache) {
  int64_t *stats = cache->heap->stats;
  if (cache->blocks.in + cache->blocks.out == 0) return;
  tp__stat_follow(stats, TP_STAT_allocation, &cache->blocks, false);
  tp__stat_follow(stats, TP_STAT_allocated_bytes, &cache->block_nbytes, false);
  tp__stat_follow(stats, TP_STAT_requested_bytes, &cache->requested, false);
  tp__stat_follow(stats, TP_STAT_active, &cache->blocks, false);
  tp__stat_follow(stats, TP_STAT_active_bytes, &cache->block_nbytes, false);
  if (!cache->grows) {
    tp__stat_follow(stats, TP_STAT_inactive_split, &cache->blocks, true);
    tp__stat_follow(stats, TP_STAT_inactive_split_bytes, &cache->block_nbytes, true);
  }
  cache->blocks = cache->block_nbytes = cache->requested = (tp__tally_t){.in = 0};
}

void tp__cache_count_own(int32_t device) {
  if (mine[device]) count(mine[device]);
}

void tp__cache_count(tp__heap_t *heap) {
  for (tp__cache_t *cache = heap->caches; cache; cache = cache->next) {
    lock(cache);
    count(cache);
    unlock(cache);
  }
}

/* All blocks, linked, leave the cache. Under its lock. */
static tp__block_t *detach(tp__cache_t *cache) {
  tp__block_t *all = NULL;
  for (int shelf = 0; cache->nbytes > 0 && shelf < cache->stream_count; shelf++) {
    for (int size = 0; size < TP_CACHE_SIZES; size++) {
      while (cache->shelves[shelf][size]) {
        tp__block_t *block = cache->shelves[shelf][size];
        cache->shelves[shelf][size] = block->right;
        block->cached = false;
        block->right = all;
        all = block;
      }
    }
  }
  cache->stream_count = 0;
  cache->nbytes = 0;
  return all;
}

static void drain(tp__cache_t *cache) {
  tp__heap_t *heap = cache->heap;
  lock(cache);
  count(cache);
  tp__block_t *block = detach(cache);
  bool are_pieces = !cache->grows;
  unlock(cache);
  while (block) {
    tp__block_t *next = block->right;
    block->segment->active--;
    if (are_pieces) { /* it was counted as a free piece already */
      tp__stat_decrease(heap->stats, TP_STAT_inactive_split, TP_CLASS_SMALL, 1);
      tp__stat_decrease(heap->stats, TP_STAT_inactive_split_bytes, TP_CLASS_SMALL, block->nbytes);
    }
    tp__pool_insert_merged(heap, block);
    block = next;
  }
}

void tp__cache_drain(tp__heap_t *heap) {
  for (tp__cache_t *cache = heap->caches; cache; cache = cache->next) drain(cache);
}

void tp__cache_suspend(void) {
  atomic_fetch_add(&suspended, 1);
  for (int32_t device = 0; device < TP_MAX_DEVICES && !tp__device_is_inherited(); device++) {
    tp__heap_t *heap = tp__heap(device);
    tp__heap_lock(heap);
    tp__cache_drain(heap);
    tp__heap_unlock(heap);
  }
}

void tp__cache_resume(void) { atomic_fetch_sub(&suspended, 1); }

/* ---- life ---- */

/* At the end of a thread, which may still give blocks back afterwards: then with a new cache, and this runs again. */
static void end(void *argument) {
  (void)argument;
  registered = false;
  for (int32_t device = 0; device < TP_MAX_DEVICES && !tp__device_is_inherited(); device++) {
    tp__cache_t *cache = mine[device];
    if (!cache) continue;
    tp__heap_lock(cache->heap);
    drain(cache);
    tp__cache_t **link = &cache->heap->caches;
    while (*link != cache) link = &(*link)->next;
    *link = cache->next;
    tp__heap_unlock(cache->heap);
    free(cache);
    mine[device] = NULL;
  }
}

static void make_key(void) { (void)pthread_key_create(&mine_key, end); }

/* A thread that no key holds, or without host memory, has no cache. */
static tp__cache_t *make(int32_t device) {
  if (!registered) {
    (void)pthread_once(&mine_once, make_key);
    registered = pthread_setspecific(mine_key, mine) == 0;
  }
  tp__cache_t *cache = registered ? calloc(1, sizeof *cache) : NULL;
  if (!cache) return NULL;
  tp__heap_t *heap = cache->heap = tp__heap(device);
  tp__heap_lock(heap);
  cache->next = heap->caches;
  heap->caches = cache;
  tp__heap_unlock(heap);
  return mine[device] = cache;
}

/* ---- giving back ---- */

/* Whether the block counts as those that are there do. What follows a drain decides. */
static bool suits(tp__cache_t *cache, const tp__block_t *block) {
  bool grows = block->segment->grows_for;
  if (cache->nbytes + (size_t)cache->blocks.in + (size_t)cache->blocks.out == 0) cache->grows = grows;
  return cache->grows == grows;
}

/* False when the cache has no room, or may not be used. */
static bool put(tp__cache_t *cache, tp__block_t *block) {
  lock(cache);
  bool fits = may_serve(cache) && suits(cache, block) && cache->nbytes + block->nbytes <= TP_CACHE_NBYTES;
  int shelf = fits ? find_shelf(cache, block->stream) : -1;
  if (fits && shelf < 0 && cache->stream_count < TP_CACHE_STREAMS) {
    shelf = cache->stream_count++;
    cache->streams[shelf] = block->stream;
  }
  if (shelf >= 0) {
    tp__block_t **first = &cache->shelves[shelf][size_of(block->nbytes)];
    block->right = *first;
    *first = block;
    block->cached = true;
    block->origin = 0; /* caches are not used while origins are recorded */
    cache->nbytes += block->nbytes;
    tp__tally_in(&cache->blocks, 1);
    tp__tally_in(&cache->block_nbytes, (int64_t)block->nbytes);
    tp__tally_in(&cache->requested, (int64_t)block->requested_nbytes);
  }
  unlock(cache);
  return shelf >= 0;
}

bool tp__cache_give(tp__block_t *block) {
  if (atomic_load_explicit(&suspended, memory_order_relaxed)) return false;
  int32_t device = tp_stream_device(block->stream);
  tp__cache_t *cache = mine[device] ? mine[device] : make(device);
  if (!cache) return false;
  if (put(cache, block)) return true;
  tp__heap_lock(cache->heap);
  drain(cache);
  tp__heap_unlock(cache->heap);
  return put(cache, block);
}
