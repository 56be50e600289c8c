/* Which memory an address belongs to, and where its bytes lie.
 *
 * One reservation of address space holds, for each device, a range that nobody can touch, and at a fixed
 * distance behind them the memory itself. Programs see addresses of the former; the runtime adds the
 * distance. So a host that follows a device address is stopped by the processor, as with a real device. Behind
 * the devices' ranges lies one for addresses that are reserved, whichever device's memory is mapped there. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "include/host_device.h"

#define GiB ((size_t)1 << 30)
#ifdef __SANITIZE_THREAD__ /* leaves 1.5 TiB of addresses, of which chance takes up to 1 */
#define DEVICE_SPACE (16 * GiB)
#define RESERVED_SPACE (96 * GiB)
#else
#define DEVICE_SPACE (32 * GiB) /* twice the most memory of a device, so that gaps never make it short */
#define RESERVED_SPACE (256 * GiB)
#endif
#define SPACE (EMU_MAX_DEVICES * DEVICE_SPACE + RESERVED_SPACE)
#define PAGE ((size_t)4096)

typedef struct ranges {
  emu_range_t *items; /* sorted by address */
  size_t count;
  size_t room;
} ranges_t;

static uintptr_t space; /* of the devices, then what is reserved; the memory lies SPACE behind */
static ranges_t device_ranges[EMU_MAX_DEVICES];
static ranges_t pinned_ranges;
static ranges_t reservations;
static ranges_t mappings; /* in reservations */

/* ---- sorted ranges ---- */

/* How many ranges begin at or below the address. */
static size_t position(const ranges_t *ranges, uintptr_t address) {
  size_t low = 0, high = ranges->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranges->items[middle].begin <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static const emu_range_t *holder(const ranges_t *ranges, uintptr_t address, bool end) {
  size_t i = position(ranges, address);
  if (i == 0) return NULL;
  const emu_range_t *range = &ranges->items[i - 1];
  return address - range->begin < range->nbytes + end ? range : NULL;
}

static bool insert(ranges_t *ranges, emu_range_t range) {
  if (ranges->count == ranges->room) {
    size_t room = ranges->room ? 2 * ranges->room : 64;
    emu_range_t *grown = realloc(ranges->items, room * sizeof *grown);
    if (!grown) return false;
    ranges->items = grown;
    ranges->room = room;
  }
  size_t i = position(ranges, range.begin);
  memmove(&ranges->items[i + 1], &ranges->items[i], (ranges->count++ - i) * sizeof range);
  ranges->items[i] = range;
  return true;
}

/* Removes the range that begins at the address; its size, 0 when none does. */
static size_t erase(ranges_t *ranges, uintptr_t begin) {
  size_t i = position(ranges, begin);
  if (i == 0 || ranges->items[i - 1].begin != begin) return 0;
  size_t nbytes = ranges->items[i - 1].nbytes;
  memmove(&ranges->items[i - 1], &ranges->items[i], (ranges->count-- - i) * sizeof *ranges->items);
  return nbytes;
}

/* ---- device memory ---- */

static bool reserve(void) {
  if (space) return true;
  void *base = mmap(NULL, 2 * SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  space = (uintptr_t)base;
  return true;
}

static size_t pages(size_t nbytes) { return (nbytes + PAGE - 1) / PAGE * PAGE; }

static uintptr_t align(uintptr_t address, size_t unit) { return (address + unit - 1) / unit * unit; }

/* The lowest gap that fits, with an untouchable page on both sides; 0 when there is none. */
static uintptr_t find_gap(const ranges_t *ranges, uintptr_t begin, size_t room, size_t nbytes, size_t unit) {
  uintptr_t limit = begin + room;
  if (nbytes > room) return 0;
  begin = align(begin + PAGE, unit);
  for (size_t i = 0; i < ranges->count; i++) {
    if (begin + pages(nbytes) + PAGE <= ranges->items[i].begin) return begin;
    begin = align(ranges->items[i].begin + pages(ranges->items[i].nbytes) + PAGE, unit);
  }
  return begin + pages(nbytes) + PAGE <= limit ? begin : 0;
}

/* The ranges among which an address of the devices' space is found. */
static ranges_t *ranges_at(uintptr_t address) {
  size_t i = (address - space) / DEVICE_SPACE;
  return i < EMU_MAX_DEVICES ? &device_ranges[i] : &mappings;
}

/* Lists a range with memory behind it, poisoned. */
static bool back(ranges_t *ranges, emu_range_t range) {
  unsigned char *memory = (unsigned char *)(range.begin + SPACE);
  if (mprotect(memory, pages(range.nbytes), PROT_READ | PROT_WRITE)) return false;
  if (!insert(ranges, range)) {
    mprotect(memory, pages(range.nbytes), PROT_NONE);
    return false;
  }
  memset(memory, EMU_POISON, range.nbytes);
  return true;
}

/* Memory that is gone cannot be touched at all: stronger than poison, and the host gets its pages back. */
static size_t unback(ranges_t *ranges, uintptr_t begin) {
  size_t nbytes = erase(ranges, begin);
  if (nbytes) {
    void *memory = (void *)(begin + SPACE);
    madvise(memory, pages(nbytes), MADV_DONTNEED);
    mprotect(memory, pages(nbytes), PROT_NONE);
  }
  return nbytes;
}

uintptr_t emu_range_make(int device, size_t nbytes) {
  if (!reserve()) return 0;
  uintptr_t start = space + (size_t)device * DEVICE_SPACE;
  uintptr_t begin = find_gap(&device_ranges[device], start, DEVICE_SPACE, nbytes, PAGE);
  if (!begin || !back(&device_ranges[device], (emu_range_t){.begin = begin, .nbytes = nbytes, .device = device}))
    return 0;
  return begin;
}

size_t emu_range_drop(uintptr_t begin) { return unback(ranges_at(begin), begin); }

/* ---- reserved addresses, and what is mapped there ---- */

uintptr_t emu_reservation_make(size_t nbytes, size_t alignment) {
  if (!reserve()) return 0;
  uintptr_t start = space + EMU_MAX_DEVICES * DEVICE_SPACE;
  uintptr_t begin = find_gap(&reservations, start, RESERVED_SPACE, nbytes, alignment);
  return begin && insert(&reservations, (emu_range_t){.begin = begin, .nbytes = nbytes}) ? begin : 0;
}

/* Whether a mapping lies there, wholly or in part. */
static bool is_mapped(uintptr_t begin, size_t nbytes) {
  size_t i = position(&mappings, begin + nbytes - 1);
  return i > 0 && mappings.items[i - 1].begin + mappings.items[i - 1].nbytes > begin;
}

bool emu_reservation_drop(uintptr_t begin, size_t nbytes) {
  const emu_range_t *range = holder(&reservations, begin, false);
  if (!range || range->begin != begin || range->nbytes != nbytes || is_mapped(begin, nbytes)) return false;
  return erase(&reservations, begin) > 0;
}

bool emu_mapping_fits(uintptr_t begin, size_t nbytes) {
  const emu_range_t *range = holder(&reservations, begin, false);
  return range && nbytes <= range->begin + range->nbytes - begin && !is_mapped(begin, nbytes);
}

bool emu_mapping_make(emu_range_t mapping) { return back(&mappings, mapping); }

emu_range_t *emu_mapping_at(uintptr_t begin) {
  size_t i = position(&mappings, begin);
  return i > 0 && mappings.items[i - 1].begin == begin ? &mappings.items[i - 1] : NULL;
}

void emu_mapping_drop(uintptr_t begin) { unback(&mappings, begin); }

/* ---- pinned memory ---- */

bool emu_pinned_add(uintptr_t begin, size_t nbytes, int device) {
  return insert(&pinned_ranges, (emu_range_t){.begin = begin, .nbytes = nbytes, .device = device});
}

bool emu_pinned_remove(uintptr_t begin) { return erase(&pinned_ranges, begin) > 0; }

/* ---- asking ---- */

static bool in_space(uintptr_t address) { return space && address - space < SPACE; }

const emu_range_t *emu_range_find(uintptr_t address, bool end, emu_place_t *out_place) {
  if (in_space(address)) {
    const emu_range_t *range = holder(ranges_at(address), address, end);
    *out_place = range ? EMU_DEVICE : EMU_INVALID;
    return range;
  }
  const emu_range_t *range = holder(&pinned_ranges, address, end);
  *out_place = range ? EMU_PINNED : EMU_PAGEABLE;
  return range;
}

/* Whether a device can reach it: mappings say so for themselves. */
static bool has_access(int device, const emu_range_t *range) {
  return range->mapping ? range->access >> device & 1 : emu_peer_enabled(device, range->device);
}

/* Whether so many bytes from an address in the range are there, and are the device's own; mappings that follow each
 * other count as one. Allocations never do. */
static bool holds(const emu_range_t *range, uintptr_t begin, size_t nbytes) {
  while (range && has_access(range->device, range)) {
    size_t rest = range->begin + range->nbytes - begin;
    if (nbytes <= rest) return true;
    begin += rest;
    nbytes -= rest;
    int device = range->device;
    range = emu_mapping_at(begin);
    if (range && range->device != device) return false;
  }
  return false;
}

emu_place_t emu_locate(const void *address, size_t nbytes, int *out_device, unsigned char **out_host) {
  uintptr_t begin = (uintptr_t)address;
  emu_place_t place;
  const emu_range_t *range = emu_range_find(begin, false, &place);
  *out_host = (unsigned char *)begin;
  if (place == EMU_DEVICE && !holds(range, begin, nbytes)) return EMU_INVALID;
  if (place == EMU_PINNED && nbytes > range->begin + range->nbytes - begin) return EMU_PAGEABLE;
  if (place == EMU_DEVICE) {
    *out_device = range->device;
    *out_host = (unsigned char *)(begin + SPACE);
  }
  return place;
}

void *tp_host_address(const void *address) {
  uintptr_t begin = (uintptr_t)address;
  int device = emu_kernel_device();
  emu_place_t place;
  if (!address) return NULL;
  const emu_range_t *range = emu_range_find(begin, true, &place);
  if (place == EMU_PAGEABLE)
    emu_kernel_fault(cudaErrorIllegalAddress, "host memory at %p, which is not pinned", address);
  if (place == EMU_INVALID)
    emu_kernel_fault(cudaErrorIllegalAddress, "%p lies in no live allocation of a device", address);
  if (place == EMU_PINNED) return (void *)begin;
  if (!has_access(device, range))
    emu_kernel_fault(cudaErrorIllegalAddress, "memory of device %d at %p, to which device %d has no %s",
                     range->device, address, device, range->mapping ? "access" : "peer access");
  return (void *)(begin + SPACE);
}

static cudaError_t attributes(struct cudaPointerAttributes *out, const void *address) {
  emu_place_t place;
  if (!out) return cudaErrorInvalidValue;
  const emu_range_t *range = emu_range_find((uintptr_t)address, false, &place);
  memset(out, 0, sizeof *out);
  out->type = place == EMU_DEVICE   ? cudaMemoryTypeDevice
              : place == EMU_PINNED ? cudaMemoryTypeHost
                                    : cudaMemoryTypeUnregistered;
  out->device = range ? range->device : cudaInvalidDeviceId;
  if (range) out->devicePointer = (void *)(uintptr_t)address;
  if (place != EMU_DEVICE) out->hostPointer = (void *)(uintptr_t)address;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *address) {
  EMU_RETURN(cudaPointerGetAttributes, true, attributes(out, address));
}
