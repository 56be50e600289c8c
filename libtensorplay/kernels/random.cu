/* Random numbers: Philox4x32-10, uniform, normal and all bits (docs/design/random.md has the definition); states of
 * generators that the device keeps. */
#define TP_FAMILY "random"
#include "element.h"
#include "args_random.h"
#include "flat.h"

namespace tp_random {

struct random_words {
  unsigned word[4];
};

TP_DEVICE random_words philox(unsigned long long counter, unsigned long long seed) {
  unsigned c0 = static_cast<unsigned>(counter), c1 = static_cast<unsigned>(counter >> 32), c2 = 0, c3 = 0;
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    unsigned long long a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    c0 = static_cast<unsigned>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<unsigned>(b);
    c2 = static_cast<unsigned>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<unsigned>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/* The bits of the elements of 8 bytes that share a counter: i is 0 or 1. */
TP_DEVICE unsigned long long pair(const random_words &random, int i) {
  return random.word[2 * i] | static_cast<unsigned long long>(random.word[2 * i + 1]) << 32;
}

/* Operations that are rounded by themselves: the GPU's compiler must not fuse them. */
#ifdef __CUDACC__
TP_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }
TP_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
TP_DEVICE double multiply(double a, double b) { return __dmul_rn(a, b); }
TP_DEVICE double add(double a, double b) { return __dadd_rn(a, b); }
#else
template <typename Real>
TP_DEVICE Real multiply(Real a, Real b) {
  return a * b;
}
template <typename Real>
TP_DEVICE Real add(Real a, Real b) {
  return a + b;
}
#endif

TP_DEVICE float fraction(unsigned word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
TP_DEVICE double fraction(unsigned long long bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/* Each distribution fills the elements of one counter, in what they are computed in. */
struct uniform {
  template <typename Real>
  TP_DEVICE Real of(const tp_random_args_t &p, Real u) {
    Real value = add(multiply(u, static_cast<Real>(p.span)), static_cast<Real>(p.low));
    return value < static_cast<Real>(p.below) ? value : static_cast<Real>(p.below);
  }
  TP_DEVICE void fill(const tp_random_args_t &p, const random_words &random, float (&x)[4]) {
    for (int i = 0; i < 4; ++i) x[i] = of(p, fraction(random.word[i]));
  }
  TP_DEVICE void fill(const tp_random_args_t &p, const random_words &random, double (&x)[2]) {
    for (int i = 0; i < 2; ++i) x[i] = of(p, fraction(pair(random, i)));
  }
};

/* Sine and cosine of an angle in turns, 0 <= angle < 1. */
#ifdef __CUDACC__
TP_DEVICE void sine_cosine(float angle, float *sine, float *cosine) { sincospif(2 * angle, sine, cosine); }
TP_DEVICE void sine_cosine(double angle, double *sine, double *cosine) { sincospi(2 * angle, sine, cosine); }
/* Within one unit in the last place; sqrtf, which rounds correctly, costs three times as much. */
TP_DEVICE float root(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
TP_DEVICE float root(float x) { return sqrtf(x); }
template <typename Real>
TP_DEVICE void sine_cosine(Real angle, Real *sine, Real *cosine) {
  /* Whole quarters are taken off exactly; the rest is at most an eighth of a turn. */
  int quarter = static_cast<int>(4 * angle + static_cast<Real>(0.5));
  Real part = angle - static_cast<Real>(0.25) * static_cast<Real>(quarter);
  Real rest = part * static_cast<Real>(6.28318530717958647692);
  Real s = std::sin(rest), c = std::cos(rest);
  Real turned_sine = quarter & 1 ? c : s, turned_cosine = quarter & 1 ? -s : c;
  *sine = quarter & 2 ? -turned_sine : turned_sine;
  *cosine = quarter & 2 ? -turned_cosine : turned_cosine;
}
#endif

struct normal {
  template <typename Real>
  TP_DEVICE void of(const tp_random_args_t &p, Real radius, Real angle, Real *x) {
    Real sine, cosine;
    sine_cosine(angle, &sine, &cosine);
    x[0] = static_cast<Real>(p.mean) + static_cast<Real>(p.std) * (radius * cosine);
    x[1] = static_cast<Real>(p.mean) + static_cast<Real>(p.std) * (radius * sine);
  }
  TP_DEVICE void fill(const tp_random_args_t &p, const random_words &random, float (&x)[4]) {
    for (int i = 0; i < 4; i += 2) {
      float u = add(static_cast<float>(random.word[i]) * 0x1p-32f, 0x1p-33f);
      of(p, root(-2 * logf(u)), fraction(random.word[i + 1]), x + i);
    }
  }
  TP_DEVICE void fill(const tp_random_args_t &p, const random_words &random, double (&x)[2]) {
    double u = add(fraction(pair(random, 0)), 0x1p-54);
    of(p, sqrt(-2 * log(u)), fraction(pair(random, 1)), x);
  }
};

struct all_bits {
  TP_DEVICE void fill(const tp_random_args_t &, const random_words &random, long long (&x)[2]) {
    for (int i = 0; i < 2; ++i) x[i] = static_cast<long long>(pair(random, i));
  }
};

/* Kept apart: dimensions are seldom. */
TP_DEVICE_COLD long long place_of(const tp_random_args_t &p, long long index) {
  return p.contiguous ? index : tp_layout_offset(p.layout, 1, index);
}

/* A group is written at once where elements are adjacent: fresh memory is aligned to that. */
template <typename Distribution, typename T>
TP_DEVICE void fill_random(const tp_random_args_t &p) {
  using Wide = decltype(tp_wide(T()));
  constexpr int SIZE = 16 / sizeof(Wide);
  T *out = tp_at<T>(p.out);
  bool whole = p.contiguous && reinterpret_cast<size_t>(out) % (SIZE * sizeof(T)) == 0;
  long long groups = (p.layout.numel + SIZE - 1) / SIZE;
  tp_generator_state_t state = p.state;
  if (p.base) {
    const tp_generator_state_t base = *tp_at<tp_generator_state_t>(p.base);
    state = {base.seed, base.offset + state.offset};
  }
  unsigned long long counter = state.offset / 4;
  TP_FOR_TILES(first, groups, TP_RANDOM_TILE) {
    int count = tp_tile_count(first, groups, TP_RANDOM_TILE);
    TP_FOR(i, count) {
      long long group = first + i;
      Wide x[SIZE];
      T elements[SIZE];
      Distribution::fill(p, philox(counter + static_cast<unsigned long long>(group), state.seed), x);
      for (int j = 0; j < SIZE; ++j) elements[j] = tp_cast<T>(x[j]);
      int width = tp_tile_count(SIZE * group, p.layout.numel, SIZE);
      if (whole && width == SIZE) {
        tp_write(out + SIZE * group, elements);
      } else {
        for (int j = 0; j < SIZE; ++j) {
          if (j < width) out[place_of(p, SIZE * group + j)] = elements[j];
        }
      }
    }
  }
}

}  // namespace tp_random

#define TP_RANDOM(suffix, T)                                                                               \
  TP_KERNEL(tp_k_uniform_##suffix, tp_random_args_t) { tp_random::fill_random<tp_random::uniform, T>(p); } \
  TP_KERNEL(tp_k_normal_##suffix, tp_random_args_t) { tp_random::fill_random<tp_random::normal, T>(p); }
TP_RANDOM(f16, __half)
TP_RANDOM(bf16, __nv_bfloat16)
TP_RANDOM(f32, float)
TP_RANDOM(f64, double)
#undef TP_RANDOM

TP_KERNEL(tp_k_bits_i64, tp_random_args_t) { tp_random::fill_random<tp_random::all_bits, long long>(p); }

TP_KERNEL(tp_k_generator, tp_generator_args_t) {
  TP_FOR_TILES(first, 1, 1) {
    TP_FOR(i, 1) {
      tp_generator_state_t state = p.source ? *tp_at<tp_generator_state_t>(p.source) : p.state;
      if (p.target) *tp_at<tp_generator_state_t>(p.target) = state;
      state.offset += p.words;
      if (p.next) *tp_at<tp_generator_state_t>(p.next) = state;
    }
  }
}

#undef TP_FAMILY
