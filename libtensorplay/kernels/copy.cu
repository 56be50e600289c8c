/* Copies that a memcpy cannot do: between strides, and between dtypes. */
#define TP_FAMILY "copy"
#include "args_copy.h"
#include "block.h"
#include "flat.h"

/* ---- runs of floating elements, one kernel for each source dtype ---- */

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
  constexpr int N = TP_VECTOR(From) < TP_VECTOR(To) ? TP_VECTOR(From) : TP_VECTOR(To);
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
    case TP_DTYPE_float16:
      return tp_cast_run<From, __half>(p);
    case TP_DTYPE_bfloat16:
      return tp_cast_run<From, __nv_bfloat16>(p);
    case TP_DTYPE_float32:
      return tp_cast_run<From, float>(p);
    case TP_DTYPE_float64:
      return tp_cast_run<From, double>(p);
  }
}

TP_KERNEL(tp_k_cast_f16, tp_cast_args_t) { tp_cast_run_to<__half>(p); }
TP_KERNEL(tp_k_cast_bf16, tp_cast_args_t) { tp_cast_run_to<__nv_bfloat16>(p); }
TP_KERNEL(tp_k_cast_f32, tp_cast_args_t) { tp_cast_run_to<float>(p); }
TP_KERNEL(tp_k_cast_f64, tp_cast_args_t) { tp_cast_run_to<double>(p); }

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

/* ---- any strides and dtypes, cast through the type that holds all of the source's kind ---- */

template <typename Wide>
struct tp_widest {
  using type = long long;
};
template <>
struct tp_widest<float> {
  using type = double;
};
template <>
struct tp_widest<double> {
  using type = double;
};
template <typename Part>
struct tp_widest<tp_complex<Part>> {
  using type = tp_complex128;
};
template <typename T>
using tp_widest_t = typename tp_widest<tp_wide_t<T>>::type;

/* Several elements for each look at the dtypes, which are the same for all threads. The loads have no condition, so
 * that they wait together: what lies outside is read from the edge. */
template <typename Wide>
TP_DEVICE void tp_cast_any(const tp_copy_args_t &p) {
  enum { BATCH = 4 };
  const void *source = tp_at<void>(p.source);
  void *out = tp_at<void>(p.out);
  TP_FOR_TILES(first, p.layout.numel, TP_STRIDED_TILE) {
    int count = tp_tile_count(first, p.layout.numel, TP_STRIDED_TILE);
    for (int i = tp_thread(); i < count; i += BATCH * tp_threads()) {
      long long places[BATCH][2];
      Wide x[BATCH];
      for (int k = 0; k < BATCH; ++k)
        tp_layout_places(p.layout, 0, first + tp_least(i + k * tp_threads(), count - 1), places[k]);
      switch (p.source_dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category)                                                  \
  case code:                                                                                                     \
    if constexpr (tp_same<tp_widest_t<ctype>, Wide>::value)                                                      \
      for (int k = 0; k < BATCH; ++k) x[k] = tp_cast<Wide>(static_cast<const ctype *>(source)[places[k][1]]);    \
    break;
#include "dtypes.def"
#undef TP_DTYPE
      }
      switch (p.out_dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category)                                                  \
  case code:                                                                                                     \
    for (int k = 0; k < BATCH; ++k)                                                                              \
      if (i + k * tp_threads() < count) static_cast<ctype *>(out)[places[k][0]] = tp_cast<ctype>(x[k]);          \
    break;
#include "dtypes.def"
#undef TP_DTYPE
      }
    }
  }
}

TP_KERNEL(tp_k_move_1, tp_copy_args_t) { tp_move_strided<unsigned char>(p); }
TP_KERNEL(tp_k_move_2, tp_copy_args_t) { tp_move_strided<unsigned short>(p); }
TP_KERNEL(tp_k_move_4, tp_copy_args_t) { tp_move_strided<unsigned>(p); }
TP_KERNEL(tp_k_move_8, tp_copy_args_t) { tp_move_strided<unsigned long long>(p); }
TP_KERNEL(tp_k_move_16, tp_copy_args_t) { tp_move_strided<tp_complex128>(p); }
TP_KERNEL(tp_k_move_places_1, tp_flat_args_t) { tp_move_places<unsigned char>(p); }
TP_KERNEL(tp_k_move_places_2, tp_flat_args_t) { tp_move_places<unsigned short>(p); }
TP_KERNEL(tp_k_move_places_4, tp_flat_args_t) { tp_move_places<unsigned>(p); }
TP_KERNEL(tp_k_move_places_8, tp_flat_args_t) { tp_move_places<unsigned long long>(p); }
TP_KERNEL(tp_k_move_places_16, tp_flat_args_t) { tp_move_places<tp_complex128>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_1, tp_turn_args_t) { tp_turn<unsigned char>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_2, tp_turn_args_t) { tp_turn<unsigned short>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_4, tp_turn_args_t) { tp_turn<unsigned>(p); }
TP_KERNEL_COOPERATIVE(tp_k_turn_8, tp_turn_args_t) { tp_turn<unsigned long long>(p); }
TP_KERNEL(tp_k_cast_any_int, tp_copy_args_t) { tp_cast_any<long long>(p); }
TP_KERNEL(tp_k_cast_any_float, tp_copy_args_t) { tp_cast_any<double>(p); }
TP_KERNEL(tp_k_cast_any_complex, tp_copy_args_t) { tp_cast_any<tp_complex128>(p); }

#undef TP_FAMILY
