/* Virtual memory: the driver's calls that reserve addresses, make memory, and map it there. Programs find them, as all
 * calls of the driver, through cudaGetDriverEntryPointByVersion. Nothing here waits for the device's work. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

#define GRANULARITY ((size_t)2 << 20)

/* Memory lives while its handle is held or it is mapped. */
typedef struct memory {
  struct memory *next;
  int device;
  size_t nbytes;
  int held;   /* references to its handle */
  int mapped; /* mappings */
} memory_t;

static memory_t *memories;

static bool is_whole(size_t nbytes) { return nbytes > 0 && nbytes % GRANULARITY == 0; }

/* ---- addresses ---- */

/* A hint may be ignored. */
static cudaError_t reserve(CUdeviceptr *out, size_t nbytes, size_t alignment, unsigned long long flags) {
  if (!out || !is_whole(nbytes) || (alignment & (alignment - 1)) || flags) return cudaErrorInvalidValue;
  uintptr_t begin = emu_reservation_make(nbytes, alignment > GRANULARITY ? alignment : GRANULARITY);
  if (!begin) return cudaErrorMemoryAllocation;
  *out = begin;
  return cudaSuccess;
}

static CUresult address_reserve(CUdeviceptr *out, size_t nbytes, size_t alignment, CUdeviceptr hint,
                                unsigned long long flags) {
  (void)hint;
  EMU_RETURN_DRIVER(cuMemAddressReserve, reserve(out, nbytes, alignment, flags));
}

static CUresult address_free(CUdeviceptr begin, size_t nbytes) {
  EMU_RETURN_DRIVER(cuMemAddressFree, emu_reservation_drop(begin, nbytes) ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- memory ---- */

static cudaError_t create(CUmemGenericAllocationHandle *out, size_t nbytes, const CUmemAllocationProp *properties,
                          unsigned long long flags) {
  if (!out || !properties || flags || !is_whole(nbytes)) return cudaErrorInvalidValue;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return cudaErrorInvalidValue;
  int device = properties->location.id;
  if (device < 0 || device >= emu_device_count()) return cudaErrorInvalidDevice;
  if (!emu_memory_take(device, nbytes)) return cudaErrorMemoryAllocation;
  memory_t *memory = malloc(sizeof *memory);
  if (!memory) {
    emu_memory_give(device, nbytes);
    return cudaErrorMemoryAllocation;
  }
  *memory = (memory_t){.next = memories, .device = device, .nbytes = nbytes, .held = 1};
  memories = memory;
  *out = (uintptr_t)memory;
  return cudaSuccess;
}

static CUresult memory_create(CUmemGenericAllocationHandle *out, size_t nbytes, const CUmemAllocationProp *properties,
                              unsigned long long flags) {
  EMU_RETURN_DRIVER(cuMemCreate, create(out, nbytes, properties, flags));
}

/* The memory of a handle that is held, or NULL. */
static memory_t *find(CUmemGenericAllocationHandle handle) {
  memory_t *memory = memories;
  while (memory && (uintptr_t)memory != handle) memory = memory->next;
  return memory && memory->held ? memory : NULL;
}

static void end_unless_used(memory_t *memory) {
  if (memory->held || memory->mapped) return;
  memory_t **link = &memories;
  while (*link != memory) link = &(*link)->next;
  *link = memory->next;
  emu_memory_give(memory->device, memory->nbytes);
  free(memory);
}

static cudaError_t release(CUmemGenericAllocationHandle handle) {
  memory_t *memory = find(handle);
  if (!memory) return cudaErrorInvalidValue;
  memory->held--;
  end_unless_used(memory);
  return cudaSuccess;
}

static CUresult memory_release(CUmemGenericAllocationHandle handle) {
  EMU_RETURN_DRIVER(cuMemRelease, release(handle));
}

/* ---- mapping ---- */

static cudaError_t map(CUdeviceptr begin, size_t nbytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
  memory_t *memory = find(handle);
  if (!memory || offset || flags || nbytes != memory->nbytes || begin % GRANULARITY || !emu_mapping_fits(begin, nbytes))
    return cudaErrorInvalidValue;
  emu_range_t mapping = {.begin = begin, .nbytes = nbytes, .device = memory->device, .mapping = memory};
  if (!emu_mapping_make(mapping)) return cudaErrorMemoryAllocation;
  memory->mapped++;
  return cudaSuccess;
}

static CUresult memory_map(CUdeviceptr begin, size_t nbytes, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags) {
  EMU_RETURN_DRIVER(cuMemMap, map(begin, nbytes, offset, handle, flags));
}

/* The memory that is mapped around an address. */
static cudaError_t retain(CUmemGenericAllocationHandle *out, CUdeviceptr address) {
  emu_place_t place;
  const emu_range_t *range = emu_range_find(address, false, &place);
  if (!out || !range || !range->mapping) return cudaErrorInvalidValue;
  memory_t *memory = range->mapping;
  memory->held++;
  *out = (uintptr_t)memory;
  return cudaSuccess;
}

static CUresult memory_retain(CUmemGenericAllocationHandle *out, void *address) {
  EMU_RETURN_DRIVER(cuMemRetainAllocationHandle, retain(out, (CUdeviceptr)(uintptr_t)address));
}

/* Whether mappings, each of them whole, cover it. */
static bool is_covered(CUdeviceptr begin, size_t nbytes) {
  while (nbytes > 0) {
    const emu_range_t *mapping = emu_mapping_at(begin);
    if (!mapping || mapping->nbytes > nbytes) return false;
    begin += mapping->nbytes;
    nbytes -= mapping->nbytes;
  }
  return true;
}

static cudaError_t set_access(CUdeviceptr begin, size_t nbytes, const CUmemAccessDesc *access, size_t count) {
  if (!access || count == 0 || nbytes == 0 || !is_covered(begin, nbytes)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++) {
    int device = access[i].location.id;
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return cudaErrorInvalidValue;
    if (device < 0 || device >= emu_device_count()) return cudaErrorInvalidDevice;
    if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return cudaErrorInvalidValue;
  }
  for (size_t done = 0; done < nbytes;) {
    emu_range_t *mapping = emu_mapping_at(begin + done);
    for (size_t i = 0; i < count; i++) {
      unsigned int bit = 1u << access[i].location.id;
      mapping->access |= bit;
      if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) mapping->access &= ~bit;
    }
    done += mapping->nbytes;
  }
  return cudaSuccess;
}

static CUresult memory_set_access(CUdeviceptr begin, size_t nbytes, const CUmemAccessDesc *access, size_t count) {
  EMU_RETURN_DRIVER(cuMemSetAccess, set_access(begin, nbytes, access, count));
}

/* Whether it consists of reserved pages and of mappings, each of them whole. */
static bool can_be_unmapped(CUdeviceptr begin, size_t nbytes) {
  if (begin % GRANULARITY || !is_whole(nbytes)) return false;
  while (nbytes > 0) {
    const emu_range_t *mapping = emu_mapping_at(begin);
    size_t step = mapping ? mapping->nbytes : GRANULARITY;
    if (step > nbytes || (!mapping && !emu_mapping_fits(begin, step))) return false;
    begin += step;
    nbytes -= step;
  }
  return true;
}

static void unmap_at(CUdeviceptr begin, memory_t *memory) {
  emu_mapping_drop(begin);
  memory->mapped--;
  end_unless_used(memory);
}

/* Pages without memory are passed over. */
static cudaError_t unmap(CUdeviceptr begin, size_t nbytes) {
  if (!can_be_unmapped(begin, nbytes)) return cudaErrorInvalidValue;
  for (CUdeviceptr page = begin; page < begin + nbytes; page += GRANULARITY) {
    const emu_range_t *mapping = emu_mapping_at(page);
    if (mapping) unmap_at(page, mapping->mapping);
  }
  return cudaSuccess;
}

static CUresult memory_unmap(CUdeviceptr begin, size_t nbytes) { EMU_RETURN_DRIVER(cuMemUnmap, unmap(begin, nbytes)); }

/* ---- finding them ---- */

static const struct {
  const char *name;
  void (*function)(void);
} functions[] = {
/* The compiler compares the types with the driver's. */
#define FUNCTION(name, function) {#name, (void (*)(void))(1 ? (function) : (__typeof__(&name))0)},
    FUNCTION(cuMemAddressReserve, address_reserve)
    FUNCTION(cuMemAddressFree, address_free)
    FUNCTION(cuMemCreate, memory_create)
    FUNCTION(cuMemRelease, memory_release)
    FUNCTION(cuMemRetainAllocationHandle, memory_retain)
    FUNCTION(cuMemMap, memory_map)
    FUNCTION(cuMemSetAccess, memory_set_access)
    FUNCTION(cuMemUnmap, memory_unmap)
    FUNCTION(cuCtxGetCurrent, emu_current_context)
    FUNCTION(cuLibraryGetModule, emu_library_module)
    FUNCTION(cuKernelGetFunction, emu_kernel_function)
    FUNCTION(cuFuncGetModule, emu_function_module)
    FUNCTION(cuGraphKernelNodeGetParams, emu_kernel_node_params)
#undef FUNCTION
};

/* All of them are older than any version that may be asked for. */
static cudaError_t entry_point(const char *name, void **out, enum cudaDriverEntryPointQueryResult *found) {
  if (!name || !out) return cudaErrorInvalidValue;
  *out = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!strcmp(functions[i].name, name)) memcpy(out, &functions[i].function, sizeof *out);
  if (found) *found = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

/* With a toolkit before 12.5 this is cudaGetDriverEntryPoint, and has no version. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, __attribute__((unused)) unsigned int version,
                                             __attribute__((unused)) unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found) {
  EMU_RETURN(cudaGetDriverEntryPointByVersion, false, entry_point(name, out, found));
}
