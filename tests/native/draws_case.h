/* What tests of random numbers in graphs share: fills, the numbers that they hold, and those that eager work draws from
 * a state. */
#ifndef TP_TESTS_DRAWS_CASE_H
#define TP_TESTS_DRAWS_CASE_H

#include "graph_case.h"
#include "tp_emulated.h"
#include "values.h"

enum { SEEDS = 24, NUMBERS = 41 };

/* Three fills with numbers of all kinds, which take 44 + 24 + 12 words. */
typedef struct fills {
  tp_tensor_t *uniform, *normal, *bits;
} fills_t;
#define WORDS 80

typedef struct numbers {
  char bytes[NUMBERS * 4 + 11 * 8 + 5 * 8];
} numbers_t;

static inline fills_t make_fills(void) {
  return (fills_t){values_poisoned(TP_DTYPE_float32, 1, (int64_t[]){NUMBERS}),
                   values_poisoned(TP_DTYPE_float64, 1, (int64_t[]){11}),
                   tp_tensor_empty(TP_DTYPE_int64, 0, 1, (int64_t[]){5})};
}

static inline void release_fills(fills_t *fills) {
  tp_tensor_release(fills->uniform);
  tp_tensor_release(fills->normal);
  tp_tensor_release(fills->bits);
}

static inline void fill(const fills_t *fills) {
  CHECK_OK(tp_random_uniform(fills->uniform, -1, 1));
  CHECK_OK(tp_random_normal(fills->normal, 0, 1));
  CHECK_OK(tp_random_bits(fills->bits));
}

static inline numbers_t numbers_of(const fills_t *fills) {
  numbers_t numbers;
  CHECK_OK(tp_tensor_copy_to_host(fills->uniform, numbers.bytes, NUMBERS * 4));
  CHECK_OK(tp_tensor_copy_to_host(fills->normal, numbers.bytes + NUMBERS * 4, 11 * 8));
  CHECK_OK(tp_tensor_copy_to_host(fills->bits, numbers.bytes + NUMBERS * 4 + 11 * 8, 5 * 8));
  return numbers;
}

static inline bool equal(const numbers_t *a, const numbers_t *b) {
  return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static inline tp_graph_t *begin(tp_stream_t *stream) {
  CHECK_OK(tp_stream_set_current(stream));
  return begin_graph(stream, TP_CAPTURE_GLOBAL);
}

static inline void end(tp_graph_t *graph) {
  CHECK_OK(tp_graph_capture_end(graph));
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
}

static inline tp_graph_t *capture_fills(const fills_t *fills) {
  tp_graph_t *graph = begin(tp_stream_from_pool(0, 0));
  fill(fills);
  end(graph);
  return graph;
}

static inline void replay(tp_graph_t *graph) { CHECK_OK(tp_graph_replay(graph, NULL)); }

static inline void check_state(uint64_t seed, uint64_t offset) {
  uint64_t got_seed, got_offset;
  CHECK_OK(tp_generator_get_state(0, &got_seed, &got_offset));
  CHECK(got_seed == seed && got_offset == offset);
}

/* What eager work draws from a state. */
static inline numbers_t drawn_from(uint64_t seed, uint64_t offset) {
  uint64_t seed_before, offset_before;
  fills_t fills = make_fills();
  CHECK_OK(tp_generator_get_state(0, &seed_before, &offset_before));
  CHECK_OK(tp_generator_set_state(0, seed, offset));
  fill(&fills);
  numbers_t numbers = numbers_of(&fills);
  CHECK_OK(tp_generator_set_state(0, seed_before, offset_before));
  release_fills(&fills);
  return numbers;
}

static inline void check_drawn(const fills_t *fills, uint64_t seed, uint64_t offset) {
  numbers_t got = numbers_of(fills), expected = drawn_from(seed, offset);
  CHECK(equal(&got, &expected));
}

#endif
