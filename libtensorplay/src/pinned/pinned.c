/* Pinned memory is allocated and given back here: the order of attempts, and the public functions. */
#include "pinned.h"

tp__pinned_t tp__pinned = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char allocating[] = "pin_memory";

/* Whether the host would wait for devices: for copies, or when memory goes back. Under the lock. */
static bool waits_to_release(void) {
  return (tp__pinned_waits() || tp__pinned.idle_nbytes > 0) && !tp__captures_underway();
}

/* ---- the order of attempts, under the lock ---- */

/* A block, for a request for which there is no free one of its size; NULL on failure. */
static tp__pinned_block_t *obtain(size_t nbytes) {
  tp__pinned_settle(false);
  tp__pinned_block_t *block = tp__pinned_take(nbytes, false);
  if (!block && tp__pinned_obtain(nbytes, &block, allocating)) return NULL;
  if (!block && waits_to_release() && tp__wait_note_locked(allocating)) return NULL;
  /* In a capture nothing goes back, and nothing is waited for. */
  for (int32_t wait = 0; !block && wait < 2 && !tp__captures_underway(); ++wait) {
    if (wait) tp__pinned_settle(true);
    if ((block = tp__pinned_take(nbytes, false))) break;
    (void)tp__pinned_release_idle(0); /* where it fails, so does what follows */
    if (tp__pinned_obtain(nbytes, &block, allocating)) return NULL;
  }
  if (!block) {
    const int64_t *stats = tp__pinned.stats;
    tp__error_set(TP_HOST_MEMORY, allocating,
                  "the host has no room for %zu more bytes of pinned memory (got %zu, rounded); %lld are pinned, "
                  "%lld in use: drop pinned tensors, or use memory that is not pinned",
                  tp__pinned_round(nbytes), nbytes,
                  (long long)stats[TP_HOST_STAT_allocated_bytes + TP_FIGURE_CURRENT],
                  (long long)stats[TP_HOST_STAT_active_bytes + TP_FIGURE_CURRENT]);
  }
  return block;
}

static void keep_to_bound(void) { (void)tp__pinned_release_idle(tp__settings()->pinned_max_cached_size); }

/* ---- for everybody ---- */

void *tp_pinned_alloc(size_t nbytes) {
  if (nbytes == 0) {
    tp__error_clear();
    return NULL;
  }
  if (nbytes > PTRDIFF_MAX / 8) {
    tp__error_set(TP_OVERFLOW, allocating, "got %zu bytes, expected fewer than 2**60", nbytes);
    return NULL;
  }
  if (tp__device_check_process(allocating)) return NULL;
  pthread_mutex_lock(&tp__pinned.lock);
  tp__pinned_block_t *block = tp__pinned_take(nbytes, true);
  if (!block) {
    block = obtain(nbytes);
    keep_to_bound();
  }
  pthread_mutex_unlock(&tp__pinned.lock);
  tp_status_t told = tp__wait_tell_owed();
  if (!block) return NULL;
  char *address = tp__pinned_address(block);
  tp__order_alloc(address, nbytes, NULL);
  if (!told) return address;
  tp_pinned_free(address);
  return NULL;
}

void tp_pinned_free(void *address) {
  if (!address || tp__device_is_inherited()) return;
  pthread_mutex_lock(&tp__pinned.lock);
  tp__pinned_block_t *block = tp__pinned_find(address, 1);
  if (block && block->state == TP_PINNED_LIVE && tp__pinned_address(block) == address) {
    tp__pinned_count(TP_HOST_STAT_requested_bytes, -(int64_t)block->requested);
    tp__order_forget(address, block->requested);
    tp__pinned_retire(block);
    keep_to_bound();
  }
  pthread_mutex_unlock(&tp__pinned.lock);
}

/* What CUDA knows of memory that other libraries have pinned. */
static bool is_pinned_elsewhere(const void *address) {
  struct cudaPointerAttributes attributes = {.type = cudaMemoryTypeUnregistered};
  int32_t before, device = 0;
  while (device < TP_MAX_DEVICES && !tp_device_is_started(device)) ++device;
  if (device == TP_MAX_DEVICES || !tp__device_visit(device, &before)) return false;
  if (cudaPointerGetAttributes(&attributes, address)) (void)cudaGetLastError();
  tp__device_leave(before);
  return attributes.type == cudaMemoryTypeHost;
}

int32_t tp_pinned_contains(const void *address) {
  if (!address || tp__device_is_inherited()) return 0;
  pthread_mutex_lock(&tp__pinned.lock);
  const tp__pinned_block_t *block = tp__pinned_find(address, 1);
  bool ours = block && block->state == TP_PINNED_LIVE;
  pthread_mutex_unlock(&tp__pinned.lock);
  return ours || is_pinned_elsewhere(address);
}

tp_status_t tp_pinned_empty_cache(void) {
  const char *operation = "empty_host_cache";
  TP_TRY(tp__device_check_process(operation));
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&tp__pinned.lock);
  bool waits = waits_to_release();
  tp_status_t status = waits ? tp__wait_note_locked(operation) : TP_OK;
  if (!status) {
    if (waits) tp__pinned_settle(true);
    error = tp__pinned_release_idle(0);
  }
  pthread_mutex_unlock(&tp__pinned.lock);
  TP_TRY(status);
  TP_TRY(tp__wait_tell_owed());
  return error ? tp__error_set_cuda(error, operation, "cudaFreeHost") : TP_OK;
}
