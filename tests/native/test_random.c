/* Random numbers: known answers, the mapping of docs/design/random.md, generators, limits. */
#include <pthread.h>

#include "tp_emulated.h"
#include "values.h"

/* Philox4x32-10 once more, from its description. */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c[4], k[2] = {key[0], key[1]};
  memcpy(c, counter, sizeof c);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1],
                        (uint32_t)a};
    memcpy(c, next, sizeof c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  memcpy(out, c, sizeof c);
}

/* The authors' vectors: the reference above is right, so the kernels that agree with it are. */
static void test_known_answers(void) {
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; ++i) {
    uint32_t out[4];
    philox(vectors[i].counter, vectors[i].key, out);
    CHECK(memcmp(out, vectors[i].out, sizeof out) == 0);
  }
  /* Through the kernel: counter 0 and key 0 give the first vector's words. */
  CHECK_OK(tp_generator_set_state(0, 0, 0));
  tp_tensor_t *tensor = values_poisoned(TP_DTYPE_float32, 1, (int64_t[]){4});
  CHECK_OK(tp_random_uniform(tensor, 0, 1));
  double *x = values_download(tensor);
  for (int i = 0; i < 4; ++i) CHECK(x[i] == (vectors[0].out[i] >> 8) * 0x1p-24);
  free(x);
  tp_tensor_release(tensor);
}

static uint32_t word(uint64_t seed, uint64_t offset, uint64_t i) {
  uint64_t group = offset / 4 + i / 4;
  uint32_t out[4];
  philox((uint32_t[]){(uint32_t)group, (uint32_t)(group >> 32), 0, 0},
         (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, out);
  return out[i % 4];
}

/* The bits of an element of 8 bytes. */
static uint64_t pair(uint64_t seed, uint64_t offset, uint64_t i) {
  return word(seed, offset, 2 * i) | (uint64_t)word(seed, offset, 2 * i + 1) << 32;
}

static uint64_t words_of(int32_t dtype, int64_t numel) {
  return (uint64_t)numel * (tp__dtype_size(dtype) == 8 ? 2 : 1);
}

static const int64_t sizes[] = {1, 2, 3, 4, 5, 4095, 4096, 4097, 20003};
static const uint64_t offsets[] = {0, 4, 1000, 0xfffffffcu, 0x3fffffffcu, 0xfffffffffffffffcu};

static double uniform_of(int32_t dtype, uint64_t seed, uint64_t offset, uint64_t i) {
  if (dtype == TP_DTYPE_float64) {
    double value = (double)(pair(seed, offset, i) >> 11) * 0x1p-53 * 8;
    value += -3;
    return value == 5 ? 5 - 0x1p-50 : value;
  }
  float value = (float)(word(seed, offset, i) >> 8) * 0x1p-24f * 8.0f;
  value += -3.0f;
  double rounded = values_rounded(dtype, value);
  return rounded < 5 ? rounded : dtype == TP_DTYPE_float16 ? 5 - 0x1p-8 : 5 - 0x1p-5;
}

static void test_uniform_mapping(void) {
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    uint64_t seed = values_bits(), offset = offsets[s % (sizeof offsets / sizeof *offsets)];
    for (size_t t = 0; t < 4; ++t) {
      tp_tensor_t *tensor = values_poisoned(floating_dtypes[t], 1, &sizes[s]);
      CHECK_OK(tp_generator_set_state(0, seed, offset));
      CHECK_OK(tp_random_uniform(tensor, -3, 5));
      uint64_t seed_after, offset_after;
      CHECK_OK(tp_generator_get_state(0, &seed_after, &offset_after));
      CHECK(seed_after == seed && offset_after == offset + (words_of(floating_dtypes[t], sizes[s]) + 3) / 4 * 4);
      double *x = values_download(tensor);
      for (int64_t i = 0; i < sizes[s]; ++i) {
        CHECK_CLOSE(x[i], uniform_of(floating_dtypes[t], seed, offset, (uint64_t)i), 0, i);
      }
      free(x);
      tp_tensor_release(tensor);
    }
  }
}

/* Mean 0 and standard deviation 1, before it is rounded to the dtype. */
static double normal_of(int32_t dtype, uint64_t seed, uint64_t offset, uint64_t i) {
  double u, turn;
  if (dtype == TP_DTYPE_float64) {
    u = (double)(pair(seed, offset, i & ~1ull) >> 11) * 0x1p-53 + 0x1p-54;
    turn = (double)(pair(seed, offset, i | 1) >> 11) * 0x1p-53;
  } else {
    u = (float)((float)word(seed, offset, i & ~1ull) * 0x1p-32f + 0x1p-33f);
    turn = (word(seed, offset, i | 1) >> 8) * 0x1p-24;
  }
  long double angle = 2 * acosl(-1) * turn; /* wider than the angle that the kernel has reduced exactly */
  return sqrt(-2 * log(u)) * (double)(i % 2 ? sinl(angle) : cosl(angle));
}

static void test_normal_mapping(void) {
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    uint64_t seed = values_bits(), offset = offsets[s % (sizeof offsets / sizeof *offsets)];
    for (size_t t = 0; t < 4; ++t) {
      tp_tensor_t *tensor = values_poisoned(floating_dtypes[t], 1, &sizes[s]);
      CHECK_OK(tp_generator_set_state(0, seed, offset));
      CHECK_OK(tp_random_normal(tensor, 0.5, 2));
      double *x = values_download(tensor);
      for (int64_t i = 0; i < sizes[s]; ++i) {
        double z = normal_of(floating_dtypes[t], seed, offset, (uint64_t)i), expected = 0.5 + 2 * z;
        double step = floating_dtypes[t] == TP_DTYPE_float64 ? 0x1p-52 : 0x1p-23;
        CHECK_CLOSE(x[i], expected, 4 * step * (fabs(z) + 1) + values_epsilon(floating_dtypes[t]) * fabs(expected), i);
      }
      free(x);
      tp_tensor_release(tensor);
    }
  }
}

/* The limits of the interval: tiny spans round to the ends of it, where the upper one must not appear. */
static void test_uniform_stays_below_its_upper_limit(void) {
  static const double limits[][2] = {{0, 1}, {1, 1 + 0x1p-7}, {-1, 0},      {-2, -1},
                                     {4, 8}, {-0.1, 0.1},     {1000, 1008}, {0, 0x1p-24}};
  int64_t n = 1 << 16;
  for (size_t l = 0; l < sizeof limits / sizeof *limits; ++l) {
    for (size_t t = 0; t < 4; ++t) {
      double low = values_rounded(floating_dtypes[t], limits[l][0]);
      double high = values_rounded(floating_dtypes[t], limits[l][1]);
      tp_tensor_t *tensor = values_poisoned(floating_dtypes[t], 1, &n);
      CHECK_OK(tp_random_uniform(tensor, limits[l][0], limits[l][1]));
      double *x = values_download(tensor), sum = 0, least = INFINITY, most = -INFINITY;
      for (int64_t i = 0; i < n; ++i) {
        CHECK(x[i] >= low && (x[i] < high || (low == high && x[i] == low)));
        sum += x[i];
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
      }
      double width = high - low, step = values_epsilon(floating_dtypes[t]) * fmax(fabs(low), fabs(high));
      if (floating_dtypes[t] == TP_DTYPE_float16) step += 0x1p-24; /* its smallest step */
      CHECK_CLOSE(sum / (double)n, (low + high) / 2, 0.01 * width + step, 0);
      CHECK(least <= low + 0.01 * width + step && most >= high - 0.01 * width - 2 * step);
      free(x);
      tp_tensor_release(tensor);
    }
  }
}

/* A view's elements count in C order, and what lies between them is left alone. */
static void test_views(void) {
  int64_t n = 6 * 10 * 7;
  for (size_t t = 0; t < 4; ++t) {
    int32_t dtype = floating_dtypes[t];
    tp_tensor_t *flat = values_poisoned(dtype, 1, &n),
                *base = values_poisoned(dtype, 3, (int64_t[]){6, 20, 7});
    tp_tensor_t *sliced = tp_tensor_slice(base, 1, 1, 20, 2);
    tp_tensor_t *view = tp_tensor_permute(sliced, 3, (int64_t[]){2, 0, 1});
    CHECK_OK(tp_generator_set_state(0, 7, 40));
    CHECK_OK(tp_random_normal(flat, 0, 1));
    CHECK_OK(tp_generator_set_state(0, 7, 40));
    CHECK_OK(tp_random_normal(view, 0, 1));
    double *expected = values_download(flat), *got = values_download(view), *all = values_download(base);
    for (int64_t i = 0; i < n; ++i) CHECK_CLOSE(got[i], expected[i], 0, i);
    for (int64_t i = 0; i < 2 * n; ++i) CHECK(isnan(all[i]) == (i / 7 % 2 == 0));
    free(expected);
    free(got);
    free(all);
    tp_tensor_release(flat);
    tp_tensor_release(base);
    tp_tensor_release(sliced);
    tp_tensor_release(view);
  }
}

static void test_bits(void) {
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    uint64_t seed = values_bits(), offset = offsets[s % (sizeof offsets / sizeof *offsets)], after;
    tp_tensor_t *base = tp_tensor_empty(TP_DTYPE_int64, 0, 2, (int64_t[]){sizes[s], 2});
    tp_tensor_t *views[] = {tp_tensor_select(base, 1, 1), tp_tensor_empty(TP_DTYPE_int64, 0, 1, &sizes[s])};
    for (int v = 0; v < 2; ++v) {
      CHECK_OK(tp_generator_set_state(0, seed, offset));
      CHECK_OK(tp_random_bits(views[v]));
      CHECK_OK(tp_generator_get_state(0, &seed, &after));
      CHECK(after == offset + (2 * (uint64_t)sizes[s] + 3) / 4 * 4);
      size_t nbytes = (size_t)sizes[s] * sizeof(uint64_t);
      uint64_t *bits = malloc(nbytes);
      CHECK_OK(tp_tensor_copy_to_host(views[v], bits, nbytes));
      for (int64_t i = 0; i < sizes[s]; ++i) CHECK(bits[i] == pair(seed, offset, (uint64_t)i));
      free(bits);
      tp_tensor_release(views[v]);
    }
    tp_tensor_release(base);
  }
}

/* The smallest steps of float64, which half of cannot be told from 0. */
static void test_uniform_near_zero(void) {
  static const double limits[][2] = {{0, 0x1p-1074}, {-0x1p-1074, 0}, {-0x1p-1073, 0x1p-1074}};
  for (size_t l = 0; l < 3; ++l) {
    tp_tensor_t *tensor = values_poisoned(TP_DTYPE_float64, 1, (int64_t[]){1000});
    CHECK_OK(tp_random_uniform(tensor, limits[l][0], limits[l][1]));
    double *x = values_download(tensor);
    for (int i = 0; i < 1000; ++i) CHECK(x[i] >= limits[l][0] && x[i] < limits[l][1]);
    free(x);
    tp_tensor_release(tensor);
  }
}

static void test_generators(void) {
  uint64_t seed, offset;
  CHECK_OK(tp_generator_get_state(1, &seed, &offset));
  CHECK(seed == 67280421310721u && offset == 0);
  CHECK(tp_device_is_started(1) == 0);
  CHECK_OK(tp_generator_set_state(0, 5, 8));
  CHECK_OK(tp_generator_get_state(1, &seed, &offset));
  CHECK(seed == 67280421310721u && offset == 0);
  CHECK_OK(tp_generator_seed(0, 9));
  CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  CHECK(seed == 9 && offset == 0);
  CHECK(tp_generator_set_state(0, 5, 6) == TP_INVALID_ARGUMENT);
  CHECK(tp_generator_seed(2, 5) == TP_DEVICE);
  CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  CHECK(seed == 9 && offset == 0);
}

enum { THREADS = 4, FILLS = 50, FILL = 1001 };

static void *fill_often(void *argument) {
  tp_tensor_t **tensors = argument;
  for (int i = 0; i < FILLS; ++i) {
    tensors[i] = tp_tensor_empty(TP_DTYPE_float32, 0, 1, (int64_t[]){FILL});
    CHECK(tensors[i]);
    CHECK_OK(tp_random_uniform(tensors[i], 0, 1));
  }
  return NULL;
}

/* Each fill takes numbers of its own: together they are those of one thread, in some order. */
static void test_threads_get_disjoint_numbers(void) {
  static tp_tensor_t *tensors[THREADS][FILLS];
  static bool seen[THREADS * FILLS];
  uint64_t seed = values_bits(), step = (FILL + 3) / 4 * 4;
  CHECK_OK(tp_generator_seed(0, seed));
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; ++t) CHECK(pthread_create(&threads[t], NULL, fill_often, tensors[t]) == 0);
  for (int t = 0; t < THREADS; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  for (int t = 0; t < THREADS; ++t)
    for (int i = 0; i < FILLS; ++i) {
      double *x = values_download(tensors[t][i]);
      uint64_t place = 0;
      while (place < THREADS * FILLS && (seen[place] || x[0] != (word(seed, place * step, 0) >> 8) * 0x1p-24))
        ++place;
      CHECK(place < THREADS * FILLS);
      seen[place] = true;
      CHECK(x[FILL - 1] == (word(seed, place * step, FILL - 1) >> 8) * 0x1p-24);
      free(x);
      tp_tensor_release(tensors[t][i]);
    }
  uint64_t offset;
  CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  CHECK(offset == THREADS * FILLS * step);
}

static void test_refusals_change_nothing(void) {
  tp_tensor_t *integers = tp_tensor_empty(TP_DTYPE_int32, 0, 1, (int64_t[]){4});
  tp_tensor_t *floats = tp_tensor_empty(TP_DTYPE_float16, 0, 1, (int64_t[]){4});
  tp_tensor_t *one = tp_tensor_empty(TP_DTYPE_float32, 0, 1, (int64_t[]){1});
  tp_tensor_t *expanded = tp_tensor_expand(one, 1, (int64_t[]){4});
  tp_tensor_t *empty = tp_tensor_empty(TP_DTYPE_float32, 0, 1, (int64_t[]){0});
  CHECK_OK(tp_generator_set_state(0, 3, 12));
  CHECK(tp_random_uniform(integers, 0, 1) == TP_DTYPE);
  CHECK(tp_random_normal(integers, 0, 1) == TP_DTYPE);
  CHECK(tp_random_bits(integers) == TP_DTYPE && tp_random_bits(floats) == TP_DTYPE);
  CHECK(tp_random_uniform(floats, 1, 0) == TP_INVALID_ARGUMENT);
  CHECK(tp_random_uniform(floats, 0, NAN) == TP_INVALID_ARGUMENT);
  CHECK(tp_random_uniform(floats, 0, 1e6) == TP_INVALID_ARGUMENT); /* infinite in float16 */
  CHECK(tp_random_normal(floats, 0, -1) == TP_INVALID_ARGUMENT);
  CHECK(tp_random_uniform(expanded, 0, 1) == TP_INVALID_ARGUMENT);
  CHECK_OK(tp_random_uniform(empty, 0, 1));
  uint64_t seed, offset;
  CHECK_OK(tp_generator_get_state(0, &seed, &offset));
  CHECK(seed == 3 && offset == 12);
  tp_tensor_release(integers);
  tp_tensor_release(floats);
  tp_tensor_release(one);
  tp_tensor_release(expanded);
  tp_tensor_release(empty);
}

int main(void) {
  values_start();
  test_generators();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_known_answers();
    test_uniform_mapping();
    test_normal_mapping();
    test_uniform_stays_below_its_upper_limit();
    test_views();
    test_bits();
    test_uniform_near_zero();
  }
  tp_emulated_set_fibres(0);
  test_threads_get_disjoint_numbers();
  test_refusals_change_nothing();
  return 0;
}
