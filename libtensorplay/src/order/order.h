/* What the files of the order checker share; docs/design/order.md explains the whole. One lock guards all of it, and
 * nothing is called under it but CUDA's questions about a stream.
 *
 *   clock    which work comes before which
 *   access   what work reads and writes, and pairs that nothing orders
 *   report   those pairs */
#ifndef TP_ORDER_H
#define TP_ORDER_H

#include <pthread.h>

#include "../internal.h"

/* Streams that are told apart; those beyond share the last lane, which orders them among each other. */
#define TP_ORDER_LANES 256

/* ---- clock.c ---- */

extern pthread_mutex_t tp__order_lock;

/* A stream, or its part in one capture: work of captures is ordered in a world of its own. */
typedef struct tp__lane {
  tp_stream_t *stream;
  uint64_t capture;
  uint64_t world;                 /* the capture; of a body of a conditional node the outermost one around it */
  bool blocking;                  /* ordered with the legacy default stream */
  uint64_t known[TP_ORDER_LANES]; /* work of each lane that comes before this one's next; its own: all so far */
} tp__lane_t;

/* The lane of a stream; capture is tp__stream_capture's. What is known of waits elsewhere has been taken in. */
int32_t tp__order_lane(tp_stream_t *stream, uint64_t capture);
const tp__lane_t *tp__order_lane_at(int32_t lane);
/* Numbers the next piece of work of the lane. */
uint64_t tp__order_tick(int32_t lane);
/* Whether that piece comes before the next one of another lane. */
bool tp__order_is_before(int32_t lane, uint64_t time, int32_t other);
/* A world whose capture has a lane of the stream, or 0. */
uint64_t tp__order_world_of(const tp_stream_t *stream);
/* The world's capture has ended, and no access of its lanes is kept any more: they may serve again. */
void tp__order_retire(uint64_t world);
/* Forgets everything: points that are recorded by now say nothing. */
void tp__order_reset_clocks(void);

/* ---- access.c ---- */

void tp__order_reset_storages(void);

/* ---- report.c ---- */

/* Notes a pair by the mode: TP_ORDER, or TP_OK where reports are collected. */
tp_status_t tp__order_report(const tp_order_report_t *report);

#endif
