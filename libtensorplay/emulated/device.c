/* Devices, and what each call of the runtime does on entry and on return. */
#include "emulated.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MULTIPROCESSORS 4 /* few, so that launches have few blocks; each costs the host a call */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t host_function_ended = PTHREAD_COND_INITIALIZER;

static struct {
  bool started;
  cudaError_t error; /* sticky: the context is lost */
  bool peer[EMU_MAX_DEVICES];
} devices[EMU_MAX_DEVICES];

static struct {
  uint64_t count[EMU_MAX_DEVICES];
  uint64_t fail_in; /* 0: no failure is set */
  cudaError_t failure;
} calls[EMU_CALL_COUNT];

static bool forked; /* this process is the child of one that had started a device */
static _Thread_local int current;
static _Thread_local bool in_host_function;
static _Thread_local cudaError_t last_error;

/* ---- the lock, and forks ---- */

void emu_lock(void) { pthread_mutex_lock(&lock); }
void emu_unlock(void) { pthread_mutex_unlock(&lock); }
void emu_wait_for_others(void) { pthread_cond_wait(&host_function_ended, &lock); }
void emu_wake_others(void) { pthread_cond_broadcast(&host_function_ended); }
void emu_in_host_function(bool inside) { in_host_function = inside; }

/* As with CUDA, a device that is in use cannot be used in a forked child. The fork takes the lock, so
 * that the child finds it free and the queues whole. */
static void after_fork_in_child(void) {
  for (int device = 0; device < EMU_MAX_DEVICES; device++) forked |= devices[device].started;
  emu_unlock();
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(emu_lock, emu_unlock, after_fork_in_child);
}

/* ---- entry and return of each call ---- */

static cudaError_t injected(emu_call_t call) {
  if (calls[call].fail_in == 0 || --calls[call].fail_in > 0) return cudaSuccess;
  return calls[call].failure;
}

cudaError_t emu_begin(emu_call_t call, bool needs_context) {
  emu_lock();
  if (in_host_function) return cudaErrorNotPermitted;
  if (emu_settings()->problem[0] || forked) return cudaErrorInitializationError;
  calls[call].count[current]++;
  cudaError_t error = injected(call);
  if (error || !needs_context) return error;
  if (emu_device_count() == 0) return cudaErrorNoDevice;
  devices[current].started = true;
  return devices[current].error;
}

cudaError_t emu_end(cudaError_t error) {
  emu_unlock();
  if (error) last_error = error;
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  emu_lock();
  cudaError_t sticky = devices[current].error;
  emu_unlock();
  return sticky ? sticky : last_error;
}

cudaError_t cudaGetLastError(void) {
  cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t emu_context_error(int device) { return devices[device].error; }

void emu_context_fail(int device, cudaError_t error) {
  if (!devices[device].error) devices[device].error = error;
}

void emu_contexts_clear(void) {
  for (int device = 0; device < EMU_MAX_DEVICES; device++) devices[device].error = cudaSuccess;
}

uint64_t emu_calls(emu_call_t call, int device) {
  uint64_t sum = 0;
  for (int i = 0; i < EMU_MAX_DEVICES; i++)
    if (device < 0 || device == i) sum += calls[call].count[i];
  return sum;
}

void emu_calls_clear(void) {
  for (int call = 0; call < EMU_CALL_COUNT; call++) memset(calls[call].count, 0, sizeof calls[call].count);
}

void emu_fail(emu_call_t call, uint64_t nth, cudaError_t error) {
  calls[call].fail_in = nth;
  calls[call].failure = error;
}

/* ---- devices ---- */

int emu_device_count(void) { return emu_settings()->devices; }
int emu_device_current(void) { return current; }

static bool exists(int device) { return device >= 0 && device < emu_device_count(); }

static cudaError_t give(int *out, int value) {
  if (!out) return cudaErrorInvalidValue;
  *out = value;
  return cudaSuccess;
}

/* As new as the headers. */
cudaError_t cudaDriverGetVersion(int *version) {
  EMU_RETURN(cudaDriverGetVersion, false, give(version, CUDART_VERSION));
}

static cudaError_t count(int *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = emu_device_count();
  return *out ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceCount(int *out) { EMU_RETURN(cudaGetDeviceCount, false, count(out)); }

cudaError_t cudaGetDevice(int *device) { EMU_RETURN(cudaGetDevice, false, give(device, current)); }

/* Makes the context, as CUDA 12 and later do. */
static cudaError_t set(int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  current = device;
  devices[device].started = true;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { EMU_RETURN(cudaSetDevice, false, set(device)); }

static cudaError_t synchronize(void) {
  cudaError_t error = emu_capture_check_device_wait(current);
  if (error) return error;
  emu_run_device(current);
  return devices[current].error;
}

cudaError_t cudaDeviceSynchronize(void) { EMU_RETURN(cudaDeviceSynchronize, true, synchronize()); }

static void fill_properties(struct cudaDeviceProp *out, int device) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "Emulated device %d", device);
  snprintf(out->uuid.bytes, sizeof out->uuid.bytes, "emulated-%c", '0' + device); /* at most 8 */
  out->totalGlobalMem = emu_capacity(device);
  out->sharedMemPerBlock = 48 * 1024;
  out->sharedMemPerBlockOptin = 227 * 1024;
  out->sharedMemPerMultiprocessor = 228 * 1024;
  out->regsPerBlock = 65536;
  out->regsPerMultiprocessor = 65536;
  out->warpSize = 32;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsPerMultiProcessor = 2048;
  out->maxBlocksPerMultiProcessor = 32;
  out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = INT32_MAX;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->major = 9;
  out->multiProcessorCount = MULTIPROCESSORS;
  out->canMapHostMemory = 1;
  out->concurrentKernels = 1;
  out->asyncEngineCount = 2;
  out->unifiedAddressing = 1;
  out->streamPrioritiesSupported = 1;
  out->pciBusID = device + 1;
  out->l2CacheSize = 1 << 20;
}

static cudaError_t properties(struct cudaDeviceProp *out, int device) {
  if (!out) return cudaErrorInvalidValue;
  if (!exists(device)) return cudaErrorInvalidDevice;
  fill_properties(out, device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  EMU_RETURN(cudaGetDeviceProperties, false, properties(out, device));
}

/* ---- peers ---- */

bool emu_peer_enabled(int from, int to) { return from == to || devices[from].peer[to]; }

static cudaError_t can_access(int *out, int device, int peer) {
  if (!exists(device) || !exists(peer)) return cudaErrorInvalidDevice;
  return give(out, device != peer && emu_settings()->peers);
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
  EMU_RETURN(cudaDeviceCanAccessPeer, false, can_access(out, device, peer));
}

static cudaError_t enable_peer(int peer, unsigned int flags) {
  if (flags) return cudaErrorInvalidValue;
  if (!exists(peer) || peer == current) return cudaErrorInvalidDevice;
  if (!emu_settings()->peers) return cudaErrorPeerAccessUnsupported;
  if (devices[current].peer[peer]) return cudaErrorPeerAccessAlreadyEnabled;
  cudaError_t error = emu_capture_check_unsafe();
  if (error) return error;
  devices[current].peer[peer] = true;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  EMU_RETURN(cudaDeviceEnablePeerAccess, true, enable_peer(peer, flags));
}
