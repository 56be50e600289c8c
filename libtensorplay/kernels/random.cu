/* Random numbers: Philox4x32-10, uniform and normal (docs/design/random.md has the definition). */
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

/* Operations that are rounded by themselves: the GPU's compiler must not fuse them. */
#ifdef __CUDACC__
TP_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }
TP_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
#else
TP_DEVICE float multiply(float a, float b) { return a * b; }
TP_DEVICE float add(float a, float b) { return a + b; }
#endif

TP_DEVICE float fraction(unsigned word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

struct uniform {
  TP_DEVICE void fill(const tp_random_args_t &p, const random_words &random, float *x) {
    for (int j = 0; j < 4; ++j) {
      float value = add(multiply(fraction(random.word[j]), p.span), p.low);
      x[j] = value < p.below ? value : p.below;
    }
  }
};

/* Sine and cosine of an angle in turns, 0 <= angle < 1. */
TP_DEVICE void sine_cosine(float angle, float *sine, float *cosine) {
#ifdef __CUDACC__
  sincospif(2 * angle, sine, cosine);
#else
  /* Whole quarters are taken off exactly; the rest is at most an eighth of a turn. */
  int quarter = static_cast<int>(4 * angle + 0.5f);
  float rest = (angle - 0.25f * static_cast<float>(quarter)) * 6.28318530717958647692f;
  float s = sinf(rest), c = cosf(rest);
  float turned_sine = quarter & 1 ? c : s, turned_cosine = quarter & 1 ? -s : c;
  *sine = quarter & 2 ? -turned_sine : turned_sine;
  *cosine = quarter & 2 ? -turned_cosine : turned_cosine;
#endif
}

struct normal {
  TP_DEVICE void fill(const tp_random_args_t &p, const random_words &random, float *x) {
    for (int j = 0; j < 4; j += 2) {
      float u = add(static_cast<float>(random.word[j]) * 0x1p-32f, 0x1p-33f);
      float radius = sqrtf(-2 * logf(u)), sine, cosine;
      sine_cosine(fraction(random.word[j + 1]), &sine, &cosine);
      x[j] = p.mean + p.std * (radius * cosine);
      x[j + 1] = p.mean + p.std * (radius * sine);
    }
  }
};

/* Kept apart: dimensions are seldom. */
TP_DEVICE_COLD long long place_of(const tp_random_args_t &p, long long index) {
  return p.contiguous ? index : tp_layout_offset(p.layout, 1, index);
}

/* A group of four numbers is written at once where elements are adjacent: fresh memory is aligned to that. */
template <typename Distribution, typename T>
TP_DEVICE void fill_random(const tp_random_args_t &p) {
  T *out = tp_at<T>(p.out);
  bool whole = p.contiguous && reinterpret_cast<size_t>(out) % (4 * sizeof(T)) == 0;
  long long groups = (p.layout.numel + 3) / 4;
  TP_FOR_TILES(first, groups, TP_RANDOM_TILE) {
    int count = tp_tile_count(first, groups, TP_RANDOM_TILE);
    TP_FOR(i, count) {
      long long group = first + i;
      float x[4];
      T elements[4];
      Distribution::fill(p, philox(p.counter + static_cast<unsigned long long>(group), p.seed), x);
      for (int j = 0; j < 4; ++j) elements[j] = tp_cast<T>(x[j]);
      int width = tp_tile_count(4 * group, p.layout.numel, 4);
      if (whole && width == 4) {
        tp_write(out + 4 * group, elements);
      } else {
        for (int j = 0; j < 4; ++j) {
          if (j < width) out[place_of(p, 4 * group + j)] = elements[j];
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
#undef TP_RANDOM

#undef TP_FAMILY
