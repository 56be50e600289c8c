/* Inflating: every kind of block; no stream, however damaged, gives wrong bytes or leaves its room. */
#include <string.h>

#include "check.h"
#include "inflate_streams.h"
#include "internal.h"

#define TEXT_NBYTES 1500
#define GUARD_NBYTES 300

static uint8_t text[TEXT_NBYTES];
static uint8_t out[TEXT_NBYTES + GUARD_NBYTES];

/* Letters, with pieces that repeat what came shortly before. */
static void write_text(void) {
  uint32_t state = 7;
  for (size_t n = 0; n < TEXT_NBYTES;) {
    state = state * 1664525u + 1013904223u;
    uint32_t kind = state >> 28;
    if (kind < 5 && n > 60) {
      size_t distance = 1 + (state >> 8) % 60, length = 3 + (state >> 16) % 40;
      for (; length && n < TEXT_NBYTES; --length, ++n) text[n] = text[n - distance];
    } else {
      text[n++] = (uint8_t)('a' + (state >> 20) % (kind < 12 ? 26 : 4));
    }
  }
}

static bool inflate(const uint8_t *stream, size_t nbytes, size_t out_nbytes) {
  memset(out, 0xA5, sizeof out);
  bool good = tp__inflate(stream, nbytes, out, out_nbytes);
  for (size_t i = out_nbytes; i < sizeof out; ++i) CHECK(out[i] == 0xA5);
  return good;
}

static void check_stream(const uint8_t *stream, size_t nbytes, size_t out_nbytes) {
  CHECK(inflate(stream, nbytes, out_nbytes));
  CHECK(memcmp(out, text, out_nbytes) == 0);
  CHECK(!inflate(stream, nbytes, out_nbytes + 1));
  if (out_nbytes) CHECK(!inflate(stream, nbytes, out_nbytes - 1));
  /* A copy of exact size, so that AddressSanitizer sees a read behind it. */
  for (size_t n = 0; n < nbytes; ++n) {
    uint8_t *cut = malloc(n ? n : 1);
    memcpy(cut, stream, n);
    CHECK(!inflate(cut, n, out_nbytes));
    free(cut);
  }
  uint8_t *damaged = malloc(nbytes);
  for (size_t bit = 0; bit < 8 * nbytes; ++bit) {
    memcpy(damaged, stream, nbytes);
    damaged[bit / 8] ^= (uint8_t)(1 << bit % 8);
    /* A few bits mean nothing, as those that fill the last byte; the checksum guards all others. */
    if (inflate(damaged, nbytes, out_nbytes)) CHECK(memcmp(out, text, out_nbytes) == 0);
  }
  free(damaged);
}

int main(void) {
  write_text();
  check_stream(empty_stream, sizeof empty_stream, 0);
  check_stream(stored_stream, sizeof stored_stream, 90);
  check_stream(fixed_stream, sizeof fixed_stream, 400);
  check_stream(literals_stream, sizeof literals_stream, 700);
  check_stream(dynamic_stream, sizeof dynamic_stream, TEXT_NBYTES);
  return 0;
}
