/* The emulated device's memory: capacity, addresses, and copies in every direction. */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cuda_api.h"
#include "tp_emulated.h"

#define MiB ((size_t)1 << 20)

static void *new_memory(size_t nbytes) {
  void *memory;
  CHECK_OK(cudaMalloc(&memory, nbytes));
  return memory;
}

/* Capacity holds for each device; what is freed can be had again. */
static void test_capacity(void) {
  void *memory, *more;
  size_t free_nbytes, total_nbytes;
  CHECK_OK(tp_emulated_set_capacity(0, 4 * MiB));
  memory = new_memory(3 * MiB);
  CHECK(cudaMalloc(&more, 2 * MiB) == cudaErrorMemoryAllocation && !more);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK_OK(cudaMemGetInfo(&free_nbytes, &total_nbytes));
  CHECK(free_nbytes == MiB && total_nbytes == 4 * MiB);
  CHECK(cudaMalloc(&more, SIZE_MAX) == cudaErrorMemoryAllocation);
  CHECK_OK(cudaSetDevice(1));
  CHECK_OK(cudaMalloc(&more, 5 * MiB)); /* the other device has the default capacity */
  CHECK_OK(cudaFree(more));
  CHECK_OK(cudaSetDevice(0));
  CHECK_OK(cudaFree(memory));
  memory = new_memory(4 * MiB);
  CHECK(tp_emulated_used(0) == 4 * (int64_t)MiB);
  CHECK_OK(cudaFree(memory));
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK_OK(cudaFree(NULL));
  CHECK_OK(cudaMalloc(&memory, 0));
  CHECK(!memory);
  tp_emulated_reset();
  CHECK(tp_emulated_capacity(0) == 2048 * (int64_t)MiB);
  cudaGetLastError();
}

/* A host that follows a device address is stopped by the processor. */
static void test_host_cannot_read(void) {
  int status;
  volatile char *memory = new_memory(MiB);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    (void)memory[0];
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  CHECK_OK(cudaFree((void *)memory));
}

/* Fresh memory is poisoned, also where other bytes stood before. */
static void test_poison(void) {
  unsigned char bytes[512];
  for (int round = 0; round < 2; round++) {
    void *memory = new_memory(sizeof bytes);
    CHECK_OK(cudaMemcpy(bytes, memory, sizeof bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < sizeof bytes; i++) CHECK(bytes[i] == 0xFF);
    CHECK_OK(cudaMemsetAsync(memory, 0, sizeof bytes, NULL));
    CHECK_OK(cudaFree(memory));
  }
}

static void test_pointers(void) {
  char on_stack;
  void *pinned, *mapped, *memory = new_memory(MiB);
  struct cudaPointerAttributes attributes;
  CHECK_OK(cudaHostAlloc(&pinned, 100, cudaHostAllocDefault));
  CHECK_OK(cudaPointerGetAttributes(&attributes, (char *)memory + MiB - 1));
  CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 && !attributes.hostPointer);
  CHECK_OK(cudaPointerGetAttributes(&attributes, (char *)memory + MiB));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK_OK(cudaPointerGetAttributes(&attributes, pinned));
  CHECK(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
  CHECK_OK(cudaPointerGetAttributes(&attributes, &on_stack));
  CHECK(attributes.type == cudaMemoryTypeUnregistered && attributes.device == cudaInvalidDeviceId);
  CHECK_OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  CHECK(mapped == pinned);
  CHECK(cudaHostGetDevicePointer(&mapped, &on_stack, 0) == cudaErrorInvalidValue);
  CHECK(tp_emulated_is_own_address((uintptr_t)memory) == 1);
  CHECK(tp_emulated_is_own_address((uintptr_t)pinned) == 1);
  CHECK(tp_emulated_is_own_address((uintptr_t)&on_stack) == 0);
  CHECK_OK(cudaFree(memory));
  CHECK(tp_emulated_is_own_address((uintptr_t)memory) == 0);
  CHECK_OK(cudaFreeHost(pinned));
  CHECK(cudaFreeHost(pinned) == cudaErrorInvalidValue);
  cudaGetLastError();
}

/* Pageable sources are read by the call, pinned ones when the copy runs. Pageable targets are written
 * before the call returns, pinned ones when the copy runs. */
static void test_host_copies(void) {
  char pageable[4] = "one", back[4] = "";
  char *pinned, *device = new_memory(4);
  cudaStream_t stream;
  CHECK_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK_OK(cudaHostAlloc((void **)&pinned, 4, cudaHostAllocDefault));

  CHECK_OK(cudaMemcpyAsync(device, pageable, 4, cudaMemcpyHostToDevice, stream));
  CHECK(tp_emulated_queued(0) == 1);
  memcpy(pageable, "two", 4);
  CHECK_OK(cudaMemcpyAsync(back, device, 4, cudaMemcpyDeviceToHost, stream));
  CHECK(!strcmp(back, "one"));

  memcpy(pinned, "one", 4);
  CHECK_OK(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyDefault, stream));
  memcpy(pinned, "two", 4);
  CHECK_OK(cudaMemcpyAsync(back, device, 4, cudaMemcpyDeviceToHost, stream));
  CHECK(!strcmp(back, "two"));

  memcpy(pinned, "old", 4);
  CHECK_OK(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
  CHECK(!strcmp(pinned, "old"));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK(!strcmp(pinned, "two"));
  CHECK_OK(cudaFreeHost(pinned));
  CHECK_OK(cudaFree(device));
  CHECK_OK(cudaStreamDestroy(stream));
}

/* Between two devices, and fills. */
static void test_other_copies(void) {
  char bytes[4] = "abc", back[4];
  char *first = new_memory(16), *second;
  CHECK_OK(cudaSetDevice(1));
  second = new_memory(16);
  CHECK_OK(cudaSetDevice(0));
  CHECK_OK(cudaMemcpyAsync(first, bytes, 4, cudaMemcpyHostToDevice, NULL));
  CHECK_OK(cudaMemcpyPeerAsync(second, 1, first, 0, 16, NULL));
  CHECK_OK(cudaMemcpyAsync(back, second, 4, cudaMemcpyDeviceToHost, NULL));
  CHECK(!memcmp(back, "abc", 4));
  CHECK_OK(cudaMemsetAsync(first, 'x', 2, NULL));
  CHECK_OK(cudaMemcpy(second, first, 2, cudaMemcpyDeviceToDevice));
  CHECK_OK(cudaMemcpy(back, second, 4, cudaMemcpyDeviceToHost));
  CHECK(!memcmp(back, "xxc", 4));
  CHECK(cudaMemcpyPeerAsync(second, 0, first, 0, 4, NULL) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeerAsync(second, 7, first, 0, 4, NULL) == cudaErrorInvalidDevice);
  CHECK_OK(cudaFree(first));
  CHECK_OK(cudaFree(second));
  cudaGetLastError();
}

/* What does not lie in one allocation is refused by the call, and so is a wrong direction. */
static void test_refused_copies(void) {
  char bytes[32] = "";
  char *memory = new_memory(16);
  CHECK(cudaMemcpyAsync(memory, bytes, 17, cudaMemcpyHostToDevice, NULL) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(memory + 8, bytes, 9, cudaMemcpyHostToDevice, NULL) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(memory, bytes, 4, cudaMemcpyDeviceToHost, NULL) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(memory, bytes, 4, (enum cudaMemcpyKind)9, NULL) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpyAsync(NULL, bytes, 4, cudaMemcpyDefault, NULL) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(bytes, 0, 4, NULL) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(memory, 0, 17, NULL) == cudaErrorInvalidValue);
  CHECK_OK(cudaMemcpyAsync(memory, bytes, 0, cudaMemcpyHostToDevice, NULL));
  CHECK_OK(cudaFree(memory));
  CHECK(cudaMemcpyAsync(memory, bytes, 4, cudaMemcpyHostToDevice, NULL) == cudaErrorInvalidValue);
  CHECK(tp_emulated_queued(-1) == 0);
  cudaGetLastError();
}

int main(void) {
  test_capacity();
  test_host_cannot_read();
  test_poison();
  test_pointers();
  test_host_copies();
  test_other_copies();
  test_refused_copies();
  return 0;
}
