/* The places that bring rows into order (docs/design/reductions.md), by keys of 32 or 64 bits.
 *
 *   short rows   are sorted in shared memory, several in a block, by comparing keys and then places.
 *   medium rows  in shared memory, one in a block, digit by digit of their keys from the last one on.
 *   long rows    by digits too; each takes a count of its values in every tile, running totals of the counts
 *                (kernels/scan.cu), and a move of each element to its place, by way of its place in the tile.
 *
 * All keep the order of equal elements. */
#define TP_FAMILY "sort"
#include "block.h"
#include "key.h"
#include "layout.h"
#include "visit.h"
#include "args_sort.h"

namespace tp_sort {

/* Loads of a thread that wait together. */
enum { BATCH = 4 };

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
  TP_SHARED(Key, keys, TP_SORT_SLOTS);
  TP_SHARED(unsigned short, places, TP_SORT_SLOTS);
  TP_FOR_TILES(first, p.rows.numel, TP_SORT_SLOTS / p.slots) {
    int count = tp_tile_count(first, p.rows.numel, TP_SORT_SLOTS / p.slots) * p.slots;
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

/* ---- one digit of a tile of keys ---- */

enum { DIGITS = TP_SORT_DIGITS };

template <typename Key>
constexpr int tile_of = TP_SORT_TILE_NBYTES / sizeof(Key);

template <typename Key>
TP_DEVICE int digit_of(Key key, int shift) {
  return static_cast<int>(key >> shift) & (DIGITS - 1);
}

/* A tile is cut into strips. A warp treats the elements of one in their order, as many at once as it has threads, so
 * that equal digits keep theirs. */
enum { STRIPS = TP_BLOCK_THREADS / 32 };
#define TP_FOR_STRIPS(strip) \
  for (int strip = tp_thread() / TP_WARP; strip < STRIPS; strip += tp_threads() / TP_WARP)

/* In shared memory. */
template <typename Key>
struct digit_order {
  unsigned short ranks[tile_of<Key>];     /* of an element among those of its digit in its strip */
  unsigned short firsts[STRIPS * DIGITS]; /* in the tile, of each digit of a strip */
  int totals[2][DIGITS];
};

/* Running totals, in steps that double: of the two buffers the one that holds them. */
TP_DEVICE_COLD const int *scan_digits(int (&totals)[2][DIGITS]) {
  int from = 0;
  for (int step = 1; step < DIGITS; step *= 2, from ^= 1) {
    TP_FOR(i, DIGITS) totals[from ^ 1][i] = i < step ? totals[from][i] : totals[from][i - step] + totals[from][i];
    tp_block_sync();
  }
  return totals[from];
}

/* Brings `count` elements into the order of one digit of their keys. from, to: where each lies in `keys`; without
 * from, they lie there in order. All threads may read `to` on return. */
template <typename Key>
TP_DEVICE void order_by_digit(const Key *keys, int count, int shift, const unsigned short *from, unsigned short *to,
                              digit_order<Key> &order) {
  int length = (count + STRIPS * TP_WARP - 1) / (STRIPS * TP_WARP) * TP_WARP, lane = tp_thread() % TP_WARP;
  TP_FOR(i, STRIPS * DIGITS) order.firsts[i] = 0;
  tp_block_sync();
  TP_FOR_STRIPS(strip) {
    unsigned short *seen = order.firsts + strip * DIGITS; /* of each digit, so far */
    for (int i = strip * length + lane; i < (strip + 1) * length; i += TP_WARP) {
      /* What fills the last warps goes behind every element. */
      int digit = i < count ? digit_of(keys[from ? from[i] : i], shift) : DIGITS - 1;
      tp_equals equals = tp_warp_equals<TP_SORT_DIGIT_BITS>(static_cast<unsigned>(digit));
      int rank = seen[digit] + equals.before;
      order.ranks[i] = static_cast<unsigned short>(rank);
      tp_warp_sync();
      if (equals.last) seen[digit] = static_cast<unsigned short>(rank + 1);
      tp_warp_sync();
    }
  }
  tp_block_sync();
  TP_FOR(digit, DIGITS) {
    int total = 0;
    for (int strip = 0; strip < STRIPS; ++strip) total += order.firsts[strip * DIGITS + digit];
    order.totals[0][digit] = total;
  }
  tp_block_sync();
  const int *ends = scan_digits(order.totals);
  TP_FOR(digit, DIGITS) {
    int first = digit ? ends[digit - 1] : 0;
    for (int strip = 0; strip < STRIPS; ++strip) {
      int seen = order.firsts[strip * DIGITS + digit];
      order.firsts[strip * DIGITS + digit] = static_cast<unsigned short>(first);
      first += seen;
    }
  }
  tp_block_sync();
  TP_FOR_STRIPS(strip) {
    for (int i = strip * length + lane; i < (strip + 1) * length && i < count; i += TP_WARP) {
      int origin = from ? from[i] : i;
      int first = order.firsts[strip * DIGITS + digit_of(keys[origin], shift)];
      to[first + order.ranks[i]] = static_cast<unsigned short>(origin);
    }
  }
  tp_block_sync();
}

/* ---- medium rows: one tile each ---- */

template <typename Key>
TP_DEVICE void medium_rows(const tp_sort_args_t &p) {
  TP_SHARED(Key, keys, tile_of<Key>);
  TP_SHARED(unsigned short, places, 2 * tile_of<Key>);
  TP_SHARED(digit_order<Key>, order, 1);
  TP_FOR_TILES(row, p.rows.numel, 1) {
    int count = static_cast<int>(p.size);
    const void *input = tp_at<void>(p.input);
    long long start = tp_layout_offset(p.rows, 1, row);
    unsigned short *from = places, *to = places + tile_of<Key>;
    TP_FOR(i, count) {
      keys[i] = key_at<Key>(input, p.dtype, start + i * p.in_stride, p.descending);
      from[i] = static_cast<unsigned short>(i);
    }
    tp_block_sync();
    for (int shift = 0; shift < p.key_bits; shift += TP_SORT_DIGIT_BITS) {
      order_by_digit(keys, count, shift, from, to, *order);
      unsigned short *other = from;
      from = to;
      to = other;
    }
    long long *out = tp_at<long long>(p.out) + tp_layout_offset(p.rows, 0, row);
    TP_FOR(i, count) out[i * p.out_stride] = from[i];
    tp_block_sync();
  }
}

/* ---- long rows: many tiles ---- */

/* The elements of a tile, which lie in one row. */
template <typename Key>
struct part_of {
  long long row, tile, first; /* first: in its row */
  int count;

  __device__ __forceinline__ part_of(const tp_sort_args_t &p, long long item) {
    row = item / p.tiles;
    tile = item - row * p.tiles;
    first = tile * tile_of<Key>;
    count = tp_tile_count(first, p.size, tile_of<Key>);
  }
};

template <typename Key>
TP_DEVICE void make_keys(const tp_sort_args_t &p) {
  TP_FOR_TILES(item, p.rows.numel * p.tiles, 1) {
    part_of<Key> at(p, item);
    Key *keys = tp_at<Key>(p.keys) + at.row * p.size + at.first;
    long long start = tp_layout_offset(p.rows, 1, at.row) + at.first * p.in_stride;
    const void *input = tp_at<void>(p.input);
    TP_FOR(i, at.count) keys[i] = key_at<Key>(input, p.dtype, start + i * p.in_stride, p.descending);
  }
}

/* f(i, numbers[i]) of adjacent elements, several of them loaded at once. */
template <typename T, typename F>
TP_DEVICE void for_each(T *numbers, int count, F f) {
  for (int i = tp_thread(); i < count; i += BATCH * tp_threads()) {
    T x[BATCH];
    for (int k = 0; k < BATCH; ++k) x[k] = numbers[tp_least(i + k * tp_threads(), count - 1)];
    for (int k = 0; k < BATCH; ++k)
      if (i + k * tp_threads() < count) f(i + k * tp_threads(), x[k]);
  }
}

/* Where the count of a digit in a tile lies: by rows, so that each stays in its own part, then digits, then tiles. */
template <typename Key>
TP_DEVICE long long count_at(const tp_sort_args_t &p, const part_of<Key> &at, int digit) {
  return (at.row * DIGITS + digit) * p.tiles + at.tile;
}

/* How often each digit occurs in a tile. */
template <typename Key>
TP_DEVICE void count(const tp_sort_args_t &p) {
  TP_SHARED(unsigned, totals, DIGITS);
  TP_FOR_TILES(item, p.rows.numel * p.tiles, 1) {
    part_of<Key> at(p, item);
    Key *keys = tp_at<Key>(p.keys) + at.row * p.size + at.first;
    TP_FOR(digit, DIGITS) totals[digit] = 0;
    tp_block_sync();
    /* Equal digits in a warp are counted by one instruction, since what is added is the constant 1. */
    for_each(keys, at.count, [&](int, Key key) { atomicAdd(&totals[digit_of(key, p.shift)], 1u); });
    tp_block_sync();
    TP_FOR(digit, DIGITS) tp_at<long long>(p.counts)[count_at(p, at, digit)] = totals[digit];
    tp_block_sync();
  }
}

/* Elements are ordered by the digit inside the tile first, so that neighbours are written by neighbours. */
template <typename Key>
TP_DEVICE void move(const tp_sort_args_t &p) {
  TP_SHARED(Key, keys, tile_of<Key>);
  TP_SHARED(unsigned short, origins, tile_of<Key>);
  TP_SHARED(digit_order<Key>, order, 1);
  TP_SHARED(long long, starts, DIGITS); /* from a place in the tile to that in all rows */
  TP_FOR_TILES(item, p.rows.numel * p.tiles, 1) {
    part_of<Key> at(p, item);
    long long begin = at.row * p.size + at.first;
    for_each(tp_at<Key>(p.keys) + begin, at.count, [&](int i, Key key) { keys[i] = key; });
    TP_FOR(digit, DIGITS) {
      long long index = count_at(p, at, digit);
      starts[digit] = index ? tp_at<long long>(p.counts)[index - 1] : 0;
    }
    tp_block_sync();
    order_by_digit<Key>(keys, at.count, p.shift, nullptr, origins, *order);
    TP_FOR(digit, DIGITS) starts[digit] -= order->firsts[digit];
    tp_block_sync();
    unsigned short *digits = order->ranks; /* which are needed no more */
    TP_FOR(i, at.count) {
      Key key = keys[origins[i]];
      int digit = digit_of(key, p.shift);
      digits[i] = static_cast<unsigned short>(digit);
      if (p.next_keys) tp_at<Key>(p.next_keys)[starts[digit] + i] = key;
    }
    tp_block_sync();
    Key *places = keys; /* of which all are written */
    if (p.places)
      for_each(tp_at<Key>(p.places) + begin, at.count, [&](int i, Key place) { places[i] = place; });
    else
      TP_FOR(i, at.count) places[i] = static_cast<Key>(at.first + i);
    tp_block_sync();
    if (p.next_keys) {
      TP_FOR(i, at.count) tp_at<Key>(p.next_places)[starts[digits[i]] + i] = places[origins[i]];
    } else {
      long long *out = tp_at<long long>(p.out) + tp_layout_offset(p.rows, 0, at.row);
      TP_FOR(i, at.count) {
        long long to = starts[digits[i]] + i - at.row * p.size;
        out[to * p.out_stride] = static_cast<long long>(places[origins[i]]);
      }
    }
    tp_block_sync();
  }
}

}  // namespace tp_sort

#define TP_SORT_KERNELS(bits, Key)                                                                 \
  TP_KERNEL_COOPERATIVE(tp_k_sort_short_##bits, tp_sort_args_t) { tp_sort::short_rows<Key>(p); }   \
  TP_KERNEL_COOPERATIVE(tp_k_sort_medium_##bits, tp_sort_args_t) { tp_sort::medium_rows<Key>(p); } \
  TP_KERNEL(tp_k_sort_keys_##bits, tp_sort_args_t) { tp_sort::make_keys<Key>(p); }                 \
  TP_KERNEL_COOPERATIVE(tp_k_sort_count_##bits, tp_sort_args_t) { tp_sort::count<Key>(p); }        \
  TP_KERNEL_RESIDENT(tp_k_sort_move_##bits, tp_sort_args_t, 4) { tp_sort::move<Key>(p); }
TP_SORT_KERNELS(32, unsigned)
TP_SORT_KERNELS(64, unsigned long long)
#undef TP_SORT_KERNELS
#undef TP_FOR_STRIPS

#undef TP_FAMILY
