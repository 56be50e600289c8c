/* Loops over operands of any strides, in units of several elements where these are adjacent. */
#ifndef TP_UNITS_H
#define TP_UNITS_H

#include "args_layout.h"
#include "layout.h"

/* N elements; N > 1 only at an address that they may be read from in pieces of 16 bytes. */
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) tp_unit {
  T at[N];
};

/* How an operand takes part in a unit. */
enum tp_access {
  TP_ACCESS_ONE,      /* with one element */
  TP_ACCESS_ADJACENT, /* with adjacent elements */
  TP_ACCESS_ALIGNED   /* with adjacent elements that may be moved together */
};

/* single: the unit has one element. */
TP_DEVICE tp_access tp_access_of(const tp_layout_t &layout, int operand, bool aligned, bool single) {
  if (single || layout.strides[operand][0] == 0) return TP_ACCESS_ONE;
  return aligned ? TP_ACCESS_ALIGNED : TP_ACCESS_ADJACENT;
}

template <typename T, int N>
TP_DEVICE tp_unit<T, N> tp_unit_read(const T *from, tp_access access) {
  if (access == TP_ACCESS_ALIGNED) return *reinterpret_cast<const tp_unit<T, N> *>(from);
  tp_unit<T, N> x;
  for (int i = 0; i < N; ++i) x.at[i] = from[access == TP_ACCESS_ONE ? 0 : i];
  return x;
}

template <typename T, int N>
TP_DEVICE void tp_unit_write(T *to, tp_access access, const tp_unit<T, N> &x) {
  if (access == TP_ACCESS_ALIGNED) {
    *reinterpret_cast<tp_unit<T, N> *>(to) = x;
  } else {
    to[0] = x.at[0];
    for (int i = 1; i < N; ++i) {
      if (access == TP_ACCESS_ADJACENT) to[i] = x.at[i];
    }
  }
}

/* Calls body(places, single) for each unit: `units` of N elements, then what is left of the layout in single ones.
 * places[i] is of the first element of operand i. */
template <int N, int OPERANDS, typename Body>
TP_DEVICE void tp_for_units(const tp_layout_t &layout, long long units, const Body &body) {
  long long total = units + (layout.numel - units * N);
  TP_FOR_TILES(first, total, TP_UNITS_TILE) {
    int count = tp_tile_count(first, total, TP_UNITS_TILE);
    TP_FOR(i, count) {
      long long unit = first + i, places[OPERANDS];
      bool single = unit >= units;
      tp_layout_places(layout, 0, single ? unit + units * (N - 1) : unit * N, places);
      body(places, single);
    }
  }
}

#endif
