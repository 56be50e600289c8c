/* Unpacks zlib streams (RFC 1950 and 1951): kernel images are stored so. Every input ends in true or
 * false, and never in a read or a write outside the two buffers. */
#include <string.h>

#include "internal.h"

#define CODE_BITS_MAX 15
#define FAST_BITS 10
#define LITERALS_MAX 288
#define DISTANCES_MAX 32

typedef struct reader {
  const uint8_t *next;
  const uint8_t *end;
  uint64_t bits; /* read and not used yet, the next one lowest; zeros above count */
  uint32_t count;
  bool failed; /* more bits were used than there are */
} reader_t;

typedef struct writer {
  uint8_t *out;
  size_t used;
  size_t size;
} writer_t;

/* A canonical code. Codes of up to FAST_BITS bits are looked up in one step, longer ones counted out. */
typedef struct code {
  uint16_t fast[1 << FAST_BITS]; /* symbol * 16 + bits; 0: none so short */
  uint16_t counts[CODE_BITS_MAX + 1];
  uint16_t symbols[LITERALS_MAX]; /* by rising code */
} code_t;

static uint32_t peek(reader_t *in, uint32_t n) {
  for (; in->count <= 56 && in->next < in->end; in->count += 8)
    in->bits |= (uint64_t)*in->next++ << in->count;
  return (uint32_t)in->bits & ((1u << n) - 1);
}

static void skip(reader_t *in, uint32_t n) {
  if (n > in->count) {
    in->failed = true;
    n = in->count;
  }
  in->bits = n < 64 ? in->bits >> n : 0;
  in->count -= n;
}

static uint32_t take(reader_t *in, uint32_t n) {
  uint32_t value = peek(in, n);
  skip(in, n);
  return value;
}

/* False when the lengths claim more codes than there are. */
static bool code_build(code_t *code, const uint8_t *lengths, uint32_t n) {
  uint16_t first[CODE_BITS_MAX + 2] = {0}; /* place in symbols of each length's first code */
  uint32_t next[CODE_BITS_MAX + 2] = {0};  /* the next code of each length */
  memset(code, 0, sizeof *code);
  for (uint32_t i = 0; i < n; ++i) ++code->counts[lengths[i]];
  code->counts[0] = 0;
  int32_t left = 1;
  for (uint32_t bits = 1; bits <= CODE_BITS_MAX; ++bits) {
    left = 2 * left - code->counts[bits];
    if (left < 0) return false;
    first[bits + 1] = (uint16_t)(first[bits] + code->counts[bits]);
    next[bits + 1] = (next[bits] + code->counts[bits]) << 1;
  }
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t bits = lengths[i];
    if (bits == 0) continue;
    code->symbols[first[bits]++] = (uint16_t)i;
    uint32_t value = next[bits]++;
    if (bits > FAST_BITS) continue;
    uint32_t reversed = 0; /* codes come highest bit first, all else lowest first */
    for (uint32_t b = 0; b < bits; ++b) reversed |= (value >> b & 1) << (bits - 1 - b);
    for (; reversed < 1 << FAST_BITS; reversed += 1u << bits)
      code->fast[reversed] = (uint16_t)(i << 4 | bits);
  }
  return true;
}

/* The next symbol, -1 where no code fits. */
static int32_t decode(reader_t *in, const code_t *code) {
  uint32_t ahead = peek(in, CODE_BITS_MAX);
  uint32_t entry = code->fast[ahead & ((1 << FAST_BITS) - 1)];
  if (entry) {
    skip(in, entry & 15);
    return (int32_t)(entry >> 4);
  }
  int32_t value = 0, first = 0, index = 0;
  for (uint32_t bits = 1; bits <= CODE_BITS_MAX; ++bits) {
    value |= (int32_t)(ahead >> (bits - 1) & 1);
    int32_t count = code->counts[bits];
    if (value - first < count) {
      skip(in, bits);
      return code->symbols[index + value - first];
    }
    index += count;
    first = (first + count) << 1;
    value <<= 1;
  }
  return -1;
}

static bool copy_stored(reader_t *in, writer_t *out) {
  skip(in, in->count % 8);
  uint32_t length = take(in, 16);
  uint32_t complement = take(in, 16);
  if (in->failed || length != (~complement & 0xffff) || length > out->size - out->used) return false;
  for (uint32_t i = 0; i < length; ++i) out->out[out->used++] = (uint8_t)take(in, 8);
  return !in->failed;
}

static bool copy_match(reader_t *in, writer_t *out, const code_t *distances, uint32_t symbol) {
  static const uint16_t length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  static const uint16_t distance_base[] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                           33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                           1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  if (symbol >= sizeof length_extra) return false;
  size_t length = length_base[symbol] + take(in, length_extra[symbol]);
  int32_t place = decode(in, distances);
  if (place < 0 || place >= 30) return false;
  size_t distance = distance_base[place] + take(in, place < 2 ? 0 : (uint32_t)place / 2 - 1);
  if (in->failed || distance > out->used || length > out->size - out->used) return false;
  uint8_t *to = out->out + out->used;
  for (size_t i = 0; i < length; ++i) to[i] = to[i - distance]; /* may repeat what it has just written */
  out->used += length;
  return true;
}

static bool copy_coded(reader_t *in, writer_t *out, const code_t *literals, const code_t *distances) {
  for (;;) {
    int32_t symbol = decode(in, literals);
    if (symbol < 0 || in->failed) return false;
    if (symbol == 256) return true;
    if (symbol > 256) {
      if (!copy_match(in, out, distances, (uint32_t)symbol - 257)) return false;
    } else {
      if (out->used == out->size) return false;
      out->out[out->used++] = (uint8_t)symbol;
    }
  }
}

static bool read_fixed_codes(code_t *literals, code_t *distances) {
  uint8_t lengths[LITERALS_MAX];
  for (uint32_t i = 0; i < LITERALS_MAX; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  bool built = code_build(literals, lengths, LITERALS_MAX);
  memset(lengths, 5, DISTANCES_MAX);
  return built && code_build(distances, lengths, DISTANCES_MAX);
}

static bool read_dynamic_codes(reader_t *in, code_t *literals, code_t *distances) {
  static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  uint8_t lengths[LITERALS_MAX + DISTANCES_MAX] = {0};
  uint32_t n_literals = take(in, 5) + 257, n_distances = take(in, 5) + 1, n_lengths = take(in, 4) + 4;
  if (in->failed || n_literals > LITERALS_MAX) return false;
  for (uint32_t i = 0; i < n_lengths; ++i) lengths[order[i]] = (uint8_t)take(in, 3);
  if (!code_build(literals, lengths, 19)) return false;
  memset(lengths, 0, sizeof lengths);
  for (uint32_t i = 0; i < n_literals + n_distances;) {
    int32_t symbol = decode(in, literals);
    if (symbol < 0 || in->failed) return false;
    if (symbol < 16) {
      lengths[i++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == 16 && i == 0) return false;
    uint8_t repeated = symbol == 16 ? lengths[i - 1] : 0;
    uint32_t times = symbol == 16 ? 3 + take(in, 2) : symbol == 17 ? 3 + take(in, 3) : 11 + take(in, 7);
    if (in->failed || times > n_literals + n_distances - i) return false;
    memset(lengths + i, repeated, times);
    i += times;
  }
  return code_build(literals, lengths, n_literals) &&
         code_build(distances, lengths + n_literals, n_distances);
}

static uint32_t adler32(const uint8_t *bytes, size_t n) {
  uint32_t a = 1, b = 0;
  while (n) {
    size_t part = n < 5552 ? n : 5552; /* the most before b leaves 32 bits */
    n -= part;
    for (; part; --part) {
      a += *bytes++;
      b += a;
    }
    a %= 65521;
    b %= 65521;
  }
  return b << 16 | a;
}

bool tp__inflate(const void *source, size_t nbytes, void *out, size_t out_nbytes) {
  reader_t in = {.next = source, .end = (const uint8_t *)source + nbytes};
  writer_t to = {.out = out, .size = out_nbytes};
  uint32_t method = take(&in, 8), flags = take(&in, 8);
  bool preset = flags & 32;
  if (in.failed || (method & 15) != 8 || (method << 8 | flags) % 31 != 0 || preset) return false;
  for (bool last = false; !last;) {
    code_t literals, distances;
    last = take(&in, 1);
    uint32_t kind = take(&in, 2);
    if (in.failed) return false;
    bool coded = kind == 1 ? read_fixed_codes(&literals, &distances)
                           : kind == 2 && read_dynamic_codes(&in, &literals, &distances);
    bool copied = kind == 0 ? copy_stored(&in, &to) : coded && copy_coded(&in, &to, &literals, &distances);
    if (!copied) return false;
  }
  skip(&in, in.count % 8);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 4; ++i) sum = sum << 8 | take(&in, 8);
  return !in.failed && to.used == out_nbytes && sum == adler32(out, out_nbytes);
}
