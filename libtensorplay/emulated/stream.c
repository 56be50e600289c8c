/* Streams: their handles, and the calls that make, order, wait for and ask them. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)
#define KEPT_HANDLES 64 /* destroyed streams that are not yet made anew, so that their handles stay invalid */

static emu_stream_t legacy[EMU_MAX_DEVICES];
static emu_stream_t **streams; /* those that live or hold pieces; begins with the legacy ones */
static size_t stream_count;
static size_t stream_room;
static emu_stream_t *oldest_free; /* in the order of their end */
static emu_stream_t *newest_free;
static size_t free_count;

/* ---- handles ---- */

static bool make_room(void) {
  if (stream_count < stream_room) return true;
  size_t room = stream_room ? 2 * stream_room : 64;
  emu_stream_t **grown = realloc(streams, room * sizeof *streams);
  if (!grown) return false;
  streams = grown;
  stream_room = room;
  return true;
}

static bool start(void) {
  if (streams) return true;
  if (!make_room()) return false;
  for (int device = 0; device < EMU_MAX_DEVICES; device++) {
    legacy[device].device = device;
    legacy[device].live = true;
    streams[stream_count++] = &legacy[device];
  }
  emu_random_seed(emu_settings()->seed);
  return true;
}

emu_stream_t *emu_stream_legacy(int device) { return &legacy[device]; }

bool emu_stream_blocking(const emu_stream_t *stream) { return !(stream->flags & cudaStreamNonBlocking); }

emu_stream_t *emu_stream_find(cudaStream_t handle) {
  if (!start()) return NULL;
  if (!handle || handle == cudaStreamLegacy) return &legacy[emu_device_current()];
  for (size_t i = EMU_MAX_DEVICES; i < stream_count; i++)
    if ((cudaStream_t)streams[i] == handle) return streams[i]->live ? streams[i] : NULL;
  return NULL;
}

size_t emu_streams(emu_stream_t *const **out) {
  if (!start()) return 0;
  *out = streams;
  return stream_count;
}

static emu_stream_t *take(void) {
  if (!start() || !make_room()) return NULL;
  emu_stream_t *stream = oldest_free;
  if (free_count <= KEPT_HANDLES) return calloc(1, sizeof *stream);
  oldest_free = stream->next_free;
  free_count--;
  memset(stream, 0, sizeof *stream);
  return stream;
}

void emu_stream_drained(emu_stream_t *stream) {
  size_t i = 0;
  while (streams[i] != stream) i++;
  memmove(&streams[i], &streams[i + 1], (--stream_count - i) * sizeof *streams);
  stream->next_free = NULL;
  if (free_count++)
    newest_free->next_free = stream;
  else
    oldest_free = stream;
  newest_free = stream;
}

/* ---- making and destroying ---- */

static cudaError_t create(cudaStream_t *out, unsigned int flags, int priority) {
  if (!out || (flags != cudaStreamDefault && flags != cudaStreamNonBlocking)) return cudaErrorInvalidValue;
  emu_stream_t *stream = take();
  if (!stream) return cudaErrorMemoryAllocation;
  stream->device = emu_device_current();
  stream->flags = flags;
  stream->live = true;
  stream->priority = priority > LEAST_PRIORITY      ? LEAST_PRIORITY
                     : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY
                                                    : priority;
  streams[stream_count++] = stream;
  *out = (cudaStream_t)stream;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
  EMU_RETURN(cudaStreamCreateWithFlags, true, create(out, flags, LEAST_PRIORITY));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority) {
  EMU_RETURN(cudaStreamCreateWithPriority, true, create(out, flags, priority));
}

static cudaError_t priority_range(int *least, int *greatest) {
  if (least) *least = LEAST_PRIORITY;
  if (greatest) *greatest = GREATEST_PRIORITY;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  EMU_RETURN(cudaDeviceGetStreamPriorityRange, true, priority_range(least, greatest));
}

static cudaError_t destroy(cudaStream_t handle) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream || stream == &legacy[stream->device]) return cudaErrorInvalidResourceHandle;
  if (stream->capture) emu_capture_leave(stream);
  stream->live = false;
  stream->held = false;
  if (!stream->first) emu_stream_drained(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) { EMU_RETURN(cudaStreamDestroy, true, destroy(handle)); }

/* ---- waiting and asking ---- */

static cudaError_t synchronize(cudaStream_t handle) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  cudaError_t error = emu_capture_check_wait(stream);
  if (error) return error;
  emu_run_stream(stream);
  return emu_context_error(stream->device);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  EMU_RETURN(cudaStreamSynchronize, true, synchronize(handle));
}

/* The legacy stream is done when the blocking streams are, which it waits for. */
static bool idle(const emu_stream_t *stream) {
  if (stream->first) return false;
  if (stream != &legacy[stream->device]) return true;
  for (size_t i = 0; i < stream_count; i++)
    if (streams[i]->device == stream->device && streams[i]->first && emu_stream_blocking(streams[i]))
      return false;
  return true;
}

static cudaError_t query(cudaStream_t handle) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  cudaError_t error = emu_capture_check_wait(stream);
  if (error) return error;
  bool done = idle(stream);
  if (done) emu_host_saw(stream->clock_ns);
  emu_query_step();
  if (emu_context_error(stream->device)) return emu_context_error(stream->device);
  return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) { EMU_RETURN(cudaStreamQuery, true, query(handle)); }

static cudaError_t get_priority(cudaStream_t handle, int *out) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!out) return cudaErrorInvalidValue;
  *out = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *out) {
  EMU_RETURN(cudaStreamGetPriority, true, get_priority(handle, out));
}

static cudaError_t get_flags(cudaStream_t handle, unsigned int *out) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!out) return cudaErrorInvalidValue;
  *out = stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *out) {
  EMU_RETURN(cudaStreamGetFlags, true, get_flags(handle, out));
}

/* ---- host functions ---- */

typedef struct host_function {
  cudaHostFn_t function;
  void *argument;
} host_function_t;

static cudaError_t run_host_function(int device, void *payload) {
  const host_function_t *call = payload;
  (void)device;
  call->function(call->argument);
  return cudaSuccess;
}

static cudaError_t launch_host_function(cudaStream_t handle, cudaHostFn_t function, void *argument) {
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!function) return cudaErrorInvalidValue;
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeHost, sizeof(host_function_t));
  if (!piece) return cudaErrorMemoryAllocation;
  *(host_function_t *)piece->payload = (host_function_t){function, argument};
  piece->run = run_host_function;
  piece->unlocked = true;
  piece->cost_ns = EMU_PIECE_NS;
  return emu_enqueue(stream, piece);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument) {
  EMU_RETURN(cudaLaunchHostFunc, true, launch_host_function(handle, function, argument));
}
