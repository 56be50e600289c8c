/* Copies that a memcpy cannot do: between strides, and between dtypes. */
#define TP_FAMILY "copy"
#include "args_copy.h"
#include "block.h"
#include "flat.h"

TP_DEVICE int tp_least(int a, int b) { return a < b ? a : b; }

/* ---- runs of elements, one kernel for each source dtype ---- */

/* Vectors of N elements. On the GPU a thread's loads stand before its stores, without a condition, so that they wait
 * together: what lies outside is read from the edge. */
template <int N, typename From, typename To>
TP_DEVICE void tp_cast_vectors(const From *source, To *out, long long n_vectors) {
  TP_FOR_TILES(first, n_vectors, TP_COPY_TILE / N) {
    int count = tp_tile_count(first, n_vectors, TP_COPY_TILE / N);
    const From *from = source + first * N;
    To *to = out + first * N;
#ifdef __CUDACC__
    constexpr int AHEAD = N > 1 ? 4 : 1;
    for (int i = tp_thread(); i < count; i += AHEAD * tp_threads()) {
      From x[AHEAD][N];
      for (int k = 0; k < AHEAD; ++k) tp_read(from + tp_least(i + k * tp_threads(), count - 1) * N, x[k]);
      for (int k = 0; k < AHEAD; ++k) {
        To y[N];
        for (int j = 0; j < N; ++j) y[j] = tp_cast<To>(x[k][j]);
        if (i + k * tp_threads() < count) tp_write(to + (i + k * tp_threads()) * N, y);
      }
    }
#else
    TP_FOR(i, count) to[i] = tp_cast<To>(from[i]);
#endif
  }
}

template <typename From, typename To>
TP_DEVICE void tp_cast_run(const tp_cast_args_t &p) {
  /* Vectors between the types that models are cast to; for all 36 pairs they would double the time to compile. */
  constexpr bool FLOATS = tp_same<tp_wide_t<From>, float>::value && tp_same<tp_wide_t<To>, float>::value;
  constexpr int M = TP_VECTOR(From), N = !FLOATS ? 1 : M < TP_VECTOR(To) ? M : TP_VECTOR(To);
  const From *source = tp_at<From>(p.source);
  To *out = tp_at<To>(p.out);
  long long done = 0;
  if (N > 1 && p.aligned) {
    done = p.numel / N * N;
    tp_cast_vectors<N>(source, out, done / N);
  }
  if (done < p.numel) tp_cast_vectors<1>(source + done, out + done, p.numel - done);
}

template <typename From>
TP_DEVICE void tp_cast_run_to(const tp_cast_args_t &p) {
  switch (p.out_dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  case code:                                                    \
    tp_cast_run<From, ctype>(p);                                \
    break;
#include "dtypes.def"
#undef TP_DTYPE
  }
}

#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  TP_KERNEL(tp_k_cast_##suffix, tp_cast_args_t) { tp_cast_run_to<ctype>(p); }
#include "dtypes.def"
#undef TP_DTYPE

/* ---- elements as they are, by size: the places of a small layout, or any strides ---- */

template <typename T>
struct tp_flat_moved {
  const T *source;
  bool same; /* the elements of a vector are one element */

  template <int N>
  struct elements {
    T at[N];
  };

  template <int N>
  __device__ __forceinline__ void read(const long long (&places)[TP_PLACES_OPERANDS], int unit,
                                       elements<N> &e) const {
    if (same || unit < N)
      e.at[0] = source[places[1]];
    else
      tp_read(source + places[1], e.at);
  }

  template <int N>
  __device__ __forceinline__ void compute(int, const elements<N> &e, T (&out)[N]) const {
    for (int i = 0; i < N; ++i) out[i] = same ? e.at[0] : e.at[i];
  }
};

template <typename T>
TP_DEVICE void tp_move_places(const tp_flat_args_t &p) {
  tp_flat_moved<T> moved = {tp_at<T>(p.operands[0]), p.steps[0] == 0};
#ifdef __CUDACC__
  tp_flat_write<T, T>(p, moved);
#else
  const long long steps[] = {p.places.strides[0][0], p.steps[0], 0};
  tp_flat_stretches(p, [&](const long long(&places)[TP_PLACES_OPERANDS], int count) {
    tp_flat_moved<T> from = {moved.source + places[1], false};
    T *out = tp_at<T>(p.out) + places[0];
    if (steps[0] == 1 && steps[1] == 1)
      tp_flat_run(out, count, from);
    else
      tp_flat_stepped(out, count, steps, from);
  });
#endif
}

template <typename T>
TP_DEVICE void tp_move_strided(const tp_copy_args_t &p) {
  const T *source = tp_at<T>(p.source);
  T *out = tp_at<T>(p.out);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2];
      tp_layout_places(p.layout, 0, first + i, places);
      out[places[0]] = source[places[1]];
    }
  }
}

/* ---- elements as they are, where out is adjacent along one dimension and the source along another ---- */

/* Through tiles in shared memory, so that both are read and written along their own adjacent dimension. The pitch
 * shifts each row by one bank. */
template <typename T>
TP_DEVICE void tp_turn(const tp_turn_args_t &p) {
  enum { BATCH = 8, TILE = TP_TURN_TILE, PITCH = TILE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1) };
  TP_SHARED(T, tile, TILE * PITCH);
  long long across = (p.width + TILE - 1) / TILE, down = (p.height + TILE - 1) / TILE;
  TP_FOR_TILES(index, across * down * p.outer, 1) {
    long long outer = index / (across * down), at = index - outer * across * down;
    long long row = at / across * TILE, column = (at - at / across * across) * TILE;
    tp_place_list places = tp_places_of(p.places, static_cast<unsigned>(outer));
    T *out = tp_at<T>(p.out) + places.at[0] + row * p.out_stride + column;
    const T *source = tp_at<T>(p.source) + places.at[1] + column * p.source_stride + row;
    int columns = tp_tile_count(column, p.width, TILE), rows = tp_tile_count(row, p.height, TILE);
    /* tile[column][row]: neighbouring threads read neighbouring rows, and write neighbouring columns. Loads have
     * no condition, so that several of a thread wait together: what lies outside is read from the edge. */
    for (int i = tp_thread(); i < TILE * TILE; i += BATCH * tp_threads()) {
      T values[BATCH];
      for (int j = 0; j < BATCH; ++j) {
        int at = tp_least(i + j * tp_threads(), TILE * TILE - 1);
        values[j] = source[tp_least(at / TILE, columns - 1) * p.source_stride + tp_least(at % TILE, rows - 1)];
      }
      for (int j = 0; j < BATCH; ++j) {
        int at = tp_least(i + j * tp_threads(), TILE * TILE - 1);
        tile[at / TILE * PITCH + at % TILE] = values[j];
      }
    }
    tp_block_sync();
    TP_FOR(i, TILE * TILE) {
      int r = i / TILE, c = i % TILE;
      if (c < columns && r < rows) out[r * p.out_stride + c] = tile[c * PITCH + r];
    }
    tp_block_sync();
  }
}

/* ---- any strides, cast through the dtype that holds them all ---- */

template <typename Wide>
TP_DEVICE void tp_cast_strided(const tp_copy_args_t &p) {
  const void *source = tp_at<void>(p.source);
  void *out = tp_at<void>(p.out);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    TP_FOR(i, count) {
      long long places[2];
      tp_layout_places(p.layout, 0, first + i, places);
      tp_store(out, p.out_dtype, places[0], tp_load<Wide>(source, p.source_dtype, places[1]));
    }
  }
}

TP_KERNEL(tp_k_move_1, tp_copy_args_t) { tp_move_strided<unsigned char>(p); }
TP_KERNEL(tp_k_move_2, tp_copy_args_t) { tp_move_strided<unsigned short>(p); }
TP_KERNEL(tp_k_move_4, tp_copy_args_t) { tp_move_strided<unsigned>(p); }
TP_KERNEL(tp_k_move_8, tp_copy_args_t) { tp_move_strided<unsigned long long>(p); }
TP_KERNEL(tp_k_move_places_1, tp_flat_args_t) { tp_move_places<unsigned char>(p); }
TP_KERNEL(tp_k_move_places_2, tp_flat_args_t) { tp_move_places<unsigned short>(p); }
TP_KERNEL(tp_k_move_places_4, tp_flat_args_t) { tp_move_places<unsigned>(p); }
TP_KERNEL(tp_k_move_places_8, tp_flat_args_t) { tp_move_places<unsigned long long>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_1, tp_turn_args_t) { tp_turn<unsigned char>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_2, tp_turn_args_t) { tp_turn<unsigned short>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_4, tp_turn_args_t) { tp_turn<unsigned>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_8, tp_turn_args_t) { tp_turn<unsigned long long>(p); }
TP_KERNEL(tp_k_cast_strided_float, tp_copy_args_t) { tp_cast_strided<float>(p); }
TP_KERNEL(tp_k_cast_strided_int, tp_copy_args_t) { tp_cast_strided<long long>(p); }

#undef TP_FAMILY
