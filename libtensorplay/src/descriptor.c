/* Memory of tensors and storages. Each operation makes one of each and drops one soon, so every thread
 * keeps the objects that it dropped in a short list of its own for each kind and takes no lock. */
#include <pthread.h>
#include <stdlib.h>

#include "internal.h"

/* AddressSanitizer sees the use of a dropped object only when the object really goes back. */
#if defined(__SANITIZE_ADDRESS__)
#define KEPT_MAX 0
#else
#define KEPT_MAX 256
#endif

/* The first bytes of an object while it is in a list. */
typedef struct cell {
  struct cell *next;
} cell_t;

_Static_assert(sizeof(tp__storage_t) >= sizeof(cell_t), "the smaller kind of object has room for a link");

typedef struct list {
  cell_t *first;
  int32_t count;
} list_t;

typedef struct kept {
  list_t tensors;
  list_t storages;
  bool registered; /* the key holds these lists, so that they are emptied when the thread ends */
} kept_t;

static _Thread_local kept_t kept;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void drain_list(list_t *list) {
  while (list->first) {
    cell_t *cell = list->first;
    list->first = cell->next;
    free(cell);
  }
  list->count = 0;
}

static void drain(void *argument) {
  kept_t *lists = argument;
  lists->registered = false;
  drain_list(&lists->tensors);
  drain_list(&lists->storages);
}

static void make_key(void) { (void)pthread_key_create(&kept_key, drain); }

/* Lists that no key holds would leak when their thread ends: without the key nothing is kept. */
static bool may_keep(const list_t *list) {
  if (list->count >= KEPT_MAX) return false;
  if (!kept.registered) {
    (void)pthread_once(&kept_once, make_key);
    kept.registered = pthread_setspecific(kept_key, &kept) == 0;
  }
  return kept.registered;
}

static inline void *take(list_t *list, size_t nbytes, const char *what, const char *operation) {
  cell_t *cell = list->first;
  if (cell) {
    list->first = cell->next;
    --list->count;
    return cell;
  }
  void *object = malloc(nbytes);
  if (!object)
    tp__error_set(TP_HOST_MEMORY, operation, "the host has no room for a %s of %zu bytes", what, nbytes);
  return object;
}

static inline void give(list_t *list, void *object) {
  if (!may_keep(list)) {
    free(object);
    return;
  }
  cell_t *cell = object;
  cell->next = list->first;
  list->first = cell;
  ++list->count;
}

tp_tensor_t *tp__descriptor_take_tensor(const char *operation) {
  return take(&kept.tensors, sizeof(tp_tensor_t), "tensor", operation);
}

void tp__descriptor_give_tensor(tp_tensor_t *tensor) { give(&kept.tensors, tensor); }

tp__storage_t *tp__descriptor_take_storage(const char *operation) {
  return take(&kept.storages, sizeof(tp__storage_t), "storage", operation);
}

void tp__descriptor_give_storage(tp__storage_t *storage) { give(&kept.storages, storage); }
