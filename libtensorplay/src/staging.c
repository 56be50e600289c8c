/* Copies between a device and the host's memory. CUDA reaches pageable memory through a small buffer of its own, at a
 * fraction of what host and bus can do. So large copies go through two pieces of pinned memory per device instead:
 * while one is on its way, the host fills or empties the other. Made at first use and kept, as events are. Whoever
 * finds the pieces in use by another thread or stream takes CUDA's way rather than wait. */
#include <pthread.h>
#include <string.h>

#include "mark.h"

enum { PIECES = 2 };
/* Small enough to stay in the processor's cache until the device has read it. */
#define PIECE_NBYTES (4 * TP_MiB)
/* Below, CUDA's way is as fast. */
#define LEAST_NBYTES TP_MiB

typedef struct piece {
  tp__mark_t passed; /* behind the last copy */
  bool in_flight;    /* that copy may not have run */
} piece_t;

typedef struct staging {
  pthread_mutex_t lock; /* guards all that follows, and the pinned memory */
  char *memory;         /* of all pieces; NULL before the first use */
  tp_stream_t *stream;  /* of the last copies */
  piece_t pieces[PIECES];
} staging_t;

static staging_t all_staging[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* ---- under the lock, in a relaxed capture mode ---- */

/* Makes what is missing. *out_made is false where the host has no memory to pin. */
static tp_status_t make(staging_t *self, tp_stream_t *stream, bool *out_made, const char *operation) {
  for (int32_t i = 0; i < PIECES; ++i) {
    if (!self->pieces[i].passed.event) TP_TRY(tp__mark_take(stream, &self->pieces[i].passed));
  }
  if (!self->memory) {
    void *memory = NULL;
    cudaError_t error = cudaHostAlloc(&memory, PIECES * PIECE_NBYTES, cudaHostAllocDefault);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      *out_made = false;
      return TP_OK;
    }
    if (error) return tp__error_set_cuda(error, operation, "cudaHostAlloc");
    self->memory = memory;
  }
  *out_made = true;
  return TP_OK;
}

/* Whether nothing but the stream's own order may have to be waited for: *out_free. */
static tp_status_t check_free(staging_t *self, const tp_stream_t *stream, bool *out_free, const char *operation) {
  *out_free = true;
  for (int32_t i = 0; i < PIECES && self->stream != stream; ++i) {
    piece_t *piece = &self->pieces[i];
    if (!piece->in_flight) continue;
    int32_t done = tp__error_or_done(tp__mark_ask(&piece->passed, false), operation, "cudaEventQuery");
    if (done < 0) return done;
    piece->in_flight = !done;
    *out_free = *out_free && done;
  }
  return TP_OK;
}

static tp_status_t wait(piece_t *piece, const char *operation) {
  if (!piece->in_flight) return TP_OK;
  int32_t done = tp__error_or_done(tp__mark_ask(&piece->passed, true), operation, "cudaEventSynchronize");
  if (done < 0) return done;
  piece->in_flight = !done;
  return done ? TP_OK : tp__error_set(TP_STATE, operation, "a capture of the stream has begun during the copy");
}

static tp_status_t queue(staging_t *self, piece_t *piece, void *target, const void *source, size_t nbytes,
                         enum cudaMemcpyKind kind, const char *operation) {
  cudaStream_t stream = tp__stream_cuda(self->stream);
  TP_TRY_CUDA(cudaMemcpyAsync(target, source, nbytes, kind, stream), operation);
  piece->passed.stream = self->stream;
  cudaError_t error = tp__mark_set(&piece->passed);
  piece->in_flight = !error;
  if (!error) return TP_OK;
  tp_status_t status = tp__error_set_cuda(error, operation, "cudaEventRecord");
  if (cudaStreamSynchronize(stream)) self->memory = NULL; /* when the copy ends is not known: left to it */
  return status;
}

static tp_status_t send(staging_t *self, char *target, const char *source, size_t nbytes, const char *operation) {
  int32_t i = 0;
  for (size_t sent = 0; sent < nbytes; sent += PIECE_NBYTES, i = (i + 1) % PIECES) {
    size_t part = smaller(PIECE_NBYTES, nbytes - sent);
    char *memory = self->memory + (size_t)i * PIECE_NBYTES;
    TP_TRY(wait(&self->pieces[i], operation));
    memcpy(memory, source + sent, part);
    TP_TRY(queue(self, &self->pieces[i], target + sent, memory, part, cudaMemcpyHostToDevice, operation));
  }
  return TP_OK;
}

static tp_status_t fetch(staging_t *self, char *target, const char *source, size_t nbytes, const char *operation) {
  int32_t i = 0;
  for (size_t queued = 0, fetched = 0; fetched < nbytes; i = (i + 1) % PIECES) {
    /* Both pieces are on their way before the first is waited for; their earlier uses lie before in the stream. */
    for (; queued < smaller(nbytes, fetched + PIECES * PIECE_NBYTES); queued += PIECE_NBYTES) {
      int32_t next = (int32_t)(queued / PIECE_NBYTES % PIECES);
      TP_TRY(queue(self, &self->pieces[next], self->memory + (size_t)next * PIECE_NBYTES, source + queued,
                   smaller(PIECE_NBYTES, nbytes - queued), cudaMemcpyDeviceToHost, operation));
    }
    size_t part = smaller(PIECE_NBYTES, nbytes - fetched);
    TP_TRY(wait(&self->pieces[i], operation));
    memcpy(target + fetched, self->memory + (size_t)i * PIECE_NBYTES, part);
    fetched += part;
  }
  return TP_OK;
}

/* ---- for others ---- */

typedef tp_status_t (*passage_t)(staging_t *, char *, const char *, size_t, const char *);

/* *out_served is false, and nothing has been copied, when the pieces are not to be had. */
static tp_status_t pass(passage_t passage, void *target, const void *source, size_t nbytes, tp_stream_t *stream,
                        bool *out_served, const char *operation) {
  staging_t *self = &all_staging[tp_stream_device(stream)];
  *out_served = false;
  if (pthread_mutex_trylock(&self->lock)) return TP_OK;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  bool free = false;
  tp_status_t status = make(self, stream, &free, operation);
  if (!status && free) status = check_free(self, stream, &free, operation);
  if (!status && free) {
    self->stream = stream;
    *out_served = true;
    status = passage(self, target, source, nbytes, operation);
  }
  tp__capture_restore(mode);
  pthread_mutex_unlock(&self->lock);
  return status;
}

static tp_status_t is_pageable(const void *memory, bool *out, const char *operation) {
  struct cudaPointerAttributes attributes;
  TP_TRY_CUDA(cudaPointerGetAttributes(&attributes, memory), operation);
  *out = attributes.type == cudaMemoryTypeUnregistered;
  return TP_OK;
}

tp_status_t tp__staging_send(void *target, const void *source, size_t nbytes, tp_stream_t *stream,
                             const char *operation) {
  bool pageable = false, served = false;
  TP_TRY(tp__wait_note(operation));
  TP_TRY(tp__watch(stream, 1, &(tp__touch_t){target, true}, operation));
  TP_TRY(is_pageable(source, &pageable, operation));
  if (pageable && nbytes >= LEAST_NBYTES)
    TP_TRY(pass(send, target, source, nbytes, stream, &served, operation));
  if (served) return TP_OK;
  TP_TRY_CUDA(cudaMemcpyAsync(target, source, nbytes, cudaMemcpyHostToDevice, tp__stream_cuda(stream)), operation);
  /* CUDA has read pageable memory when the call returns, pinned memory only when the copy has run. */
  return pageable ? TP_OK : tp__stream_finish(stream, operation);
}

tp_status_t tp__staging_fetch(void *target, const void *source, size_t nbytes, tp_stream_t *stream,
                              const char *operation) {
  bool pageable = false, served = false;
  TP_TRY(tp__wait_note(operation));
  TP_TRY(tp__watch(stream, 1, &(tp__touch_t){source, false}, operation));
  if (nbytes >= LEAST_NBYTES) TP_TRY(is_pageable(target, &pageable, operation));
  if (pageable) TP_TRY(pass(fetch, target, source, nbytes, stream, &served, operation));
  if (!served)
    TP_TRY_CUDA(cudaMemcpyAsync(target, source, nbytes, cudaMemcpyDeviceToHost, tp__stream_cuda(stream)), operation);
  return tp__stream_finish(stream, operation);
}
