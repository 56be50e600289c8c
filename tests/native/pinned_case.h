/* What the tests of pinned memory share: taking and dropping blocks with a check of everything after each step, a clean
 * state between cases, streams that stand still. */
#ifndef TP_TESTS_PINNED_CASE_H
#define TP_TESTS_PINNED_CASE_H

#include <string.h>

#include "tp_emulated.h"
#include "validate_pinned.h"
#include "values.h"

static inline char *take(size_t nbytes) {
  char *memory = tp_pinned_alloc(nbytes);
  CHECK(memory && (uintptr_t)memory % 512 == 0);
  validate_pinned();
  return memory;
}

static inline void drop(void *memory) {
  tp_pinned_free(memory);
  validate_pinned();
}

/* Nothing in use and nothing cached, as at first. */
static inline void clear(void) {
  tp_emulated_reset();
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  CHECK_OK(tp_device_synchronize(0));
  CHECK_OK(tp_pinned_empty_cache());
  validate_pinned();
  CHECK(HOST_CURRENT(active_requests) == 0 && HOST_CURRENT(requested_bytes) == 0 && HOST_CURRENT(allocations) == 0);
}

static inline int32_t code(const char *name) { return tp_emulated_error_code(name); }
static inline int64_t driver_calls(const char *name) { return tp_emulated_call_count(name, -1); }

static inline tp_tensor_t *empty(size_t nbytes) {
  tp_tensor_t *made = tp_tensor_empty_1d(TP_DTYPE_uint8, 0, (int64_t)nbytes);
  CHECK(made);
  return made;
}

/* A stream whose work stays queued until somebody waits for it, or it is released. */
static inline tp_stream_t *held_stream(void) {
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_emulated_hold(0, tp_stream_handle(stream)));
  return stream;
}

static inline void release(tp_stream_t *stream) { CHECK_OK(tp_emulated_release(0, tp_stream_handle(stream))); }

static inline void expect_bytes(const tp_tensor_t *tensor, char value) {
  size_t nbytes = (size_t)tp_tensor_numel(tensor);
  char *found = malloc(nbytes);
  CHECK(found);
  CHECK_OK(tp_tensor_copy_to_host(tensor, found, nbytes));
  for (size_t i = 0; i < nbytes; ++i) CHECK(found[i] == value);
  free(found);
}

#endif
