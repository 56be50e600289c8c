/* The table of the library's functions. Its pointers, and the lists TABLE_REQUIRED and TABLE_OPTIONAL of their names,
 * stand above, where binding.py writes them. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int32_t table_has_emulated;

/* Into text why the library cannot serve; 0 when it can. The version comes first: it explains what else is missing. */
static int table_fill(void *library, const char *path, char *text, size_t room) {
  const char *missing = NULL;
  void *found = dlsym(library, "tp_abi_version");
  int32_t version = found ? ((__typeof__(tp_abi_version))found)() : TP_ABI_VERSION;
  const char *other = "%s has version %d of the C ABI, expected %d: they were not built together";
  if (version != TP_ABI_VERSION) return snprintf(text, room, other, path, (int)version, TP_ABI_VERSION);
#define FIND(name)                         \
  found = dlsym(library, #name);           \
  if (!found && !missing) missing = #name; \
  *(void **)&name = found;
  TABLE_REQUIRED(FIND)
#undef FIND
  if (missing) return snprintf(text, room, "%s: no %s", path, missing);
#define FIND(name) *(void **)&name = dlsym(library, #name);
  TABLE_OPTIONAL(FIND)
#undef FIND
  table_has_emulated = tp_emulated_reset != NULL;
  return 0;
}

/* Fills the table from the library at `path`. NULL on success, else a text. The table belongs to the process,
 * and live objects belong to the library they came from: so it is filled once and never again. */
static const char *tp_table_bind(const char *path) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char bound[4096];
  static _Thread_local char text[8192];
  const char *failure = text;
  pthread_mutex_lock(&lock);
  void *library = bound[0] ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (bound[0] && strcmp(bound, path) == 0) {
    failure = NULL; /* an interrupt may come right behind the first call */
  } else if (bound[0]) {
    snprintf(text, sizeof text, "already bound to %s, asked for %s", bound, path);
  } else if (!library) {
    snprintf(text, sizeof text, "%s", dlerror());
  } else if (table_fill(library, path, text, sizeof text)) {
    dlclose(library);
  } else {
    snprintf(bound, sizeof bound, "%s", path);
    failure = NULL;
  }
  pthread_mutex_unlock(&lock);
  return failure;
}

static int32_t tp_table_has_emulated(void) { return table_has_emulated; }
