/* Kernels: registered while the library is loaded, found by family and name, run block after block. */
#include "emulated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/host_device.h"

#define MAX_KERNELS 2048
#define MAX_THREADS 1024
#define MAX_GRID_YZ 65535
#define MAX_SHARED_NBYTES (227 * 1024)
#define IMAGE_PREFIX "emulated:"

typedef struct kernel {
  const char *family;
  const char *name;
  size_t arguments_nbytes;
  bool cooperative;
  tp_host_trampoline_t trampoline;
} kernel_t;

static kernel_t kernels[MAX_KERNELS]; /* handles are addresses of these */
static size_t kernel_count;

uint3 threadIdx, blockIdx, blockDim, gridDim;

/* ---- the running kernel, and how it ends early ---- */

static const kernel_t *running;
static int running_device;
static jmp_buf running_exit;
static cudaError_t running_error;
static char fault_text[EMU_FAULT_NBYTES];

int emu_kernel_device(void) { return running_device; }
const char *emu_fault_text(void) { return fault_text; }
void emu_fault_clear(void) { fault_text[0] = 0; }

static void note_fault(cudaError_t error, const char *format, va_list arguments) {
  char detail[192];
  vsnprintf(detail, sizeof detail, format, arguments);
  running_error = error;
  snprintf(fault_text, sizeof fault_text, "kernel %s, block (%u, %u, %u): %s", running->name, blockIdx.x,
           blockIdx.y, blockIdx.z, detail);
}

void emu_fault_note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault_text, sizeof fault_text, format, arguments);
  va_end(arguments);
}

void emu_kernel_fault(cudaError_t error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  note_fault(error, format, arguments);
  va_end(arguments);
  if (emu_fibre_inside()) emu_fibre_abandon();
  longjmp(running_exit, 1);
}

void tp_host_barrier(void) {
  if (!running->cooperative)
    emu_kernel_fault(cudaErrorLaunchFailure, "a barrier in a kernel that is not a TP_KERNEL_COOPERATIVE");
  if (emu_fibre_inside()) emu_fibre_barrier();
}

/* ---- images ---- */

void tp_host_register_kernel(const char *family, const char *name, size_t arguments_nbytes, bool cooperative,
                             tp_host_trampoline_t trampoline) {
  if (kernel_count == MAX_KERNELS) {
    fprintf(stderr, "emulated device: more than %d kernels, at %s of %s\n", MAX_KERNELS, name, family);
    abort();
  }
  kernels[kernel_count++] = (kernel_t){family, name, arguments_nbytes, cooperative, trampoline};
}

/* An image is the text "emulated:<family>\n"; a library handle is a copy of the family's name. */
static cudaError_t load(cudaLibrary_t *out, const char *image) {
  size_t prefix = strlen(IMAGE_PREFIX);
  if (!out || !image) return cudaErrorInvalidValue;
  if (strncmp(image, IMAGE_PREFIX, prefix)) return cudaErrorInvalidKernelImage;
  const char *family = image + prefix;
  size_t length = strcspn(family, "\n");
  for (size_t i = 0; i < kernel_count; i++) {
    if (strncmp(kernels[i].family, family, length) || kernels[i].family[length]) continue;
    *out = (cudaLibrary_t)strdup(kernels[i].family);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  return cudaErrorNoKernelImageForDevice;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit_options,
                                void **jit_values, unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count) {
  (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  EMU_RETURN(cudaLibraryLoadData, true, load(library, code));
}

static cudaError_t find_kernel(cudaKernel_t *out, cudaLibrary_t library, const char *name) {
  if (!out || !name) return cudaErrorInvalidValue;
  if (!library) return cudaErrorInvalidResourceHandle;
  for (size_t i = 0; i < kernel_count; i++) {
    if (strcmp(kernels[i].family, (const char *)library) || strcmp(kernels[i].name, name)) continue;
    *out = (cudaKernel_t)&kernels[i];
    return cudaSuccess;
  }
  return cudaErrorSymbolNotFound;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name) {
  EMU_RETURN(cudaLibraryGetKernel, true, find_kernel(out, library, name));
}

static cudaError_t unload(cudaLibrary_t library) {
  if (!library) return cudaErrorInvalidResourceHandle;
  free((void *)library);
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) { EMU_RETURN(cudaLibraryUnload, true, unload(library)); }

/* ---- running ---- */

typedef struct launch {
  const kernel_t *kernel;
  dim3 grid;
  dim3 block;
  size_t shared_nbytes;
  void *pointer; /* to the arguments, for emu_kernel_params */
  _Alignas(16) unsigned char arguments[];
} launch_t;

static void set_thread(unsigned int thread) { threadIdx = (uint3){thread, 0, 0}; }

static void run_block_of_fibres(const launch_t *launch) {
  const kernel_t *kernel = launch->kernel;
  if (kernel->cooperative) {
    switch (emu_fibre_block(kernel->trampoline, launch->arguments, blockDim.x)) {
      case EMU_BLOCK_DONE: return;
      case EMU_BLOCK_ABANDONED: longjmp(running_exit, 1);
      case EMU_BLOCK_NO_STACK:
        emu_kernel_fault(cudaErrorLaunchOutOfResources, "no memory for the stacks of %u threads", blockDim.x);
      case EMU_BLOCK_DIVERGENT:
        emu_kernel_fault(cudaErrorLaunchFailure, "some of %u threads ended while others wait at a barrier",
                         blockDim.x);
    }
  }
  /* Without barriers the threads are independent: one after another shows what depends on their number. */
  for (unsigned int thread = 0; thread < blockDim.x; thread++) {
    set_thread(thread);
    kernel->trampoline(launch->arguments);
  }
}

static void run_block(const launch_t *launch) {
  if (emu_fibres()) {
    run_block_of_fibres(launch);
  } else {
    set_thread(0);
    launch->kernel->trampoline(launch->arguments);
  }
}

/* Blocks run one after another; while fibres are on, from the last to the first on half of the seeds. */
static cudaError_t run_kernel(int device, void *payload) {
  const launch_t *launch = payload;
  unsigned int threads = launch->block.x * launch->block.y * launch->block.z;
  bool backwards = emu_fibres() && emu_random_below(2);
  uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
  running = launch->kernel;
  running_device = device;
  running_error = cudaSuccess;
  gridDim = (uint3){launch->grid.x, launch->grid.y, launch->grid.z};
  blockDim = (uint3){!emu_fibres() ? 1 : threads < EMU_FIBRES ? threads : EMU_FIBRES, 1, 1};
  if (setjmp(running_exit) == 0) {
    for (uint64_t i = 0; i < blocks; i++) {
      uint64_t block = backwards ? blocks - 1 - i : i;
      blockIdx.x = (unsigned int)(block % gridDim.x);
      blockIdx.y = (unsigned int)(block / gridDim.x % gridDim.y);
      blockIdx.z = (unsigned int)(block / gridDim.x / gridDim.y);
      run_block(launch);
    }
  }
  return running_error;
}

/* ---- the driver's functions and modules ---- */

/* Handles on a device are addresses inside of a kernel's entry, a module's in that of its family's first one. */
CUfunction emu_kernel_on(const void *kernel, int device) {
  return (CUfunction)((uintptr_t)kernel + 1 + (size_t)device);
}

CUcontext emu_context_of(int device) { return (CUcontext)((uintptr_t)kernels + 1 + (size_t)device); }

static const kernel_t *find_handle(const void *handle) {
  uintptr_t offset = (uintptr_t)handle - (uintptr_t)kernels;
  return offset < kernel_count * sizeof *kernels && offset % sizeof *kernels == 0 ? handle : NULL;
}

static CUmodule module_of(const char *family, int device) {
  size_t i = 0;
  while (i < kernel_count && strcmp(kernels[i].family, family)) i++;
  return i < kernel_count ? (CUmodule)emu_kernel_on(&kernels[i], device) : NULL;
}

static cudaError_t current_context(CUcontext *out) {
  if (!out) return cudaErrorInvalidValue;
  *out = emu_context_of(emu_device_current());
  return cudaSuccess;
}

CUresult emu_current_context(CUcontext *out) { EMU_RETURN_DRIVER(cuCtxGetCurrent, current_context(out)); }

static cudaError_t library_module(CUmodule *out, const char *family) {
  if (!out) return cudaErrorInvalidValue;
  if (!family) return cudaErrorInvalidResourceHandle;
  *out = module_of(family, emu_device_current());
  return cudaSuccess;
}

CUresult emu_library_module(CUmodule *out, CUlibrary library) {
  EMU_RETURN_DRIVER(cuLibraryGetModule, library_module(out, (const char *)library));
}

static cudaError_t kernel_function(CUfunction *out, CUkernel kernel) {
  if (!out) return cudaErrorInvalidValue;
  if (!find_handle(kernel)) return cudaErrorInvalidResourceHandle;
  *out = emu_kernel_on(kernel, emu_device_current());
  return cudaSuccess;
}

CUresult emu_kernel_function(CUfunction *out, CUkernel kernel) {
  EMU_RETURN_DRIVER(cuKernelGetFunction, kernel_function(out, kernel));
}

static cudaError_t function_module(CUmodule *out, CUfunction function) {
  uintptr_t place = ((uintptr_t)function - (uintptr_t)kernels) % sizeof *kernels;
  const kernel_t *kernel = find_handle((const void *)((uintptr_t)function - place));
  if (!out || !kernel || !place) return cudaErrorInvalidResourceHandle;
  *out = module_of(kernel->family, (int)place - 1);
  return cudaSuccess;
}

CUresult emu_function_module(CUmodule *out, CUfunction function) {
  EMU_RETURN_DRIVER(cuFuncGetModule, function_module(out, function));
}

/* ---- launching ---- */

cudaError_t emu_kernel_piece(emu_piece_t **out, const struct cudaKernelNodeParams *params) {
  const kernel_t *kernel = find_handle(params->func);
  dim3 grid = params->gridDim, block = params->blockDim;
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  if (!params->kernelParams || !params->kernelParams[0] || params->sharedMemBytes > MAX_SHARED_NBYTES)
    return cudaErrorInvalidValue;
  uint64_t threads = (uint64_t)block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || grid.x > INT32_MAX || grid.y > MAX_GRID_YZ || grid.z > MAX_GRID_YZ ||
      threads == 0 || block.x > MAX_THREADS || block.y > MAX_THREADS || block.z > 64 || threads > MAX_THREADS)
    return cudaErrorInvalidConfiguration;
  emu_piece_t *piece = emu_piece_new(cudaGraphNodeTypeKernel, sizeof(launch_t) + kernel->arguments_nbytes);
  if (!piece) return cudaErrorMemoryAllocation;
  launch_t *launch = (launch_t *)piece->payload;
  *launch = (launch_t){.kernel = kernel, .grid = grid, .block = block, .shared_nbytes = params->sharedMemBytes};
  memcpy(launch->arguments, params->kernelParams[0], kernel->arguments_nbytes);
  piece->run = run_kernel;
  piece->cost_ns = EMU_PIECE_NS;
  piece->device = emu_device_current();
  *out = piece;
  return cudaSuccess;
}

struct cudaKernelNodeParams emu_kernel_params(emu_piece_t *piece) {
  launch_t *launch = (launch_t *)piece->payload;
  launch->pointer = launch->arguments;
  return (struct cudaKernelNodeParams){.func = (void *)launch->kernel, .gridDim = launch->grid,
                                       .blockDim = launch->block, .kernelParams = &launch->pointer,
                                       .sharedMemBytes = (unsigned int)launch->shared_nbytes};
}

const char *emu_kernel_name(const emu_piece_t *piece) { return ((const launch_t *)piece->payload)->kernel->name; }

static cudaError_t launch_kernel(const struct cudaKernelNodeParams *params, cudaStream_t stream_handle) {
  emu_stream_t *stream = emu_stream_find(stream_handle);
  emu_piece_t *piece;
  if (!find_handle(params->func)) return cudaErrorInvalidDeviceFunction;
  if (!stream || stream->device != emu_device_current()) return cudaErrorInvalidResourceHandle;
  cudaError_t error = emu_kernel_piece(&piece, params);
  return error ? error : emu_enqueue(stream, piece);
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                             size_t shared_nbytes, cudaStream_t stream) {
  struct cudaKernelNodeParams params = {.func = (void *)kernel, .gridDim = grid, .blockDim = block,
                                        .kernelParams = arguments, .sharedMemBytes = (unsigned int)shared_nbytes};
  EMU_RETURN(cudaLaunchKernel, true, launch_kernel(&params, stream));
}
