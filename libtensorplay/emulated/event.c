/* Events: a handle, and the mark of its last record. */
#include "emulated.h"

#include <stdlib.h>

#define LIVE 0x4556454E54u
#define KEPT_HANDLES 256 /* destroyed events that are not yet made anew, so that their handles stay invalid */

typedef struct event {
  uint64_t live; /* LIVE, or 0 once destroyed */
  struct event *next_free;
  int device;
  unsigned int flags;
  emu_shared_t *shared; /* or NULL: other processes may know it */
  emu_mark_t *mark; /* NULL before the first record, and when that was captured */
  emu_capture_t *capture; /* in which it was recorded last, or NULL */
  emu_nodes_t tail;       /* the stream's, then */
} event_t;

static event_t *oldest_free; /* in the order of their end */
static event_t *newest_free;
static size_t free_count;

/* Destroyed events keep their memory, so that a stale handle is recognised. */
static event_t *find(cudaEvent_t handle) {
  event_t *event = (event_t *)handle;
  return event && event->live == LIVE ? event : NULL;
}

static event_t *take(void) {
  event_t *event = oldest_free;
  if (free_count <= KEPT_HANDLES) return calloc(1, sizeof *event);
  oldest_free = event->next_free;
  free_count--;
  return event;
}

/* Owns `shared`. */
static cudaError_t make(cudaEvent_t *out, unsigned int flags, emu_shared_t *shared) {
  event_t *event = take();
  if (!event) {
    emu_shared_release(shared);
    return cudaErrorMemoryAllocation;
  }
  *event = (event_t){.live = LIVE, .device = emu_device_current(), .flags = flags, .shared = shared};
  *out = (cudaEvent_t)event;
  return cudaSuccess;
}

static cudaError_t create(cudaEvent_t *out, unsigned int flags) {
  bool shared = flags & cudaEventInterprocess;
  if (!out || (flags & ~(unsigned int)(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)) ||
      (shared && !(flags & cudaEventDisableTiming)))
    return cudaErrorInvalidValue;
  emu_shared_t *counts = shared ? emu_shared_new() : NULL;
  return shared && !counts ? cudaErrorMapBufferObjectFailed : make(out, flags, counts);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
  EMU_RETURN(cudaEventCreateWithFlags, true, create(out, flags));
}

static cudaError_t export(cudaIpcEventHandle_t *out, cudaEvent_t handle) {
  event_t *event = find(handle);
  if (!out) return cudaErrorInvalidValue;
  bool exported = event && event->shared && emu_shared_handle(event->shared, out);
  return exported ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event) {
  EMU_RETURN(cudaIpcGetEventHandle, true, export(out, event));
}

static cudaError_t import(cudaEvent_t *out, const cudaIpcEventHandle_t *handle) {
  emu_shared_t *shared = NULL;
  cudaError_t error = out ? emu_shared_open(handle, &shared) : cudaErrorInvalidValue;
  return error ? error : make(out, cudaEventDisableTiming, shared);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle) {
  EMU_RETURN(cudaIpcOpenEventHandle, true, import(out, &handle));
}

/* What it stood for. */
static void forget(event_t *event) {
  emu_mark_release(event->mark);
  emu_capture_release(event->capture);
  emu_nodes_clear(&event->tail);
  event->mark = NULL;
  event->capture = NULL;
}

static cudaError_t destroy(cudaEvent_t handle) {
  event_t *event = find(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  forget(event);
  emu_shared_release(event->shared);
  *event = (event_t){0};
  if (free_count++)
    newest_free->next_free = event;
  else
    oldest_free = event;
  newest_free = event;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) { EMU_RETURN(cudaEventDestroy, true, destroy(handle)); }

/* Where the stream's capture is now. */
static cudaError_t record_capture(event_t *event, const emu_stream_t *stream) {
  forget(event);
  if (!emu_nodes_add(&event->tail, stream->tail.items, stream->tail.count)) return cudaErrorMemoryAllocation;
  event->capture = emu_capture_retain(stream->capture);
  return cudaSuccess;
}

/* From now on the event stands for the piece; NULL when the host has no memory. */
static emu_piece_t *record_piece(event_t *event) {
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeEventRecord, 0);
  emu_mark_t *mark = calloc(1, sizeof *mark);
  if (!piece || !mark) {
    emu_piece_free(piece);
    free(mark);
    return NULL;
  }
  mark->references = 1;
  if (event->shared) {
    mark->shared = emu_shared_retain(event->shared);
    mark->number = emu_shared_record(event->shared);
  }
  piece->completes = mark;
  forget(event);
  event->mark = emu_mark_retain(mark);
  return piece;
}

/* What the event stands for now. Another process may have recorded it since. NULL: nothing, or no memory for it. */
static emu_mark_t *last_mark(event_t *event) {
  uint64_t number = event->shared && !event->capture ? emu_shared_recorded(event->shared) : 0;
  if (number == 0 || (event->mark && event->mark->number == number)) return event->mark;
  emu_mark_t *mark = calloc(1, sizeof *mark);
  if (!mark) return NULL;
  *mark = (emu_mark_t){.references = 1, .shared = emu_shared_retain(event->shared), .number = number};
  emu_mark_release(event->mark);
  return event->mark = mark;
}

static emu_piece_t *wait_piece(event_t *event) {
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeWaitEvent, 0);
  emu_mark_t *mark = last_mark(event);
  if (piece && mark && !emu_mark_done(mark)) piece->waits_for = emu_mark_retain(mark);
  return piece;
}

/* An event that has been destroyed is neither recorded nor waited for. */
emu_piece_t *emu_event_piece(const emu_piece_t *piece) {
  event_t *event = find(*(const cudaEvent_t *)piece->payload);
  if (!event) return emu_piece_new(cudaGraphNodeTypeEmpty, 0);
  return piece->type == cudaGraphNodeTypeEventRecord ? record_piece(event) : wait_piece(event);
}

/* A node that records the event, or waits for it, each time its graph runs. */
static cudaError_t capture_node(enum cudaGraphNodeType type, cudaEvent_t handle, emu_stream_t *stream) {
  if (!stream->capture) return cudaErrorIllegalState;
  emu_piece_t *piece = emu_piece_new(type, sizeof handle);
  if (!piece) return cudaErrorMemoryAllocation;
  *(cudaEvent_t *)piece->payload = handle;
  return emu_enqueue(stream, piece);
}

static cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle, unsigned int flags) {
  event_t *event = find(handle);
  emu_stream_t *stream = emu_stream_find(stream_handle);
  if (!event || !stream || event->device != stream->device) return cudaErrorInvalidResourceHandle;
  if (flags & ~(unsigned int)cudaEventRecordExternal) return cudaErrorInvalidValue;
  cudaError_t error = emu_capture_check(stream);
  if (error) return error;
  if (flags) return capture_node(cudaGraphNodeTypeEventRecord, handle, stream);
  if (stream->capture) return record_capture(event, stream);
  emu_piece_t *piece = record_piece(event);
  if (!piece) return cudaErrorMemoryAllocation;
  emu_push(stream, piece);
  /* Another process that waits cannot make this one run what it waits for. */
  if (event->shared) emu_run_ahead(stream, event->mark->order);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  EMU_RETURN(cudaEventRecord, true, record(event, stream, cudaEventRecordDefault));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  EMU_RETURN(cudaEventRecordWithFlags, true, record(event, stream, flags));
}

/* What the event stands for now is waited for; recording it again later changes nothing. */
static cudaError_t wait(cudaStream_t stream_handle, cudaEvent_t handle, unsigned int flags) {
  event_t *event = find(handle);
  emu_stream_t *stream = emu_stream_find(stream_handle);
  if (!event || !stream) return cudaErrorInvalidResourceHandle;
  if (flags & ~(unsigned int)cudaEventWaitExternal) return cudaErrorInvalidValue;
  cudaError_t error = emu_capture_check(stream);
  if (error) return error;
  if (flags) return capture_node(cudaGraphNodeTypeWaitEvent, handle, stream);
  if (event->capture) return emu_capture_join(stream, event->capture, &event->tail);
  if (!last_mark(event)) return cudaSuccess;
  if (stream->capture) { /* the wait would lead out of the capture */
    emu_capture_spoil(stream->capture);
    return cudaErrorStreamCaptureIsolation;
  }
  emu_piece_t *piece = wait_piece(event);
  if (!piece) return cudaErrorMemoryAllocation;
  emu_push(stream, piece);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  EMU_RETURN(cudaStreamWaitEvent, true, wait(stream, event, flags));
}

/* Why an event may not be waited for or asked now. */
static cudaError_t check(const event_t *event) {
  return event->capture ? emu_capture_check_event(event->capture) : emu_capture_check_unsafe();
}

static cudaError_t query(cudaEvent_t handle) {
  event_t *event = find(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  cudaError_t error = check(event);
  if (error) return error;
  emu_mark_t *mark = last_mark(event);
  bool done = !mark || emu_mark_done(mark);
  if (done && mark) emu_host_saw(mark->time_ns);
  emu_query_step();
  if (emu_context_error(event->device)) return emu_context_error(event->device);
  return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventQuery(cudaEvent_t event) { EMU_RETURN(cudaEventQuery, true, query(event)); }

static cudaError_t synchronize(cudaEvent_t handle) {
  event_t *event = find(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  cudaError_t error = check(event);
  if (error) return error;
  int device = event->device; /* another thread may destroy the event meanwhile */
  if (last_mark(event)) {
    emu_mark_t *mark = emu_mark_retain(event->mark);
    emu_mark_wait(mark);
    emu_host_saw(mark->time_ns);
    emu_mark_release(mark);
  }
  return emu_context_error(device);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  EMU_RETURN(cudaEventSynchronize, true, synchronize(event));
}

static cudaError_t elapsed(float *out_ms, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  event_t *start = find(start_handle);
  event_t *end = find(end_handle);
  if (!out_ms) return cudaErrorInvalidValue;
  if ((start && start->capture) || (end && end->capture)) return cudaErrorCapturedEvent;
  if (!start || !end || !start->mark || !end->mark || start->device != end->device ||
      ((start->flags | end->flags) & cudaEventDisableTiming))
    return cudaErrorInvalidResourceHandle;
  if (!start->mark->done || !end->mark->done) return cudaErrorNotReady;
  int64_t ns = (int64_t)(end->mark->time_ns - start->mark->time_ns);
  *out_ms = (float)((double)ns / 1e6);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *out_ms, cudaEvent_t start, cudaEvent_t end) {
  EMU_RETURN(cudaEventElapsedTime, true, elapsed(out_ms, start, end));
}
