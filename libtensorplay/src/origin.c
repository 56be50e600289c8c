/* Where in the program a call comes from, as a number that only the listener understands: Python keeps stacks under
 * such numbers (packages/tensorplay-cuda/src/tensorplay/cuda/_origins.py). */
#include "internal.h"

static _Atomic(tp_origin_hook_t) hook;

void tp_origin_set_hook(tp_origin_hook_t replacement) {
  atomic_store_explicit(&hook, replacement, memory_order_release);
}

int64_t tp__origin(void) {
  tp_origin_hook_t found = atomic_load_explicit(&hook, memory_order_acquire);
  return found ? found() : 0;
}
