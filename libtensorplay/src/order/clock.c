/* Which work comes before which, as vector clocks: for each lane the last piece of every other one that its next piece
 * comes behind. Waits between streams, events, and what the program has waited for are all that counts; how long work
 * takes never does. The program has one clock, whatever thread waits: its threads have ways to wait for each other that
 * nobody sees here. */
#include <stdlib.h>
#include <string.h>

#include "order.h"

struct tp__order_point {
  uint64_t generation; /* of the lanes, when it was recorded */
  uint64_t capture;
  uint64_t known[TP_ORDER_LANES];
};

pthread_mutex_t tp__order_lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic int32_t tp__order_mode;

static tp__lane_t lanes[TP_ORDER_LANES];
static int32_t lane_count;
static uint64_t host[TP_ORDER_LANES]; /* work that the program knows to be done */
static uint64_t generation = 1;

static void join(uint64_t *known, const uint64_t *other) {
  for (int32_t i = 0; i < lane_count; i++) {
    if (known[i] < other[i]) known[i] = other[i];
  }
}

static bool is_default(const tp_stream_t *stream) { return !tp__stream_cuda(stream); }

/* Only streams of others may be ordered with the legacy default stream. */
static bool is_blocking(const tp_stream_t *stream) {
  if (!tp__stream_is_external(stream)) return is_default(stream);
  unsigned int flags = 0;
  if (cudaStreamGetFlags(tp__stream_cuda(stream), &flags)) (void)cudaGetLastError();
  return !(flags & cudaStreamNonBlocking);
}

static int32_t find(const tp_stream_t *stream, uint64_t capture) {
  for (int32_t i = 0; i < lane_count; i++) {
    if (lanes[i].stream == stream && lanes[i].capture == capture) return i;
  }
  return -1;
}

/* All lanes of a capture are of one world, which the first one was told where it is another's. */
static uint64_t world_of(uint64_t capture) {
  for (int32_t i = 0; i < lane_count && capture; i++) {
    if (lanes[i].capture == capture) return lanes[i].world;
  }
  return capture;
}

/* A lane whose capture has ended serves again: its own count goes on, so that nobody knows of the new work. */
static int32_t make(tp_stream_t *stream, uint64_t capture) {
  int32_t lane = find(NULL, 0);
  if (lane < 0 && lane_count == TP_ORDER_LANES) return TP_ORDER_LANES - 1;
  if (lane < 0) lane = lane_count++;
  uint64_t own = lanes[lane].known[lane];
  uint64_t world = world_of(capture);
  lanes[lane] = (tp__lane_t){.stream = stream, .capture = capture, .world = world, .blocking = is_blocking(stream)};
  lanes[lane].known[lane] = own;
  return lane;
}

/* The order of the legacy default stream with the blocking streams of its device. */
static void follow_legacy(tp__lane_t *self) {
  for (int32_t i = 0; i < lane_count && self->blocking; i++) {
    const tp__lane_t *other = &lanes[i];
    if (!other->stream || !other->blocking || other->capture) continue;
    bool ordered = is_default(self->stream) || is_default(other->stream);
    if (ordered && tp_stream_device(other->stream) == tp_stream_device(self->stream)) join(self->known, other->known);
  }
}

int32_t tp__order_lane(tp_stream_t *stream, uint64_t capture) {
  int32_t lane = find(stream, capture);
  if (lane < 0) lane = make(stream, capture);
  if (capture) return lane;
  join(lanes[lane].known, host);
  follow_legacy(&lanes[lane]);
  return lane;
}

/* The lane of a stream that takes part in a body, or did so last: bodies on one stream come one behind the other, so
 * that one lane serves all. */
static int32_t lane_in_world(tp_stream_t *stream, uint64_t world) {
  uint64_t capture = tp__stream_capture(stream);
  int32_t lane = capture ? find(stream, capture) : -1;
  for (int32_t i = 0; i < lane_count && lane < 0; i++) {
    if (lanes[i].stream == stream && lanes[i].world == world) lane = i;
  }
  if (lane < 0) lane = tp__order_lane(stream, capture);
  if (capture && lanes[lane].stream == stream) {
    lanes[lane].capture = capture;
    lanes[lane].world = world;
  }
  return lane;
}

const tp__lane_t *tp__order_lane_at(int32_t lane) { return &lanes[lane]; }

uint64_t tp__order_tick(int32_t lane) { return ++lanes[lane].known[lane]; }

bool tp__order_is_before(int32_t lane, uint64_t time, int32_t other) {
  return lane == other || lanes[other].known[lane] >= time;
}

void tp__order_reset_clocks(void) {
  memset(lanes, 0, sizeof lanes);
  memset(host, 0, sizeof host);
  lane_count = 0;
  generation++;
}

uint64_t tp__order_world_of(const tp_stream_t *stream) {
  for (int32_t i = 0; i < lane_count; i++) {
    if (lanes[i].stream == stream && lanes[i].capture == lanes[i].world && lanes[i].world) return lanes[i].world;
  }
  return 0;
}

void tp__order_retire(uint64_t world) {
  for (int32_t i = 0; i < lane_count; i++) {
    if (lanes[i].world != world) continue;
    lanes[i].stream = NULL;
    lanes[i].capture = lanes[i].world = 0;
  }
}

/* ---- waits, told after they have been queued ---- */

void tp__order_wait(tp_stream_t *stream, tp_stream_t *other) {
  if (!tp__order_is_on()) return;
  uint64_t capture = tp__stream_capture(stream), other_capture = tp__stream_capture(other);
  pthread_mutex_lock(&tp__order_lock);
  int32_t lane = tp__order_lane(stream, capture), behind = tp__order_lane(other, other_capture);
  if (lanes[lane].world == lanes[behind].world) join(lanes[lane].known, lanes[behind].known);
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_pass(tp_stream_t *stream, tp_stream_t *from, uint64_t outermost) {
  if (!tp__order_is_on()) return;
  pthread_mutex_lock(&tp__order_lock);
  int32_t lane = lane_in_world(stream, outermost), behind = lane_in_world(from, outermost);
  join(lanes[lane].known, lanes[behind].known);
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_record(_Atomic(tp__order_point_t *) *point, tp_stream_t *stream) {
  if (!tp__order_is_on()) return;
  uint64_t capture = tp__stream_capture(stream);
  pthread_mutex_lock(&tp__order_lock);
  tp__order_point_t *self = atomic_load_explicit(point, memory_order_relaxed);
  if (!self) self = malloc(sizeof *self);
  if (self) { /* without host memory the event orders nothing here */
    const tp__lane_t *lane = tp__order_lane_at(tp__order_lane(stream, capture));
    self->generation = generation;
    self->capture = capture;
    memcpy(self->known, lane->known, sizeof self->known);
    atomic_store_explicit(point, self, memory_order_relaxed);
  }
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_wait_point(tp_stream_t *stream, _Atomic(tp__order_point_t *) *point) {
  const tp__order_point_t *self = tp__order_is_on() ? atomic_load_explicit(point, memory_order_relaxed) : NULL;
  if (!self) return;
  uint64_t capture = tp__stream_capture(stream);
  pthread_mutex_lock(&tp__order_lock);
  int32_t lane = tp__order_lane(stream, capture);
  if (self->generation == generation && self->capture == capture) join(lanes[lane].known, self->known);
  pthread_mutex_unlock(&tp__order_lock);
}

/* ---- what the program has waited for ---- */

void tp__order_reach_point(_Atomic(tp__order_point_t *) *point) {
  const tp__order_point_t *self = tp__order_is_on() ? atomic_load_explicit(point, memory_order_relaxed) : NULL;
  if (!self) return;
  pthread_mutex_lock(&tp__order_lock);
  if (self->generation == generation && !self->capture) join(host, self->known);
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_reach(tp_stream_t *stream) {
  if (!tp__order_is_on()) return;
  pthread_mutex_lock(&tp__order_lock);
  join(host, lanes[tp__order_lane(stream, 0)].known);
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_reach_device(int32_t device) {
  if (!tp__order_is_on()) return;
  pthread_mutex_lock(&tp__order_lock);
  for (int32_t i = 0; i < lane_count; i++) {
    const tp__lane_t *lane = &lanes[i];
    if (lane->stream && !lane->capture && tp_stream_device(lane->stream) == device) join(host, lane->known);
  }
  pthread_mutex_unlock(&tp__order_lock);
}

void tp__order_drop(tp__order_point_t *point) { free(point); }
