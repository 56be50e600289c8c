/* Budgets: what a named part of the program holds, and may hold, of all devices together.
 *
 * A scope is one stay of a thread in a budget, linked to the scope that was around it; a block refers to the scope in
 * which it was allocated, and so counts in its budget and in all those around it. Scopes are counted: by their handle,
 * by the thread that is in them, by the scopes inside and by their blocks. So blocks find their budgets whenever and
 * wherever they are freed, and a budget is gone with the last handle, scope and block.
 *
 * Scopes may be left in any order and by any thread (a generator can keep one): a scope is only marked as left, and
 * its thread steps out of those that are when it looks next, and out of all when it ends. One lock guards all of it; it
 * is the innermost. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tp_budget_t *budgets;

/* ---- life; under the lock ---- */

static void drop_budget(tp_budget_t *budget) {
  if (--budget->references > 0) return;
  tp_budget_t **link = &budgets;
  while (*link != budget) link = &(*link)->next;
  *link = budget->next;
  free(budget);
}

static void drop_scope(tp_budget_scope_t *scope) {
  while (scope && --scope->references == 0) {
    tp_budget_scope_t *around = scope->around;
    drop_budget(scope->budget);
    free(scope);
    scope = around;
  }
}

/* The thread steps out of scopes that were left. */
static void step_out(void) {
  while (tp__route.budget && tp__route.budget->left) {
    tp_budget_scope_t *scope = tp__route.budget;
    tp__route.budget = scope->around;
    if (scope->around) scope->around->references++;
    drop_scope(scope);
  }
}

/* Where the budget of that name is linked, or would be. */
static tp_budget_t **find(const char *name) {
  tp_budget_t **link = &budgets;
  while (*link && strcmp((*link)->figures.name, name) < 0) link = &(*link)->next;
  return link;
}

static tp_budget_t *find_or_make(const char *name) {
  tp_budget_t **link = find(name);
  if (*link && strcmp((*link)->figures.name, name) == 0) return *link;
  tp_budget_t *budget = calloc(1, sizeof *budget);
  if (!budget) {
    tp__error_set(TP_HOST_MEMORY, "memory_budget", "no host memory for a budget");
    return NULL;
  }
  strcpy(budget->figures.name, name); /* whose length was checked */
  budget->figures.limit = TP_NO_LIMIT;
  budget->next = *link;
  return *link = budget;
}

tp_budget_t *tp_budget_create(const char *name, size_t limit) {
  const char *operation = "memory_budget";
  size_t length = name ? strlen(name) : 0;
  if (length == 0 || length >= TP_BUDGET_NAME_ROOM) {
    tp__error_set(TP_INVALID_ARGUMENT, operation, "got a name of %zu bytes, expected 1 to %d", length,
                  TP_BUDGET_NAME_ROOM - 1);
    return NULL;
  }
  if (tp__device_check_process(operation)) return NULL;
  pthread_mutex_lock(&lock);
  tp_budget_t *budget = find_or_make(name);
  if (budget) {
    budget->references++;
    if (limit != TP_NO_LIMIT) budget->figures.limit = limit;
  }
  pthread_mutex_unlock(&lock);
  return budget;
}

void tp_budget_release(tp_budget_t *budget) {
  if (!budget || tp__device_is_inherited()) return;
  pthread_mutex_lock(&lock);
  drop_budget(budget);
  pthread_mutex_unlock(&lock);
}

/* ---- scopes ---- */

tp_budget_scope_t *tp_budget_enter(tp_budget_t *budget) {
  const char *operation = "memory_budget";
  if (tp__device_check_process(operation)) return NULL;
  tp_budget_scope_t *scope = calloc(1, sizeof *scope);
  if (!scope) {
    tp__error_set(TP_HOST_MEMORY, operation, "no host memory to enter a budget");
    return NULL;
  }
  pthread_mutex_lock(&lock);
  step_out();
  *scope = (tp_budget_scope_t){.budget = budget, .around = tp__route.budget, .references = 2};
  for (const tp_budget_scope_t *other = scope->around; other; other = other->around)
    scope->counted_around |= other->budget == budget;
  budget->references++;
  tp__route.budget = scope; /* the thread's reference to the one around it is now the scope's */
  pthread_mutex_unlock(&lock);
  tp__route_entered();
  return scope;
}

void tp__budget_end_thread(void) {
  pthread_mutex_lock(&lock);
  drop_scope(tp__route.budget);
  tp__route.budget = NULL;
  pthread_mutex_unlock(&lock);
}

void tp_budget_leave(tp_budget_scope_t *scope) {
  if (!scope || tp__device_is_inherited()) return;
  pthread_mutex_lock(&lock);
  scope->left = true;
  drop_scope(scope);
  step_out();
  pthread_mutex_unlock(&lock);
}

tp_budget_scope_t *tp__budget_current(void) {
  pthread_mutex_lock(&lock);
  step_out();
  pthread_mutex_unlock(&lock);
  return tp__route.budget;
}

/* ---- counting ---- */

static void add(tp_budget_scope_t *scope, size_t nbytes, size_t requested_nbytes) {
  for (; scope; scope = scope->around) {
    if (scope->counted_around) continue;
    tp_budget_figures_t *figures = &scope->budget->figures;
    figures->live += nbytes;
    figures->requested += requested_nbytes;
  }
}

bool tp__budget_take(const tp__request_t *request, tp_budget_figures_t *out_over) {
  bool fits = true;
  pthread_mutex_lock(&lock);
  for (const tp_budget_scope_t *scope = request->budget; fits && scope; scope = scope->around) {
    const tp_budget_figures_t *figures = &scope->budget->figures;
    fits = figures->live <= figures->limit && request->nbytes <= figures->limit - figures->live;
    if (!fits) *out_over = *figures;
  }
  if (fits) {
    add(request->budget, request->nbytes, request->requested_nbytes);
    request->budget->references++;
  }
  pthread_mutex_unlock(&lock);
  return fits;
}

void tp__budget_keep(tp_budget_scope_t *scope) {
  pthread_mutex_lock(&lock);
  for (; scope; scope = scope->around) {
    tp_budget_figures_t *figures = &scope->budget->figures;
    if (figures->live > figures->peak) figures->peak = figures->live;
  }
  pthread_mutex_unlock(&lock);
}

void tp__budget_give(tp_budget_scope_t *scope, size_t nbytes, size_t requested_nbytes) {
  pthread_mutex_lock(&lock);
  for (const tp_budget_scope_t *other = scope; other; other = other->around) {
    if (other->counted_around) continue;
    other->budget->figures.live -= nbytes;
    other->budget->figures.requested -= requested_nbytes;
  }
  drop_scope(scope);
  pthread_mutex_unlock(&lock);
}

int32_t tp_budget_list(int32_t room, tp_budget_figures_t *out) {
  TP_TRY(tp__device_check_process("memory_budgets"));
  int32_t count = 0;
  pthread_mutex_lock(&lock);
  for (const tp_budget_t *budget = budgets; budget; budget = budget->next, count++) {
    if (count < room) out[count] = budget->figures;
  }
  pthread_mutex_unlock(&lock);
  return count;
}
