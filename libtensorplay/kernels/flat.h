/* Loops over operands of one dtype: runs of elements, or places of a small layout, moved in vectors of
 * 16 bytes on the GPU wherever these are adjacent. */
#ifndef TP_FLAT_H
#define TP_FLAT_H

#include "args_elementwise.h"
#include "element.h"
#include "layout.h"

/* Elements of a vector. The host's compiler makes its own vectors out of the plain loop. */
#ifdef __CUDACC__
#define TP_VECTOR(T) static_cast<int>(16 / sizeof(T))
#else
#define TP_VECTOR(T) 1
#define TP_INDEPENDENT _Pragma("GCC ivdep") /* out may be an operand: then element for element */
#endif

/* N elements; the address is aligned to them. */
template <typename T, int N>
struct alignas(sizeof(T) * N) tp_vector {
  T at[N];
};

template <typename T, int N>
TP_DEVICE void tp_read(const T *from, T (&x)[N]) {
  if constexpr (N == 1) {
    x[0] = *from;
  } else {
    tp_vector<T, N> vector = *reinterpret_cast<const tp_vector<T, N> *>(from);
    for (int i = 0; i < N; ++i) x[i] = vector.at[i];
  }
}

template <typename T, int N>
TP_DEVICE void tp_write(T *to, const T (&x)[N]) {
  if constexpr (N == 1) {
    *to = x[0];
  } else {
    tp_vector<T, N> vector;
    for (int i = 0; i < N; ++i) vector.at[i] = x[i];
    *reinterpret_cast<tp_vector<T, N> *>(to) = vector;
  }
}

template <typename T>
using tp_wide_t = decltype(tp_wide(T()));

/* What an operand is: the number `one`, one element for a vector, a run of elements. EITHER decides while the
 * kernel runs: one branch, the same for all threads, and a third of the code. The host's compiler makes
 * vectors only of loops without it. */
enum tp_form { TP_ONE, TP_SAME, TP_RUN, TP_EITHER };

/* An operand of element type T. */
template <typename T, tp_form FORM>
struct tp_operand {
  const T *run;
  tp_wide_t<T> one;
  int step; /* as in tp_flat_args_t */

  __device__ __forceinline__ bool is(tp_form form) const {
    if (FORM != TP_EITHER) return FORM == form;
    return form == TP_RUN ? step > 0 : form == TP_SAME ? step == 0 : step < 0;
  }

  /* Reads ahead of the use, `unit` elements, N or 1: what is one element for all of them, it does not spread yet,
   * and so waits for nothing. */
  template <int N>
  __device__ __forceinline__ void read(long long place, int unit, T (&x)[N]) const {
    if (is(TP_RUN) && unit == N)
      tp_read(run + place, x);
    else if (!is(TP_ONE))
      x[0] = run[place];
  }

  template <int N>
  __device__ __forceinline__ void widen(int unit, const T (&elements)[N], tp_wide_t<T> (&x)[N]) const {
    if (is(TP_RUN) && unit == N) {
      for (int i = 0; i < N; ++i) x[i] = tp_wide(elements[i]);
    } else {
      tp_wide_t<T> value = is(TP_ONE) ? one : tp_wide(elements[0]);
      for (int i = 0; i < N; ++i) x[i] = value;
    }
  }

  /* From a place on, where one element for all is read. */
  __device__ __forceinline__ tp_operand from(long long place) const {
    if (step == 0) return {run, tp_wide(run[place]), -1};
    return {run + place, one, step};
  }

  template <tp_form AS>
  __device__ __forceinline__ tp_operand<T, AS> as() const {
    return {run, one, step};
  }
};

/* round_scalar: the scalar counts as an element, rounded to T; else it is computed with as it is. */
template <typename T>
TP_DEVICE tp_operand<T, TP_EITHER> tp_flat_operand(const tp_flat_args_t &p, int i, bool round_scalar) {
  tp_wide_t<T> scalar;
  if constexpr (tp_is_floating<tp_wide_t<T>>) {
    scalar = static_cast<tp_wide_t<T>>(p.scalar.as_float);
    if (round_scalar) scalar = tp_wide(tp_cast<T>(scalar));
  } else {
    scalar = tp_wide(tp_cast<T>(p.scalar.as_int));
  }
  return {tp_at<T>(p.operands[i]), scalar, p.steps[i]};
}

/* ---- places ---- */

/* Elements to the index-th element of each operand. One copy for all kernels of a
 * family: inlined into every flat kernel it would be half of their code. */
struct tp_place_list {
  unsigned at[TP_PLACES_OPERANDS];
};
TP_DEVICE tp_place_list tp_places_of(const tp_places_t &layout, unsigned index) {
  tp_place_list list = {};
#ifdef __CUDACC__
#pragma unroll 1
#endif
  for (int dim = 0; dim < layout.ndim; ++dim) {
    unsigned outer = dim + 1 == layout.ndim ? 0 : tp_divide(index, layout.divisors[dim]);
    unsigned in = index - outer * layout.divisors[dim].size;
    index = outer;
    for (int i = 0; i < TP_PLACES_OPERANDS; ++i)
      list.at[i] += in * static_cast<unsigned>(layout.strides[i][dim]);
  }
  return list;
}

/* ---- what is written: Op applied to one or two operands ---- */
template <typename T, typename Op, tp_form A>
struct tp_flat_unary {
  tp_operand<T, A> a;

  template <int N>
  struct elements {
    T a[N];
  };

  /* places[0] is out's. */
  template <int N>
  __device__ __forceinline__ void read(const long long (&places)[TP_PLACES_OPERANDS], int unit, elements<N> &e) const {
    a.read(places[1], unit, e.a);
  }

  template <int N, typename Out>
  __device__ __forceinline__ void compute(int unit, const elements<N> &e, Out (&out)[N]) const {
    tp_wide_t<T> x[N];
    a.widen(unit, e.a, x);
    for (int i = 0; i < N; ++i) out[i] = tp_cast<Out>(Op::of(x[i]));
  }
};

template <typename T, typename Op, tp_form A, tp_form B>
struct tp_flat_binary {
  tp_operand<T, A> a;
  tp_operand<T, B> b;

  template <int N>
  struct elements {
    T a[N], b[N];
  };

  template <int N>
  __device__ __forceinline__ void read(const long long (&places)[TP_PLACES_OPERANDS], int unit, elements<N> &e) const {
    a.read(places[1], unit, e.a);
    b.read(places[2], unit, e.b);
  }

  template <int N, typename Out>
  __device__ __forceinline__ void compute(int unit, const elements<N> &e, Out (&out)[N]) const {
    tp_wide_t<T> x[N], y[N];
    a.widen(unit, e.a, x);
    b.widen(unit, e.b, y);
    for (int i = 0; i < N; ++i) out[i] = tp_cast<Out>(Op::of(x[i], y[i]));
  }
};

#ifdef __CUDACC__

TP_DEVICE void tp_flat_places(const tp_flat_args_t &p, long long index, long long (&places)[TP_PLACES_OPERANDS]) {
  if (p.places.ndim) {
    tp_place_list list = tp_places_of(p.places, static_cast<unsigned>(index));
    for (int i = 0; i < TP_PLACES_OPERANDS; ++i) places[i] = list.at[i];
  } else {
    places[0] = index;
    for (int i = 1; i < TP_PLACES_OPERANDS; ++i) places[i] = p.steps[i - 1] > 0 ? index : 0;
  }
}

/* Elements begin .. end-1 in units of N or 1. A thread reads its next unit before it computes and writes the one that
 * it has: two are in flight with the code for one. A unit of 1 is computed N times over: that costs less than the
 * code for it, which would be half of the images. */
template <int N, typename Out, typename Source>
TP_DEVICE void tp_flat_units(const tp_flat_args_t &p, int unit, long long begin, long long end, Out *out,
                             const Source &source) {
  int step = unit * tp_threads();
  for (long long first = begin + static_cast<long long>(blockIdx.x) * p.tile; first < end;
       first += static_cast<long long>(gridDim.x) * p.tile) {
    int count = tp_tile_count(first, end, p.tile);
    typename Source::template elements<N> now, next;
    long long place = 0;
#pragma unroll 1
    for (int i = tp_thread() * unit, before = -1;; before = i, i += step) {
      long long places[TP_PLACES_OPERANDS] = {};
      if (i < count) {
        tp_flat_places(p, first + i, places);
        source.read(places, unit, next);
      }
      if (before >= 0) {
        Out result[N];
        source.compute(unit, now, result);
        if (unit == N)
          tp_write(out + place, result);
        else
          out[place] = result[0];
      }
      if (i >= count) break;
      now = next;
      place = places[0];
    }
  }
}

/* Writes p.numel elements; T sets the size of vectors. */
template <typename T, typename Out, typename Source>
TP_DEVICE void tp_flat_write(const tp_flat_args_t &p, const Source &source) {
  constexpr int N = TP_VECTOR(T);
  long long whole = p.aligned ? p.numel / N * N : 0;
#pragma unroll 1
  for (int part = whole ? 0 : 1; part < 2; ++part)
    tp_flat_units<N>(p, part ? 1 : N, part ? whole : 0, part ? p.numel : whole, tp_at<Out>(p.out), source);
}

template <typename T, typename Out, typename Op>
TP_DEVICE void tp_flat_write_unary(const tp_flat_args_t &p) {
  tp_flat_write<T, Out>(p, tp_flat_unary<T, Op, TP_EITHER>{tp_flat_operand<T>(p, 0, false)});
}

template <typename T, typename Out, typename Op>
TP_DEVICE void tp_flat_write_binary(const tp_flat_args_t &p, bool round_scalar) {
  tp_flat_write<T, Out>(p, tp_flat_binary<T, Op, TP_EITHER, TP_EITHER>{tp_flat_operand<T>(p, 0, round_scalar),
                                                                       tp_flat_operand<T>(p, 1, round_scalar)});
}

#else

/* Calls run(places, count) for each stretch along dimension 0 of the thread's elements. */
template <typename Run>
TP_DEVICE void tp_flat_stretches(const tp_flat_args_t &p, Run run) {
  TP_FOR_TILES(first, p.numel, p.tile) {
    int count = tp_tile_count(first, p.numel, p.tile);
    long long begin = first + tp_host_share(count, tp_thread());
    long long end = first + tp_host_share(count, tp_thread() + 1);
    while (begin < end) {
      long long length = end - begin;
      long long places[TP_PLACES_OPERANDS] = {begin, p.steps[0] > 0 ? begin : 0, p.steps[1] > 0 ? begin : 0};
      if (p.places.ndim) {
        long long size = p.places.divisors[0].size, left = size - begin % size;
        tp_place_list list = tp_places_of(p.places, static_cast<unsigned>(begin));
        for (int i = 0; i < TP_PLACES_OPERANDS; ++i) places[i] = list.at[i];
        if (length > left) length = left;
      }
      run(places, static_cast<int>(length));
      begin += length;
    }
  }
}

/* `count` elements of out, `step` apart; the operands' are at the multiples of steps. */
template <typename Out, typename Source>
TP_DEVICE void tp_flat_stepped(Out *out, int count, const long long (&steps)[TP_PLACES_OPERANDS],
                               const Source &source) {
  TP_INDEPENDENT
  for (int i = 0; i < count; ++i) {
    const long long places[TP_PLACES_OPERANDS] = {i * steps[0], i * steps[1], i * steps[2]};
    typename Source::template elements<1> elements = {};
    Out result[1];
    source.read(places, 1, elements);
    source.compute(1, elements, result);
    tp_write(out + places[0], result);
  }
}

template <typename Out, typename Source>
TP_DEVICE void tp_flat_run(Out *out, int count, const Source &source) {
  tp_flat_stepped(out, count, {1, 1, 1}, source);
}

template <typename T, typename Out, typename Source>
TP_DEVICE void tp_flat_write(const tp_flat_args_t &p, const Source &source) {
  tp_flat_stretches(p, [&](const long long(&places)[TP_PLACES_OPERANDS], int count) {
    tp_flat_run(tp_at<Out>(p.out) + places[0], count, source);
  });
}

template <typename T, typename Out, typename Op>
TP_DEVICE void tp_flat_write_unary(const tp_flat_args_t &p) {
  auto a = tp_flat_operand<T>(p, 0, false);
  const long long steps[] = {p.places.ndim ? p.places.strides[0][0] : 1, p.steps[0], 0};
  tp_flat_stretches(p, [&](const long long(&places)[TP_PLACES_OPERANDS], int count) {
    Out *out = tp_at<Out>(p.out) + places[0];
    auto x = a.from(places[1]);
    if (steps[0] == 1 && steps[1] == 1)
      tp_flat_run(out, count, tp_flat_unary<T, Op, TP_RUN>{x.template as<TP_RUN>()});
    else
      tp_flat_stepped(out, count, steps, tp_flat_unary<T, Op, TP_EITHER>{x});
  });
}

template <typename T, typename Out, typename Op>
TP_DEVICE void tp_flat_write_binary(const tp_flat_args_t &p, bool round_scalar) {
  auto a = tp_flat_operand<T>(p, 0, round_scalar), b = tp_flat_operand<T>(p, 1, round_scalar);
  const long long steps[] = {p.places.ndim ? p.places.strides[0][0] : 1, p.steps[0], p.steps[1]};
  tp_flat_stretches(p, [&](const long long(&places)[TP_PLACES_OPERANDS], int count) {
    Out *out = tp_at<Out>(p.out) + places[0];
    auto x = a.from(places[1]), y = b.from(places[2]);
    auto x_run = x.template as<TP_RUN>();
    auto y_run = y.template as<TP_RUN>();
    auto x_one = x.template as<TP_ONE>();
    auto y_one = y.template as<TP_ONE>();
    bool adjacent = steps[0] == 1;
    if (adjacent && steps[1] == 1 && steps[2] == 1)
      tp_flat_run(out, count, tp_flat_binary<T, Op, TP_RUN, TP_RUN>{x_run, y_run});
    else if (adjacent && steps[1] == 1 && steps[2] <= 0)
      tp_flat_run(out, count, tp_flat_binary<T, Op, TP_RUN, TP_ONE>{x_run, y_one});
    else if (adjacent && steps[1] <= 0 && steps[2] == 1)
      tp_flat_run(out, count, tp_flat_binary<T, Op, TP_ONE, TP_RUN>{x_one, y_run});
    else
      tp_flat_stepped(out, count, steps, tp_flat_binary<T, Op, TP_EITHER, TP_EITHER>{x, y});
  });
}

#endif

#endif
