/* Launching kernels: their functions, found by name at the first launch, and the launch itself. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What CUDA takes in a grid's first dimension. */
#define MOST_BLOCKS INT32_MAX

/* One per image: devices of one architecture share it. */
typedef struct library {
  struct library *next;
  const void *image;
  cudaLibrary_t handle;
  bool serves[TP_MAX_DEVICES]; /* devices for which kernels of it were found */
} library_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards libraries */
static library_t *libraries;

static tp_status_t load_library(const void *image, library_t **out) {
  for (library_t *library = libraries; library; library = library->next) {
    if (library->image == image) {
      *out = library;
      return TP_OK;
    }
  }
  library_t *library = calloc(1, sizeof *library);
  if (!library) return tp__error_set(TP_HOST_MEMORY, "launch", "the host has no room for a kernel library");
  cudaError_t error = cudaLibraryLoadData(&library->handle, image, NULL, NULL, 0, NULL, NULL, 0);
  if (error) {
    free(library);
    return tp__error_set_cuda(error, "launch", "cudaLibraryLoadData");
  }
  library->image = image;
  library->next = libraries;
  libraries = library;
  *out = library;
  return TP_OK;
}

static tp_status_t load_function(tp__kernel_t *kernel, int32_t device, void **out_function) {
  const void *image;
  size_t nbytes;
  TP_TRY(tp__image_find(kernel->family, device, &image, &nbytes));
  library_t *library = NULL;
  cudaKernel_t function = NULL;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  pthread_mutex_lock(&lock);
  tp_status_t status = load_library(image, &library);
  cudaError_t error = status ? cudaSuccess : cudaLibraryGetKernel(&function, library->handle, kernel->name);
  if (!status && !error) library->serves[device] = true;
  pthread_mutex_unlock(&lock);
  tp__capture_restore(mode);
  if (status) return status;
  if (error) return tp__error_set_cuda(error, kernel->name, "cudaLibraryGetKernel");
  atomic_store_explicit(&kernel->functions[device], (void *)function, memory_order_release);
  *out_function = (void *)function;
  return TP_OK;
}

tp_status_t tp__launch_find(tp__kernel_t *kernel, int32_t device, void **out_function) {
  *out_function = atomic_load_explicit(&kernel->functions[device], memory_order_acquire);
  return *out_function ? TP_OK : load_function(kernel, device, out_function);
}

int32_t tp__launch_libraries(int32_t device, cudaLibrary_t *out, int32_t room) {
  int32_t count = 0;
  pthread_mutex_lock(&lock);
  for (const library_t *library = libraries; library && count < room; library = library->next)
    if (library->serves[device]) out[count++] = library->handle;
  pthread_mutex_unlock(&lock);
  return count;
}

/* Most pointers that a kernel gets. */
#define MOST_ACCESSES 8

static tp_status_t tell(const tp__kernel_t *kernel, tp_stream_t *stream, const void *arguments, const char *operation) {
  tp__touch_t touches[MOST_ACCESSES];
  int32_t count = 0;
  for (const tp__access_t *access = kernel->accesses; access->size && count < MOST_ACCESSES; access++) {
    memcpy(&touches[count].memory, (const char *)arguments + access->offset, sizeof(void *));
    touches[count++].writes = access->writes;
  }
  return tp__watch_tell(stream, count, touches, operation);
}

tp_status_t tp__launch(tp__kernel_t *kernel, int32_t device, tp_stream_t *stream, uint32_t grid_x,
                       uint32_t grid_y, uint32_t grid_z, uint32_t block, const void *arguments,
                       const char *operation) {
  void *function;
  TP_TRY(tp__device_enter(device, operation));
  TP_TRY(tp__launch_find(kernel, device, &function));
  if (tp__is_watched() && kernel->accesses) TP_TRY(tell(kernel, stream, arguments, operation));
  void *list[] = {(void *)arguments};
  dim3 grid = {grid_x, grid_y, grid_z}, threads = {block, 1, 1};
  cudaError_t error = cudaLaunchKernel(function, grid, threads, list, 0, tp__stream_cuda(stream));
  return error ? tp__error_set_cuda(error, operation, kernel->name) : tp__settle(stream, operation);
}

uint32_t tp__launch_grid(int64_t numel, int64_t per_block) {
  int64_t blocks = tp__divide_up(numel, per_block);
  return (uint32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

tp_status_t tp__launch_tiles(tp__kernel_t *kernel, int32_t device, int64_t numel, int64_t tile,
                             const void *arguments, const char *operation) {
  return tp__launch(kernel, device, tp__stream_current(device), tp__launch_grid(numel, tile), 1, 1,
                    TP_BLOCK_THREADS, arguments, operation);
}
