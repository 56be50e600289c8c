/* Regions of pinned memory: their sizes, their free blocks, and the only calls of cudaHostAlloc and cudaFreeHost for
 * them. */
#include <stdlib.h>
#include <string.h>

#include "pinned.h"

/* Blocks up to this size share regions, since the driver gives whole pages and takes some 100 us. */
#define SHARED_LIMIT (16 * TP_KiB)
#define SHARED_NBYTES (64 * TP_KiB)
#define LEAST_NBYTES ((size_t)512)
#define PAGE_NBYTES (4 * TP_KiB)

/* ---- sizes ---- */

static int32_t floor_log2(size_t n) { return 63 - __builtin_clzll(n); }

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

size_t tp__pinned_round(size_t nbytes) {
  if (nbytes <= LEAST_NBYTES) return LEAST_NBYTES;
  size_t power = (size_t)1 << floor_log2(nbytes - 1);
  size_t step = nbytes <= SHARED_LIMIT ? larger(power / 4, LEAST_NBYTES) : larger(power / 16, PAGE_NBYTES);
  return tp__round_up(nbytes, step);
}

/* Every rounded size has a class of its own, in the order of the sizes: they have five leading bits, and then zeros. */
static int32_t class_of(size_t nbytes) {
  int32_t power = floor_log2(nbytes);
  return 16 * power + (int32_t)(nbytes >> (power - 4) & 15);
}

static size_t class_nbytes(int32_t class) { return (size_t)(16 + class % 16) << (class / 16 - 4); }

/* ---- regions without a taken block ---- */

static void link_idle(tp__pinned_region_t *region) {
  region->newer = NULL;
  region->older = tp__pinned.newest;
  *(tp__pinned.newest ? &tp__pinned.newest->newer : &tp__pinned.oldest) = region;
  tp__pinned.newest = region;
  tp__pinned.idle_nbytes += region->nbytes;
}

static void unlink_idle(tp__pinned_region_t *region) {
  *(region->newer ? &region->newer->older : &tp__pinned.newest) = region->older;
  *(region->older ? &region->older->newer : &tp__pinned.oldest) = region->newer;
  tp__pinned.idle_nbytes -= region->nbytes;
}

/* ---- free blocks ---- */

static void link_free(tp__pinned_block_t *block) {
  tp__pinned_block_t **link = &tp__pinned.shelves[class_of(block->region->block_nbytes)];
  block->state = TP_PINNED_FREE;
  block->next = *link;
  block->link = link;
  if (block->next) block->next->link = &block->next;
  *link = block;
}

static void unlink_free(tp__pinned_block_t *block) {
  *block->link = block->next;
  if (block->next) block->next->link = block->link;
}

static tp__pinned_block_t *take(tp__pinned_block_t *block, size_t requested) {
  unlink_free(block);
  if (block->region->taken++ == 0) unlink_idle(block->region);
  block->state = TP_PINNED_LIVE;
  block->requested = requested;
  tp__pinned_count(TP_HOST_STAT_active_requests, 1);
  tp__pinned_count(TP_HOST_STAT_active_bytes, (int64_t)block->region->block_nbytes);
  tp__pinned_count(TP_HOST_STAT_requested_bytes, (int64_t)requested);
  return block;
}

tp__pinned_block_t *tp__pinned_take(size_t nbytes, bool exact) {
  int32_t class = class_of(tp__pinned_round(nbytes));
  tp__pinned_block_t *block = tp__pinned.shelves[class];
  while (!block && !exact && ++class < TP_PINNED_CLASSES && class_nbytes(class) - class_nbytes(class) / 5 <= nbytes)
    block = tp__pinned.shelves[class];
  return block ? take(block, nbytes) : NULL;
}

void tp__pinned_shelve(tp__pinned_block_t *block) {
  tp__pinned_count(TP_HOST_STAT_active_requests, -1);
  tp__pinned_count(TP_HOST_STAT_active_bytes, -(int64_t)block->region->block_nbytes);
  link_free(block);
  if (--block->region->taken == 0) link_idle(block->region);
}

/* ---- addresses ---- */

/* How many regions begin at or before the address. */
static int32_t place_of(const void *address) {
  int32_t low = 0, high = tp__pinned.count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (tp__pinned.regions[middle]->memory <= (const char *)address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

tp__pinned_block_t *tp__pinned_find(const void *memory, size_t nbytes) {
  int32_t place = place_of(memory);
  if (place == 0) return NULL;
  tp__pinned_region_t *region = tp__pinned.regions[place - 1];
  size_t offset = (size_t)((const char *)memory - region->memory), number = offset / region->block_nbytes;
  if (number >= (size_t)region->count || nbytes > region->block_nbytes - offset % region->block_nbytes) return NULL;
  return &region->blocks[number];
}

static bool has_room(void) {
  if (tp__pinned.count < tp__pinned.room) return true;
  int32_t room = tp__pinned.room ? 2 * tp__pinned.room : 64;
  tp__pinned_region_t **regions = realloc(tp__pinned.regions, (size_t)room * sizeof *regions);
  if (!regions) return false;
  tp__pinned.regions = regions;
  tp__pinned.room = room;
  return true;
}

/* There is room. */
static void insert(tp__pinned_region_t *region) {
  int32_t place = place_of(region->memory);
  tp__pinned_region_t **here = tp__pinned.regions + place;
  memmove(here + 1, here, (size_t)(tp__pinned.count++ - place) * sizeof *here);
  *here = region;
  link_idle(region);
  for (int32_t i = region->count; i-- > 0;) link_free(&region->blocks[i]);
  tp__pinned_count(TP_HOST_STAT_allocations, 1);
  tp__pinned_count(TP_HOST_STAT_allocated_bytes, (int64_t)region->nbytes);
}

static void take_out(tp__pinned_region_t *region) {
  tp__pinned_region_t **here = tp__pinned.regions + place_of(region->memory) - 1;
  memmove(here, here + 1, (size_t)(tp__pinned.regions + tp__pinned.count-- - here - 1) * sizeof *here);
  unlink_idle(region);
  for (int32_t i = 0; i < region->count; ++i) unlink_free(&region->blocks[i]);
  tp__pinned_count(TP_HOST_STAT_allocations, -1);
  tp__pinned_count(TP_HOST_STAT_allocated_bytes, -(int64_t)region->nbytes);
}

/* ---- the driver ---- */

/* Memory is pinned for all devices, so one that is started serves: a context more would cost memory of its device. */
static int32_t device_to_ask(void) {
  int32_t current = tp_device_current();
  for (int32_t i = 0; i < TP_MAX_DEVICES && !tp_device_is_started(current); ++i) {
    if (tp_device_is_started(i)) return i;
  }
  return current;
}

/* NULL in *out where the driver has no room. */
static tp_status_t ask(size_t nbytes, char **out, const char *operation) {
  int32_t device = device_to_ask(), before = -1;
  if (!tp__device_visit(device, &before)) TP_TRY(tp__device_enter(device, operation));
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  void *memory = NULL;
  cudaError_t error = cudaHostAlloc(&memory, nbytes, cudaHostAllocDefault);
  tp__capture_restore(mode);
  tp__device_leave(before);
  *out = memory;
  if (error && error != cudaErrorMemoryAllocation) return tp__error_set_cuda(error, operation, "cudaHostAlloc");
  if (error) (void)cudaGetLastError(); /* there are further attempts to come */
  return TP_OK;
}

static tp_status_t fail_to_describe(size_t nbytes, const char *operation) {
  return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to describe %zu bytes", nbytes);
}

tp_status_t tp__pinned_obtain(size_t nbytes, tp__pinned_block_t **out, const char *operation) {
  *out = NULL;
  size_t block_nbytes = tp__pinned_round(nbytes);
  int32_t count = block_nbytes <= SHARED_LIMIT ? (int32_t)(SHARED_NBYTES / block_nbytes) : 1;
  tp__pinned_region_t *region = calloc(1, sizeof *region + (size_t)count * sizeof region->blocks[0]);
  if (!region) return fail_to_describe(nbytes, operation);
  *region = (tp__pinned_region_t){.nbytes = (size_t)count * block_nbytes, .block_nbytes = block_nbytes, .count = count};
  for (int32_t i = 0; i < count; ++i) region->blocks[i].region = region;
  pthread_mutex_unlock(&tp__pinned.lock);
  int64_t since = tp__pinned_now_ns();
  tp_status_t status = ask(region->nbytes, &region->memory, operation);
  pthread_mutex_lock(&tp__pinned.lock);
  if (region->memory) {
    tp__pinned_time(TP_HOST_STAT_host_alloc_time, since);
    tp__pinned.stats[TP_HOST_STAT_num_host_alloc]++;
    if (has_room()) {
      insert(region);
      *out = take(&region->blocks[0], nbytes);
      return TP_OK;
    }
    (void)cudaFreeHost(region->memory);
    status = fail_to_describe(nbytes, operation);
  }
  free(region);
  return status;
}

cudaError_t tp__pinned_release_idle(size_t keep) {
  if (tp__pinned.idle_nbytes <= keep || tp__captures_underway()) return cudaSuccess;
  int32_t before;
  if (!tp__device_visit(device_to_ask(), &before)) return cudaSuccess; /* the context is lost, its memory with it */
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  cudaError_t error = cudaSuccess;
  while (tp__pinned.idle_nbytes > keep) {
    tp__pinned_region_t *region = tp__pinned.oldest;
    int64_t since = tp__pinned_now_ns();
    if ((error = cudaFreeHost(region->memory))) {
      (void)cudaGetLastError();
      break;
    }
    tp__pinned_time(TP_HOST_STAT_host_free_time, since);
    tp__pinned.stats[TP_HOST_STAT_num_host_free]++;
    take_out(region);
    free(region);
  }
  tp__capture_restore(mode);
  tp__device_leave(before);
  return error;
}
