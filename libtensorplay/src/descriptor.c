/* Memory of tensors and storages. Each operation makes one of each and drops one soon, so every thread
 * keeps the objects that it dropped in a short list of its own and takes no lock. */
#include <pthread.h>
#include <stdlib.h>

#include "internal.h"

/* AddressSanitizer sees the use of a dropped object only when the object really goes back. */
#if defined(__SANITIZE_ADDRESS__)
#define KEPT_MAX 0
#else
#define KEPT_MAX 256
#endif

typedef union tensor_cell {
  union tensor_cell *next;
  tp_tensor_t tensor;
} tensor_cell_t;

typedef union storage_cell {
  union storage_cell *next;
  tp__storage_t storage;
} storage_cell_t;

typedef struct kept {
  tensor_cell_t *tensors;
  storage_cell_t *storages;
  int32_t n_tensors;
  int32_t n_storages;
  bool registered; /* the key holds this list, so that it is emptied when the thread ends */
} kept_t;

static _Thread_local kept_t kept;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void drain(void *argument) {
  kept_t *list = argument;
  list->registered = false;
  while (list->tensors) {
    tensor_cell_t *cell = list->tensors;
    list->tensors = cell->next;
    free(cell);
  }
  while (list->storages) {
    storage_cell_t *cell = list->storages;
    list->storages = cell->next;
    free(cell);
  }
  list->n_tensors = list->n_storages = 0;
}

static void make_key(void) { (void)pthread_key_create(&kept_key, drain); }

/* A list that no key holds would leak when its thread ends: without the key nothing is kept. */
static bool may_keep(int32_t count) {
  if (count >= KEPT_MAX) return false;
  if (!kept.registered) {
    (void)pthread_once(&kept_once, make_key);
    kept.registered = pthread_setspecific(kept_key, &kept) == 0;
  }
  return kept.registered;
}

tp_tensor_t *tp__descriptor_take_tensor(void) {
  tensor_cell_t *cell = kept.tensors;
  if (!cell) return malloc(sizeof *cell);
  kept.tensors = cell->next;
  --kept.n_tensors;
  return &cell->tensor;
}

void tp__descriptor_give_tensor(tp_tensor_t *tensor) {
  if (!may_keep(kept.n_tensors)) {
    free(tensor);
    return;
  }
  tensor_cell_t *cell = (tensor_cell_t *)tensor;
  cell->next = kept.tensors;
  kept.tensors = cell;
  ++kept.n_tensors;
}

tp__storage_t *tp__descriptor_take_storage(void) {
  storage_cell_t *cell = kept.storages;
  if (!cell) return malloc(sizeof *cell);
  kept.storages = cell->next;
  --kept.n_storages;
  return &cell->storage;
}

void tp__descriptor_give_storage(tp__storage_t *storage) {
  if (!may_keep(kept.n_storages)) {
    free(storage);
    return;
  }
  storage_cell_t *cell = (storage_cell_t *)storage;
  cell->next = kept.storages;
  kept.storages = cell;
  ++kept.n_storages;
}
