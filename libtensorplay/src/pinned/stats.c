/* The figures of pinned memory, read and reset. They change together with what they count, under the lock. */
#include <string.h>
#include <time.h>

#include "pinned.h"

static const tp__host_stat_t durations[] = {TP_HOST_STAT_host_alloc_time, TP_HOST_STAT_host_free_time};
enum { DURATIONS = sizeof durations / sizeof durations[0] };

/* True for the statistics with four figures. */
static bool has_figures(int32_t key) { return key < TP_HOST_STAT_host_alloc_time; }

void tp__pinned_count(tp__host_stat_t family, int64_t amount) {
  if (amount > 0) {
    tp__stat_increase_one(&tp__pinned.stats[family], amount);
  } else {
    tp__stat_decrease_one(&tp__pinned.stats[family], -amount);
  }
}

int64_t tp__pinned_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void tp__pinned_time(tp__host_stat_t duration, int64_t since_ns) {
  int64_t *values = &tp__pinned.stats[duration], us = (tp__pinned_now_ns() - since_ns) / 1000;
  if (us < values[TP_DURATION_MIN] || values[TP_DURATION_MIN] == 0) values[TP_DURATION_MIN] = us;
  if (us > values[TP_DURATION_MAX]) values[TP_DURATION_MAX] = us;
  values[TP_DURATION_TOTAL] += us;
  values[TP_DURATION_AVG] = values[TP_DURATION_TOTAL] / ++values[TP_DURATION_COUNT];
}

tp_status_t tp_pinned_stats(int64_t *out, int32_t n) {
  const char *operation = "host_memory_stats";
  TP_TRY(tp__device_check_process(operation));
  if (n != TP_HOST_STAT_COUNT) {
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got room for %d values, expected %d", n, TP_HOST_STAT_COUNT);
  }
  pthread_mutex_lock(&tp__pinned.lock);
  tp__pinned_settle(false);
  memcpy(out, tp__pinned.stats, sizeof tp__pinned.stats);
  pthread_mutex_unlock(&tp__pinned.lock);
  return TP_OK;
}

tp_status_t tp_pinned_reset_peak_stats(void) {
  TP_TRY(tp__device_check_process("reset_peak_host_memory_stats"));
  int64_t *stats = tp__pinned.stats;
  pthread_mutex_lock(&tp__pinned.lock);
  for (int32_t key = 0; has_figures(key); key += 4) stats[key + TP_FIGURE_PEAK] = stats[key + TP_FIGURE_CURRENT];
  for (int32_t i = 0; i < DURATIONS; ++i)
    stats[durations[i] + TP_DURATION_MAX] = stats[durations[i] + TP_DURATION_MIN] = 0;
  pthread_mutex_unlock(&tp__pinned.lock);
  return TP_OK;
}

tp_status_t tp_pinned_reset_accumulated_stats(void) {
  TP_TRY(tp__device_check_process("reset_accumulated_host_memory_stats"));
  int64_t *stats = tp__pinned.stats;
  pthread_mutex_lock(&tp__pinned.lock);
  for (int32_t key = 0; has_figures(key); key += 4)
    stats[key + TP_FIGURE_ALLOCATED] = stats[key + TP_FIGURE_FREED] = 0;
  for (int32_t i = 0; i < DURATIONS; ++i) {
    int64_t *values = &stats[durations[i]];
    values[TP_DURATION_TOTAL] = values[TP_DURATION_COUNT] = values[TP_DURATION_AVG] = 0;
  }
  stats[TP_HOST_STAT_num_host_alloc] = stats[TP_HOST_STAT_num_host_free] = 0;
  pthread_mutex_unlock(&tp__pinned.lock);
  return TP_OK;
}
