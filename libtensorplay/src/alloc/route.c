/* The scopes that a thread is in, and what becomes of them when it ends in one. */
#include "alloc.h"

_Thread_local tp__route_t tp__route;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end(void *argument) {
  (void)argument;
  if (tp__device_is_inherited()) return;
  tp__budget_end_thread();
  tp__mempool_end_thread();
}

static void make_key(void) { (void)pthread_key_create(&key, end); }

void tp__route_entered(void) {
  (void)pthread_once(&once, make_key);
  (void)pthread_setspecific(key, &tp__route); /* without host memory a thread that ends in a scope keeps its record */
}
