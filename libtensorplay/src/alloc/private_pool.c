/* Pools apart from the default ones: of graphs, whose addresses must stay theirs for every replay, and of programs that
 * want some memory by itself. A pool is a handle with users (owners, scopes, captures, allocations underway), and has a
 * part on each device where it holds segments.
 *
 * Blocks and shelves are those of any pool, so are counters; only, no other pool and no other stream ever has a
 * private block, and segments stay while the pool has users. When the last user has gone nobody can allocate from the
 * pool any more: what is idle goes back at once, the rest with the last block of its segment. It does not become
 * anybody else's cache: work of a last replay may still use it on any stream, and giving back waits for the device. */
#include <stdlib.h>

#include "alloc.h"

enum { ALL_FLAGS = TP_MEMPOOL_USE_ON_OOM | TP_MEMPOOL_NO_SPLIT | TP_MEMPOOL_OF_CAPTURE };

struct tp_mempool_scope {
  tp_mempool_t *mempool;
  int32_t device;
  tp_mempool_scope_t *around;
  bool left;     /* this and the next under the pools' lock */
  bool forsaken; /* its thread has ended: it goes with its handle */
};

/* Guards the list, users, references and scopes. Taken inside of heaps' locks, never around them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tp_mempool_t *mempools;
static int64_t last_ids[2];

/* ---- handles ---- */

/* Under the lock. */
static tp_mempool_t *find(const int64_t *id) {
  tp_mempool_t *mempool = mempools;
  while (mempool && (mempool->id[0] != id[0] || mempool->id[1] != id[1])) mempool = mempool->next;
  return mempool;
}

tp_mempool_t *tp_mempool_create(int32_t flags, tp_mempool_allocate_t allocate, tp_mempool_free_t release) {
  const char *operation = "mempool_create";
  if (flags < 0 || flags > ALL_FLAGS || !allocate != !release) {
    const char *functions = !allocate == !release ? "functions that match" : "one of the two functions";
    tp__error_set(TP_INVALID_ARGUMENT, operation,
                  "got flags %d and %s, expected a sum of TP_MEMPOOL_* and both functions or none", flags, functions);
    return NULL;
  }
  if (tp__device_check_process(operation)) return NULL;
  tp_mempool_t *mempool = calloc(1, sizeof *mempool);
  if (!mempool) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a private pool");
    return NULL;
  }
  int which = flags & TP_MEMPOOL_OF_CAPTURE ? 0 : 1;
  *mempool = (tp_mempool_t){.flags = flags, .allocate = allocate, .release = release, .users = 1, .references = 1};
  pthread_mutex_lock(&lock);
  mempool->id[which] = ++last_ids[which];
  mempool->next = mempools;
  mempools = mempool;
  pthread_mutex_unlock(&lock);
  return mempool;
}

tp_mempool_t *tp_mempool_find(int64_t first, int64_t second) {
  const char *operation = "mempool_find";
  if (tp__device_check_process(operation)) return NULL;
  pthread_mutex_lock(&lock);
  tp_mempool_t *mempool = find((int64_t[]){first, second});
  if (mempool) mempool->users++;
  pthread_mutex_unlock(&lock);
  if (!mempool) {
    tp__error_set(TP_INVALID_ARGUMENT, operation, "got (%lld, %lld), expected the id of a private pool in use",
                  (long long)first, (long long)second);
  }
  return mempool;
}

void tp_mempool_id(const tp_mempool_t *mempool, int64_t *out_first, int64_t *out_second) {
  *out_first = mempool->id[0];
  *out_second = mempool->id[1];
}

int64_t tp_mempool_use_count(const tp_mempool_t *mempool) { return mempool->users; }

/* Under the lock. */
static void drop_reference(tp_mempool_t *mempool) {
  if (--mempool->references == 0) free(mempool);
}

/* Under the lock. Whether it was the last one. */
static bool drop_user(tp_mempool_t *mempool) {
  if (--mempool->users > 0) return false;
  tp_mempool_t **link = &mempools;
  while (*link != mempool) link = &(*link)->next;
  *link = mempool->next;
  return true;
}

/* After the last user: its reference goes when all parts were looked at. */
static void end(tp_mempool_t *mempool) {
  for (int32_t device = 0; device < TP_MAX_DEVICES; device++) {
    if (!tp_device_is_started(device)) continue;
    tp__heap_t *heap = tp__heap(device);
    tp__heap_lock(heap);
    if (mempool->parts[device]) tp__private_pool_settle(heap, mempool->parts[device]);
    tp__heap_unlock(heap);
  }
  pthread_mutex_lock(&lock);
  drop_reference(mempool);
  pthread_mutex_unlock(&lock);
}

void tp__mempool_retain(tp_mempool_t *mempool) {
  pthread_mutex_lock(&lock);
  mempool->users++;
  pthread_mutex_unlock(&lock);
}

void tp__mempool_drop(tp_mempool_t *mempool) {
  pthread_mutex_lock(&lock);
  bool last = drop_user(mempool);
  pthread_mutex_unlock(&lock);
  if (last) end(mempool);
}

void tp_mempool_release(tp_mempool_t *mempool) {
  if (mempool && !tp__device_is_inherited()) tp__mempool_drop(mempool);
}

/* ---- scopes ---- */

/* Under the lock: forgets the scopes that were left, from the innermost one that is in force on. */
static void step_out(void) {
  while (tp__route.pool && tp__route.pool->left) {
    tp_mempool_scope_t *scope = tp__route.pool;
    tp__route.pool = scope->around;
    free(scope);
  }
}

tp_mempool_scope_t *tp_mempool_enter(tp_mempool_t *mempool, int32_t device) {
  const char *operation = "use_mem_pool";
  device = tp__device_resolve(device, operation);
  if (device < 0 || tp__device_check_process(operation)) return NULL;
  tp_mempool_scope_t *scope = malloc(sizeof *scope);
  if (!scope) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory to enter a private pool");
    return NULL;
  }
  pthread_mutex_lock(&lock);
  step_out();
  mempool->users++;
  *scope = (tp_mempool_scope_t){.mempool = mempool, .device = device, .around = tp__route.pool};
  tp__route.pool = scope;
  pthread_mutex_unlock(&lock);
  tp__route_entered();
  return scope;
}

tp_mempool_scope_t *tp_mempool_scope(void) {
  if (tp__device_is_inherited()) return NULL;
  pthread_mutex_lock(&lock);
  step_out();
  tp_mempool_scope_t *scope = tp__route.pool;
  pthread_mutex_unlock(&lock);
  return scope;
}

void tp__mempool_end_thread(void) {
  pthread_mutex_lock(&lock);
  for (tp_mempool_scope_t *scope = tp__route.pool, *around; scope; scope = around) {
    around = scope->around;
    scope->forsaken = true;
    if (scope->left) free(scope);
  }
  tp__route.pool = NULL;
  pthread_mutex_unlock(&lock);
}

void tp_mempool_leave(tp_mempool_scope_t *scope) {
  if (!scope || tp__device_is_inherited()) return;
  pthread_mutex_lock(&lock);
  tp_mempool_t *mempool = scope->mempool;
  scope->left = true; /* another thread's is forgotten by that thread */
  if (scope->forsaken) free(scope);
  step_out();
  bool last = drop_user(mempool);
  pthread_mutex_unlock(&lock);
  if (last) end(mempool);
}

tp_mempool_t *tp__mempool_current(int32_t device) {
  pthread_mutex_lock(&lock);
  step_out();
  const tp_mempool_scope_t *scope = tp__route.pool;
  while (scope && (scope->left || scope->device != device)) scope = scope->around;
  if (scope) scope->mempool->users++;
  pthread_mutex_unlock(&lock);
  return scope ? scope->mempool : NULL;
}

/* ---- parts: under their heap's lock ---- */

tp__private_pool_t *tp__private_pool_of(tp__heap_t *heap, const tp__request_t *request) {
  tp_mempool_t *mempool = request->mempool;
  int32_t device = tp_stream_device(request->stream);
  if (mempool->parts[device]) return mempool->parts[device];
  tp__private_pool_t *part = calloc(1, sizeof *part);
  if (!part) return NULL;
  *part = (tp__private_pool_t){.mempool = mempool, .device = device, .next = heap->private_pools};
  for (int class = TP_CLASS_LARGE; class <= TP_CLASS_SMALL; class++)
    part->pools[class] = (tp__pool_t){.class = class, .owner = part};
  heap->private_pools = mempool->parts[device] = part;
  pthread_mutex_lock(&lock);
  mempool->references++;
  pthread_mutex_unlock(&lock);
  return part;
}

static void forget(tp__heap_t *heap, tp__private_pool_t *part) {
  tp__private_pool_t **link = &heap->private_pools;
  while (*link != part) link = &(*link)->next;
  *link = part->next;
  for (int class = TP_CLASS_LARGE; class <= TP_CLASS_SMALL; class++) {
    for (int32_t id = 0; id < part->pools[class].room; id++) free(part->pools[class].shelves[id]);
    free(part->pools[class].shelves);
  }
  part->mempool->parts[part->device] = NULL;
  pthread_mutex_lock(&lock);
  drop_reference(part->mempool);
  pthread_mutex_unlock(&lock);
  free(part);
}

static void give_back(tp__heap_t *heap, const tp__private_pool_t *part) {
  int32_t before;
  bool entered = tp__device_visit(part->device, &before);
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  for (tp__segment_t *segment = heap->segments; entered && segment;) {
    tp__segment_t *next = segment->next;
    const char *call;
    if (segment->pool->owner == part && segment->active == 0 && tp__segment_release(heap, segment, &call))
      (void)cudaGetLastError(); /* the context is lost: whoever waits next reports it */
    segment = next;
  }
  tp__capture_restore(mode);
  tp__device_leave(before);
}

void tp__private_pool_settle(tp__heap_t *heap, tp__private_pool_t *part) {
  if (part->mempool->users > 0 || tp__captures_underway()) return;
  if (part->segments > 0) give_back(heap, part);
  if (part->segments == 0) forget(heap, part);
}

void tp__private_pool_settle_all(tp__heap_t *heap) {
  for (tp__private_pool_t *part = heap->private_pools; part;) {
    tp__private_pool_t *next = part->next;
    tp__private_pool_settle(heap, part);
    part = next;
  }
}

tp__block_t *tp__private_pool_help(const tp__heap_t *heap, const tp__request_t *request) {
  for (const tp__private_pool_t *part = heap->private_pools; part; part = part->next) {
    if (!(part->mempool->flags & TP_MEMPOOL_USE_ON_OOM) || part->mempool->users == 0) continue;
    const tp__pool_t *pool = &part->pools[request->pool->class];
    tp__block_t *block = tp__pool_find(pool, tp__stream_id(request->stream), request->nbytes);
    if (block) return block;
  }
  return NULL;
}

int32_t tp_mempool_list(int32_t device, int32_t room, tp_mempool_figures_t *out) {
  const char *operation = "mempool_list";
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  TP_TRY(tp__device_check_process(operation));
  tp__heap_t *heap = tp__heap(device);
  int32_t count = 0;
  tp__heap_lock(heap);
  for (const tp__private_pool_t *part = heap->private_pools; part; part = part->next, count++) {
    if (count >= room) continue;
    out[count] = (tp_mempool_figures_t){{part->mempool->id[0], part->mempool->id[1]}, (int64_t)part->reserved};
  }
  tp__heap_unlock(heap);
  return count;
}
