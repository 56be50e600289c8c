/* The allocators' settings: one text, `key:value,key:[a:b,c:d]`, from TENSORPLAY_CUDA_ALLOC_CONF when the library is
 * loaded, later from tp_memory_set_settings. Whoever obeys a setting asks tp__settings at the time.
 *
 * The settings in force are a record that never changes; setting puts another in its place. Records are kept for the
 * life of the process, since another thread may be reading one, and a program makes few. */
#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char variable[] = "TENSORPLAY_CUDA_ALLOC_CONF";

enum { TEXT_ROOM = 1024, REASON_ROOM = 640 };

typedef struct record {
  tp_memory_settings_t settings;
  struct record *before; /* so that no record is lost to a search for leaks */
  char text[TEXT_ROOM];  /* as it was given, without blanks */
} record_t;

static const tp_memory_settings_t defaults = {
    .text = "",
    .max_split_size = TP_NO_LIMIT,
    .max_non_split_rounding = 20 * TP_MiB,
    .large_segment_size = 20 * TP_MiB,
    .per_process_memory_fraction = 1.0,
    .pinned_max_cached_size = TP_NO_LIMIT,
    .caching = 1,
};

static record_t first;
static _Atomic(record_t *) in_force = &first;

/* Why the variable was refused; empty when it was not, or since other settings are in force. */
static char refusal[REASON_ROOM];
static _Atomic bool refused;

/* ---- reading a text ---- */

typedef struct reader {
  tp_memory_settings_t out;
  char reason[REASON_ROOM]; /* after the first failure */
} reader_t;

__attribute__((format(printf, 2, 3))) static bool fail(reader_t *reader, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->reason, sizeof reader->reason, format, arguments);
  va_end(arguments);
  return false;
}

/* Digits only, below 2**40. */
static bool read_number(const char *text, size_t *out) {
  size_t length = strspn(text, "0123456789");
  if (length == 0 || length > 12 || text[length]) return false;
  *out = strtoull(text, NULL, 10);
  return *out < (size_t)1 << 40;
}

static bool is_power(size_t number) { return number && !(number & (number - 1)); }

static bool read_backend(reader_t *reader, const char *key, const char *value, void *out) {
  (void)out;
  if (strcmp(value, "native") == 0) return true;
  if (strcmp(value, "cudaMallocAsync") == 0)
    return fail(reader, "%s: got 'cudaMallocAsync', expected 'native': the driver's own pools are not used", key);
  return fail(reader, "%s: got '%s', expected 'native'", key, value);
}

static bool read_switch(reader_t *reader, const char *key, const char *value, void *out) {
  bool on = strcmp(value, "True") == 0;
  if (!on && strcmp(value, "False") != 0) return fail(reader, "%s: got '%s', expected True or False", key, value);
  *(int32_t *)out = on;
  return true;
}

static bool read_mebibytes(reader_t *reader, const char *key, const char *value, void *out, size_t least) {
  size_t number;
  if (!read_number(value, &number) || number < least)
    return fail(reader, "%s: got '%s', expected MiB as an integer, at least %zu", key, value, least);
  *(size_t *)out = number * TP_MiB;
  return true;
}

static bool read_size(reader_t *reader, const char *key, const char *value, void *out) {
  return read_mebibytes(reader, key, value, out, 0);
}

static bool read_large_size(reader_t *reader, const char *key, const char *value, void *out) {
  return read_mebibytes(reader, key, value, out, 20);
}

/* Digits, a point, digits: strtod would ask the locale for the point. */
static bool read_real(const char *text, double *out) {
  double scale = 1;
  bool after_point = false, any = false;
  for (*out = 0; *text; text++) {
    if (*text == '.' && !after_point) {
      after_point = true;
    } else if (isdigit((unsigned char)*text)) {
      any = true;
      *out = 10 * *out + (*text - '0');
      if (after_point) scale *= 10;
    } else {
      return false;
    }
  }
  *out /= scale;
  return any;
}

static bool read_threshold(reader_t *reader, const char *key, const char *value, void *out) {
  double number;
  if (!read_real(value, &number) || !(number > 0 && number < 1))
    return fail(reader, "%s: got '%s', expected a number between 0 and 1, both excluded", key, value);
  *(double *)out = number;
  return true;
}

static bool read_fraction(reader_t *reader, const char *key, const char *value, void *out) {
  double number;
  if (!read_real(value, &number) || number > 1)
    return fail(reader, "%s: got '%s', expected a number from 0 to 1", key, value);
  *(double *)out = number;
  return true;
}

static bool read_threads(reader_t *reader, const char *key, const char *value, void *out) {
  size_t number;
  if (!read_number(value, &number) || !is_power(number) || number > 128)
    return fail(reader, "%s: got '%s', expected a power of two, at most 128", key, value);
  *(size_t *)out = number;
  return true;
}

static bool read_division(reader_t *reader, const char *key, const char *value, uint32_t *out) {
  size_t number;
  if (!read_number(value, &number) || (number && !is_power(number)) || number > 1024)
    return fail(reader, "%s: got '%s' divisions, expected 0 or a power of two, at most 1024", key, value);
  *out = (uint32_t)number;
  return true;
}

/* `n`, or `[256:n,512:m,>:k]`: n below 256 MiB, m from there to below 512 MiB, k from there on. */
static bool read_divisions(reader_t *reader, const char *key, const char *value, void *out) {
  uint32_t *divisions = out, number = 0;
  int from = 0;
  if (*value != '[') {
    if (!read_division(reader, key, value, &number)) return false;
    for (int i = 0; i < TP_ROUNDUP_INTERVALS; i++) divisions[i] = number;
    return true;
  }
  char list[TEXT_ROOM], *rest = NULL;
  snprintf(list, sizeof list, "%s", value + 1);
  list[strcspn(list, "]")] = '\0';
  for (char *pair = strtok_r(list, ",", &rest); pair; pair = strtok_r(NULL, ",", &rest)) {
    char *colon = strchr(pair, ':');
    if (!colon) return fail(reader, "%s: got '%s' in the list, expected size:divisions", key, pair);
    *colon = '\0';
    size_t size;
    int to = TP_ROUNDUP_INTERVALS;
    if (strcmp(pair, ">") != 0) {
      to = read_number(pair, &size) && is_power(size) ? __builtin_ctzll(size) + 1 : 0;
      if (to >= TP_ROUNDUP_INTERVALS) to = 0;
    }
    if (to <= from)
      return fail(reader, "%s: got the size '%s', expected rising powers of two from 1 to 65536 (MiB), then '>'",
                  key, pair);
    if (!read_division(reader, key, colon + 1, &number)) return false;
    while (from < to) divisions[from++] = number;
  }
  return true;
}

#define OFFSET(field) ((int)offsetof(tp_memory_settings_t, field))

enum { NO_EFFECT = -1 }; /* torch's key, whose value is checked and not kept: docs/guide/memory.md gives the reasons */

static const struct {
  const char *name;
  bool (*read)(reader_t *reader, const char *key, const char *value, void *out);
  int offset;
} keys[] = {
    {"backend", read_backend, NO_EFFECT},
    {"expandable_segments", read_switch, OFFSET(expandable_segments)},
    {"garbage_collection_threshold", read_threshold, OFFSET(garbage_collection_threshold)},
    {"graph_capture_record_stream_reuse", read_switch, NO_EFFECT},
    {"large_segment_size_mb", read_large_size, OFFSET(large_segment_size)},
    {"max_non_split_rounding_mb", read_large_size, OFFSET(max_non_split_rounding)},
    {"max_split_size_mb", read_large_size, OFFSET(max_split_size)},
    {"per_process_memory_fraction", read_fraction, OFFSET(per_process_memory_fraction)},
    {"pinned_max_cached_size_mb", read_size, OFFSET(pinned_max_cached_size)},
    {"pinned_num_register_threads", read_threads, NO_EFFECT},
    {"pinned_reserve_segment_size_mb", read_size, NO_EFFECT},
    {"pinned_use_background_threads", read_switch, NO_EFFECT},
    {"pinned_use_cuda_host_register", read_switch, NO_EFFECT},
    {"release_lock_on_cudamalloc", read_switch, OFFSET(release_lock_on_cudamalloc)},
    {"roundup_power2_divisions", read_divisions, OFFSET(roundup_power2_divisions)},
};

static bool fail_key(reader_t *reader, const char *key) {
  char names[REASON_ROOM / 2 + 128];
  int length = 0;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    length += snprintf(names + length, sizeof names - (size_t)length, "%s%s", i ? ", " : "", keys[i].name);
  return fail(reader, "got the key '%.64s', expected one of %s", key, names);
}

static bool read_entry(reader_t *reader, char *entry) {
  char *colon = strchr(entry, ':');
  if (!colon) return fail(reader, "got '%.64s', expected key:value", entry);
  *colon = '\0';
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (strcmp(keys[i].name, entry) != 0) continue;
    uint64_t unkept;
    void *out = keys[i].offset == NO_EFFECT ? (void *)&unkept : (char *)&reader->out + keys[i].offset;
    return keys[i].read(reader, entry, colon + 1, out);
  }
  return fail_key(reader, entry);
}

/* The end of an entry: the next comma outside of brackets. NULL where those do not match. */
static char *end_of_entry(char *entry) {
  char *end = entry + strcspn(entry, ",[]");
  if (*end == '[') {
    end += 1 + strcspn(end + 1, "[]");
    if (*end != ']') return NULL;
    end++;
  }
  return *end == ',' || !*end ? end : NULL;
}

static bool read_text(reader_t *reader, const char *text) {
  char copy[TEXT_ROOM];
  snprintf(copy, sizeof copy, "%s", text);
  for (char *entry = copy; *text;) {
    char *end = end_of_entry(entry);
    if (!end) return fail(reader, "got '%.64s', expected key:value or key:[size:value,...]", entry);
    bool is_last = !*end;
    *end = '\0';
    if (!read_entry(reader, entry)) return false;
    if (is_last) break;
    entry = end + 1;
  }
  return true;
}

/* ---- the record in force ---- */

const tp_memory_settings_t *tp__settings(void) {
  return &atomic_load_explicit(&in_force, memory_order_acquire)->settings;
}

/* Puts what the text says into a record; the reason where it cannot be. */
static bool fill(record_t *record, const char *text, reader_t *reader) {
  size_t length = 0;
  *reader = (reader_t){.out = defaults};
  for (; *text; text++) {
    if (isspace((unsigned char)*text)) continue;
    if (length == TEXT_ROOM - 1) return fail(reader, "got a text of more than %d characters", TEXT_ROOM - 1);
    record->text[length++] = *text;
  }
  record->text[length] = '\0';
  if (!read_text(reader, record->text)) return false;
  for (int i = 0; i < TP_ROUNDUP_INTERVALS; i++) reader->out.rounds_up |= reader->out.roundup_power2_divisions[i] > 1;
  reader->out.text = record->text;
  reader->out.caching = first.settings.caching;
  record->settings = reader->out;
  return true;
}

__attribute__((constructor)) static void load(void) {
  const char *text = getenv(variable);
  first.settings = defaults;
  first.settings.caching = getenv("TENSORPLAY_NO_CUDA_MEMORY_CACHING") == NULL;
  reader_t reader;
  if (!text || fill(&first, text, &reader)) return;
  snprintf(refusal, sizeof refusal, "%s", reader.reason);
  atomic_store_explicit(&refused, true, memory_order_relaxed);
}

tp_status_t tp__settings_check(const char *operation) {
  if (!atomic_load_explicit(&refused, memory_order_relaxed)) return TP_OK;
  return tp__error_set(TP_STATE, operation, "the variable %s cannot be obeyed: %s", variable, refusal);
}

tp_status_t tp_memory_set_settings(const char *text) {
  const char *operation = "set_allocator_settings";
  if (!text) return tp__error_set(TP_INVALID_ARGUMENT, operation, "got NULL, expected a text");
  record_t *record = malloc(sizeof *record);
  if (!record) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory for the settings");
  reader_t reader;
  if (!fill(record, text, &reader)) {
    free(record);
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "%s", reader.reason);
  }
  /* Without a lock, which a thread that a forked child lacks could hold there. */
  record->before = atomic_load_explicit(&in_force, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&in_force, &record->before, record, memory_order_release,
                                                memory_order_relaxed))
    ;
  atomic_store_explicit(&refused, false, memory_order_relaxed);
  return TP_OK;
}

void tp_memory_get_settings(tp_memory_settings_t *out) { *out = *tp__settings(); }
