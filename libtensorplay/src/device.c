/* Devices: which exist, which one is current for a thread, and what the library keeps for each one that it
 * has started (its fault word and properties). Starting happens at the first use of a device, once, and
 * is never undone: at process exit nothing of CUDA is called, for the driver may be gone by then. */
#include <pthread.h>
#include <string.h>

#include "../kernels/fault.h"
#include "internal.h"

enum { PEER_UNASKED, PEER_NONE, PEER_ACCESS };

typedef struct device {
  pthread_mutex_t lock;              /* guards starting, describing and the clearing of a fault */
  _Atomic bool described;            /* properties are filled */
  _Atomic bool started;              /* the fault word exists */
  tp_device_properties_t properties;
  tp_fault_t *fault;                 /* host address of the fault word */
  void *fault_on_device;             /* the same word as kernels see it */
  _Atomic int8_t peers[TP_MAX_DEVICES]; /* PEER_*: its access to them */
} device_t;

static device_t devices[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

/* 0 until a device was seen. The driver fixes the number when it is initialised. */
static _Atomic int32_t device_count;

static _Thread_local int32_t current_device;

/* The device that this thread last made CUDA's current one through us, -1 before. */
static _Thread_local int32_t entered_device = -1;

/* ---- which devices there are ---- */

/* Status: UNAVAILABLE, with CUDA's reason in the text, where there is no usable driver or no device. */
static tp_status_t count_devices(int32_t *out_count, const char *operation) {
  *out_count = atomic_load_explicit(&device_count, memory_order_acquire);
  if (*out_count > 0) return TP_OK;
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  /* InvalidDevice is what it says of a CUDA_VISIBLE_DEVICES that names a device twice, and so leaves none. */
  if (error == cudaErrorInvalidDevice || (!error && count == 0)) error = cudaErrorNoDevice;
  if (error) return tp__error_set_cuda(error, operation, "cudaGetDeviceCount");
  *out_count = count < TP_MAX_DEVICES ? count : TP_MAX_DEVICES;
  atomic_store_explicit(&device_count, *out_count, memory_order_release);
  return TP_OK;
}

int32_t tp_device_count(void) {
  int32_t count = 0;
  tp_status_t status = count_devices(&count, "device_count");
  return status == TP_UNAVAILABLE ? 0 : status ? status : count;
}

int32_t tp__device_resolve(int32_t device, const char *operation) {
  if (device == TP_DEVICE_CURRENT) device = current_device;
  int32_t count = atomic_load_explicit(&device_count, memory_order_relaxed);
  if (device >= 0 && device < count) return device;
  TP_TRY(count_devices(&count, operation));
  if (device >= 0 && device < count) return device;
  return tp__error_set(TP_DEVICE, operation, "device %d asked for, %d visible", device, count);
}

int32_t tp_device_current(void) { return current_device; }

tp_status_t tp_device_set(int32_t device) {
  device = tp__device_resolve(device, "device_set");
  if (device < 0) return device;
  current_device = device;
  return TP_OK;
}

/* ---- forks ---- */

/* This process was forked from one that had started a device. CUDA is lost to it, and threads that it lacks
 * may hold any lock and have left anything under it half done. */
static _Atomic bool inherited;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void after_fork_in_child(void) {
  atomic_store_explicit(&inherited, true, memory_order_relaxed);
  entered_device = -1; /* so that tp__device_enter looks closer, in this thread and in later ones */
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, after_fork_in_child); }

bool tp__device_is_inherited(void) { return atomic_load_explicit(&inherited, memory_order_relaxed); }

tp_status_t tp__device_check_process(const char *operation) {
  return tp__device_is_inherited() ? tp__error_set_cuda(cudaErrorInitializationError, operation, "fork") : TP_OK;
}

/* ---- starting and entering ---- */

static tp_status_t describe(int32_t device, const char *operation) {
  device_t *self = &devices[device];
  if (atomic_load_explicit(&self->described, memory_order_acquire)) return TP_OK;
  struct cudaDeviceProp cuda;
  TP_TRY_CUDA(cudaGetDeviceProperties(&cuda, device), operation);
  pthread_mutex_lock(&self->lock);
  if (!atomic_load_explicit(&self->described, memory_order_relaxed)) {
    tp_device_properties_t *properties = &self->properties;
    memcpy(properties->name, cuda.name, sizeof properties->name);
    properties->name[sizeof properties->name - 1] = '\0';
    properties->total_memory = cuda.totalGlobalMem;
    properties->major = cuda.major;
    properties->minor = cuda.minor;
    properties->multi_processor_count = cuda.multiProcessorCount;
    properties->max_threads_per_block = cuda.maxThreadsPerBlock;
    properties->warp_size = cuda.warpSize;
    atomic_store_explicit(&self->described, true, memory_order_release);
  }
  pthread_mutex_unlock(&self->lock);
  return TP_OK;
}

/* Under the device's lock, the device being CUDA's current one. */
static tp_status_t make_fault_word(device_t *self, const char *operation) {
  void *word = NULL;
  unsigned int flags = cudaHostAllocMapped | cudaHostAllocPortable;
  TP_TRY_CUDA(cudaHostAlloc(&word, sizeof(tp_fault_t), flags), operation);
  memset(word, 0, sizeof(tp_fault_t));
  cudaError_t error = cudaHostGetDevicePointer(&self->fault_on_device, word, 0);
  if (error) {
    (void)cudaFreeHost(word);
    return tp__error_set_cuda(error, operation, "cudaHostGetDevicePointer");
  }
  self->fault = word;
  return TP_OK;
}

static tp_status_t start(int32_t device, const char *operation) {
  (void)pthread_once(&fork_once, watch_forks);
  TP_TRY(tp__settings_check(operation));
  TP_TRY(tp__settle_check(operation));
  TP_TRY(describe(device, operation));
  device_t *self = &devices[device];
  tp_status_t status = TP_OK;
  pthread_mutex_lock(&self->lock);
  if (!atomic_load_explicit(&self->started, memory_order_relaxed)) {
    enum cudaStreamCaptureMode mode = tp__capture_relax();
    status = make_fault_word(self, operation);
    tp__capture_restore(mode);
    if (!status) atomic_store_explicit(&self->started, true, memory_order_release);
  }
  pthread_mutex_unlock(&self->lock);
  return status;
}

/* True when CUDA's current device of this thread is known to be `device`. Another library in the process
 * may call cudaSetDevice at any time; with one visible device that changes nothing, with several only
 * CUDA itself can tell. */
static bool is_entered(int32_t device) {
  if (entered_device != device) return false;
  if (atomic_load_explicit(&device_count, memory_order_relaxed) == 1) return true;
  int actual = -1;
  return cudaGetDevice(&actual) == cudaSuccess && actual == device;
}

tp_status_t tp__device_enter(int32_t device, const char *operation) {
  if (is_entered(device)) return TP_OK;
  TP_TRY(tp__device_check_process(operation));
  TP_TRY_CUDA(cudaSetDevice(device), operation);
  if (!tp_device_is_started(device)) TP_TRY(start(device, operation));
  entered_device = device;
  return TP_OK;
}

bool tp__device_visit(int32_t device, int32_t *out_before) {
  *out_before = -1;
  if (is_entered(device)) return true;
  if (tp__device_is_inherited() || !tp_device_is_started(device)) return false;
  /* A device that we have not started is not put back: cudaSetDevice would start it. */
  int before = -1;
  if (cudaGetDevice(&before) == cudaSuccess && tp_device_is_started(before)) *out_before = before;
  if (cudaSetDevice(device)) {
    (void)cudaGetLastError();
    return false;
  }
  entered_device = device;
  return true;
}

void tp__device_leave(int32_t before) {
  if (before < 0 || before == entered_device) return;
  if (cudaSetDevice(before) == cudaSuccess) entered_device = before;
}

int32_t tp_device_is_started(int32_t device) {
  if (device == TP_DEVICE_CURRENT) device = current_device;
  if (device < 0 || device >= TP_MAX_DEVICES) return 0;
  return atomic_load_explicit(&devices[device].started, memory_order_acquire);
}

/* ---- asking and waiting ---- */

const tp_device_properties_t *tp__device_properties(int32_t device) { return &devices[device].properties; }

tp_status_t tp_device_get_properties(int32_t device, tp_device_properties_t *out) {
  const char *operation = "device_get_properties";
  if (!out) return tp__error_set(TP_INVALID_ARGUMENT, operation, "got NULL for the result");
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  TP_TRY(describe(device, operation));
  *out = devices[device].properties;
  return TP_OK;
}

tp_status_t tp_device_synchronize(int32_t device) {
  const char *operation = "device_synchronize";
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  if (!tp_device_is_started(device)) return TP_OK;
  TP_TRY(tp__device_enter(device, operation));
  TP_TRY(tp__wait_note(operation));
  TP_TRY_CUDA(cudaDeviceSynchronize(), operation);
  tp__order_reach_device(device);
  tp__foreign_poll();
  return tp__device_check_fault(device);
}

static const char *const fault_operations[] = {
    [TP_FAULT_OP_INDEX_SELECT] = "index_select", [TP_FAULT_OP_EMBEDDING] = "embedding",
    [TP_FAULT_OP_GATHER] = "gather",             [TP_FAULT_OP_SCATTER] = "scatter_",
    [TP_FAULT_OP_INDEX] = "index",               [TP_FAULT_OP_INDEX_PUT] = "index_put_",
};

void *tp__device_fault_word(int32_t device) { return devices[device].fault_on_device; }

tp_status_t tp__device_check_fault(int32_t device) {
  device_t *self = &devices[device];
  if (__atomic_load_n(&self->fault->code, __ATOMIC_ACQUIRE) == TP_FAULT_NONE) return TP_OK;
  pthread_mutex_lock(&self->lock);
  tp_fault_t fault = *self->fault;
  __atomic_store_n(&self->fault->code, TP_FAULT_NONE, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&self->lock);
  if (fault.code == TP_FAULT_NONE) return TP_OK; /* another thread has reported it in the meantime */
  const char *operation = fault_operations[fault.operation];
  if (fault.operation == TP_FAULT_OP_EMBEDDING)
    return tp__error_set(TP_INDEX, operation, "index %lld is out of range for %lld rows on cuda:%d", fault.value,
                         fault.limit, device);
  return tp__error_set(TP_INDEX, operation, "index %lld is out of range for a dimension of size %lld on cuda:%d",
                       fault.value, fault.limit, device);
}

/* ---- peers ---- */

int32_t tp_device_can_access_peer(int32_t device, int32_t peer) {
  const char *operation = "can_device_access_peer";
  int can = 0;
  if ((device = tp__device_resolve(device, operation)) < 0) return device;
  if ((peer = tp__device_resolve(peer, operation)) < 0) return peer;
  TP_TRY_CUDA(cudaDeviceCanAccessPeer(&can, device, peer), operation);
  return can;
}

static tp_status_t enable_peer(int32_t from, int32_t to, bool *out_access) {
  const char *operation = "device_enable_peer";
  int can = 0;
  TP_TRY(tp__device_enter(to, operation)); /* both must be started */
  TP_TRY(tp__device_enter(from, operation));
  TP_TRY_CUDA(cudaDeviceCanAccessPeer(&can, from, to), operation);
  *out_access = can;
  if (!can) return TP_OK;
  cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
  *out_access = error != cudaErrorTooManyPeers;
  if (error == cudaErrorPeerAccessAlreadyEnabled || error == cudaErrorTooManyPeers) {
    (void)cudaGetLastError(); /* as good as access, and as none */
    return TP_OK;
  }
  return error ? tp__error_set_cuda(error, operation, "cudaDeviceEnablePeerAccess") : TP_OK;
}

tp_status_t tp__device_enable_peer(int32_t from, int32_t to) {
  _Atomic int8_t *peer = &devices[from].peers[to];
  if (atomic_load_explicit(peer, memory_order_acquire) != PEER_UNASKED) return TP_OK;
  /* Two threads may both ask: the answer is the same, and enabling twice is not an error. */
  int32_t before = entered_device;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  bool access = false;
  tp_status_t status = enable_peer(from, to, &access);
  tp__capture_restore(mode);
  tp__device_leave(before);
  if (!status) atomic_store_explicit(peer, access ? PEER_ACCESS : PEER_NONE, memory_order_release);
  return status;
}

bool tp__device_has_peer(int32_t from, int32_t to) {
  return atomic_load_explicit(&devices[from].peers[to], memory_order_acquire) == PEER_ACCESS;
}
