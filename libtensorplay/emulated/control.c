/* The control header: see include/tp_emulated.h. */
#include "emulated.h"

#include <string.h>

#include "include/tp_emulated.h"

static const char *const function_names[EMU_CALL_COUNT] = {
#define EMU_CALL(name) #name,
#include "calls.def"
#undef EMU_CALL
};

static int find_function(const char *name) {
  for (int i = 0; i < EMU_CALL_COUNT; i++)
    if (name && !strcmp(function_names[i], name)) return i;
  return -1;
}

static bool known(int32_t device) { return device >= 0 && device < EMU_MAX_DEVICES; }

/* The handle 0 names a default stream by its device, any other handle by itself. */
static emu_stream_t *find_stream(int32_t device, uintptr_t handle) {
  if (!known(device)) return NULL;
  return handle ? emu_stream_find((cudaStream_t)handle) : emu_stream_legacy(device);
}

static void seed(uint64_t value) {
  emu_stream_t *const *streams;
  emu_streams(&streams); /* the first use of the streams sets the environment's seed */
  emu_random_seed(value);
}

void tp_emulated_reset(void) {
  emu_stream_t *const *streams;
  emu_lock();
  size_t count = emu_streams(&streams);
  for (size_t i = 0; i < count; i++) streams[i]->held = false;
  for (int device = 0; device < EMU_MAX_DEVICES; device++) emu_capacity_set(device, 0);
  for (int call = 0; call < EMU_CALL_COUNT; call++) emu_fail((emu_call_t)call, 0, cudaSuccess);
  emu_calls_clear();
  emu_contexts_clear();
  emu_fault_clear();
  emu_copy_patience_set(0);
  emu_fibres_set(emu_settings()->fibres);
  seed(emu_settings()->seed);
  emu_unlock();
}

int32_t tp_emulated_set_device_count(int32_t count) {
  if (count < 0 || count > EMU_MAX_DEVICES) return -1;
  emu_lock();
  bool done = emu_settings_set_devices(count);
  emu_unlock();
  return done ? 0 : -1;
}

int32_t tp_emulated_set_capacity(int32_t device, size_t nbytes) {
  if (!known(device)) return -1;
  emu_lock();
  emu_capacity_set(device, nbytes);
  emu_unlock();
  return 0;
}

int64_t tp_emulated_capacity(int32_t device) {
  if (!known(device)) return -1;
  emu_lock();
  size_t nbytes = emu_capacity(device);
  emu_unlock();
  return (int64_t)nbytes;
}

int64_t tp_emulated_used(int32_t device) {
  if (!known(device)) return -1;
  emu_lock();
  size_t nbytes = emu_used(device);
  emu_unlock();
  return (int64_t)nbytes;
}

void tp_emulated_set_seed(uint64_t value) {
  emu_lock();
  seed(value);
  emu_unlock();
}

uint64_t tp_emulated_seed(void) {
  emu_stream_t *const *streams;
  emu_lock();
  emu_streams(&streams);
  uint64_t value = emu_seed();
  emu_unlock();
  return value;
}

int32_t tp_emulated_error_code(const char *name) { return name ? emu_error_code(name) : -1; }

int32_t tp_emulated_fail(const char *function, int64_t nth, int32_t error) {
  int call = find_function(function);
  if (call < 0 || nth < 0 || (nth > 0 && error <= 0)) return -1;
  emu_lock();
  emu_fail((emu_call_t)call, (uint64_t)nth, (cudaError_t)error);
  emu_unlock();
  return 0;
}

int64_t tp_emulated_call_count(const char *function, int32_t device) {
  int call = find_function(function);
  if (call < 0 || (device != -1 && !known(device))) return -1;
  emu_lock();
  uint64_t count = emu_calls((emu_call_t)call, device);
  emu_unlock();
  return (int64_t)count;
}

void tp_emulated_clear_call_counts(void) {
  emu_lock();
  emu_calls_clear();
  emu_unlock();
}

const char *tp_emulated_function_name(int32_t number) {
  return number >= 0 && number < EMU_CALL_COUNT ? function_names[number] : NULL;
}

static int32_t set_held(int32_t device, uintptr_t handle, bool held) {
  emu_lock();
  emu_stream_t *stream = find_stream(device, handle);
  if (stream) stream->held = held;
  emu_unlock();
  return stream ? 0 : -1;
}

int32_t tp_emulated_hold(int32_t device, uintptr_t handle) { return set_held(device, handle, true); }
int32_t tp_emulated_release(int32_t device, uintptr_t handle) { return set_held(device, handle, false); }

int32_t tp_emulated_set_copy_delay(int32_t steps) {
  if (steps < 0) return -1;
  emu_lock();
  emu_copy_patience_set(steps);
  emu_unlock();
  return 0;
}

int32_t tp_emulated_copy_delay(void) {
  emu_lock();
  int steps = emu_copy_patience();
  emu_unlock();
  return steps;
}

int64_t tp_emulated_stream_queued(int32_t device, uintptr_t handle) {
  emu_lock();
  const emu_stream_t *stream = find_stream(device, handle);
  int64_t count = stream ? (int64_t)stream->count : -1;
  emu_unlock();
  return count;
}

int64_t tp_emulated_queued(int32_t device) {
  emu_stream_t *const *streams;
  int64_t sum = 0;
  if (device != -1 && !known(device)) return -1;
  emu_lock();
  size_t count = emu_streams(&streams);
  for (size_t i = 0; i < count; i++)
    if (device == -1 || streams[i]->device == device) sum += (int64_t)streams[i]->count;
  emu_unlock();
  return sum;
}

int32_t tp_emulated_step(int32_t n) {
  emu_lock();
  int steps = emu_step(n);
  emu_unlock();
  return steps;
}

void tp_emulated_set_fibres(int32_t on) {
  emu_lock();
  emu_fibres_set(on != 0);
  emu_unlock();
}

int32_t tp_emulated_fibres(void) {
  emu_lock();
  bool on = emu_fibres();
  emu_unlock();
  return on;
}

int32_t tp_emulated_is_own_address(uintptr_t address) {
  emu_place_t place;
  emu_lock();
  const emu_range_t *range = emu_range_find(address, false, &place);
  emu_unlock();
  return range != NULL;
}

const char *tp_emulated_fault_text(void) {
  static _Thread_local char text[EMU_FAULT_NBYTES];
  emu_lock();
  memcpy(text, emu_fault_text(), sizeof text);
  emu_unlock();
  return text;
}
