/* The scopes that a thread is in: where its allocations go, and where they count, when it is not the usual way. A part
 * of alloc.h. */
#ifndef TP_ROUTE_H
#define TP_ROUTE_H

#include "../types.h"

typedef struct tp__route {
  tp_mempool_scope_t *pool;  /* innermost, NULL: the default pools; may have been left: tp__mempool_current knows */
  tp_budget_scope_t *budget; /* innermost; may have been left: tp__budget_current knows */
} tp__route_t;
extern _Thread_local tp__route_t tp__route;

/* ---- route.c ---- */
/* The thread has entered a scope: when it ends it is out of all of them. */
void tp__route_entered(void);

/* ---- budget.c, private_pool.c ---- */
/* The calling thread ends: nobody but the handles of its scopes knows them any more. */
void tp__budget_end_thread(void);
void tp__mempool_end_thread(void);

#endif
