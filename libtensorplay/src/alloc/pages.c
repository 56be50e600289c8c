/* Pages: memory that is mapped at reserved addresses, and unmapped again, through the driver. Its errors have
 * the numbers of the runtime's. */
#include "growing.h"

static struct {
  pthread_mutex_t lock;
  bool found;
  __typeof__(&cuMemAddressReserve) reserve;
  __typeof__(&cuMemAddressFree) free;
  __typeof__(&cuMemCreate) create;
  __typeof__(&cuMemRelease) release;
  __typeof__(&cuMemRetainAllocationHandle) retain;
  __typeof__(&cuMemMap) map;
  __typeof__(&cuMemSetAccess) set_access;
  __typeof__(&cuMemUnmap) unmap;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the driver's functions ---- */

static tp_status_t refuse_setting(int32_t device, const char *operation) {
  return tp__error_set(TP_UNAVAILABLE, operation,
                       "cuda:%d or its driver has no virtual memory, which expandable_segments:True needs: set "
                       "expandable_segments:False",
                       device);
}

/* Under the driver's lock. */
static tp_status_t find(int32_t device, const char *operation) {
  const tp__driver_function_t wanted[] = {
      {"cuMemAddressReserve", (void **)&driver.reserve}, {"cuMemAddressFree", (void **)&driver.free},
      {"cuMemCreate", (void **)&driver.create},          {"cuMemRelease", (void **)&driver.release},
      {"cuMemMap", (void **)&driver.map},                {"cuMemSetAccess", (void **)&driver.set_access},
      {"cuMemUnmap", (void **)&driver.unmap},            {"cuMemRetainAllocationHandle", (void **)&driver.retain},
  };
  TP_TRY(tp__driver_find(wanted, sizeof wanted / sizeof *wanted, &driver.found, operation));
  return driver.found ? TP_OK : refuse_setting(device, operation);
}

/* ---- addresses ---- */

tp_status_t tp__pages_reserve(int32_t device, size_t nbytes, char **out, const char *operation, bool *out_refused) {
  *out_refused = false;
  pthread_mutex_lock(&driver.lock);
  tp_status_t status = driver.found ? TP_OK : find(device, operation);
  pthread_mutex_unlock(&driver.lock);
  TP_TRY(status);
  CUdeviceptr address = 0;
  cudaError_t error = (cudaError_t)driver.reserve(&address, nbytes, 0, 0, 0);
  *out = (char *)(uintptr_t)address;
  *out_refused = error == cudaErrorMemoryAllocation;
  if (*out_refused) return TP_OUT_OF_MEMORY;
  if (error == cudaErrorNotSupported) return refuse_setting(device, operation);
  return error ? tp__error_set_cuda(error, operation, "cuMemAddressReserve") : TP_OK;
}

cudaError_t tp__pages_free(char *address, size_t nbytes) {
  return (cudaError_t)driver.free((CUdeviceptr)(uintptr_t)address, nbytes);
}

/* ---- memory ---- */

/* The device's own access, and that of the devices that may use it as a peer. */
static cudaError_t set_access(int32_t device, CUdeviceptr address, size_t nbytes) {
  CUmemAccessDesc access[TP_MAX_DEVICES];
  size_t count = 0;
  for (int32_t i = 0; i < TP_MAX_DEVICES; i++) {
    if (i != device && !tp__device_has_peer(i, device)) continue;
    access[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i},
                                        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  return (cudaError_t)driver.set_access(address, nbytes, access, count);
}

cudaError_t tp__pages_share(int32_t device, char *address, size_t nbytes) {
  return set_access(device, (CUdeviceptr)(uintptr_t)address, nbytes);
}

/* A page of fresh memory, or the one that is mapped at `source`. */
static cudaError_t take_one(int32_t device, char *source, CUmemGenericAllocationHandle *out, const char **out_call) {
  *out_call = source ? "cuMemRetainAllocationHandle" : "cuMemCreate";
  if (source) return (cudaError_t)driver.retain(out, source);
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  return (cudaError_t)driver.create(out, TP_PAGE, &properties, 0);
}

/* The handle goes back at once: the memory lives for as long as it is mapped. */
static cudaError_t map_one(int32_t device, CUdeviceptr address, char *source, const char **out_call) {
  CUmemGenericAllocationHandle handle;
  cudaError_t error = take_one(device, source, &handle, out_call);
  if (error) return error;
  *out_call = "cuMemMap";
  error = (cudaError_t)driver.map(address, TP_PAGE, 0, handle, 0);
  if (!error) {
    *out_call = "cuMemRelease";
    error = (cudaError_t)driver.release(handle);
    if (!error) return cudaSuccess;
    (void)driver.unmap(address, TP_PAGE);
  }
  (void)driver.release(handle);
  return error;
}

tp_status_t tp__pages_map(int32_t device, char *address, size_t nbytes, char *source, const char *operation,
                          bool *out_refused) {
  CUdeviceptr begin = (CUdeviceptr)(uintptr_t)address;
  size_t done = 0;
  const char *call;
  cudaError_t error = cudaSuccess;
  while (!error && done < nbytes) {
    error = map_one(device, begin + done, source ? source + done : NULL, &call);
    if (!error) done += TP_PAGE;
  }
  if (!error) {
    call = "cuMemSetAccess";
    error = set_access(device, begin, nbytes);
  }
  if (error && done > 0) (void)driver.unmap(begin, done); /* no work has seen it */
  *out_refused = error == cudaErrorMemoryAllocation;
  if (*out_refused) return TP_OUT_OF_MEMORY;
  return error ? tp__error_set_cuda(error, operation, call) : TP_OK;
}

cudaError_t tp__pages_unmap(char *address, size_t nbytes) {
  return (cudaError_t)driver.unmap((CUdeviceptr)(uintptr_t)address, nbytes);
}
