/* Allocating and freeing: what the rest of the library calls. */
#include "growing.h"

/* Sizes above this cannot be rounded up and counted in 64 bits. */
#define MAX_NBYTES ((size_t)INT64_MAX / TP_SEGMENT_UNIT * TP_SEGMENT_UNIT)

static const char operation[] = "allocate";

static tp__heap_t heaps[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .pools = {[TP_CLASS_LARGE] = {.class = TP_CLASS_LARGE}, [TP_CLASS_SMALL] = {.class = TP_CLASS_SMALL}},
        .random = 0x9E3779B9u,
        .limit = TP_NO_LIMIT,
    },
};

tp__heap_t *tp__heap(int32_t device) { return &heaps[device]; }

void tp__heap_lock(tp__heap_t *heap) {
  pthread_mutex_lock(&heap->lock);
  tp__cache_count_own((int32_t)(heap - heaps));
}

void tp__heap_unlock(tp__heap_t *heap) { pthread_mutex_unlock(&heap->lock); }

/* A block that is as large as its segment would be no piece of it in a cache, and so count otherwise than the rest. */
static bool is_plain(const tp__heap_t *heap, const tp__block_t *block) {
  return block->segment->pool == &heap->pools[TP_CLASS_SMALL] && !block->budget && !block->capture &&
         block->nbytes <= TP_CACHE_BLOCK_LIMIT && (block->nbytes < block->segment->nbytes || block->segment->grows_for);
}

/* Takes a block out of its shelf, without the part of it that is worth keeping for others. */
static void activate(tp__heap_t *heap, tp__block_t *block, const tp__request_t *request) {
  size_t nbytes = request->nbytes;
  tp__size_class_t class = block->segment->pool->class;
  bool fine = class == TP_CLASS_SMALL || block->segment->grows_for;
  size_t smallest_rest = fine ? TP_BLOCK_UNIT : TP_LARGE_REST_LIMIT + TP_BLOCK_UNIT;
  const tp__private_pool_t *owner = block->segment->pool->owner;
  bool splits = !owner || !(owner->mempool->flags & TP_MEMPOOL_NO_SPLIT);
  size_t max_split_size = tp__settings()->max_split_size;
  if (nbytes >= max_split_size && !block->segment->grows_for) splits = false;
  tp__pool_remove(heap, block);
  if (splits && block->nbytes - nbytes >= smallest_rest) {
    /* Without host memory for the rest's record the block is handed out whole. */
    tp__block_t *rest = tp__block_split(heap, block, nbytes);
    if (rest) tp__pool_insert(heap, rest);
  }
  block->state = TP_BLOCK_LIVE;
  block->requested_nbytes = request->requested_nbytes;
  block->budget = request->budget;
  block->budget_nbytes = nbytes;
  block->origin = heap->trace.origin;
  block->capture = request->capture;
  block->plain = is_plain(heap, block);
  block->oversize = block->nbytes >= max_split_size;
  block->segment->active++;
  tp__stat_increase(heap->stats, TP_STAT_allocation, class, 1);
  tp__stat_increase(heap->stats, TP_STAT_allocated_bytes, class, block->nbytes);
  tp__stat_increase(heap->stats, TP_STAT_requested_bytes, class, request->requested_nbytes);
  tp__stat_increase(heap->stats, TP_STAT_active, class, 1);
  tp__stat_increase(heap->stats, TP_STAT_active_bytes, class, block->nbytes);
  size_t active = (size_t)heap->stats[TP_STAT_active_bytes];
  if (heap->most_active < active) heap->most_active = active;
  if (block->oversize) tp__stat_increase_one(&heap->stats[TP_STAT_oversize_allocations], 1);
  tp__trace_block(heap, TP_TRACE_alloc, block, block->origin);
}

void tp__heap_retire(tp__heap_t *heap, tp__block_t *block, int64_t origin) {
  tp__size_class_t class = block->segment->pool->class;
  block->segment->active--;
  tp__stat_decrease(heap->stats, TP_STAT_active, class, 1);
  tp__stat_decrease(heap->stats, TP_STAT_active_bytes, class, block->nbytes);
  tp__trace_block(heap, TP_TRACE_free_completed, block, origin);
  tp__segment_t *segment = block->segment;
  block->freed = heap->clock;
  tp__pool_insert_merged(heap, block);
  if (segment->active > 0) return;
  if (segment->pool->owner) {
    tp__private_pool_settle(heap, segment->pool->owner);
  } else {
    tp__collect_idle(heap, segment);
  }
}

static tp_status_t find_pool(tp__heap_t *heap, tp__request_t *request) {
  tp__size_class_t class = request->nbytes <= TP_SMALL_LIMIT ? TP_CLASS_SMALL : TP_CLASS_LARGE;
  tp__private_pool_t *part = NULL;
  if (request->mempool && !(part = tp__private_pool_of(heap, request))) {
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a private pool");
  }
  request->pool = part ? &part->pools[class] : &heap->pools[class];
  return TP_OK;
}

/* A live block for the request; NULL on failure with the slot filled. */
static tp__block_t *take(tp__heap_t *heap, tp__request_t *request) {
  if (find_pool(heap, request)) return NULL;
  heap->clock++;
  if (heap->deferred > 0) tp__defer_poll(heap);
  tp_budget_figures_t over;
  if (request->budget && !tp__budget_take(request, &over)) {
    (void)tp__shortage_refuse_budget(heap, request, &over);
    return NULL;
  }
  tp__block_t *block = tp__pool_find(request->pool, tp__stream_id(request->stream), request->nbytes);
  if (!block) block = tp__obtain(heap, request);
  if (block) activate(heap, block, request);
  if (request->budget && block) tp__budget_keep(request->budget);
  if (request->budget && !block) tp__budget_give(request->budget, request->nbytes, request->requested_nbytes);
  return block;
}

/* The next of n equal steps between two powers of two; steps of less than a unit are of no use. */
static size_t round_to_step(const tp_memory_settings_t *settings, size_t nbytes) {
  int octave = 63 - __builtin_clzll(nbytes);
  int interval = nbytes < TP_MiB ? 0 : octave - 19;
  size_t n = settings->roundup_power2_divisions[interval < TP_ROUNDUP_INTERVALS ? interval : TP_ROUNDUP_INTERVALS - 1];
  size_t step = n > 1 && nbytes > n * TP_BLOCK_UNIT ? ((size_t)1 << octave) / n : TP_BLOCK_UNIT;
  return tp__round_up(nbytes, step);
}

static size_t block_size(size_t nbytes) {
  const tp_memory_settings_t *settings = tp__settings();
  size_t rounded = settings->rounds_up ? round_to_step(settings, nbytes) : 0;
  return rounded && rounded <= MAX_NBYTES ? rounded : tp__round_up(nbytes, TP_BLOCK_UNIT);
}

static tp__block_t *allocate(size_t nbytes, tp_stream_t *stream) {
  if (nbytes > MAX_NBYTES) {
    tp__error_set(TP_OVERFLOW, operation, "got %zu bytes, expected at most %zu", nbytes, MAX_NBYTES);
    return NULL;
  }
  size_t block_nbytes = block_size(nbytes);
  tp__block_t *cached = tp__cache_take(nbytes, block_nbytes, stream);
  if (cached) return cached;
  tp__heap_t *heap = &heaps[tp_stream_device(stream)];
  int64_t origin = tp__trace_origin(TP_HISTORY_ORIGINS);
  tp__request_t request = {.requested_nbytes = nbytes, .nbytes = block_nbytes, .stream = stream,
                           .budget = tp__route.budget ? tp__budget_current() : NULL};
  if (tp__route.pool || tp__captures_underway()) tp__capture_route(&request);
  tp__heap_lock(heap);
  heap->trace.origin = origin;
  tp__block_t *block = take(heap, &request);
  tp__heap_unlock(heap);
  if (request.mempool) tp__mempool_drop(request.mempool);
  if (!tp__wait_tell_owed()) return block;
  if (block) tp__alloc_free(block);
  return NULL;
}

tp__block_t *tp__alloc(size_t nbytes, tp_stream_t *stream) {
  tp__block_t *block = allocate(nbytes, stream);
  if (block && tp__order_is_on()) tp__order_alloc(block->address, block->nbytes, stream);
  return block;
}

void *tp__alloc_address(const tp__block_t *block) { return block->address; }

void tp__alloc_free(tp__block_t *block) {
  if (tp__device_is_inherited()) return;
  if (tp__order_is_on()) tp__order_free(block->address);
  if (block->plain && !block->uses && tp__cache_give(block)) return;
  tp__heap_t *heap = block->segment->heap;
  tp__size_class_t class = block->segment->pool->class;
  int64_t origin = tp__trace_origin(TP_HISTORY_FREES);
  if (!origin) origin = block->origin;
  tp__heap_lock(heap);
  heap->trace.origin = origin;
  tp__trace_block(heap, TP_TRACE_free_requested, block, origin);
  tp__stat_decrease(heap->stats, TP_STAT_allocation, class, 1);
  tp__stat_decrease(heap->stats, TP_STAT_allocated_bytes, class, block->nbytes);
  tp__stat_decrease(heap->stats, TP_STAT_requested_bytes, class, block->requested_nbytes);
  if (block->oversize) tp__stat_decrease_one(&heap->stats[TP_STAT_oversize_allocations], 1);
  if (block->budget) {
    tp__budget_give(block->budget, block->budget_nbytes, block->requested_nbytes);
    block->budget = NULL;
  }
  if (block->uses) {
    tp__defer_block(heap, block);
  } else {
    tp__heap_retire(heap, block, origin);
  }
  tp__heap_unlock(heap);
}

tp_status_t tp__alloc_record_stream(tp__block_t *block, tp_stream_t *stream) {
  if (block->stream == stream) return TP_OK; /* its order makes reuse safe */
  tp__heap_t *heap = block->segment->heap;
  tp__heap_lock(heap);
  tp_status_t status = tp__defer_note(heap, block, stream);
  tp__heap_unlock(heap);
  if (!status) tp__order_record_stream(block->address, stream);
  return status;
}

tp_status_t tp__alloc_enable_peer(int32_t from, int32_t to) {
  bool known = tp__device_has_peer(from, to);
  TP_TRY(tp__device_enable_peer(from, to));
  if (known || !tp__device_has_peer(from, to)) return TP_OK;
  tp__heap_t *heap = tp__heap(to);
  tp__heap_lock(heap);
  tp_status_t status = tp__growing_share(heap, "device_enable_peer");
  tp__heap_unlock(heap);
  return status;
}
