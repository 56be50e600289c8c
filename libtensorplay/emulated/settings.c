/* The environment's switches, read once, when the first call needs them. */
#include "emulated.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GiB ((size_t)1 << 30)
#define MAX_MEMORY (16 * GiB) /* half of a device's address space, so that gaps never make it short */

static emu_settings_t settings = {.devices = 1, .memory = 2 * GiB, .peers = true};
static bool settings_read;

/* A decimal number that is all of the text up to its end; *out_end is where its digits end. */
static bool parse_number(const char *text, uint64_t *out, const char **out_end) {
  char *end;
  if (!isdigit((unsigned char)*text)) return false;
  errno = 0;
  *out = strtoull(text, &end, 10);
  *out_end = end;
  return errno == 0;
}

static bool parse_size(const char *text, size_t *out) {
  static const struct {
    const char *unit;
    int shift;
  } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  uint64_t number;
  const char *end;
  if (!parse_number(text, &number, &end)) return false;
  while (*end == ' ') end++;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(end, units[i].unit) != 0) continue;
    if (number > MAX_MEMORY >> units[i].shift) return false;
    *out = (size_t)number << units[i].shift;
    return *out > 0;
  }
  return false;
}

static void complain(const char *variable, const char *got, const char *expected) {
  if (settings.problem[0]) return;
  snprintf(settings.problem, sizeof settings.problem, "%s is \"%.80s\", expected %s", variable, got,
           expected);
}

static void read_switch(const char *variable, bool *out) {
  const char *text = getenv(variable);
  if (!text) return;
  if (!strcmp(text, "0") || !strcmp(text, "1"))
    *out = text[0] == '1';
  else
    complain(variable, text, "0 or 1");
}

static void read_environment(void) {
  uint64_t number;
  const char *end;
  const char *text = getenv("TENSORPLAY_EMULATED_DEVICES");
  if (text) {
    if (parse_number(text, &number, &end) && !*end && number <= EMU_MAX_DEVICES)
      settings.devices = (int)number;
    else
      complain("TENSORPLAY_EMULATED_DEVICES", text, "a number of devices from 0 to 8");
  }
  text = getenv("TENSORPLAY_EMULATED_MEMORY");
  if (text && !parse_size(text, &settings.memory))
    complain("TENSORPLAY_EMULATED_MEMORY", text,
             "bytes per device, for example 512MiB, above 0 and at most 16GiB");
  text = getenv("TENSORPLAY_EMULATED_SEED");
  if (text) {
    if (parse_number(text, &number, &end) && !*end)
      settings.seed = number;
    else
      complain("TENSORPLAY_EMULATED_SEED", text, "a number from 0 to 2**64 - 1");
  }
  read_switch("TENSORPLAY_EMULATED_FIBRES", &settings.fibres);
  read_switch("TENSORPLAY_EMULATED_PEERS", &settings.peers);
}

const emu_settings_t *emu_settings(void) {
  if (!settings_read) {
    settings_read = true;
    read_environment();
  }
  return &settings;
}

bool emu_settings_set_devices(int devices) {
  if (settings_read) return false;
  emu_settings();
  settings.devices = devices;
  return true;
}
