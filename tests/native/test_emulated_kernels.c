/* The emulated device's kernels: launches, threads as fibres, and what ends a kernel early. */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "cuda_api.h"
#include "host_device.h"
#include "tp_emulated.h"

#define SEEDS 16
#define THREADS 32
#define BLOCKS 3

typedef struct arguments {
  int *out;
  int *other;
  int value;
} arguments_t;

static int shared[THREADS]; /* what __shared__ expands to */

/* out[block] := 1 + how many threads the block has. */
static void count_threads(const void *p) {
  const arguments_t *arguments = p;
  int *out = tp_host_address(arguments->out);
  if (threadIdx.x == 0) out[blockIdx.x] = arguments->value;
  out[blockIdx.x]++;
  if (threadIdx.x == blockDim.x - 1) out[blockIdx.x] += (int)gridDim.x * 100;
}

/* out[thread] := what the neighbour wrote, across a barrier. */
static void exchange(const void *p) {
  const arguments_t *arguments = p;
  int *out = tp_host_address(arguments->out);
  unsigned int i = threadIdx.x;
  shared[i] = arguments->value + (int)i;
  tp_host_barrier();
  out[i] = shared[(i + 1) % blockDim.x];
}

/* The same with the barrier forgotten. */
static void exchange_without(const void *p) {
  const arguments_t *arguments = p;
  int *out = tp_host_address(arguments->out);
  unsigned int i = threadIdx.x;
  shared[i] = arguments->value + (int)i;
  out[i] = shared[(i + 1) % blockDim.x];
}

static void some_wait(const void *p) {
  (void)p;
  if (threadIdx.x % 2 == 0) tp_host_barrier();
}

static void follow(const void *p) { *(int *)tp_host_address(((const arguments_t *)p)->other) = 1; }

static void follow_in_fibre(const void *p) {
  tp_host_barrier();
  if (threadIdx.x == 5) *(int *)tp_host_address(((const arguments_t *)p)->other) = 1;
  tp_host_barrier();
}

static cudaLibrary_t library;

static cudaError_t load(cudaLibrary_t *loaded, const char *image) {
  return cudaLibraryLoadData(loaded, image, NULL, NULL, 0, NULL, NULL, 0);
}

static cudaKernel_t find(const char *name) {
  cudaKernel_t kernel;
  CHECK_OK(cudaLibraryGetKernel(&kernel, library, name));
  return kernel;
}

static cudaError_t launch(const char *name, unsigned int blocks, unsigned int threads,
                          arguments_t arguments) {
  void *pointers[] = {&arguments};
  dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
  return cudaLaunchKernel((const void *)find(name), grid, block, pointers, 0, NULL);
}

static int *out;

static void read_back(int *values) {
  CHECK_OK(cudaMemcpy(values, out, THREADS * sizeof *out, cudaMemcpyDeviceToHost));
}

static void test_lookup(void) {
  cudaLibrary_t unknown;
  cudaKernel_t kernel;
  CHECK(load(&unknown, "emulated:nothing\n") == cudaErrorNoKernelImageForDevice);
  CHECK(load(&unknown, "\177ELF") == cudaErrorInvalidKernelImage);
  CHECK(cudaLibraryGetKernel(&kernel, library, "nothing") == cudaErrorSymbolNotFound);
  CHECK(find("follow") != find("exchange"));
}

/* Blocks have one thread, or up to 32 with fibres; arguments are taken when the kernel is launched. */
static void test_launch(void) {
  int back[THREADS];
  arguments_t arguments = {.out = out, .value = 7};
  CHECK_OK(launch("count_threads", BLOCKS, 256, arguments));
  read_back(back);
  for (int i = 0; i < BLOCKS; i++) CHECK(back[i] == 7 + 1 + 100 * BLOCKS);
  tp_emulated_set_fibres(1);
  CHECK_OK(launch("count_threads", BLOCKS, 256, arguments));
  read_back(back);
  for (int i = 0; i < BLOCKS; i++) CHECK(back[i] == 7 + THREADS + 100 * BLOCKS);
  CHECK_OK(launch("count_threads", BLOCKS, 4, arguments));
  read_back(back);
  for (int i = 0; i < BLOCKS; i++) CHECK(back[i] == 7 + 4 + 100 * BLOCKS);
  tp_emulated_set_fibres(0);
}

static void test_refused_launches(void) {
  arguments_t arguments = {.out = out};
  void *pointers[] = {&arguments};
  const void *follow_handle = (const void *)find("follow");
  dim3 one = {1, 1, 1};
  cudaStream_t other;
  CHECK(launch("follow", 0, 1, arguments) == cudaErrorInvalidConfiguration);
  CHECK(launch("follow", 1, 1025, arguments) == cudaErrorInvalidConfiguration);
  CHECK(cudaLaunchKernel(&other, one, one, pointers, 0, NULL) == cudaErrorInvalidDeviceFunction);
  CHECK_OK(cudaSetDevice(1));
  CHECK_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK_OK(cudaSetDevice(0));
  CHECK(cudaLaunchKernel(follow_handle, one, one, pointers, 0, other) == cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaStreamDestroy(other));
  cudaGetLastError();
}

/* A barrier makes every seed right; without one some seed is wrong. */
static void test_barrier(void) {
  int back[THREADS], wrong = 0;
  tp_emulated_set_fibres(1);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    tp_emulated_set_seed(seed);
    CHECK_OK(launch("exchange", 1, 256, (arguments_t){.out = out, .value = (int)seed * 1000}));
    read_back(back);
    for (int i = 0; i < THREADS; i++) CHECK(back[i] == (int)seed * 1000 + (i + 1) % THREADS);
    memset(shared, 0, sizeof shared);
    CHECK_OK(launch("exchange_without", 1, 256, (arguments_t){.out = out, .value = 1}));
    read_back(back);
    for (int i = 0; i < THREADS; i++) wrong += back[i] != 1 + (i + 1) % THREADS;
  }
  CHECK(wrong > 0);
  tp_emulated_set_fibres(0);
}

/* The kernel ends the device with `error`, which every call returns until the reset. */
static void expect_end(const char *name, arguments_t arguments, cudaError_t error, const char *text) {
  CHECK_OK(launch(name, 1, 256, arguments));
  CHECK(cudaDeviceSynchronize() == error);
  CHECK(strstr(tp_emulated_fault_text(), name) && strstr(tp_emulated_fault_text(), text));
  CHECK(cudaMemsetAsync(out, 0, 1, NULL) == error);
  CHECK(cudaGetLastError() == error);
  CHECK(cudaGetLastError() == error);
  CHECK_OK(cudaSetDevice(1));
  CHECK_OK(cudaDeviceSynchronize()); /* the other device lives */
  CHECK_OK(cudaSetDevice(0));
  tp_emulated_reset();
  CHECK_OK(cudaGetLastError());
  CHECK_OK(cudaDeviceSynchronize());
}

static void test_ends(void) {
  int on_stack, *there;
  arguments_t arguments = {.out = out};
  void *freed;
  CHECK_OK(cudaMalloc(&freed, 512));
  CHECK_OK(cudaFree(freed));
  arguments.other = freed;
  expect_end("follow", arguments, cudaErrorIllegalAddress, "no live allocation");
  arguments.other = &on_stack;
  expect_end("follow", arguments, cudaErrorIllegalAddress, "not pinned");
  tp_emulated_set_fibres(1);
  expect_end("follow_in_fibre", arguments, cudaErrorIllegalAddress, "not pinned");
  tp_emulated_set_fibres(1);
  expect_end("some_wait", arguments, cudaErrorLaunchFailure, "some of 32 threads");
  expect_end("forgot", arguments, cudaErrorLaunchFailure, "TP_KERNEL_COOPERATIVE");

  /* Another device's memory can be reached once peer access is on. */
  CHECK_OK(cudaSetDevice(1));
  CHECK_OK(cudaMalloc((void **)&there, 512));
  CHECK_OK(cudaSetDevice(0));
  arguments.other = there;
  expect_end("follow", arguments, cudaErrorIllegalAddress, "no peer access");
  CHECK_OK(cudaDeviceEnablePeerAccess(1, 0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled);
  CHECK_OK(launch("follow", 1, 1, arguments));
  CHECK_OK(cudaDeviceSynchronize());
  CHECK_OK(cudaFree(there));
}

int main(void) {
  tp_host_register_kernel("test", "count_threads", sizeof(arguments_t), false, count_threads);
  tp_host_register_kernel("test", "exchange", sizeof(arguments_t), true, exchange);
  tp_host_register_kernel("test", "exchange_without", sizeof(arguments_t), true, exchange_without);
  tp_host_register_kernel("test", "some_wait", sizeof(arguments_t), true, some_wait);
  tp_host_register_kernel("test", "forgot", sizeof(arguments_t), false, some_wait);
  tp_host_register_kernel("test", "follow", sizeof(arguments_t), false, follow);
  tp_host_register_kernel("test", "follow_in_fibre", sizeof(arguments_t), true, follow_in_fibre);
  CHECK_OK(load(&library, "emulated:test\n"));
  CHECK_OK(cudaMalloc((void **)&out, THREADS * sizeof *out));
  test_lookup();
  test_launch();
  test_refused_launches();
  test_barrier();
  test_ends();
  CHECK_OK(cudaFree(out));
  CHECK_OK(cudaLibraryUnload(library));
  return 0;
}
