/* Counters of a heap, by the numbers of stats.def. A part of alloc.h. */
#ifndef TP_STATS_H
#define TP_STATS_H

#include "../internal.h"

typedef enum tp__stat {
#define TP_STAT_FAMILY(name) TP_STAT_##name, TP_STAT_END_##name = TP_STAT_##name + 11,
#define TP_STAT_OVERSIZE(name) TP_STAT_##name, TP_STAT_END_##name = TP_STAT_##name + 3,
#define TP_STAT_SCALAR(name) TP_STAT_##name,
#include "stats.def"
#undef TP_STAT_FAMILY
#undef TP_STAT_OVERSIZE
#undef TP_STAT_SCALAR
  TP_STAT_COUNT
} tp__stat_t;

/* Which pool a figure is of; "all" is their sum. */
typedef enum tp__size_class { TP_CLASS_ALL = 0, TP_CLASS_LARGE = 1, TP_CLASS_SMALL = 2 } tp__size_class_t;

enum { TP_FIGURE_CURRENT = 0, TP_FIGURE_PEAK = 1, TP_FIGURE_ALLOCATED = 2, TP_FIGURE_FREED = 3 };

static inline void tp__stat_increase_one(int64_t *figures, int64_t amount) {
  int64_t current = figures[TP_FIGURE_CURRENT] += amount;
  if (current > figures[TP_FIGURE_PEAK]) figures[TP_FIGURE_PEAK] = current;
  figures[TP_FIGURE_ALLOCATED] += amount;
}

static inline void tp__stat_decrease_one(int64_t *figures, int64_t amount) {
  figures[TP_FIGURE_CURRENT] -= amount;
  figures[TP_FIGURE_FREED] += amount;
}

/* Both for the pool's own figures and for "all". */
static inline void tp__stat_increase(int64_t *stats, tp__stat_t family, tp__size_class_t class,
                                     size_t amount) {
  tp__stat_increase_one(&stats[family], (int64_t)amount);
  tp__stat_increase_one(&stats[family + 4 * class], (int64_t)amount);
}

static inline void tp__stat_decrease(int64_t *stats, tp__stat_t family, tp__size_class_t class,
                                     size_t amount) {
  tp__stat_decrease_one(&stats[family], (int64_t)amount);
  tp__stat_decrease_one(&stats[family + 4 * class], (int64_t)amount);
}

/* What entered and left a thread's cache since the heap's counters last followed. */
typedef struct tp__tally {
  int64_t in, out;   /* sums */
  int64_t low, high; /* extremes of in - out, around 0 */
} tp__tally_t;

static inline void tp__tally_in(tp__tally_t *tally, int64_t amount) {
  tally->in += amount;
  if (tally->in - tally->out > tally->high) tally->high = tally->in - tally->out;
}

static inline void tp__tally_out(tp__tally_t *tally, int64_t amount) {
  tally->out += amount;
  if (tally->in - tally->out < tally->low) tally->low = tally->in - tally->out;
}

/* A family of the small pool follows a tally: it counts what is in caches, or what is not. */
void tp__stat_follow(int64_t *stats, tp__stat_t family, const tp__tally_t *tally, bool counts_cached);

#endif
