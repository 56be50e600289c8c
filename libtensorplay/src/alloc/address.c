/* Blocks by their address, for tp_memory_free: a hash table in shards, each under its own lock, chained
 * through the blocks. Device addresses are unique in a process, so one table serves all devices. */
#include <stdlib.h>

#include "alloc.h"

enum { SHARDS = 64, FIRST_BUCKETS = 16 };

typedef struct shard {
  _Alignas(64) pthread_mutex_t lock; /* threads that use different shards share no line of the processor's cache */
  tp__block_t **buckets;
  size_t bucket_count; /* a power of two, or 0 */
  size_t block_count;
} shard_t;

static shard_t shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* Addresses are multiples of 512 and often of much more: the multiplication spreads them. */
static uint64_t hash_of(const void *address) {
  return ((uint64_t)(uintptr_t)address / TP_BLOCK_UNIT * 0x9E3779B97F4A7C15u) >> 16;
}

static shard_t *shard_of(uint64_t hash) { return &shards[hash % SHARDS]; }

static tp__block_t **bucket_of(shard_t *shard, uint64_t hash) {
  return &shard->buckets[hash / SHARDS & (shard->bucket_count - 1)];
}

/* Without host memory the chains only grow longer. */
static void grow(shard_t *shard) {
  shard_t grown = {.bucket_count = shard->bucket_count ? 2 * shard->bucket_count : FIRST_BUCKETS};
  grown.buckets = calloc(grown.bucket_count, sizeof(tp__block_t *));
  if (!grown.buckets) return;
  for (size_t i = 0; i < shard->bucket_count; i++) {
    for (tp__block_t *block = shard->buckets[i]; block;) {
      tp__block_t *next = block->chain;
      tp__block_t **bucket = bucket_of(&grown, hash_of(block->address));
      block->chain = *bucket;
      *bucket = block;
      block = next;
    }
  }
  free(shard->buckets);
  shard->buckets = grown.buckets;
  shard->bucket_count = grown.bucket_count;
}

bool tp__address_insert(tp__block_t *block) {
  uint64_t hash = hash_of(block->address);
  shard_t *shard = shard_of(hash);
  pthread_mutex_lock(&shard->lock);
  if (shard->block_count >= shard->bucket_count) grow(shard);
  bool inserted = shard->bucket_count > 0;
  if (inserted) {
    tp__block_t **bucket = bucket_of(shard, hash);
    block->chain = *bucket;
    *bucket = block;
    shard->block_count++;
  }
  pthread_mutex_unlock(&shard->lock);
  return inserted;
}

tp__block_t *tp__address_remove(void *address) {
  uint64_t hash = hash_of(address);
  shard_t *shard = shard_of(hash);
  tp__block_t *block = NULL;
  pthread_mutex_lock(&shard->lock);
  if (shard->bucket_count > 0) {
    tp__block_t **link = bucket_of(shard, hash);
    while (*link && (*link)->address != address) link = &(*link)->chain;
    block = *link;
    if (block) {
      *link = block->chain;
      shard->block_count--;
    }
  }
  pthread_mutex_unlock(&shard->lock);
  return block;
}
