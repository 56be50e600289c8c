/* What work reads and writes: for each storage the accesses that later ones may have to come behind, which are the last
 * write and the reads since, one for each stream.
 *
 * Memory keeps the accesses of the block that was there before, as far as neither the order of the block's own stream
 * nor record_stream covers them: so the next owner's first work meets what a stream still does that nobody named. */
#include <stdlib.h>
#include <string.h>

#include "order.h"

typedef struct access {
  int32_t lane;
  bool writes;
  bool former; /* by work on the block that was here before */
  uint64_t time;
  int64_t origin;
  tp_stream_t *stream;
  const char *operation;
} access_t;

typedef struct storage {
  uintptr_t begin, end;
  tp_stream_t *owner; /* whose order makes reuse safe; NULL: memory of which only an address is known */
  int64_t origin;
  bool freed;
  uint64_t recorded[TP_ORDER_LANES / 64]; /* lanes that record_stream named */
  access_t *accesses;
  int32_t count, room;
} storage_t;

static storage_t **storages; /* by address; they do not overlap */
static size_t storage_count, storage_room;

/* ---- the table ---- */

/* The first storage that ends behind an address. */
static size_t position(uintptr_t address) {
  size_t low = 0, high = storage_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (storages[middle]->end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static storage_t *find(uintptr_t address) {
  size_t i = position(address);
  return i < storage_count && storages[i]->begin <= address ? storages[i] : NULL;
}

/* NULL without host memory: then nothing is known of these addresses. */
static storage_t *insert(uintptr_t begin, uintptr_t end) {
  if (storage_count == storage_room) {
    size_t room = storage_room ? 2 * storage_room : 256;
    storage_t **grown = realloc(storages, room * sizeof *grown);
    if (!grown) return NULL;
    storages = grown;
    storage_room = room;
  }
  storage_t *storage = calloc(1, sizeof *storage);
  if (!storage) return NULL;
  storage->begin = begin;
  storage->end = end;
  size_t i = position(begin);
  memmove(&storages[i + 1], &storages[i], (storage_count++ - i) * sizeof *storages);
  return storages[i] = storage;
}

static void delete(storage_t *storage) {
  free(storage->accesses);
  free(storage);
}

static void erase(size_t i) {
  delete(storages[i]);
  memmove(&storages[i], &storages[i + 1], (--storage_count - i) * sizeof *storages);
}

void tp__order_reset_storages(void) {
  for (size_t i = 0; i < storage_count; i++) delete(storages[i]);
  storage_count = 0;
}

/* ---- accesses of one storage ---- */

static bool add(storage_t *storage, const access_t *access) {
  if (storage->count == storage->room) {
    int32_t room = storage->room ? 2 * storage->room : 4;
    access_t *grown = realloc(storage->accesses, (size_t)room * sizeof *grown);
    if (!grown) return false;
    storage->accesses = grown;
    storage->room = room;
  }
  storage->accesses[storage->count++] = *access;
  return true;
}

/* Drops what the next owner need not care about: what the owner's stream comes behind, what the allocator waits
 * for, and work of captures underway, which does not run now. */
static void settle(storage_t *storage) {
  int32_t kept = 0, lane = tp__order_lane(storage->owner, 0);
  for (int32_t i = 0; i < storage->count; i++) {
    access_t *access = &storage->accesses[i];
    bool recorded = storage->recorded[access->lane / 64] >> access->lane % 64 & 1;
    if (recorded || tp__order_lane_at(access->lane)->capture) continue;
    if (tp__order_is_before(access->lane, access->time, lane)) continue;
    access->former = true;
    storage->accesses[kept++] = *access;
  }
  storage->count = kept;
}

/* Takes [begin, end) out of the table; what is left of former work there goes to `heir`, unless NULL. */
static void carve(uintptr_t begin, uintptr_t end, storage_t *heir) {
  size_t i = position(begin);
  while (i < storage_count && storages[i]->begin < end) {
    storage_t *storage = storages[i];
    if (storage->freed && heir) {
      settle(storage);
      for (int32_t k = 0; k < storage->count; k++) (void)add(heir, &storage->accesses[k]);
    }
    uintptr_t behind = storage->end;
    bool head = storage->begin < begin, tail = end < behind;
    if (head) storage->end = begin;
    if (head && tail) {
      storage_t *rest = insert(end, behind);
      if (!rest) return;
      rest->owner = storage->owner;
      rest->origin = storage->origin;
      rest->freed = storage->freed;
      for (int32_t k = 0; k < storage->count; k++) (void)add(rest, &storage->accesses[k]);
      return;
    }
    if (!head && tail) storage->begin = end;
    if (!head && !tail) {
      erase(i);
    } else {
      i++;
    }
  }
}

/* ---- blocks ---- */

void tp__order_alloc(const void *memory, size_t nbytes, tp_stream_t *stream) {
  if (!tp__order_is_on()) return;
  int64_t origin = tp__origin();
  uintptr_t begin = (uintptr_t)memory;
  storage_t heir = {.begin = begin};
  pthread_mutex_lock(&tp__order_lock);
  if (stream) (void)tp__order_lane(stream, 0); /* while it lives: an external one may be gone when this is freed */
  carve(begin, begin + nbytes, &heir);
  storage_t *storage = insert(begin, begin + nbytes);
  if (storage) {
    storage->owner = stream;
    storage->origin = origin;
    storage->accesses = heir.accesses;
    storage->count = heir.count;
    storage->room = heir.room;
  } else {
    free(heir.accesses);
  }
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_record_stream(const void *memory, tp_stream_t *stream) {
  if (!tp__order_is_on()) return;
  pthread_mutex_lock(&tp__order_lock);
  storage_t *storage = find((uintptr_t)memory);
  int32_t lane = tp__order_lane(stream, 0);
  if (storage) storage->recorded[lane / 64] |= (uint64_t)1 << lane % 64;
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_free(const void *memory) {
  if (!tp__order_is_on()) return;
  uintptr_t address = (uintptr_t)memory;
  pthread_mutex_lock(&tp__order_lock);
  storage_t *storage = find(address);
  if (storage && storage->owner) {
    settle(storage);
    storage->freed = true;
  }
  if (storage && (storage->count == 0 || !storage->owner)) erase(position(address));
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_forget(const void *memory, size_t nbytes) {
  if (!tp__order_is_on() || tp__device_is_inherited()) return;
  pthread_mutex_lock(&tp__order_lock);
  carve((uintptr_t)memory, (uintptr_t)memory + nbytes, NULL);
  pthread_mutex_unlock(&tp__order_lock);
}

/* Drops the accesses of one world. */
static void drop_captured(uint64_t world) {
  for (size_t i = 0; i < storage_count; i++) {
    storage_t *storage = storages[i];
    int32_t kept = 0;
    for (int32_t k = 0; k < storage->count; k++) {
      if (tp__order_lane_at(storage->accesses[k].lane)->world == world) continue;
      storage->accesses[kept++] = storage->accesses[k];
    }
    storage->count = kept;
  }
}

void tp__order_end_capture(const tp_stream_t *stream) {
  if (!tp__order_is_on()) return;
  pthread_mutex_lock(&tp__order_lock);
  for (uint64_t world; (world = tp__order_world_of(stream));) {
    drop_captured(world);
    tp__order_retire(world);
  }
  pthread_mutex_unlock(&tp__order_lock);
}

const void *tp__order_storage(const void *memory) {
  pthread_mutex_lock(&tp__order_lock);
  const storage_t *storage = find((uintptr_t)memory);
  const void *begin = storage ? (const void *)storage->begin : memory;
  pthread_mutex_unlock(&tp__order_lock);
  return begin;
}

/* ---- work ---- */

/* Finds what the access of `lane` is not ordered with; TP_ORDER unless reports are collected. */
static tp_status_t compare(const storage_t *storage, const access_t *next) {
  const tp__lane_t *lane = tp__order_lane_at(next->lane);
  for (int32_t i = 0; i < storage->count; i++) {
    const access_t *access = &storage->accesses[i];
    const tp__lane_t *other = tp__order_lane_at(access->lane);
    if (other->world != lane->world) continue;
    if (!(access->writes || next->writes) || tp__order_is_before(access->lane, access->time, next->lane)) continue;
    TP_TRY(tp__order_report(&(tp_order_report_t){
        .operations = {access->operation, next->operation},
        .streams = {access->stream, next->stream},
        .origins = {access->origin, next->origin},
        .writes = {access->writes, next->writes},
        .is_reused = access->former,
        .address = storage->begin,
        .nbytes = storage->end - storage->begin > 1 ? storage->end - storage->begin : 0,
        .storage_origin = storage->origin,
    }));
  }
  return TP_OK;
}

/* A write stands for all before it in its world, a read for the same stream's earlier ones. */
static bool commit(storage_t *storage, const access_t *next) {
  uint64_t world = tp__order_lane_at(next->lane)->world;
  int32_t kept = 0;
  for (int32_t i = 0; i < storage->count; i++) {
    const access_t *access = &storage->accesses[i];
    bool same_world = tp__order_lane_at(access->lane)->world == world;
    bool covered = next->writes ? same_world : access->lane == next->lane && !access->writes;
    if (!covered) storage->accesses[kept++] = *access;
  }
  storage->count = kept;
  return add(storage, next);
}

static storage_t *find_or_note(uintptr_t address) {
  storage_t *storage = find(address);
  return storage ? storage : insert(address, address + 1);
}

tp_status_t tp__order_check(tp_stream_t *stream, int32_t count, const tp__touch_t *touches, const char *operation) {
  if (!tp__order_is_on()) return TP_OK;
  access_t next = {.stream = stream, .operation = operation, .origin = tp__origin()};
  uint64_t capture = tp__stream_capture(stream);
  tp_status_t status = TP_OK;
  bool kept = true;
  pthread_mutex_lock(&tp__order_lock);
  next.lane = tp__order_lane(stream, capture);
  next.time = tp__order_tick(next.lane);
  for (int32_t i = 0; !status && i < count; i++) {
    const storage_t *storage = find((uintptr_t)touches[i].memory);
    next.writes = touches[i].writes;
    if (storage) status = compare(storage, &next);
  }
  /* What was refused is not queued. */
  for (int32_t i = 0; !status && i < count && kept; i++) {
    if (!touches[i].memory) continue;
    storage_t *storage = find_or_note((uintptr_t)touches[i].memory);
    next.writes = touches[i].writes;
    kept = storage && commit(storage, &next);
  }
  pthread_mutex_unlock(&tp__order_lock);
  if (!kept) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note what it uses");
  return status;
}
