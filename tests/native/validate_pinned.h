/* Whether everything that is known of pinned memory fits together: regions lie in order and apart, every free block is
 * on the shelf of its size, idle regions and no others can go back, every counter is the sum of what it counts. */
#ifndef TP_TESTS_VALIDATE_PINNED_H
#define TP_TESTS_VALIDATE_PINNED_H

#include "check.h"
#include "pinned/pinned.h"

#define HOST_STAT(name, figure) host_stat(TP_HOST_STAT_##name + TP_FIGURE_##figure)
#define HOST_CURRENT(name) HOST_STAT(name, CURRENT)

static inline int64_t host_stat(int32_t key) {
  int64_t values[TP_HOST_STAT_COUNT];
  CHECK_OK(tp_pinned_stats(values, TP_HOST_STAT_COUNT));
  return values[key];
}

static inline int64_t blocks_on_shelves(void) {
  int64_t found = 0;
  for (int32_t class = 0; class < TP_PINNED_CLASSES; ++class) {
    tp__pinned_block_t **link = &tp__pinned.shelves[class];
    size_t nbytes = *link ? (*link)->region->block_nbytes : 0;
    for (; *link; link = &(*link)->next, ++found) {
      CHECK((*link)->state == TP_PINNED_FREE && (*link)->link == link);
      CHECK((*link)->region->block_nbytes == nbytes && tp__pinned_round(nbytes) == nbytes);
    }
  }
  return found;
}

static inline void validate_pinned(void) {
  int64_t held = 0, active = 0, active_nbytes = 0, requested = 0, free = 0, pending = 0, idle = 0, idle_nbytes = 0;
  pthread_mutex_lock(&tp__pinned.lock);
  const char *end = NULL;
  for (int32_t r = 0; r < tp__pinned.count; ++r) {
    const tp__pinned_region_t *region = tp__pinned.regions[r];
    CHECK(region->memory >= end && region->nbytes == (size_t)region->count * region->block_nbytes);
    end = region->memory + region->nbytes;
    held += (int64_t)region->nbytes;
    int32_t taken = 0;
    for (int32_t b = 0; b < region->count; ++b) {
      const tp__pinned_block_t *block = &region->blocks[b];
      CHECK(tp__pinned_find(tp__pinned_address(block) + region->block_nbytes - 1, 1) == block);
      CHECK(block->state == TP_PINNED_PENDING ? block->pending_uses + block->holds > 0 : block->pending_uses == 0);
      CHECK(block->state != TP_PINNED_FREE || block->holds == 0);
      CHECK(!block->uses || block->state == TP_PINNED_LIVE);
      free += block->state == TP_PINNED_FREE;
      taken += block->state != TP_PINNED_FREE;
      pending += block->pending_uses;
      if (block->state == TP_PINNED_LIVE) requested += (int64_t)block->requested;
    }
    CHECK(taken == region->taken);
    active += taken;
    active_nbytes += taken * (int64_t)region->block_nbytes;
    idle += taken == 0;
    idle_nbytes += taken ? 0 : (int64_t)region->nbytes;
  }
  for (const tp__pinned_region_t *region = tp__pinned.oldest; region; region = region->newer, --idle) {
    CHECK(region->taken == 0 && (region->newer ? region->newer->older : tp__pinned.newest) == region);
  }
  CHECK(idle == 0 && (int64_t)tp__pinned.idle_nbytes == idle_nbytes);
  CHECK(blocks_on_shelves() == free && tp__pinned.pending == pending);
  const int64_t *stats = tp__pinned.stats;
  CHECK(stats[TP_HOST_STAT_allocations] == tp__pinned.count && stats[TP_HOST_STAT_allocated_bytes] == held);
  CHECK(stats[TP_HOST_STAT_active_requests] == active && stats[TP_HOST_STAT_active_bytes] == active_nbytes);
  CHECK(stats[TP_HOST_STAT_requested_bytes] == requested);
  for (int32_t key = 0; key < TP_HOST_STAT_host_alloc_time; key += 4) {
    CHECK(stats[key + TP_FIGURE_PEAK] >= stats[key + TP_FIGURE_CURRENT]);
  }
  pthread_mutex_unlock(&tp__pinned.lock);
}

#endif
