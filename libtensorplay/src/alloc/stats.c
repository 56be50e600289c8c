/* The counters, read and reset. They change together with what they count, under the heap's lock, but for what threads
 * count in their caches, which is added before a reading: so it is consistent over the whole device. */
#include <string.h>

#include "alloc.h"

/* True for the statistics with four figures. */
static bool has_figures(int32_t key) { return key < TP_STAT_num_alloc_retries; }

/* A figure rose and fell by so much in all, and once stood `high` above what it was. */
static void follow_one(int64_t *figures, int64_t risen, int64_t fallen, int64_t high) {
  int64_t highest = figures[TP_FIGURE_CURRENT] + high;
  if (highest > figures[TP_FIGURE_PEAK]) figures[TP_FIGURE_PEAK] = highest;
  figures[TP_FIGURE_CURRENT] += risen - fallen;
  figures[TP_FIGURE_ALLOCATED] += risen;
  figures[TP_FIGURE_FREED] += fallen;
}

void tp__stat_follow(int64_t *stats, tp__stat_t family, const tp__tally_t *tally, bool counts_cached) {
  int64_t risen = counts_cached ? tally->in : tally->out;
  int64_t fallen = counts_cached ? tally->out : tally->in;
  int64_t high = counts_cached ? tally->high : -tally->low;
  follow_one(&stats[family], risen, fallen, high);
  follow_one(&stats[family + 4 * TP_CLASS_SMALL], risen, fallen, high);
}

static tp__heap_t *lock_heap(int32_t device) {
  tp__heap_t *heap = tp__heap(device);
  tp__heap_lock(heap);
  tp__cache_count(heap);
  size_t max_split_size = tp__settings()->max_split_size;
  heap->stats[TP_STAT_max_split_size] = max_split_size == TP_NO_LIMIT ? 0 : (int64_t)max_split_size;
  return heap;
}

int64_t tp_memory_stat(int32_t device, int32_t key) {
  device = tp__device_resolve(device, "memory_stat");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_stat"));
  if (key < 0 || key >= TP_STAT_COUNT) {
    return tp__error_set(TP_INVALID_ARGUMENT, "memory_stat", "got key %d, expected 0 to %d", key,
                         TP_STAT_COUNT - 1);
  }
  tp__heap_t *heap = lock_heap(device);
  int64_t value = heap->stats[key];
  tp__heap_unlock(heap);
  return value;
}

tp_status_t tp_memory_stats(int32_t device, int64_t *out, int32_t n) {
  device = tp__device_resolve(device, "memory_stats");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_stats"));
  if (n != TP_STAT_COUNT) {
    return tp__error_set(TP_INVALID_ARGUMENT, "memory_stats", "got room for %d values, expected %d", n,
                         TP_STAT_COUNT);
  }
  tp__heap_t *heap = lock_heap(device);
  memcpy(out, heap->stats, sizeof heap->stats);
  tp__heap_unlock(heap);
  return TP_OK;
}

tp_status_t tp_memory_reset_peak_stats(int32_t device) {
  device = tp__device_resolve(device, "memory_reset_peak_stats");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_reset_peak_stats"));
  tp__heap_t *heap = lock_heap(device);
  for (int32_t key = 0; has_figures(key); key += 4) {
    heap->stats[key + TP_FIGURE_PEAK] = heap->stats[key + TP_FIGURE_CURRENT];
  }
  tp__heap_unlock(heap);
  return TP_OK;
}

tp_status_t tp_memory_reset_accumulated_stats(int32_t device) {
  device = tp__device_resolve(device, "memory_reset_accumulated_stats");
  if (device < 0) return device;
  TP_TRY(tp__device_check_process("memory_reset_accumulated_stats"));
  tp__heap_t *heap = lock_heap(device);
  for (int32_t key = 0; has_figures(key); key += 4) {
    heap->stats[key + TP_FIGURE_ALLOCATED] = heap->stats[key + TP_FIGURE_FREED] = 0;
  }
  heap->stats[TP_STAT_num_alloc_retries] = heap->stats[TP_STAT_num_ooms] = heap->stats[TP_STAT_num_oom_rejections] = 0;
  tp__heap_unlock(heap);
  return TP_OK;
}
