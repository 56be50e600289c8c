/* What the files of pinned memory share. Pinned memory is the host's, page-locked, so that devices copy from and to it
 * without the host; it belongs to no device. A region is obtained from the driver in one piece and divided into blocks
 * of one size; blocks above 16 KiB have a region each (docs/design/pinned.md).
 *
 *   pinned.c    allocates and gives back: the order of attempts
 *   region.c    regions, sizes and free blocks
 *   use.c       copies, and blocks that they still use
 *   hold.c      blocks that graphs copy from and to
 *   stats.c     the figures
 *
 * One lock guards everything; the driver is asked for memory without it, since that takes long. */
#ifndef TP_PINNED_H
#define TP_PINNED_H

#include <pthread.h>

#include "../capture.h"
#include "../alloc/stats.h" /* what figures are */

typedef struct tp__pinned_region tp__pinned_region_t;
typedef struct tp__pinned_use tp__pinned_use_t;
typedef struct tp__pinned_queue tp__pinned_queue_t;

typedef enum tp__pinned_state { TP_PINNED_FREE, TP_PINNED_LIVE, TP_PINNED_PENDING } tp__pinned_state_t;

typedef struct tp__pinned_block {
  tp__pinned_region_t *region;
  size_t requested; /* bytes */
  tp__pinned_state_t state;
  int32_t pending_uses;            /* once given back: those that are waited for */
  int32_t holds;                   /* copies in graphs, whether or not it was given back */
  tp__pinned_use_t *uses;          /* until it is given back: one for each stream */
  struct tp__pinned_block *next;   /* while free: on its shelf */
  struct tp__pinned_block **link;  /* what points to it there */
} tp__pinned_block_t;

struct tp__pinned_region {
  char *memory;
  size_t nbytes;
  size_t block_nbytes;
  int32_t count;
  int32_t taken;                 /* blocks that are not free */
  tp__pinned_region_t *newer;    /* while none is taken: of the idle ones */
  tp__pinned_region_t *older;
  tp__pinned_block_t blocks[];
};

/* Sixteen sizes for each power of two. */
enum { TP_PINNED_CLASSES = 16 * 64 };

enum { TP_DURATION_TOTAL, TP_DURATION_MAX, TP_DURATION_MIN, TP_DURATION_COUNT, TP_DURATION_AVG, TP_DURATION_VALUES };

typedef enum tp__host_stat {
#define TP_HOST_STAT_FAMILY(name) TP_HOST_STAT_##name, TP_HOST_STAT_END_##name = TP_HOST_STAT_##name + 3,
#define TP_HOST_STAT_TIME(name) \
  TP_HOST_STAT_##name, TP_HOST_STAT_END_##name = TP_HOST_STAT_##name + TP_DURATION_VALUES - 1,
#define TP_HOST_STAT_SCALAR(name) TP_HOST_STAT_##name,
#include "stats.def"
#undef TP_HOST_STAT_FAMILY
#undef TP_HOST_STAT_TIME
#undef TP_HOST_STAT_SCALAR
  TP_HOST_STAT_COUNT
} tp__host_stat_t;

typedef struct tp__pinned {
  pthread_mutex_t lock;
  tp__pinned_region_t **regions; /* by address */
  int32_t count;
  int32_t room;
  tp__pinned_region_t *oldest;   /* of those without a block that is taken, which can go back to the driver */
  tp__pinned_region_t *newest;
  size_t idle_nbytes;            /* of these */
  tp__pinned_queue_t *queues;    /* of the streams that used blocks */
  int32_t pending;               /* uses in the queues */
  tp__hold_t *holds;             /* of captures that nobody has taken over yet */
  tp__hold_t *dropped;           /* those whose graph may still run */
  int64_t stats[TP_HOST_STAT_COUNT];
  tp__pinned_block_t *shelves[TP_PINNED_CLASSES]; /* free blocks by size, those given back last first */
} tp__pinned_t;

extern tp__pinned_t tp__pinned;

/* Whether there is something for tp__pinned_settle. */
static inline bool tp__pinned_waits(void) { return tp__pinned.pending > 0 || tp__pinned.dropped; }

static inline char *tp__pinned_address(const tp__pinned_block_t *block) {
  const tp__pinned_region_t *region = block->region;
  return region->memory + (size_t)(block - region->blocks) * region->block_nbytes;
}

/* ---- region.c: under the lock ---- */

/* Bytes of the block for a request of `nbytes` > 0. */
size_t tp__pinned_round(size_t nbytes);
/* A free block for the request, taken; of at most 1.25 times its size where exact is false. NULL when there is none. */
tp__pinned_block_t *tp__pinned_take(size_t nbytes, bool exact);
/* A taken block is free from now on. */
void tp__pinned_shelve(tp__pinned_block_t *block);
/* A block of a new region, taken; NULL in *out where the driver has no room. The lock is given up meanwhile. */
tp_status_t tp__pinned_obtain(size_t nbytes, tp__pinned_block_t **out, const char *operation);
/* Gives idle regions back to the driver, the oldest first, until at most `keep` bytes of them are left. Waits for
 * devices; does nothing while a capture is underway. */
cudaError_t tp__pinned_release_idle(size_t keep);
/* The block that holds these bytes, whatever its state; NULL when none does. */
tp__pinned_block_t *tp__pinned_find(const void *memory, size_t nbytes);

/* ---- use.c: under the lock ---- */

/* The block was given back: it is free once the copies that use it have run. */
void tp__pinned_retire(tp__pinned_block_t *block);
/* Frees a block that was given back, unless something still uses it. */
void tp__pinned_shelve_unused(tp__pinned_block_t *block);
/* Frees the blocks whose copies have run; with wait, all that are waited for. */
void tp__pinned_settle(bool wait);

/* ---- hold.c: under the lock ---- */

/* A copy of the block is about to become a node of the capture. Status: HOST_MEMORY. */
tp_status_t tp__hold_add(uint64_t capture, tp__pinned_block_t *block, const char *operation);
/* Ends those that were dropped and whose launches have run; with wait, all of them. Capture rules are relaxed. */
void tp__hold_settle(bool wait);

/* ---- stats.c: under the lock ---- */

void tp__pinned_count(tp__host_stat_t family, int64_t amount);
/* A call of the driver that began at `since_ns` is over. */
void tp__pinned_time(tp__host_stat_t duration, int64_t since_ns);
int64_t tp__pinned_now_ns(void);

#endif
