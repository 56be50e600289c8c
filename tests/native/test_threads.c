/* The whole library with eight threads on two devices: each allocates, launches, copies and frees on streams of
 * its own, and takes over tensors that others have made, ordered by events alone. */
#include <pthread.h>

#include "values.h"

enum { THREADS = 8, SLOTS = 16, STEPS = 150, DEVICES = 2, NUMEL = 300 };

/* A tensor that holds `value` everywhere once `ready` has passed. */
typedef struct parcel {
  tp_tensor_t *tensor;
  tp_event_t *ready;
  int64_t value;
} parcel_t;

/* Whoever exchanges an entry for NULL owns what was in it. */
static _Atomic(parcel_t *) slots[SLOTS];

static parcel_t *make(uint32_t *state) {
  int32_t device = (int32_t)(next_random(state) % DEVICES);
  int64_t shape[] = {NUMEL};
  parcel_t *parcel = malloc(sizeof *parcel);
  CHECK(parcel);
  parcel->value = next_random(state) % 1000;
  tp_tensor_t *filled = tp_tensor_empty(TP_DTYPE_int64, device, 1, shape);
  CHECK(filled);
  CHECK_OK(tp_tensor_fill_int(filled, parcel->value - 5));
  parcel->tensor = tp_binary_int(0 /* add */, filled, 5, 0, 0, NULL);
  CHECK(parcel->tensor);
  tp_tensor_release(filled);
  parcel->ready = tp_event_create(0);
  CHECK(parcel->ready);
  CHECK_OK(tp_event_record(parcel->ready, tp_stream_current(device)));
  return parcel;
}

/* Reads the tensor on this thread's stream, which nothing but the event orders behind the maker's. */
static void consume(parcel_t *parcel) {
  tp_stream_t *stream = tp_stream_current(tp_tensor_device(parcel->tensor));
  CHECK_OK(tp_stream_wait_event(stream, parcel->ready));
  CHECK_OK(tp_tensor_record_stream(parcel->tensor, stream));
  tp_tensor_t *sum = tp_reduce(0 /* sum */, parcel->tensor, 0, 0, TP_DTYPE_NONE, NULL);
  CHECK(sum);
  /* Freed while the sum may still be waiting: the recorded use keeps the block. */
  tp_tensor_release(parcel->tensor);
  tp_event_release(parcel->ready);
  int64_t found = -1;
  CHECK_OK(tp_tensor_copy_to_host(sum, &found, sizeof found));
  tp_tensor_release(sum);
  CHECK(found == parcel->value * NUMEL);
  free(parcel);
}

static void *run_thread(void *argument) {
  uint32_t state = (uint32_t)(uintptr_t)argument;
  for (int32_t device = 0; device < DEVICES; device++) {
    tp_stream_t *stream = tp_stream_from_pool(device, 0);
    CHECK(stream);
    CHECK_OK(tp_stream_set_current(stream));
  }
  for (int i = 0; i < STEPS; i++) {
    CHECK_OK(tp_device_set((int32_t)(next_random(&state) % DEVICES)));
    _Atomic(parcel_t *) *slot = &slots[next_random(&state) % SLOTS];
    parcel_t *found = atomic_exchange(slot, NULL);
    if (found) {
      consume(found);
    } else {
      parcel_t *other = atomic_exchange(slot, make(&state));
      if (other) consume(other);
    }
    if (next_random(&state) % 32 == 0) {
      CHECK_OK(tp_memory_empty_cache((int32_t)(next_random(&state) % DEVICES)));
    }
  }
  return NULL;
}

int main(void) {
  values_start();
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, run_thread, (void *)(i + 1)) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < SLOTS; i++) {
    parcel_t *left = atomic_exchange(&slots[i], NULL);
    if (left) consume(left);
  }
  for (int32_t device = 0; device < DEVICES; device++) {
    CHECK_OK(tp_memory_empty_cache(device));
    CHECK(tp_memory_stat(device, 0 /* allocation.all.current */) == 0);
  }
  return 0;
}
