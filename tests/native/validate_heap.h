/* Whether everything that the allocator knows of a device fits together: segments are covered by their
 * blocks without gaps, every free block lies in the shelf of its stream and nowhere else, shelves are in
 * order, and every counter is the sum of what it counts. */
#ifndef TP_TESTS_VALIDATE_HEAP_H
#define TP_TESTS_VALIDATE_HEAP_H

#include <string.h>

#include "alloc/alloc.h"
#include "check.h"

typedef struct heap_sums {
  int64_t segments, reserved;
  int64_t live, live_nbytes, requested_nbytes;
  int64_t active, active_nbytes;
  int64_t pieces, piece_nbytes;
  int64_t oversize_segments, oversize_live;
  int64_t free, cached;
  int64_t pending_uses;
} heap_sums_t;

static inline void validate_block(const tp__segment_t *segment, const tp__block_t *block, heap_sums_t *sums) {
  const tp__block_t *next = block->next;
  const tp__private_pool_t *owner = segment->pool->owner;
  CHECK(block->segment == segment);
  CHECK(!block->plain || !owner);
  CHECK(!block->capture || owner || block->state == TP_BLOCK_FREE);
  CHECK(block->nbytes > 0 && block->nbytes % TP_BLOCK_UNIT == 0);
  CHECK((uintptr_t)block->address % TP_BLOCK_UNIT == 0);
  if (block->state == TP_BLOCK_GAP) {
    CHECK(segment->grows_for && block->nbytes % TP_PAGE == 0 && block->stream == segment->grows_for);
    CHECK((size_t)(block->address - segment->first->address) % TP_PAGE == 0);
    CHECK(!next || next->state != TP_BLOCK_GAP);
  }
  if (next) {
    CHECK(next->previous == block);
    CHECK(next->address == block->address + block->nbytes);
    /* Free neighbours of one stream have been merged. */
    CHECK(block->state != TP_BLOCK_FREE || next->state != TP_BLOCK_FREE || block->stream != next->stream);
  }
  if (block->state == TP_BLOCK_GAP) return;
  CHECK(block->state == TP_BLOCK_LIVE || !block->budget);
  CHECK(!block->budget || (block->budget_nbytes >= block->requested_nbytes && block->budget_nbytes <= block->nbytes));
  CHECK(!block->cached || (block->state == TP_BLOCK_LIVE && block->plain && !block->uses && (block->previous || next)));
  if (block->state == TP_BLOCK_FREE || block->cached) {
    CHECK(!block->uses && block->pending_uses == 0);
    sums->free += !block->cached;
    sums->cached += block->cached;
    if ((block->previous || next) && !segment->grows_for) {
      sums->pieces++;
      sums->piece_nbytes += (int64_t)block->nbytes;
    }
    return;
  }
  sums->active++;
  sums->active_nbytes += (int64_t)block->nbytes;
  if (block->state == TP_BLOCK_LIVE) {
    CHECK(block->requested_nbytes > 0 && block->requested_nbytes <= block->nbytes);
    CHECK(block->pending_uses == 0);
    sums->live++;
    sums->oversize_live += block->oversize;
    sums->live_nbytes += (int64_t)block->nbytes;
    sums->requested_nbytes += (int64_t)block->requested_nbytes;
  } else {
    CHECK(block->pending_uses > 0 && !block->uses);
    sums->pending_uses += block->pending_uses;
  }
}

static inline void validate_segment(const tp__segment_t *segment, heap_sums_t *sums) {
  int64_t active_before = sums->active, cached_before = sums->cached;
  size_t covered = 0;
  CHECK(segment->first && !segment->first->previous);
  for (const tp__block_t *block = segment->first; block; block = block->next) {
    validate_block(segment, block, sums);
    if (block->state != TP_BLOCK_GAP) covered += block->nbytes;
  }
  CHECK(covered == segment->nbytes);
  /* To its segment a cached block is in use. */
  CHECK((int64_t)segment->active == sums->active - active_before + sums->cached - cached_before);
  sums->segments++;
  sums->oversize_segments += segment->oversize;
  sums->reserved += (int64_t)segment->nbytes;
}

/* A block of a bin, which comes after `last`, the one before. */
static inline void validate_free(const tp__pool_t *pool, const tp__shelf_t *shelf, const tp__block_t *block,
                                 const tp__block_t **last) {
  int64_t clock = block->segment->heap->clock;
  CHECK(block->state == TP_BLOCK_FREE && block->freed <= clock && shelf->passed <= clock && shelf->marked <= clock);
  CHECK(block->stream == shelf->stream && block->segment->pool == pool);
  CHECK(!*last || (*last)->nbytes <= block->nbytes);
  *last = block;
}

/* Walks a tree in order. The number of blocks. */
static inline int64_t validate_tree(const tp__pool_t *pool, const tp__shelf_t *shelf, const tp__block_t *block,
                                    const tp__block_t **last) {
  if (!block) return 0;
  CHECK(!block->left || block->left->priority <= block->priority);
  CHECK(!block->right || block->right->priority <= block->priority);
  int64_t count = 1 + validate_tree(pool, shelf, block->left, last);
  CHECK(!*last || (*last)->nbytes < block->nbytes || (*last)->address < block->address);
  validate_free(pool, shelf, block, last);
  return count + validate_tree(pool, shelf, block->right, last);
}

static inline int64_t validate_list(const tp__pool_t *pool, const tp__shelf_t *shelf, const tp__block_t *block,
                                    const tp__block_t **last) {
  int64_t count = 0;
  for (const tp__block_t *before = NULL; block; before = block, block = block->right, count++) {
    CHECK(block->left == before && (!before || before->nbytes == block->nbytes));
    validate_free(pool, shelf, block, last);
  }
  return count;
}

/* The number of free blocks in a pool. */
static inline int64_t validate_pool(const tp__pool_t *pool, tp__size_class_t class) {
  CHECK(pool->class == class);
  int64_t count = 0;
  for (int32_t id = 0; id < pool->room; id++) {
    const tp__shelf_t *shelf = pool->shelves[id];
    if (!shelf) continue;
    CHECK(tp__stream_id(shelf->stream) == id);
    CHECK(!pool->owner || (!shelf->mark.event && shelf->passed == 0));
    const tp__block_t *last = NULL; /* bins follow each other by size as well */
    for (int bin = 0; bin < TP_BIN_COUNT; bin++) {
      int word = bin / 64;
      CHECK(!shelf->bins[bin] == !(shelf->occupied[word] >> bin % 64 & 1));
      CHECK(!shelf->occupied[word] == !(shelf->words[word / 64] >> word % 64 & 1));
      count += (bin < TP_BIN_LISTS ? validate_list : validate_tree)(pool, shelf, shelf->bins[bin], &last);
    }
  }
  return count;
}

static inline void validate_figures(const int64_t *stats, tp__stat_t family, tp__size_class_t class,
                                    int64_t expected) {
  const int64_t *all = &stats[family];
  const int64_t *own = &stats[family + 4 * class];
  CHECK(own[TP_FIGURE_CURRENT] == expected);
  CHECK(all[TP_FIGURE_CURRENT] == stats[family + 4 * TP_CLASS_LARGE] + stats[family + 4 * TP_CLASS_SMALL]);
  CHECK(own[TP_FIGURE_PEAK] >= expected && all[TP_FIGURE_PEAK] >= all[TP_FIGURE_CURRENT]);
  CHECK(own[TP_FIGURE_ALLOCATED] - own[TP_FIGURE_FREED] == expected);
}

/* Adds the live blocks of a device that count in a budget to the figures. */
static inline void sum_budget(int32_t device, const char *name, tp_budget_figures_t *sums) {
  tp__heap_t *heap = tp__heap(device);
  pthread_mutex_lock(&heap->lock);
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    for (const tp__block_t *block = segment->first; block; block = block->next) {
      const tp_budget_scope_t *scope = block->budget;
      while (scope && strcmp(scope->budget->figures.name, name) != 0) scope = scope->around;
      if (!scope) continue;
      sums->live += block->budget_nbytes;
      sums->requested += block->requested_nbytes;
    }
  }
  pthread_mutex_unlock(&heap->lock);
}

/* Every budget holds the blocks that count in it, of two devices; no thread may allocate meanwhile. */
static inline void validate_budgets(void) {
  tp_budget_figures_t figures[16];
  int32_t count = tp_budget_list(16, figures);
  CHECK(count >= 0 && count <= 16);
  for (int32_t i = 0; i < count; i++) {
    tp_budget_figures_t sums = {.live = 0};
    sum_budget(0, figures[i].name, &sums);
    sum_budget(1, figures[i].name, &sums);
    CHECK(figures[i].live == sums.live && figures[i].requested == sums.requested);
    CHECK(figures[i].peak >= sums.live);
    CHECK(i == 0 || strcmp(figures[i - 1].name, figures[i].name) < 0);
  }
}

/* The number of blocks in the caches of all threads, which hold them by stream and size, within their bounds. */
static inline int64_t validate_caches(const tp__heap_t *heap) {
  int64_t count = 0;
  for (const tp__cache_t *cache = heap->caches; cache; cache = cache->next) {
    size_t nbytes = 0;
    CHECK(!cache->locked && cache->heap == heap && cache->stream_count <= TP_CACHE_STREAMS);
    for (int shelf = 0; shelf < TP_CACHE_STREAMS; shelf++) {
      for (size_t size = 0; size < TP_CACHE_SIZES; size++) {
        for (const tp__block_t *block = cache->shelves[shelf][size]; block; block = block->right) {
          CHECK(shelf < cache->stream_count && block->stream == cache->streams[shelf]);
          CHECK(block->cached && block->nbytes == (size + 1) * TP_BLOCK_UNIT && block->segment->heap == heap);
          nbytes += block->nbytes;
          count++;
        }
      }
    }
    CHECK(nbytes == cache->nbytes && nbytes <= TP_CACHE_NBYTES);
  }
  return count;
}

/* The number of free blocks in private pools; each part counts its segments and has a reason to exist. */
static inline int64_t validate_private_pools(const tp__heap_t *heap, tp__size_class_t class) {
  int64_t count = 0;
  for (const tp__private_pool_t *part = heap->private_pools; part; part = part->next) {
    int64_t segments = 0;
    size_t reserved = 0;
    for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
      if (segment->pool != &part->pools[segment->pool->class]) continue;
      CHECK(segment->pool->owner == part);
      CHECK(part->mempool->users > 0 || segment->active > 0 || tp__captures_underway());
      segments++;
      reserved += segment->nbytes;
    }
    CHECK(part->segments == segments && part->reserved == reserved);
    CHECK(part->mempool->users > 0 || segments > 0 || tp__captures_underway());
    CHECK(part->mempool->parts[part->device] == part && part->mempool->references > 0);
    count += validate_pool(&part->pools[class], class);
  }
  return count;
}

/* What threads may have taken from their caches, which the most active bytes do not follow. */
static inline int64_t cached_room(const tp__heap_t *heap) {
  int64_t room = 0;
  for (const tp__cache_t *cache = heap->caches; cache; cache = cache->next) room += (int64_t)TP_CACHE_NBYTES;
  return room;
}

/* No other thread may be in a call. The sums of increases and decreases must not have been reset. */
static inline void validate_heap(int32_t device) {
  tp__heap_t *heap = tp__heap(device);
  int64_t cached = 0, oversize_segments = 0, oversize_live = 0, pending_uses = 0;
  tp__heap_lock(heap);
  tp__cache_count(heap);
  for (int class = TP_CLASS_LARGE; class <= TP_CLASS_SMALL; class++) {
    heap_sums_t sums = {0};
    const tp__segment_t *previous = NULL;
    for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
      CHECK(segment->previous == previous && segment->heap == heap);
      previous = segment;
      if ((int)segment->pool->class == class) validate_segment(segment, &sums);
    }
    CHECK(validate_pool(&heap->pools[class], class) + validate_private_pools(heap, class) == sums.free);
    cached += sums.cached;
    oversize_segments += sums.oversize_segments;
    oversize_live += sums.oversize_live;
    pending_uses += sums.pending_uses;
    const int64_t *stats = heap->stats;
    validate_figures(stats, TP_STAT_segment, class, sums.segments);
    validate_figures(stats, TP_STAT_reserved_bytes, class, sums.reserved);
    validate_figures(stats, TP_STAT_allocation, class, sums.live);
    validate_figures(stats, TP_STAT_allocated_bytes, class, sums.live_nbytes);
    validate_figures(stats, TP_STAT_requested_bytes, class, sums.requested_nbytes);
    validate_figures(stats, TP_STAT_active, class, sums.active);
    validate_figures(stats, TP_STAT_active_bytes, class, sums.active_nbytes);
    validate_figures(stats, TP_STAT_inactive_split, class, sums.pieces);
    validate_figures(stats, TP_STAT_inactive_split_bytes, class, sums.piece_nbytes);
  }
  CHECK((int64_t)heap->most_active >= heap->stats[TP_STAT_active_bytes] - cached_room(heap));
  CHECK(validate_caches(heap) == cached);
  CHECK(heap->asked == 0 && heap->deferred + heap->deferred_external == pending_uses);
  CHECK(heap->stats[TP_STAT_oversize_segments] == oversize_segments);
  CHECK(heap->stats[TP_STAT_oversize_allocations] == oversize_live);
  tp__heap_unlock(heap);
}

#endif
