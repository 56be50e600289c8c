/* What the processes that share an event see of it: how often it was recorded, and the last record that was reached.
 *
 * It lies in an anonymous file of the process that made the event, which the others find through /proc: so nothing
 * stays behind however a process ends. */
#include "emulated.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x544E564550495545u

typedef struct counts {
  uint64_t key; /* of the event's handle: a file of the same number may be another one */
  _Atomic uint64_t recorded;
  _Atomic uint64_t reached;
} counts_t;

struct emu_shared {
  int references;
  int file; /* -1 in the other processes */
  counts_t *counts;
};

/* The handle, of which CUDA shows bytes. */
typedef struct handle {
  uint64_t magic;
  uint64_t key;
  int64_t process;
  int64_t file;
} handle_t;

_Static_assert(sizeof(handle_t) <= sizeof(cudaIpcEventHandle_t), "the handle has room");

static emu_shared_t *map(int file, bool keep) {
  emu_shared_t *shared = calloc(1, sizeof *shared);
  void *counts = shared ? mmap(NULL, sizeof(counts_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (counts == MAP_FAILED || !keep) close(file);
  if (counts == MAP_FAILED) {
    free(shared);
    return NULL;
  }
  *shared = (emu_shared_t){.references = 1, .file = keep ? file : -1, .counts = counts};
  return shared;
}

emu_shared_t *emu_shared_new(void) {
  static uint64_t made;
  int file = memfd_create("emulated event", MFD_CLOEXEC);
  if (file < 0) return NULL;
  if (ftruncate(file, sizeof(counts_t))) {
    close(file);
    return NULL;
  }
  emu_shared_t *shared = map(file, true);
  if (shared) shared->counts->key = (uint64_t)getpid() << 32 | ++made;
  return shared;
}

emu_shared_t *emu_shared_retain(emu_shared_t *shared) {
  if (shared) shared->references++;
  return shared;
}

void emu_shared_release(emu_shared_t *shared) {
  if (!shared || --shared->references) return;
  (void)munmap(shared->counts, sizeof *shared->counts);
  if (shared->file >= 0) close(shared->file);
  free(shared);
}

uint64_t emu_shared_record(emu_shared_t *shared) { return atomic_fetch_add(&shared->counts->recorded, 1) + 1; }

uint64_t emu_shared_recorded(const emu_shared_t *shared) { return atomic_load(&shared->counts->recorded); }

bool emu_shared_reached(const emu_shared_t *shared, uint64_t number) {
  return atomic_load(&shared->counts->reached) >= number;
}

void emu_shared_reach(emu_shared_t *shared, uint64_t number) {
  uint64_t reached = atomic_load(&shared->counts->reached);
  while (reached < number && !atomic_compare_exchange_weak(&shared->counts->reached, &reached, number)) continue;
}

bool emu_shared_handle(const emu_shared_t *shared, cudaIpcEventHandle_t *out) {
  if (shared->file < 0) return false;
  handle_t handle = {MAGIC, shared->counts->key, getpid(), shared->file};
  memset(out, 0, sizeof *out);
  memcpy(out, &handle, sizeof handle);
  return true;
}

cudaError_t emu_shared_open(const cudaIpcEventHandle_t *bytes, emu_shared_t **out) {
  handle_t handle;
  memcpy(&handle, bytes, sizeof handle);
  if (handle.magic != MAGIC) return cudaErrorInvalidValue;
  if (handle.process == getpid()) return cudaErrorDeviceUninitialized;
  char path[64];
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)handle.process, (long long)handle.file);
  int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return cudaErrorMapBufferObjectFailed;
  struct stat found;
  if (fstat(file, &found) || found.st_size != sizeof(counts_t)) {
    close(file);
    return cudaErrorMapBufferObjectFailed;
  }
  emu_shared_t *shared = map(file, false);
  if (!shared) return cudaErrorMemoryAllocation;
  if (shared->counts->key != handle.key) {
    emu_shared_release(shared);
    return cudaErrorMapBufferObjectFailed;
  }
  *out = shared;
  return cudaSuccess;
}
