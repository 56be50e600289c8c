/* Pairs of accesses that nothing orders, for the program to read. */
#include <stdio.h>

#include "order.h"

/* Different pairs that are kept: whoever has more mends the first ones first. */
#define MOST_REPORTS 256

static _Thread_local tp_order_report_t last;
static tp_order_report_t collected[MOST_REPORTS];
static int32_t collected_count, taken_count;

static const char *describe(const tp_stream_t *stream, char *out, size_t room) {
  int32_t device = tp_stream_device(stream);
  if (tp_stream_handle(stream)) {
    snprintf(out, room, "stream %#zx of cuda:%d", (size_t)tp_stream_handle(stream), device);
  } else {
    snprintf(out, room, "the default stream of cuda:%d", device);
  }
  return out;
}

static bool is_same(const tp_order_report_t *a, const tp_order_report_t *b) {
  return a->operations[0] == b->operations[0] && a->operations[1] == b->operations[1] &&
         a->origins[0] == b->origins[0] && a->origins[1] == b->origins[1] && a->streams[0] == b->streams[0] &&
         a->streams[1] == b->streams[1];
}

tp_status_t tp__order_report(const tp_order_report_t *report) {
  if (atomic_load_explicit(&tp__order_mode, memory_order_relaxed) == TP_ORDER_COLLECT) {
    bool known = false;
    for (int32_t i = 0; i < collected_count && !known; i++) known = is_same(&collected[i], report);
    if (!known && collected_count < MOST_REPORTS) collected[collected_count++] = *report;
    return TP_OK;
  }
  last = *report;
  char first[64], second[64];
  const char *verbs[] = {"reads", "writes"};
  const char *missing = report->is_reused ? "the memory was dropped without record_stream() for that stream"
                                          : "wait_stream() is missing between them";
  return tp__error_set(TP_ORDER, report->operations[1],
                       "%s memory on %s that %s %s on %s, and nothing orders the two: %s", verbs[report->writes[1]],
                       describe(report->streams[1], second, sizeof second), report->operations[0],
                       verbs[report->writes[0]], describe(report->streams[0], first, sizeof first), missing);
}

tp_status_t tp_order_set_mode(int32_t mode) {
  const char *operation = "order_set_mode";
  if (mode < TP_ORDER_OFF || mode > TP_ORDER_COLLECT)
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got mode %d, expected one of TP_ORDER_*", (int)mode);
  TP_TRY(tp__device_check_process(operation));
  pthread_mutex_lock(&tp__order_lock);
  bool starts = mode && !tp__order_is_on(), stops = !mode && tp__order_is_on();
  if (starts) tp__order_reset_clocks();
  if (starts || !mode) tp__order_reset_storages();
  if (starts) collected_count = taken_count = 0;
  atomic_store_explicit(&tp__order_mode, mode, memory_order_relaxed);
  tp__watch_count(starts - stops);
  pthread_mutex_unlock(&tp__order_lock);
  return TP_OK;
}

void tp_order_last(tp_order_report_t *out) { *out = last; }

int32_t tp_order_take(tp_order_report_t *out) {
  if (tp__device_is_inherited()) return 0;
  pthread_mutex_lock(&tp__order_lock);
  bool found = taken_count < collected_count;
  if (found) *out = collected[taken_count++];
  pthread_mutex_unlock(&tp__order_lock);
  return found;
}
