/* Pinned memory that graphs copy from and to. Each captured copy holds its block, from the capture on until its graph
 * is gone: the program may give the block back at any time, but a replay reads or writes it again. Whoever owns the
 * graph owns its hold and tells it of every launch; when it drops the hold, the blocks wait for the last launch on each
 * stream. */
#include <stdlib.h>

#include "../mark.h"
#include "pinned.h"

typedef struct copy {
  tp__pinned_block_t *block;
  struct copy *next;
} copy_t;

typedef struct launch {
  tp__mark_t passed; /* the last one on a stream */
  struct launch *next;
} launch_t;

struct tp__hold {
  uint64_t capture; /* the first one */
  copy_t *copies;
  launch_t *launches;
  tp__hold_t *next;
};

/* ---- in a capture, under the lock ---- */

static tp__hold_t **find(uint64_t capture) {
  tp__hold_t **link = &tp__pinned.holds;
  while (*link && (*link)->capture != capture) link = &(*link)->next;
  return link;
}

tp_status_t tp__hold_add(uint64_t capture, tp__pinned_block_t *block, const char *operation) {
  tp__hold_t **link = find(capture);
  copy_t *copy = malloc(sizeof *copy);
  if (copy && !*link && (*link = malloc(sizeof **link))) **link = (tp__hold_t){.capture = capture};
  if (!copy || !*link) {
    free(copy);
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note what a graph uses");
  }
  *copy = (copy_t){block, (*link)->copies};
  (*link)->copies = copy;
  block->holds++;
  return TP_OK;
}

/* ---- for whoever owns the graph ---- */

void tp__hold_take(uint64_t capture, tp__hold_t **hold) {
  pthread_mutex_lock(&tp__pinned.lock);
  tp__hold_t **link = find(capture), *taken = *link;
  if (taken) {
    *link = taken->next;
    if (*hold) {
      copy_t **end = &(*hold)->copies;
      while (*end) end = &(*end)->next;
      *end = taken->copies;
      free(taken);
    } else {
      *hold = taken;
    }
  }
  pthread_mutex_unlock(&tp__pinned.lock);
}

static launch_t *find_launch(tp__hold_t *hold, tp_stream_t *stream, const char *operation) {
  launch_t *launch = hold->launches;
  while (launch && launch->passed.stream != stream) launch = launch->next;
  if (launch) return launch;
  launch = malloc(sizeof *launch);
  if (!launch) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory to note a stream");
    return NULL;
  }
  if (tp__mark_take(stream, &launch->passed)) {
    free(launch);
    return NULL;
  }
  launch->next = hold->launches;
  return hold->launches = launch;
}

tp_status_t tp__hold_launched(tp__hold_t *hold, tp_stream_t *stream, const char *operation) {
  launch_t *launch = find_launch(hold, stream, operation);
  cudaError_t error = launch ? tp__mark_set(&launch->passed) : cudaSuccess;
  if (launch && !error) return TP_OK;
  tp_status_t status = launch ? tp__error_set_cuda(error, operation, "cudaEventRecord") : tp_error_status();
  (void)cudaStreamSynchronize(tp__stream_cuda(stream)); /* else nobody knew when the launch has run */
  return status;
}

void tp__hold_drop(tp__hold_t *hold) {
  if (!hold || tp__device_is_inherited()) return;
  pthread_mutex_lock(&tp__pinned.lock);
  hold->next = tp__pinned.dropped;
  tp__pinned.dropped = hold;
  tp__pinned_settle(false);
  pthread_mutex_unlock(&tp__pinned.lock);
}

/* ---- once it was dropped, under the lock ---- */

static bool has_run(tp__hold_t *hold, bool wait) {
  for (launch_t *launch; (launch = hold->launches);) {
    int32_t before;
    if (!tp__device_visit(tp_stream_device(launch->passed.stream), &before)) return false;
    cudaError_t error = tp__mark_ask(&launch->passed, wait);
    tp__device_leave(before);
    if (error) return false;
    hold->launches = launch->next;
    tp__mark_give(&launch->passed);
    free(launch);
  }
  return true;
}

static void finish(tp__hold_t *hold) {
  for (copy_t *copy = hold->copies, *next; copy; copy = next) {
    next = copy->next;
    copy->block->holds--;
    tp__pinned_shelve_unused(copy->block);
    free(copy);
  }
  free(hold);
}

void tp__hold_settle(bool wait) {
  for (tp__hold_t **link = &tp__pinned.dropped; *link;) {
    tp__hold_t *hold = *link;
    if (!has_run(hold, wait)) {
      link = &hold->next;
      continue;
    }
    *link = hold->next;
    finish(hold);
  }
}
