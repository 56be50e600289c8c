/* Each thread's small blocks, in front of the pools. */
#include "alloc.h"

static _Atomic int32_t suspended;

void tp__cache_suspend(void) { atomic_fetch_add(&suspended, 1); }

void tp__cache_resume(void) { atomic_fetch_sub(&suspended, 1); }
