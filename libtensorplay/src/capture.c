/* Captures underway. Bodies of conditional nodes are captures of their own to CUDA, and to the program a part of the
 * outermost one. A capture that another library has begun is none of ours. */
#include "capture.h"

#include <pthread.h>

_Atomic int32_t tp__captures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; the pools' lock is taken inside of it */
static tp__capture_t *captures;

void tp__capture_add(tp__capture_t *capture) {
  pthread_mutex_lock(&lock);
  capture->next = captures;
  captures = capture;
  atomic_fetch_add_explicit(&tp__captures, 1, memory_order_release);
  pthread_mutex_unlock(&lock);
}

bool tp__capture_remove(tp__capture_t *capture) {
  pthread_mutex_lock(&lock);
  tp__capture_t **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  bool last = atomic_fetch_sub_explicit(&tp__captures, 1, memory_order_release) == 1;
  pthread_mutex_unlock(&lock);
  return last;
}

uint64_t tp__capture_id(tp__capture_t *capture) {
  uint64_t id = capture->id;
  if (!id) capture->id = id = tp__stream_capture(capture->stream);
  return id;
}

/* The capture of ours with CUDA's number, or NULL. Under the lock. */
static tp__capture_t *find(uint64_t id) {
  tp__capture_t *capture = captures;
  while (capture && tp__capture_id(capture) != id) capture = capture->next;
  return capture;
}

bool tp__capture_is_ours(uint64_t id) {
  pthread_mutex_lock(&lock);
  bool ours = find(id);
  pthread_mutex_unlock(&lock);
  return ours;
}

void tp__capture_set_draws(tp__capture_t *capture, tp__draws_t *draws) {
  pthread_mutex_lock(&lock);
  capture->draws = draws;
  pthread_mutex_unlock(&lock);
}

tp__draws_t *tp__capture_draws(const tp_stream_t *stream) {
  uint64_t id = tp__captures_underway() ? tp__stream_capture(stream) : 0;
  if (!id) return NULL;
  pthread_mutex_lock(&lock);
  const tp__capture_t *capture = find(id);
  tp__draws_t *draws = capture ? capture->draws : NULL;
  pthread_mutex_unlock(&lock);
  return draws;
}

void tp__capture_each(void (*visit)(tp__capture_t *capture, void *context), void *context) {
  pthread_mutex_lock(&lock);
  for (tp__capture_t *capture = captures; capture; capture = capture->next) visit(capture, context);
  pthread_mutex_unlock(&lock);
}
