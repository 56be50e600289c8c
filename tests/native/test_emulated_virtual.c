/* Virtual memory of the driver: its rules and error codes. The first two tests hold on a GPU as well:
 *     cc -std=c11 -DTP_TEST_ON_GPU -I libtensorplay/src tests/native/test_emulated_virtual.c -lcudart */
#include <stdint.h>
#include <string.h>

#include "cuda_api.h"
#ifdef TP_TEST_ON_GPU
#include <stdio.h>
static int differences;
#define CHECK(condition) \
  do {                   \
    if (!(condition)) {  \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      differences++;     \
    }                    \
  } while (0)
#define CHECK_OK(call) CHECK((call) == 0)
#else
#include "check.h"
#include "tp_emulated.h"
#endif

#define PAGE ((size_t)2 << 20)
#define FIND(name) __typeof__(&name) name = find(#name)

static void *find(const char *name) {
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found;
  CHECK_OK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  CHECK(function && found == cudaDriverEntryPointSuccess);
  return function;
}

static const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* Memory moves to another place: its handle is had from the first, and both are mapped meanwhile. */
static void test_memory_moves(void) {
  FIND(cuMemAddressReserve);
  FIND(cuMemAddressFree);
  FIND(cuMemCreate);
  FIND(cuMemRelease);
  FIND(cuMemRetainAllocationHandle);
  FIND(cuMemMap);
  FIND(cuMemSetAccess);
  FIND(cuMemUnmap);
  CUdeviceptr base;
  CUmemGenericAllocationHandle handle, again;
  unsigned char bytes[8];

  CHECK_OK(cuMemAddressReserve(&base, 4 * PAGE, 0, 0, 0));
  CHECK(cuMemRetainAllocationHandle(&handle, (void *)base) == CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cuMemCreate(&handle, PAGE, &properties, 0));
  CHECK_OK(cuMemMap(base, PAGE, 0, handle, 0));
  CHECK_OK(cuMemRelease(handle));
  CHECK_OK(cuMemRetainAllocationHandle(&again, (void *)(base + PAGE / 2)));
  CHECK_OK(cuMemMap(base + 2 * PAGE, PAGE, 0, again, 0));
  CHECK_OK(cuMemRelease(again));
  CHECK_OK(cuMemSetAccess(base + 2 * PAGE, PAGE, &access, 1));
  CHECK_OK(cuMemUnmap(base, PAGE));
  CHECK(cuMemRetainAllocationHandle(&again, (void *)base) == CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cudaMemsetAsync((void *)(base + 2 * PAGE), 7, PAGE, NULL));
  CHECK_OK(cudaMemcpy(bytes, (void *)(base + 3 * PAGE - 8), 8, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; i++) CHECK(bytes[i] == 7);
  CHECK_OK(cuMemUnmap(base + 2 * PAGE, PAGE));
  CHECK_OK(cuMemAddressFree(base, 4 * PAGE));
}

/* Pages at addresses: mapped beside each other they are one piece of memory, which lives while it is mapped. */
static void test_rules(void) {
  FIND(cuMemAddressReserve);
  FIND(cuMemAddressFree);
  FIND(cuMemCreate);
  FIND(cuMemRelease);
  FIND(cuMemMap);
  FIND(cuMemSetAccess);
  FIND(cuMemUnmap);
  CUdeviceptr base;
  CUmemGenericAllocationHandle handle;
  unsigned char bytes[32];

  CHECK(cuMemAddressReserve(&base, 1000, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cuMemAddressReserve(&base, 8 * PAGE, 0, 0, 0));
  CHECK(base && base % PAGE == 0);
  CHECK(cuMemCreate(&handle, PAGE / 2, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemSetAccess(base, PAGE, &access, 1) != CUDA_SUCCESS);
  for (int i = 2; i < 5; i++) {
    CHECK_OK(cuMemCreate(&handle, PAGE, &properties, 0));
    CHECK_OK(cuMemMap(base + (size_t)i * PAGE, PAGE, 0, handle, 0));
    CHECK_OK(cuMemRelease(handle));
  }
  CHECK_OK(cuMemCreate(&handle, PAGE, &properties, 0));
  CHECK(cuMemMap(base + 2 * PAGE, PAGE, 0, handle, 0) != CUDA_SUCCESS); /* taken */
  CHECK(cuMemMap(base + PAGE / 2, PAGE, 0, handle, 0) != CUDA_SUCCESS); /* not aligned */
  CHECK_OK(cuMemRelease(handle));

#ifndef TP_TEST_ON_GPU /* which may end its context instead */
  CHECK(cudaMemsetAsync((void *)(base + 2 * PAGE), 1, 32, NULL) == cudaErrorInvalidValue); /* access comes first */
  (void)cudaGetLastError();
#endif
  CHECK_OK(cuMemSetAccess(base + 2 * PAGE, 3 * PAGE, &access, 1));
  /* Across pages. */
  CHECK_OK(cudaMemsetAsync((void *)(base + 3 * PAGE - 16), 5, PAGE + 32, NULL));
  CHECK_OK(cudaMemcpy(bytes, (void *)(base + 4 * PAGE - 16), 32, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++) CHECK(bytes[i] == 5);
  struct cudaPointerAttributes attributes;
  CHECK_OK(cudaPointerGetAttributes(&attributes, (void *)(base + 2 * PAGE)));
  CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  CHECK(cudaFree((void *)(base + 2 * PAGE)) != cudaSuccess);
  (void)cudaGetLastError();

  /* From the middle; the others stay. */
  CHECK_OK(cudaDeviceSynchronize());
  CHECK_OK(cuMemUnmap(base + 3 * PAGE, PAGE));
  CHECK_OK(cudaMemcpy(bytes, (void *)(base + 4 * PAGE), 16, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 16; i++) CHECK(bytes[i] == 5);
  CHECK_OK(cuMemUnmap(base + 2 * PAGE, 3 * PAGE)); /* a hole is in it */
  CHECK_OK(cuMemAddressFree(base, 8 * PAGE));
}

#ifndef TP_TEST_ON_GPU

/* One mapped page. */
static CUdeviceptr make_page(void) {
  FIND(cuMemAddressReserve);
  FIND(cuMemCreate);
  FIND(cuMemRelease);
  FIND(cuMemMap);
  CUdeviceptr base;
  CUmemGenericAllocationHandle handle;
  CHECK_OK(cuMemAddressReserve(&base, PAGE, 0, 0, 0));
  CHECK_OK(cuMemCreate(&handle, PAGE, &properties, 0));
  CHECK_OK(cuMemMap(base, PAGE, 0, handle, 0));
  CHECK_OK(cuMemRelease(handle));
  return base;
}

static void drop_page(CUdeviceptr base) {
  FIND(cuMemUnmap);
  FIND(cuMemAddressFree);
  CHECK(cuMemAddressFree(base, PAGE) == CUDA_ERROR_INVALID_VALUE); /* still mapped */
  CHECK(cuMemUnmap(base, PAGE / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(base, 2 * PAGE) == CUDA_ERROR_INVALID_VALUE); /* the second page is not reserved */
  CHECK_OK(cuMemUnmap(base, PAGE));
  CHECK(cuMemAddressFree(base, PAGE / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cuMemAddressFree(base, PAGE));
  CHECK(cuMemAddressFree(base, PAGE) == CUDA_ERROR_INVALID_VALUE);
}

/* Memory counts from its making to when neither a handle nor a mapping holds it; fresh memory is poisoned. */
static void test_capacity_and_poison(void) {
  FIND(cuMemCreate);
  FIND(cuMemRelease);
  FIND(cuMemSetAccess);
  CUmemGenericAllocationHandle handle, more;
  unsigned char bytes[8];
  CHECK_OK(tp_emulated_set_capacity(0, 3 * PAGE));
  CHECK_OK(cuMemCreate(&handle, 2 * PAGE, &properties, 0));
  CHECK(cuMemCreate(&more, 2 * PAGE, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cudaPeekAtLastError() == cudaSuccess); /* the driver's errors are not the runtime's */
  CHECK(tp_emulated_used(0) == 2 * (int64_t)PAGE);
  CHECK_OK(cuMemRelease(handle));
  CHECK(cuMemRelease(handle) == CUDA_ERROR_INVALID_VALUE && tp_emulated_used(0) == 0);
  for (int round = 0; round < 2; round++) {
    CUdeviceptr base = make_page();
    CHECK_OK(cuMemSetAccess(base, PAGE, &access, 1));
    CHECK(tp_emulated_used(0) == (int64_t)PAGE);
    CHECK_OK(cudaMemcpy(bytes, (void *)base, sizeof bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < sizeof bytes; i++) CHECK(bytes[i] == 0xFF);
    CHECK_OK(cudaMemsetAsync((void *)base, 0, PAGE, NULL));
    CHECK_OK(cudaDeviceSynchronize());
    drop_page(base);
    CHECK(tp_emulated_used(0) == 0);
  }
  tp_emulated_reset();
}

/* A mapping is unmapped as a whole. */
static void test_a_mapping_in_part(void) {
  FIND(cuMemAddressReserve);
  FIND(cuMemAddressFree);
  FIND(cuMemCreate);
  FIND(cuMemRelease);
  FIND(cuMemMap);
  FIND(cuMemUnmap);
  CUdeviceptr base;
  CUmemGenericAllocationHandle handle;
  CHECK_OK(cuMemAddressReserve(&base, 4 * PAGE, 0, 0, 0));
  CHECK_OK(cuMemCreate(&handle, 2 * PAGE, &properties, 0));
  CHECK_OK(cuMemMap(base + PAGE, 2 * PAGE, 0, handle, 0));
  CHECK_OK(cuMemRelease(handle));
  CHECK(cuMemUnmap(base, 2 * PAGE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(base + 2 * PAGE, 2 * PAGE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tp_emulated_used(0) == 2 * (int64_t)PAGE);
  CHECK_OK(cuMemUnmap(base, 4 * PAGE));
  CHECK(tp_emulated_used(0) == 0);
  CHECK_OK(cuMemAddressFree(base, 4 * PAGE));
}

/* Unmapping waits for nothing: work that comes too late ends the device. */
static void test_work_on_unmapped_memory(void) {
  FIND(cuMemSetAccess);
  CUdeviceptr base = make_page();
  CHECK_OK(cuMemSetAccess(base, PAGE, &access, 1));
  CHECK_OK(cudaMemsetAsync((void *)base, 0, 8, NULL));
  CHECK(tp_emulated_queued(0) == 1);
  drop_page(base);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  tp_emulated_reset();
  (void)cudaGetLastError();
}

static void test_names_and_failures(void) {
  FIND(cuMemAddressReserve);
  CUdeviceptr base;
  void *function;
  enum cudaDriverEntryPointQueryResult found;
  CHECK_OK(cudaGetDriverEntryPointByVersion("cuMemNothing", &function, 12000, cudaEnableDefault, &found));
  CHECK(!function && found == cudaDriverEntryPointSymbolNotFound);
  CHECK_OK(tp_emulated_fail("cuMemAddressReserve", 1, cudaErrorNotSupported));
  CHECK(cuMemAddressReserve(&base, PAGE, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemAddressReserve(&base, PAGE, 3, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressReserve(&base, (size_t)1 << 50, 0, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CUmemAllocationProp elsewhere = properties;
  elsewhere.location.id = 9;
  FIND(cuMemCreate);
  CUmemGenericAllocationHandle handle;
  CHECK(cuMemCreate(&handle, PAGE, &elsewhere, 0) == CUDA_ERROR_INVALID_DEVICE);
}

#endif

int main(void) {
  CHECK_OK(cudaSetDevice(0));
  test_rules();
  test_memory_moves();
#ifndef TP_TEST_ON_GPU
  test_capacity_and_poison();
  test_a_mapping_in_part();
  test_work_on_unmapped_memory();
  test_names_and_failures();
  return 0;
#else
  printf("%d differences\n", differences);
  return differences > 0;
#endif
}
