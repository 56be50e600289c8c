/* Kernels of the tests of emulated graphs: each takes one graph_arguments_t. */
#ifndef TP_GRAPH_KERNELS_H
#define TP_GRAPH_KERNELS_H

#include "check.h"
#include "graph_rules.h"
#include "host_device.h"

typedef struct graph_arguments {
  int *numbers; /* device memory */
  int place;
  int value;
  unsigned long long condition;
} graph_arguments_t;

/* numbers[place] = value */
static void store(const void *p) {
  const graph_arguments_t *a = p;
  ((int *)tp_host_address(a->numbers))[a->place] = a->value;
}

/* numbers[0] holds a count of numbers behind it: one more, the value. */
static void append(const void *p) {
  const graph_arguments_t *a = p;
  int *numbers = tp_host_address(a->numbers);
  numbers[++numbers[0]] = a->value;
}

/* numbers[place] += value, and the condition is whether that is below zero. */
static void count_up(const void *p) {
  const graph_arguments_t *a = p;
  int *numbers = tp_host_address(a->numbers);
  numbers[a->place] += a->value;
  cudaGraphSetConditional(a->condition, numbers[a->place] < 0);
}

/* The condition is numbers[place]. */
static void test(const void *p) {
  const graph_arguments_t *a = p;
  cudaGraphSetConditional(a->condition, (unsigned int)((int *)tp_host_address(a->numbers))[a->place]);
}

static cudaLibrary_t kernels;
static int *numbers; /* BYTES of device memory */

static void load_kernels(void) {
  static const struct {
    const char *name;
    void (*run)(const void *);
  } all[] = {{"store", store}, {"append", append}, {"count_up", count_up}, {"test", test}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    tp_host_register_kernel("graphs", all[i].name, sizeof(graph_arguments_t), false, all[i].run);
  CHECK_OK(cudaLibraryLoadData(&kernels, "emulated:graphs\n", NULL, NULL, 0, NULL, NULL, 0));
  CHECK_OK(cudaMalloc((void **)&numbers, BYTES));
}

static inline cudaError_t kernel(const char *name, graph_arguments_t arguments, cudaStream_t stream) {
  cudaKernel_t function;
  void *pointers[] = {&arguments};
  dim3 one = {1, 1, 1};
  CHECK_OK(cudaLibraryGetKernel(&function, kernels, name));
  return cudaLaunchKernel((const void *)function, one, one, pointers, 0, stream);
}

static inline int number(int place) {
  int value;
  CHECK_OK(cudaMemcpy(&value, numbers + place, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

static inline void clear_numbers(void) {
  CHECK_OK(cudaMemsetAsync(numbers, 0, BYTES, NULL));
  CHECK_OK(cudaDeviceSynchronize());
}

#endif
