/* The places that bring rows into order (docs/design/reductions.md), by keys of 32 or 64 bits.
 *
 *   short rows  are sorted in shared memory, several in a block, by comparing keys and then places.
 *   long rows   digit by digit of their keys, from the last one on; each digit takes a count of its values in every
 *               tile, running totals of the counts (kernels/scan.cu), and a move of each element to its place.
 *
 * Both keep the order of equal elements. */
#define TP_FAMILY "sort"
#include "block.h"
#include "key.h"
#include "layout.h"
#include "visit.h"
#include "args_sort.h"

namespace tp_sort {

enum {
  TILE = TP_SORT_TILE,
  UNIT = TP_SORT_UNIT,
  UNITS = TILE / UNIT,
  DIGITS = TP_SORT_DIGITS,
  /* Loads of a thread that wait together. */
  BATCH = 4
};

template <typename Key>
struct elements_of {
  template <typename T>
  struct takes {
    static constexpr bool value = !tp_is_complex<T> && sizeof(T) <= sizeof(Key);
  };
};

/* The key of an element, in the order that is wanted. input: an address that tp_at has translated. */
template <typename Key>
TP_DEVICE_COLD Key key_at(const void *input, int dtype, long long place, int descending) {
  Key key = 0;
  tp_visit<elements_of<Key>::template takes>(dtype, [&](auto type) {
    typedef typename decltype(type)::element T;
    tp_key_t<T> own = tp_key(static_cast<const T *>(input)[place]);
    key = static_cast<tp_key_t<T>>(descending ? ~own : own);
  });
  return key;
}

/* ---- short rows: bitonic networks ---- */

template <typename Key>
TP_DEVICE void sort_slots(Key *keys, unsigned short *places, int count, int row_slots) {
  for (int run = 2; run <= row_slots; run *= 2) {
    for (int reach = run / 2; reach > 0; reach /= 2) {
      TP_FOR(pair, count / 2) {
        int a = 2 * pair - (pair & (reach - 1)), b = a + reach;
        bool falling = (a & run & (row_slots - 1)) != 0;
        bool ordered = keys[a] < keys[b] || (keys[a] == keys[b] && places[a] < places[b]);
        if (ordered == falling) {
          Key key = keys[a];
          keys[a] = keys[b];
          keys[b] = key;
          unsigned short place = places[a];
          places[a] = places[b];
          places[b] = place;
        }
      }
      tp_block_sync();
    }
  }
}

template <typename Key>
TP_DEVICE void short_rows(const tp_sort_args_t &p) {
  TP_SHARED(Key, keys, TILE);
  TP_SHARED(unsigned short, places, TILE);
  TP_FOR_TILES(first, p.rows.numel, TILE / p.slots) {
    int count = tp_tile_count(first, p.rows.numel, TILE / p.slots) * p.slots;
    const void *input = tp_at<void>(p.input);
    TP_FOR(slot, count) {
      int row = slot / p.slots, i = slot - row * p.slots;
      /* What fills a row up to a power of two goes behind every element. */
      keys[slot] = static_cast<Key>(~0ull);
      if (i < p.size) {
        long long place = tp_layout_offset(p.rows, 1, first + row) + i * p.in_stride;
        keys[slot] = key_at<Key>(input, p.dtype, place, p.descending);
      }
      places[slot] = static_cast<unsigned short>(i);
    }
    tp_block_sync();
    sort_slots(keys, places, count, p.slots);
    long long *out = tp_at<long long>(p.out);
    TP_FOR(slot, count) {
      int row = slot / p.slots, i = slot - row * p.slots;
      if (i < p.size) out[tp_layout_offset(p.rows, 0, first + row) + i * p.out_stride] = places[slot];
    }
    tp_block_sync();
  }
}

/* ---- long rows: digits ---- */

/* The elements of a tile, which lie in one row. */
struct tile_of {
  long long row, tile, first; /* first: in its row */
  int count;

  __device__ __forceinline__ tile_of(const tp_sort_args_t &p, long long item) {
    row = item / p.tiles;
    tile = item - row * p.tiles;
    first = tile * TILE;
    count = tp_tile_count(first, p.size, TILE);
  }
};

template <typename Key>
TP_DEVICE void make_keys(const tp_sort_args_t &p) {
  TP_FOR_TILES(item, p.rows.numel * p.tiles, 1) {
    tile_of at(p, item);
    Key *keys = tp_at<Key>(p.keys) + at.row * p.size + at.first;
    long long start = tp_layout_offset(p.rows, 1, at.row) + at.first * p.in_stride;
    const void *input = tp_at<void>(p.input);
    TP_FOR(i, at.count) keys[i] = key_at<Key>(input, p.dtype, start + i * p.in_stride, p.descending);
  }
}

/* How often each value of a digit occurs, four of them in a word: a tile has fewer than 2^16 elements. */
enum { IN_WORD = 4, WORDS = DIGITS / IN_WORD };
TP_DEVICE int shift_of(int digit) { return digit % IN_WORD * 16; }
TP_DEVICE int field(unsigned long long word, int digit) { return static_cast<int>(word >> shift_of(digit) & 0xffff); }

struct counts {
  unsigned long long words[WORDS];
};

TP_DEVICE counts sum(counts a, counts b) {
  for (int w = 0; w < WORDS; ++w) a.words[w] += b.words[w];
  return a;
}

template <typename Key>
TP_DEVICE int digit_of(Key key, int shift) {
  return static_cast<int>(key >> shift) & (DIGITS - 1);
}

template <typename Key>
TP_DEVICE void count(const tp_sort_args_t &p) {
  TP_SHARED(counts, scratch, TP_SCRATCH);
  int group = tp_group_size(tp_threads()), lane = tp_thread();
  TP_FOR_TILES(item, p.rows.numel * p.tiles, 1) {
    tile_of at(p, item);
    const Key *keys = tp_at<Key>(p.keys) + at.row * p.size + at.first;
    counts mine = {};
    for (int i = lane; lane < group && i < at.count; i += BATCH * group) {
      Key x[BATCH];
      for (int k = 0; k < BATCH; ++k) x[k] = keys[tp_least(i + k * group, at.count - 1)];
      for (int k = 0; k < BATCH; ++k) {
        int digit = digit_of(x[k], p.shift);
        unsigned long long one = i + k * group < at.count ? 1ull << shift_of(digit) : 0;
        for (int w = 0; w < WORDS; ++w) mine.words[w] += w == digit / IN_WORD ? one : 0;
      }
    }
    mine = tp_group_reduce(mine, group, sum, scratch);
    if (lane == 0) {
      long long *to = tp_at<long long>(p.counts) + at.row * DIGITS * p.tiles + at.tile;
      for (int digit = 0; digit < DIGITS; ++digit) to[digit * p.tiles] = field(mine.words[digit / IN_WORD], digit);
    }
  }
}

/* Each unit is followed by a gap, so that neighbouring threads, which treat neighbouring units, meet in different
 * banks of the shared memory. */
TP_DEVICE int place_in_tile(int i) { return i + i / UNIT; }

/* Running totals over the units, in steps that double; word w of unit u lies at w * UNITS + u. The buffer that holds
 * them. */
TP_DEVICE unsigned long long *scan_units(int units, unsigned long long *from, unsigned long long *to) {
  for (int step = 1; step < units; step *= 2) {
    TP_FOR(i, WORDS * UNITS) to[i] = i % UNITS < step ? from[i] : from[i - step] + from[i];
    tp_block_sync();
    unsigned long long *other = from;
    from = to;
    to = other;
  }
  return from;
}

/* One digit of one tile after the other: elements are ordered by the digit inside the tile first, so that neighbouring
 * threads write to neighbouring places. */
template <typename Key, typename Place>
TP_DEVICE void move(const tp_sort_args_t &p) {
  TP_SHARED(Key, keys, TILE + UNITS);
  TP_SHARED(unsigned short, origins, TILE);
  TP_SHARED(unsigned long long, words, 2 * WORDS * UNITS);
  TP_SHARED(int, firsts, DIGITS);       /* of each digit, its first place in the tile */
  TP_SHARED(long long, starts, DIGITS); /* from a place in the tile to that in all rows */
  TP_FOR_TILES(item, p.rows.numel * p.tiles, 1) {
    tile_of at(p, item);
    long long begin = at.row * p.size + at.first;
    const Key *from = tp_at<Key>(p.keys) + begin;
    for (int i = tp_thread(); i < at.count; i += BATCH * tp_threads()) {
      Key x[BATCH];
      for (int k = 0; k < BATCH; ++k) x[k] = from[tp_least(i + k * tp_threads(), at.count - 1)];
      for (int k = 0; k < BATCH; ++k)
        if (i + k * tp_threads() < at.count) keys[place_in_tile(i + k * tp_threads())] = x[k];
    }
    tp_block_sync();
    TP_FOR(u, UNITS) {
      for (int w = 0; w < WORDS; ++w) words[w * UNITS + u] = 0;
      for (int i = 0; i < UNIT; ++i) {
        int digit = digit_of(keys[place_in_tile(u * UNIT) + i], p.shift);
        if (u * UNIT + i < at.count) words[digit / IN_WORD * UNITS + u] += 1ull << shift_of(digit);
      }
    }
    tp_block_sync();
    unsigned long long *scanned = scan_units(UNITS, words, words + WORDS * UNITS);
    const unsigned long long *totals = scanned + UNITS - 1; /* of the last unit: of all */
    const long long *counts = tp_at<long long>(p.counts);
    TP_FOR(digit, DIGITS) {
      int before = 0;
      for (int lower = 0; lower < digit; ++lower) before += field(totals[lower / IN_WORD * UNITS], lower);
      long long index = (at.row * DIGITS + digit) * p.tiles + at.tile;
      firsts[digit] = before;
      starts[digit] = (index ? counts[index - 1] : 0) - before;
    }
    tp_block_sync();
    TP_FOR(u, UNITS) {
      /* From the last one back: the running totals count this unit's own elements. */
      for (int i = tp_least(at.count, (u + 1) * UNIT) - 1; i >= u * UNIT; --i) {
        int digit = digit_of(keys[place_in_tile(i)], p.shift);
        unsigned long long &word = scanned[digit / IN_WORD * UNITS + u];
        word -= 1ull << shift_of(digit);
        origins[firsts[digit] + field(word, digit)] = static_cast<unsigned short>(i);
      }
    }
    tp_block_sync();
    TP_FOR(i, at.count) {
      int origin = origins[i];
      Key key = keys[place_in_tile(origin)];
      long long to = starts[digit_of(key, p.shift)] + i;
      Place place = p.places ? tp_at<Place>(p.places)[begin + origin] : static_cast<Place>(at.first + origin);
      if (p.next_keys) {
        tp_at<Key>(p.next_keys)[to] = key;
        tp_at<Place>(p.next_places)[to] = place;
      } else {
        long long start = tp_layout_offset(p.rows, 0, at.row);
        tp_at<long long>(p.out)[start + (to - at.row * p.size) * p.out_stride] = static_cast<long long>(place);
      }
    }
    tp_block_sync();
  }
}

}  // namespace tp_sort

#define TP_SORT_KERNELS(bits, Key, Place)                                                                   \
  TP_KERNEL_COOPERATIVE(tp_k_sort_short_##bits, tp_sort_args_t) { tp_sort::short_rows<Key>(p); }            \
  TP_KERNEL(tp_k_sort_keys_##bits, tp_sort_args_t) { tp_sort::make_keys<Key>(p); }                          \
  TP_KERNEL_COOPERATIVE(tp_k_sort_count_##bits, tp_sort_args_t) { tp_sort::count<Key>(p); }                 \
  TP_KERNEL_COOPERATIVE(tp_k_sort_move_##bits, tp_sort_args_t) { tp_sort::move<Key, Place>(p); }
TP_SORT_KERNELS(32, unsigned, unsigned)
TP_SORT_KERNELS(64, unsigned long long, long long)
#undef TP_SORT_KERNELS

#undef TP_FAMILY
