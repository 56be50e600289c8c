/* Loops over flat operands: runs of elements, moved in vectors of 16 bytes on the GPU. */
#ifndef TP_FLAT_H
#define TP_FLAT_H

#include "args_elementwise.h"
#include "element.h"

/* Elements of a vector. The host's compiler makes its own vectors out of the plain loop. */
#ifdef __CUDACC__
#define TP_VECTOR(T) static_cast<int>(16 / sizeof(T))
#define TP_INDEPENDENT
#else
#define TP_VECTOR(T) 1
#define TP_INDEPENDENT _Pragma("GCC ivdep") /* out may be an operand: then element for element */
#endif

/* N elements at place * N; the address is aligned to them. */
template <typename T, int N>
struct alignas(sizeof(T) * N) tp_vector {
  T at[N];
};

template <typename T, int N>
TP_DEVICE void tp_read(const T *run, long long place, T (&x)[N]) {
  if constexpr (N == 1) {
    x[0] = run[place];
  } else {
    tp_vector<T, N> vector = reinterpret_cast<const tp_vector<T, N> *>(run)[place];
    for (int i = 0; i < N; ++i) x[i] = vector.at[i];
  }
}

template <typename T, int N>
TP_DEVICE void tp_write(T *run, long long place, const T (&x)[N]) {
  if constexpr (N == 1) {
    run[place] = x[0];
  } else {
    tp_vector<T, N> vector;
    for (int i = 0; i < N; ++i) vector.at[i] = x[i];
    reinterpret_cast<tp_vector<T, N> *>(run)[place] = vector;
  }
}

template <typename T>
using tp_wide_t = decltype(tp_wide(T()));

/* What an operand is. EITHER decides while the kernel runs: one branch, the same for all threads, and a
 * third of the code. The host's compiler makes vectors only of loops without it. */
enum tp_form { TP_ONE, TP_RUN, TP_EITHER };

/* An operand of element type T; gives elements as they are computed. */
template <typename T, tp_form FORM>
struct tp_operand {
  const T *run; /* NULL: `one` everywhere */
  tp_wide_t<T> one;

  template <int N>
  __device__ __forceinline__ void load(long long place, tp_wide_t<T> (&x)[N]) const {
    if (FORM == TP_RUN || (FORM == TP_EITHER && run)) {
      T elements[N];
      tp_read(run, place, elements);
      for (int i = 0; i < N; ++i) x[i] = tp_wide(elements[i]);
    } else {
      for (int i = 0; i < N; ++i) x[i] = one;
    }
  }

  __device__ __forceinline__ tp_operand from(long long place) const { return {run ? run + place : run, one}; }

  template <tp_form AS>
  __device__ __forceinline__ tp_operand<T, AS> as() const {
    return {run, one};
  }
};

/* round_scalar: the scalar counts as an element, rounded to T; else it is computed with as it is. */
template <typename T>
TP_DEVICE tp_operand<T, TP_EITHER> tp_flat_operand(const tp_flat_args_t &p, int i, bool round_scalar) {
  const void *address = p.operands[i];
  if (!address) {
    tp_wide_t<T> scalar;
    if constexpr (tp_same<tp_wide_t<T>, float>::value) {
      scalar = round_scalar ? tp_wide(tp_cast<T>(p.scalar.as_float)) : p.scalar.as_float;
    } else {
      scalar = tp_wide(tp_cast<T>(p.scalar.as_int));
    }
    return {nullptr, scalar};
  }
  const T *elements = tp_at<T>(address);
  if (p.steps[i]) return {elements, tp_wide_t<T>()};
  return {nullptr, tp_wide(elements[0])};
}

/* What is written: Op applied to one or two operands. */
template <typename T, typename Op>
struct tp_flat_unary {
  tp_operand<T, TP_RUN> a;

  template <int N, typename Out>
  __device__ __forceinline__ void compute(long long place, Out (&out)[N]) const {
    tp_wide_t<T> x[N];
    a.load(place, x);
    for (int i = 0; i < N; ++i) out[i] = tp_cast<Out>(Op::of(x[i]));
  }

  __device__ __forceinline__ tp_flat_unary from(long long place) const { return {a.from(place)}; }
};

template <typename T, typename Op, tp_form A, tp_form B>
struct tp_flat_binary {
  tp_operand<T, A> a;
  tp_operand<T, B> b;

  template <int N, typename Out>
  __device__ __forceinline__ void compute(long long place, Out (&out)[N]) const {
    tp_wide_t<T> x[N], y[N];
    a.load(place, x);
    b.load(place, y);
    for (int i = 0; i < N; ++i) out[i] = tp_cast<Out>(Op::of(x[i], y[i]));
  }

  __device__ __forceinline__ tp_flat_binary from(long long place) const {
    return {a.from(place), b.from(place)};
  }
};

template <int N, int TILE, typename Out, typename Source>
TP_DEVICE void tp_flat_vectors(Out *out, long long n_vectors, const Source &source) {
  TP_FOR_TILES(first, n_vectors, TILE / N) {
    int count = tp_tile_count(first, n_vectors, TILE / N);
    TP_INDEPENDENT
    TP_FOR(i, count) {
      Out result[N];
      source.compute(first + i, result);
      tp_write(out, first + i, result);
    }
  }
}

/* Writes p.numel elements; T sets the size of vectors and tiles. */
template <typename T, typename Out, typename Source>
TP_DEVICE void tp_flat_write(const tp_flat_args_t &p, const Source &source) {
  constexpr int N = TP_VECTOR(T);
  constexpr int TILE = static_cast<int>(TP_FLAT_TILE_NBYTES / sizeof(T));
  Out *out = tp_at<Out>(p.out);
  long long done = 0;
  if constexpr (N > 1) {
    if (p.aligned) {
      done = p.numel / N * N;
      tp_flat_vectors<N, TILE>(out, done / N, source);
    }
  }
  tp_flat_vectors<1, TILE>(out + done, p.numel - done, source.from(done));
}

template <typename T, typename Out, typename Op>
TP_DEVICE void tp_flat_write_unary(const tp_flat_args_t &p) {
  tp_operand<T, TP_RUN> a = {tp_at<T>(p.operands[0]), tp_wide_t<T>()};
  tp_flat_write<T, Out>(p, tp_flat_unary<T, Op>{a});
}

template <typename T, typename Out, typename Op>
TP_DEVICE void tp_flat_write_binary(const tp_flat_args_t &p, bool round_scalar) {
  auto a = tp_flat_operand<T>(p, 0, round_scalar);
  auto b = tp_flat_operand<T>(p, 1, round_scalar);
#ifdef __CUDACC__
  tp_flat_write<T, Out>(p, tp_flat_binary<T, Op, TP_EITHER, TP_EITHER>{a, b});
#else
  auto a_run = a.template as<TP_RUN>();
  auto b_run = b.template as<TP_RUN>();
  if (a.run && b.run)
    tp_flat_write<T, Out>(p, tp_flat_binary<T, Op, TP_RUN, TP_RUN>{a_run, b_run});
  else if (a.run)
    tp_flat_write<T, Out>(p, tp_flat_binary<T, Op, TP_RUN, TP_ONE>{a_run, b.template as<TP_ONE>()});
  else
    tp_flat_write<T, Out>(p, tp_flat_binary<T, Op, TP_ONE, TP_RUN>{a.template as<TP_ONE>(), b_run});
#endif
}

#endif
