/* Allocation of device memory, within its capacity, and of pinned host memory. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

#define UNIT ((size_t)512) /* allocations are counted in these */

static struct {
  bool limited; /* set by the control header; otherwise the environment's value holds */
  size_t capacity;
  size_t used;
} memories[EMU_MAX_DEVICES];

size_t emu_capacity(int device) {
  return memories[device].limited ? memories[device].capacity : emu_settings()->memory;
}

size_t emu_used(int device) { return memories[device].used; }

void emu_capacity_set(int device, size_t nbytes) {
  memories[device].limited = nbytes > 0;
  memories[device].capacity = nbytes;
}

static size_t counted(size_t nbytes) { return (nbytes + UNIT - 1) / UNIT * UNIT; }

bool emu_memory_take(int device, size_t nbytes) {
  size_t capacity = emu_capacity(device), used = memories[device].used;
  if (nbytes > capacity || used > capacity || counted(nbytes) > capacity - used) return false;
  memories[device].used += counted(nbytes);
  return true;
}

void emu_memory_give(int device, size_t nbytes) { memories[device].used -= counted(nbytes); }

static cudaError_t allocate(void **out, size_t nbytes) {
  int device = emu_device_current();
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  cudaError_t error = emu_capture_check_unsafe();
  if (error || nbytes == 0) return error;
  if (!emu_memory_take(device, nbytes)) return cudaErrorMemoryAllocation;
  uintptr_t begin = emu_range_make(device, nbytes);
  if (!begin) emu_memory_give(device, nbytes);
  *out = (void *)begin;
  return begin ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaMalloc(void **out, size_t nbytes) { EMU_RETURN(cudaMalloc, true, allocate(out, nbytes)); }

/* Waits for the device's work, as CUDA does. */
static cudaError_t release(void *address) {
  emu_place_t place;
  cudaError_t error = emu_capture_check_unsafe();
  if (error || !address) return error;
  const emu_range_t *range = emu_range_find((uintptr_t)address, false, &place);
  if (place != EMU_DEVICE || range->begin != (uintptr_t)address || range->mapping) return cudaErrorInvalidValue;
  int device = range->device;
  emu_run_device(device);
  if (emu_context_error(device)) return emu_context_error(device);
  emu_memory_give(device, emu_range_drop((uintptr_t)address));
  return cudaSuccess;
}

cudaError_t cudaFree(void *address) { EMU_RETURN(cudaFree, true, release(address)); }

static cudaError_t allocate_pinned(void **out, size_t nbytes, unsigned int flags) {
  const unsigned int known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (!out || (flags & ~known)) return cudaErrorInvalidValue;
  *out = NULL;
  cudaError_t error = emu_capture_check_unsafe();
  if (error || nbytes == 0) return error;
  void *memory;
  if (posix_memalign(&memory, UNIT, nbytes)) return cudaErrorMemoryAllocation;
  if (!emu_pinned_add((uintptr_t)memory, nbytes, emu_device_current())) {
    free(memory);
    return cudaErrorMemoryAllocation;
  }
  memset(memory, EMU_POISON, nbytes);
  *out = memory;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t nbytes, unsigned int flags) {
  EMU_RETURN(cudaHostAlloc, true, allocate_pinned(out, nbytes, flags));
}

/* Work of any device may still use it. */
static cudaError_t release_pinned(void *address) {
  cudaError_t error = emu_capture_check_unsafe();
  if (error || !address) return error;
  emu_run_device(-1);
  if (!emu_pinned_remove((uintptr_t)address)) return cudaErrorInvalidValue;
  free(address);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *address) { EMU_RETURN(cudaFreeHost, true, release_pinned(address)); }

static cudaError_t device_pointer(void **out, void *address, unsigned int flags) {
  emu_place_t place;
  if (!out || flags || (emu_range_find((uintptr_t)address, false, &place), place != EMU_PINNED))
    return cudaErrorInvalidValue;
  *out = address;
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *address, unsigned int flags) {
  EMU_RETURN(cudaHostGetDevicePointer, true, device_pointer(out, address, flags));
}

static cudaError_t get_info(size_t *out_free, size_t *out_total) {
  int device = emu_device_current();
  if (!out_free || !out_total) return cudaErrorInvalidValue;
  *out_total = emu_capacity(device);
  *out_free = *out_total > memories[device].used ? *out_total - memories[device].used : 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total) {
  EMU_RETURN(cudaMemGetInfo, true, get_info(out_free, out_total));
}
