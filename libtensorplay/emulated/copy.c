/* Copies and fills: what is checked when they are queued, and what they do when they run. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE_BYTES_PER_NS 1024
#define HOST_BYTES_PER_NS 16

typedef struct copy {
  unsigned char *target;
  const unsigned char *source;
  size_t nbytes;
} copy_t;

typedef struct fill {
  unsigned char *target;
  int value;
  size_t nbytes;
} fill_t;

/* Device memory may be gone by the time a graph runs: where the bytes lie is looked up then. */
static unsigned char *reach(const void *address, size_t nbytes, const char *operation) {
  int device;
  unsigned char *host;
  if (emu_locate(address, nbytes, &device, &host) != EMU_INVALID) return host;
  emu_fault_note("%s: %zu bytes at %p lie in no live allocation of a device", operation, nbytes, address);
  return NULL;
}

static cudaError_t run_copy(int device, void *payload) {
  const copy_t *copy = payload;
  (void)device;
  unsigned char *target = reach(copy->target, copy->nbytes, "copy");
  const unsigned char *source = reach(copy->source, copy->nbytes, "copy");
  if (!target || !source) return cudaErrorIllegalAddress;
  memmove(target, source, copy->nbytes);
  return cudaSuccess;
}

static cudaError_t run_fill(int device, void *payload) {
  const fill_t *fill = payload;
  (void)device;
  unsigned char *target = reach(fill->target, fill->nbytes, "fill");
  if (!target) return cudaErrorIllegalAddress;
  memset(target, fill->value, fill->nbytes);
  return cudaSuccess;
}

/* Whether a direction, where one is given, fits the memory at both ends. */
static bool direction_fits(enum cudaMemcpyKind kind, bool from_device, bool to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !from_device && !to_device;
    case cudaMemcpyHostToDevice: return !from_device && to_device;
    case cudaMemcpyDeviceToHost: return from_device && !to_device;
    case cudaMemcpyDeviceToDevice: return from_device && to_device;
    default: return kind == cudaMemcpyDefault;
  }
}

/* Pageable host memory is read before the call returns, and written before it returns: only device and
 * pinned memory are touched when the piece runs. *out_wait tells whether the call must wait. In a capture all
 * memory is touched when the graph runs. */
static cudaError_t queue_copy(copy_t copy, enum cudaMemcpyKind kind, emu_stream_t *stream, bool *out_wait) {
  int device;
  unsigned char *to_host, *from_host;
  *out_wait = false;
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (copy.nbytes == 0) return emu_capture_check(stream);
  emu_place_t to = emu_locate(copy.target, copy.nbytes, &device, &to_host);
  emu_place_t from = emu_locate(copy.source, copy.nbytes, &device, &from_host);
  if (to == EMU_INVALID || from == EMU_INVALID || !copy.target || !copy.source) return cudaErrorInvalidValue;
  if (!direction_fits(kind, from == EMU_DEVICE, to == EMU_DEVICE)) return cudaErrorInvalidValue;

  bool snapshot = from == EMU_PAGEABLE && to != EMU_PAGEABLE && !stream->capture;
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeMemcpy, sizeof copy + (snapshot ? copy.nbytes : 0));
  if (!piece) return cudaErrorMemoryAllocation;
  if (snapshot) copy.source = memcpy(piece->payload + sizeof copy, copy.source, copy.nbytes);
  *(copy_t *)piece->payload = copy;
  bool on_device = from == EMU_DEVICE && to == EMU_DEVICE;
  piece->run = run_copy;
  piece->pageable = from == EMU_PAGEABLE || to == EMU_PAGEABLE;
  piece->cost_ns = EMU_PIECE_NS + copy.nbytes / (on_device ? DEVICE_BYTES_PER_NS : HOST_BYTES_PER_NS);
  piece->patience = emu_copy_patience();
  *out_wait = to == EMU_PAGEABLE && !stream->capture;
  return emu_enqueue(stream, piece);
}

static cudaError_t copy_async(copy_t copy, enum cudaMemcpyKind kind, cudaStream_t handle) {
  bool wait;
  emu_stream_t *stream = emu_stream_find(handle);
  cudaError_t error = queue_copy(copy, kind, stream, &wait);
  if (error || !wait) return error;
  emu_run_stream(stream);
  return emu_context_error(stream->device);
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t nbytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  EMU_RETURN(cudaMemcpyAsync, true, copy_async((copy_t){target, source, nbytes}, kind, stream));
}

/* On the legacy stream. Waits, except for a copy inside devices; no capture's mode forbids that. */
static cudaError_t copy_now(copy_t copy, enum cudaMemcpyKind kind) {
  bool wait;
  int device;
  unsigned char *host;
  emu_stream_t *stream = emu_stream_find(cudaStreamLegacy);
  bool on_device = emu_locate(copy.target, copy.nbytes, &device, &host) == EMU_DEVICE &&
                   emu_locate(copy.source, copy.nbytes, &device, &host) == EMU_DEVICE;
  cudaError_t error = queue_copy(copy, kind, stream, &wait);
  if (error || on_device) return error;
  emu_run_stream(stream);
  return emu_context_error(stream->device);
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t nbytes, enum cudaMemcpyKind kind) {
  EMU_RETURN(cudaMemcpy, true, copy_now((copy_t){target, source, nbytes}, kind));
}

static bool on(const void *address, size_t nbytes, int device) {
  int found;
  unsigned char *host;
  return emu_locate(address, nbytes, &found, &host) == EMU_DEVICE && found == device;
}

static cudaError_t copy_peer(copy_t copy, int target_device, int source_device, cudaStream_t stream) {
  int count = emu_device_count();
  if (target_device < 0 || target_device >= count || source_device < 0 || source_device >= count)
    return cudaErrorInvalidDevice;
  if (copy.nbytes == 0) return cudaSuccess;
  if (!on(copy.target, copy.nbytes, target_device) || !on(copy.source, copy.nbytes, source_device))
    return cudaErrorInvalidValue;
  return copy_async(copy, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *target, int target_device, const void *source, int source_device,
                                size_t nbytes, cudaStream_t stream) {
  EMU_RETURN(cudaMemcpyPeerAsync, true,
             copy_peer((copy_t){target, source, nbytes}, target_device, source_device, stream));
}

/* Device and pinned memory can be filled. */
static cudaError_t fill_async(void *target, int value, size_t nbytes, cudaStream_t handle) {
  int device;
  unsigned char *host;
  emu_stream_t *stream = emu_stream_find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (nbytes == 0) return emu_capture_check(stream);
  emu_place_t place = emu_locate(target, nbytes, &device, &host);
  if (place != EMU_DEVICE && place != EMU_PINNED) return cudaErrorInvalidValue;
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeMemset, sizeof(fill_t));
  if (!piece) return cudaErrorMemoryAllocation;
  *(fill_t *)piece->payload = (fill_t){target, value, nbytes};
  piece->run = run_fill;
  piece->cost_ns = EMU_PIECE_NS + nbytes / DEVICE_BYTES_PER_NS;
  return emu_enqueue(stream, piece);
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t nbytes, cudaStream_t stream) {
  EMU_RETURN(cudaMemsetAsync, true, fill_async(target, value, nbytes, stream));
}
