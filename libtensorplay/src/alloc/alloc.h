/* What the files of the allocator share; docs/design/allocator.md explains the whole. A heap is what the
 * allocator keeps for one device, and its lock guards everything below it. The files, lowest first:
 *
 *   stats      counters; declared in stats.h
 *   trace      history
 *   block      records of blocks: taken, split, merged
 *   pool       free blocks, best fit
 *   pages      memory that is mapped at reserved addresses
 *   idle       those pages that nothing uses
 *   growing    segments of pages; the three are declared in growing.h
 *   segment    memory from the driver and back
 *   collect    idle segments that go back before all of them have to
 *   past       which captured work comes before a stream's next; declared in past.h
 *   defer      blocks that other streams still use
 *   route      scopes that a thread is in; declared in route.h
 *   cache      each thread's own small blocks, in front of the pools
 *   budget     blocks counted by the part of the program that they serve
 *   shortage   what a refused request and its heap look like
 *   private_pool  pools apart from the default ones
 *   capture    where captures allocate; declared in capture.h
 *   obtain     the order of attempts when a stream's shelf has no block
 *   address    blocks by their address
 *   alloc      allocating and freeing: what others call
 *   snapshot   a reading of all segments and blocks
 *   memory     the raw calls of tensorplay.h */
#ifndef TP_ALLOC_H
#define TP_ALLOC_H

#include <pthread.h>

#include "../mark.h"
#include "capture.h"
#include "route.h"
#include "stats.h"

#define TP_BLOCK_UNIT ((size_t)512)          /* sizes of blocks are multiples, addresses too */
#define TP_SMALL_LIMIT (1 * TP_MiB)          /* larger blocks come from the large pool */
#define TP_SMALL_SEGMENT (2 * TP_MiB)
#define TP_OWN_SEGMENT_LIMIT (10 * TP_MiB)   /* from here on a block gets a segment of its own */
#define TP_SEGMENT_UNIT (2 * TP_MiB)         /* to which the size of such a segment is rounded up */
#define TP_LARGE_REST_LIMIT (1 * TP_MiB)     /* a large block is split when more than this remains */
#define TP_PAGE (2 * TP_MiB)                 /* of segments that grow: the driver's smallest */

typedef struct tp__heap tp__heap_t;
typedef struct tp__segment tp__segment_t;
typedef struct tp__pool tp__pool_t;
typedef struct tp__private_pool tp__private_pool_t;
typedef struct tp__use tp__use_t;
typedef struct tp__use_queue tp__use_queue_t;
typedef struct tp__request tp__request_t;

/* ---- trace.c ---- */

typedef enum tp__action {
#define TP_TRACE_ACTION(name) TP_TRACE_##name,
#include "trace.def"
#undef TP_TRACE_ACTION
} tp__action_t;

typedef struct tp__trace {
  tp_memory_entry_t *entries; /* a ring */
  int64_t room;
  int64_t noted;              /* entries so far, those that made place included */
  int64_t origin;             /* of the call that holds the heap's lock */
} tp__trace_t;

/* Where the calling thread is, when that mode of TP_HISTORY_* is on, else 0. No lock may be held. */
int64_t tp__trace_origin(int32_t mode);
/* What happened to a block or a segment, under the heap's lock, at a time when it has its address and stream. */
void tp__trace_block(tp__heap_t *heap, tp__action_t action, const tp__block_t *block, int64_t origin);
void tp__trace_segment(tp__heap_t *heap, tp__action_t action, const tp__segment_t *segment);
void tp__trace_note(tp__heap_t *heap, tp__action_t action, const tp__pool_t *pool, uintptr_t address, size_t nbytes,
                    const tp_stream_t *stream, int64_t origin);
/* Entries that are kept, and a copy of them, oldest first. */
int64_t tp__trace_count(const tp__trace_t *trace);
void tp__trace_copy(const tp__trace_t *trace, tp_memory_entry_t *out);

/* ---- block.c ---- */

typedef enum tp__block_state {
  TP_BLOCK_FREE,    /* in a shelf of its pool */
  TP_BLOCK_LIVE,    /* held by the program */
  TP_BLOCK_PENDING, /* given back, but other streams still use it */
  TP_BLOCK_GAP,     /* addresses of a growing segment without memory */
} tp__block_state_t;

/* What a search through trees and a merge look at stands together, at the front: with thousands of blocks the cost of a
 * request is that of the processor's cache. */
struct tp__block {
  char *address;
  size_t nbytes;
  tp__block_t *left;          /* of free blocks: children in the tree, or neighbours in the list, of their bin */
  tp__block_t *right;         /* also links spare records, and the blocks of one size in a cache */
  tp__block_t *previous;      /* neighbours in the segment, by address */
  tp__block_t *next;
  tp_stream_t *stream;        /* whose order makes reuse safe */
  uint32_t priority;          /* random, balances the tree of a bin */
  tp__block_state_t state;
  tp__segment_t *segment;
  size_t requested_nbytes;    /* what the program asked for; of live and pending blocks */
  int64_t origin;             /* of the call that allocated it; of live and pending blocks */
  uint64_t capture;           /* in which it was allocated, 0: in none; of live and pending blocks */
  tp__use_t *uses;            /* of live blocks: other streams that were recorded */
  int64_t freed;              /* of free blocks: when on the heap's clock; the last of those that were merged */
  tp__block_t *chain;         /* of live blocks of tp_memory_alloc: the next one in address.c's bucket */
  tp_budget_scope_t *budget;  /* of live blocks: where they are counted as well; NULL for most */
  bool plain;                 /* of live blocks: a thread's cache may take it when it is given back */
  bool oversize;              /* of live blocks: counted as such, whatever the settings are by now */
  bool cached;                /* of live blocks: it was, and is there; under the cache's lock */
  int32_t pending_uses;       /* of pending blocks */
  size_t budget_nbytes;       /* what is counted there */
};

/* A fresh record, all zero but for its priority; NULL without host memory. */
tp__block_t *tp__block_new(tp__heap_t *heap);
void tp__block_delete(tp__heap_t *heap, tp__block_t *block);
/* Cuts a block that is in no shelf down to nbytes and returns the rest, with its state and stream, also in
 * no shelf; NULL without host memory, the block is then unchanged. */
tp__block_t *tp__block_split(tp__heap_t *heap, tp__block_t *block, size_t nbytes);
/* Joins two neighbours that are in no shelf; the record of the second is deleted. */
void tp__block_merge(tp__heap_t *heap, tp__block_t *block, tp__block_t *next);

/* ---- pool.c ---- */

/* Every size of a block in a segment of the small pool has a list. */
enum { TP_BIN_LISTS = 4096, TP_BIN_COUNT = TP_BIN_LISTS + 512, TP_BIN_WORDS = TP_BIN_COUNT / 64 };

/* The free blocks of one pool that belong to one stream, in bins by size. */
typedef struct tp__shelf {
  tp_stream_t *stream;
  uint64_t words[(TP_BIN_WORDS + 63) / 64]; /* one bit per word of occupied that is not 0 */
  uint64_t occupied[TP_BIN_WORDS];          /* one bit per bin */
  tp__block_t *bins[TP_BIN_COUNT];      /* lists of one size, then trees ordered by size and address */
  int64_t passed;                           /* work on what was freed before this time on the heap's clock is done */
  int64_t marked;                           /* when the mark was recorded */
  tp__mark_t mark;                          /* its event is NULL at first */
} tp__shelf_t;

struct tp__pool {
  tp__size_class_t class;
  tp__shelf_t **shelves; /* by stream number; NULL before the first segment for a stream */
  int32_t room;
  tp__private_pool_t *owner; /* NULL: a default pool */
};

/* The one of a block's pool and stream. */
tp__shelf_t *tp__pool_shelf(const tp__block_t *block);
/* Makes sure that a stream has a shelf, without which none of its blocks may be inserted. False without
 * host memory. */
bool tp__pool_prepare(tp__pool_t *pool, tp_stream_t *stream);
/* The smallest free block of at least nbytes: of those below 2 MiB the one freed last, else the lowest; NULL when there
 * is none. */
tp__block_t *tp__pool_find(const tp__pool_t *pool, int32_t stream_id, size_t nbytes);
/* Into and out of the shelf of the block's stream. */
void tp__pool_insert(tp__heap_t *heap, tp__block_t *block);
void tp__pool_remove(tp__heap_t *heap, tp__block_t *block);
/* As insert, after merging with free neighbours of the same stream: the whole block. */
tp__block_t *tp__pool_insert_merged(tp__heap_t *heap, tp__block_t *block);

/* ---- segment.c ---- */

struct tp__segment {
  tp__heap_t *heap;
  tp__pool_t *pool;       /* where its free blocks are listed */
  size_t nbytes;
  size_t active;          /* blocks that are live or pending */
  int64_t idle_since;     /* on the heap's clock, while none is */
  bool oversize;          /* counted as such */
  int64_t origin;         /* of the call that obtained it */
  tp__block_t *first;     /* by address */
  tp_stream_t *grows_for; /* whose requests its gaps serve; NULL for one that does not grow; nbytes is what is mapped */
  tp__segment_t *previous;
  tp__segment_t *next;
};

/* The size of the segment that is obtained for a block of nbytes. */
size_t tp__segment_size(size_t block_nbytes);
/* Into and out of the heap's list and count; its pool is known. */
void tp__segment_link(tp__heap_t *heap, tp__segment_t *segment);
void tp__segment_unlink(tp__heap_t *heap, tp__segment_t *segment);
/* So many bytes of it came from the driver, or went back. */
void tp__segment_count_obtained(tp__heap_t *heap, const tp__segment_t *segment, size_t nbytes);
void tp__segment_count_released(tp__heap_t *heap, const tp__segment_t *segment, size_t nbytes);
/* A new segment with one block for `stream`, free and in its shelf, which must exist. The device is entered.
 * *out_refused: the driver has no room, in which case the error slot is left alone. */
tp_status_t tp__segment_obtain(tp__heap_t *heap, tp__pool_t *pool, size_t nbytes, tp_stream_t *stream,
                               tp__block_t **out_block, bool *out_refused);
/* Gives a segment without active blocks back, or the whole free pages of one that grows, which goes with its last page.
 * On failure *out_call says what failed. The device is entered. */
cudaError_t tp__segment_release(tp__heap_t *heap, tp__segment_t *segment, const char **out_call);
/* All of them but for those of private pools, in whose idle places graphs may work. The device is entered. */
tp_status_t tp__segment_release_idle(tp__heap_t *heap, const char *operation);
/* Bytes that tp__segment_release would give back. */
size_t tp__segment_idle_nbytes(const tp__segment_t *segment);

/* ---- collect.c: which idle segments go back to the driver, apart from all of them; default pools only ---- */

/* A segment has become idle: without caching it goes back at once. */
void tp__collect_idle(tp__heap_t *heap, tp__segment_t *segment);
/* The oldest of the large pool, down to garbage_collection_threshold. The device is entered. */
tp_status_t tp__collect_old(tp__heap_t *heap, const char *operation);
/* Just enough oversize ones for nbytes; *out_found: there were enough. The device is entered. */
tp_status_t tp__collect_oversize(tp__heap_t *heap, size_t nbytes, const char *operation, bool *out_found);

/* ---- defer.c ---- */

/* Notes that `stream` uses a live block. Status: HOST_MEMORY, CUDA. */
tp_status_t tp__defer_note(tp__heap_t *heap, tp__block_t *block, tp_stream_t *stream);
/* A block with uses was given back: it becomes pending. */
void tp__defer_block(tp__heap_t *heap, tp__block_t *block);
/* Returns the blocks whose uses have passed to their pools. */
void tp__defer_poll(tp__heap_t *heap);
/* Waits for the device, and ends the uses of external streams; false where there are none, or it cannot wait. */
bool tp__defer_wait_external(tp__heap_t *heap);
/* Waits for all uses but those of streams that are being captured. */
void tp__defer_wait(tp__heap_t *heap);
/* Returns blocks of the request's stream and capture to their pools whose users' work the capture orders before what
 * the stream does next. */
void tp__defer_join(tp__heap_t *heap, const tp__request_t *request);

/* What an allocation asks for. */
struct tp__request {
  size_t requested_nbytes; /* by the program */
  size_t nbytes;           /* of the block: rounded up */
  tp_stream_t *stream;
  tp__pool_t *pool;
  tp_budget_scope_t *budget; /* NULL for most */
  tp_mempool_t *mempool;     /* NULL: the default pools */
  uint64_t capture;          /* of ours, that the stream takes part in, or 0 */
};

/* ---- budget.c: under a lock of its own, which is innermost ---- */

struct tp_budget {
  tp_budget_figures_t figures;
  int32_t references; /* handles and scopes */
  tp_budget_t *next;  /* by name */
};

struct tp_budget_scope {
  tp_budget_t *budget;
  tp_budget_scope_t *around;
  int64_t references;
  bool counted_around; /* a scope around it is of the same budget */
  bool left;
};

/* The innermost scope that the thread is in, or NULL. */
tp_budget_scope_t *tp__budget_current(void);
/* Counts a request in its scope and in those around it; false, with nothing counted, when it exceeds the limit of one,
 * whose figures, and name for as long as the scope lives, are then in *out_over. */
bool tp__budget_take(const tp__request_t *request, tp_budget_figures_t *out_over);
/* The request was served: peaks follow. */
void tp__budget_keep(tp_budget_scope_t *scope);
/* What was counted is gone: the rounded and the requested bytes of one block. */
void tp__budget_give(tp_budget_scope_t *scope, size_t nbytes, size_t requested_nbytes);

/* ---- cache.c ---- */

#define TP_CACHE_NBYTES (1 * TP_MiB)         /* what a thread's cache of a device may hold */
#define TP_CACHE_BLOCK_LIMIT (64 * TP_KiB)   /* larger blocks do not enter */
enum { TP_CACHE_STREAMS = 8, TP_CACHE_SIZES = 128 };
_Static_assert(TP_CACHE_SIZES * 512 == TP_CACHE_BLOCK_LIMIT, "a list for each size");

typedef struct tp__cache {
  _Atomic bool locked;
  bool grows;             /* its blocks, and what is tallied, are of segments that grow, which have no pieces */
  int32_t stream_count;
  size_t nbytes;
  tp__heap_t *heap;
  struct tp__cache *next; /* of the heap's caches */
  tp__tally_t blocks;
  tp__tally_t block_nbytes;
  tp__tally_t requested;  /* bytes */
  tp_stream_t *streams[TP_CACHE_STREAMS];
  tp__block_t *shelves[TP_CACHE_STREAMS][TP_CACHE_SIZES];
} tp__cache_t;

/* A block from the calling thread's cache, live; NULL when it has none of exactly nbytes for the stream. */
tp__block_t *tp__cache_take(size_t requested_nbytes, size_t nbytes, tp_stream_t *stream);
/* Puts a plain block without uses into the calling thread's cache; false when it does not go there. */
bool tp__cache_give(tp__block_t *block);
/* Between these two no thread of the process takes a block from its cache or puts one there, and the caches are
 * empty. Calls nest. No heap's lock may be held. */
void tp__cache_suspend(void);
void tp__cache_resume(void);

/* Under the heap's lock: its counters follow the calling thread's cache; those of all threads; all of their blocks
 * return to the pools. */
void tp__cache_count_own(int32_t device);
void tp__cache_count(tp__heap_t *heap);
void tp__cache_drain(tp__heap_t *heap);

/* ---- shortage.c ---- */

/* Counts the failure and describes it: OUT_OF_MEMORY. The device is entered. */
tp_status_t tp__shortage_refuse(tp__heap_t *heap, const tp__request_t *request, int32_t cause, bool capturing);
/* The same for a budget that is spent, before anything was tried; enters the device. */
tp_status_t tp__shortage_refuse_budget(tp__heap_t *heap, const tp__request_t *request,
                                       const tp_budget_figures_t *budget);

/* ---- private_pool.c ---- */

struct tp_mempool {
  int64_t id[2];
  int32_t flags;
  tp_mempool_allocate_t allocate;       /* NULL: the driver */
  tp_mempool_free_t release;
  _Atomic int64_t users;                /* changes under the pools' lock; 0 is for ever */
  int64_t references;                   /* its parts, and one for all users; under the pools' lock */
  tp_mempool_t *next;                   /* of those with users */
  tp__private_pool_t *parts[TP_MAX_DEVICES]; /* each under its heap's lock */
};

/* The part of a private pool that is one device's. */
struct tp__private_pool {
  tp_mempool_t *mempool;
  int32_t device;
  tp__pool_t pools[3]; /* by size class; TP_CLASS_ALL is not used */
  int64_t segments;
  size_t reserved;     /* bytes */
  tp__private_pool_t *next; /* of the heap's */
};

/* The pool of the innermost scope that the thread is in on the device, with one user more, or NULL. */
tp_mempool_t *tp__mempool_current(int32_t device);
/* The part of the request's private pool on its device, made where there is none; NULL without host memory. */
tp__private_pool_t *tp__private_pool_of(tp__heap_t *heap, const tp__request_t *request);
/* Gives the idle segments of a part without users back, and forgets the part with the last one. Nothing in captures. */
void tp__private_pool_settle(tp__heap_t *heap, tp__private_pool_t *part);
/* The same for all parts without users. */
void tp__private_pool_settle_all(tp__heap_t *heap);
/* A free block of the request's stream in a private pool that helps out; NULL when there is none. */
tp__block_t *tp__private_pool_help(const tp__heap_t *heap, const tp__request_t *request);

/* ---- capture.c ---- */

/* Sets the request's pool and capture; the pool has one user more. */
void tp__capture_route(tp__request_t *request);

/* ---- obtain.c ---- */

/* A free block, in its shelf, for a request that found none there; NULL on failure with the slot filled. */
tp__block_t *tp__obtain(tp__heap_t *heap, const tp__request_t *request);

/* ---- address.c ---- */

/* False without host memory. */
bool tp__address_insert(tp__block_t *block);
/* Takes the block at an address out of the table; NULL when there is none. */
tp__block_t *tp__address_remove(void *address);

/* ---- alloc.c ---- */

struct tp__heap {
  pthread_mutex_t lock;
  int32_t device;             /* known from the first segment on */
  size_t limit;               /* of reserved bytes; TP_NO_LIMIT */
  size_t asked;               /* bytes for which threads are asking the driver without the lock */
  int64_t clock;              /* counts requests */
  size_t most_active;         /* bytes at a time, since the cache was emptied */
  int32_t deferred;           /* uses in the queues, but for those of external streams */
  int32_t deferred_external;
  tp__pool_t pools[3];        /* by size class; TP_CLASS_ALL is not used */
  tp__private_pool_t *private_pools;
  tp__segment_t *segments;
  tp__cache_t *caches;        /* of all threads */
  tp__use_queue_t *queues;
  tp__use_t *spare_uses;
  tp__block_t *spare_blocks;
  uint32_t random;            /* state of the generator of priorities, never 0 */
  tp__trace_t trace;
  int64_t stats[TP_STAT_COUNT];
};

tp__heap_t *tp__heap(int32_t device);
/* The lock. What the calling thread has counted in its cache then stands in the heap's counters, so that peaks are
 * exact with one thread. */
void tp__heap_lock(tp__heap_t *heap);
void tp__heap_unlock(tp__heap_t *heap);
/* An active block becomes free: its counters, its segment's, its neighbours. origin: for the history. */
void tp__heap_retire(tp__heap_t *heap, tp__block_t *block, int64_t origin);

#endif
