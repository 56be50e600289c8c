/* What makes the host wait for a device is noted here before it waits, so that a program can find its waits: told to
 * a listener ("warn") or refused ("error"). Off, a note costs a load. */
#include "internal.h"

static _Atomic int32_t debug_mode; /* TP_WAIT_* */
static _Atomic(tp_wait_hook_t) hook;

/* Noted under a lock, and not told yet. */
static _Thread_local const char *owed;

tp_status_t tp_wait_set_debug_mode(int32_t mode) {
  if (mode < TP_WAIT_SILENT || mode > TP_WAIT_REFUSED)
    return tp__error_set(TP_INVALID_ARGUMENT, "wait_set_debug_mode", "got %d, expected 0, 1 or 2", (int)mode);
  atomic_store_explicit(&debug_mode, mode, memory_order_relaxed);
  return TP_OK;
}

int32_t tp_wait_debug_mode(void) { return atomic_load_explicit(&debug_mode, memory_order_relaxed); }

void tp_wait_set_hook(tp_wait_hook_t replacement) { atomic_store_explicit(&hook, replacement, memory_order_release); }

static tp_status_t refuse(const char *operation) {
  return tp__error_set(TP_STATE, operation,
                       "would wait for the device, which the sync debug mode or a filter of its warnings forbids");
}

static tp_status_t tell(const char *operation) {
  tp_wait_hook_t found = atomic_load_explicit(&hook, memory_order_acquire);
  return found && found(operation) ? refuse(operation) : TP_OK;
}

tp_status_t tp__wait_note(const char *operation) {
  int32_t mode = tp_wait_debug_mode();
  if (mode == TP_WAIT_SILENT) return TP_OK;
  return mode == TP_WAIT_TOLD ? tell(operation) : refuse(operation);
}

tp_status_t tp__wait_note_locked(const char *operation) {
  int32_t mode = tp_wait_debug_mode();
  if (mode == TP_WAIT_REFUSED) return refuse(operation);
  if (mode == TP_WAIT_TOLD) owed = operation;
  return TP_OK;
}

tp_status_t tp__wait_tell_owed(void) {
  const char *operation = owed;
  if (!operation) return TP_OK;
  owed = NULL;
  return tell(operation);
}
