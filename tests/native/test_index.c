/* Indexing with tensors of integers: every dtype, where the dimensions go, sums, faults. */
#include "alloc/alloc.h"
#include "tp_emulated.h"
#include "values.h"

enum { MOST = 5 };

/* A random x[indices] and what it names. */
typedef struct sample {
  tp_tensor_t *tensor;
  int32_t n;
  tp_tensor_t *indices[MOST];
  int32_t ndim; /* of the result */
  int64_t shape[2 * MOST];
  int64_t numel;
  int64_t *places; /* of the result's elements in the tensor, both in C order */
} sample_t;

static tp_tensor_t *random_index(int32_t ndim, const int64_t *shape, int64_t limit) {
  int64_t numel = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  double *values = malloc((size_t)(numel + 1) * sizeof *values);
  for (int64_t i = 0; i < numel; ++i) values[i] = (double)values_between(-limit, limit);
  tp_tensor_t *tensor = values_upload(values_bits() & 1 ? TP_DTYPE_int64 : TP_DTYPE_int32, ndim, shape, values);
  free(values);
  return tensor;
}

/* The place that the coordinates of the result name. */
static int64_t place_of(const sample_t *c, double *const *at, const int64_t *coordinate, int32_t lead, int32_t width) {
  int64_t place = 0;
  int32_t whole = 0;
  for (int32_t d = 0; d < c->tensor->ndim; ++d) {
    int64_t here;
    if (d < c->n && c->indices[d]) {
      int64_t element = 0;
      for (int32_t k = 0; k < width; ++k) {
        int32_t own = k - (width - c->indices[d]->ndim);
        if (own < 0) continue;
        element = element * c->indices[d]->shape[own];
        if (c->indices[d]->shape[own] > 1) element += coordinate[lead + k];
      }
      here = (int64_t)at[d][element];
      if (here < 0) here += c->tensor->shape[d];
    } else {
      here = coordinate[whole < lead ? whole : whole + width];
      ++whole;
    }
    place = place * c->tensor->shape[d] + here;
  }
  return place;
}

static void make(sample_t *c, int32_t dtype) {
  int64_t shape[MOST], shared[2] = {values_between(1, 4), values_between(1, 4)};
  int32_t ndim = (int32_t)values_between(1, MOST + 1), width = (int32_t)values_between(0, 3), first = -1, last = -1;
  bool together = true;
  *c = (sample_t){.n = (int32_t)values_between(1, ndim + 1), .numel = 1};
  for (int32_t d = 0; d < ndim; ++d) shape[d] = values_between(1, 5);
  tp_tensor_t *base = values_random(dtype, ndim, shape, NULL);
  c->tensor = values_bits() & 1 ? tp_tensor_transpose(base, 0, ndim - 1) : tp__tensor_retain(base);
  tp_tensor_release(base);
  for (int32_t d = 0; d < c->n; ++d) {
    if (d + 1 < c->n && values_bits() & 1) continue; /* the last one is no whole dimension */
    int32_t skipped = width && first >= 0 ? (int32_t)values_between(0, width) : 0;
    int64_t own[2];
    for (int32_t k = skipped; k < width; ++k) own[k - skipped] = first >= 0 && values_bits() & 1 ? 1 : shared[k];
    c->indices[d] = random_index(width - skipped, own, c->tensor->shape[d]);
    together = together && (last < 0 || last == d - 1);
    if (first < 0) first = d;
    last = d;
  }
  int32_t lead = 0;
  for (int32_t pass = 0; pass < 2; ++pass) { /* dimensions before those of the index, and behind */
    for (int32_t d = 0; d < ndim; ++d) {
      bool before = together && d < first;
      if ((d < c->n && c->indices[d]) || before != !pass) continue;
      c->shape[c->ndim++] = c->tensor->shape[d];
    }
    if (pass) break;
    lead = c->ndim;
    for (int32_t k = 0; k < width; ++k) c->shape[c->ndim++] = shared[k];
  }
  for (int32_t d = 0; d < c->ndim; ++d) c->numel *= c->shape[d];
  double *at[MOST] = {NULL};
  for (int32_t d = 0; d < c->n; ++d) at[d] = c->indices[d] ? values_download(c->indices[d]) : NULL;
  c->places = malloc((size_t)c->numel * sizeof *c->places);
  for (int64_t i = 0; i < c->numel; ++i) {
    int64_t coordinate[2 * MOST], rest = i;
    for (int32_t d = c->ndim - 1; d >= 0; --d) {
      coordinate[d] = rest % c->shape[d];
      rest /= c->shape[d];
    }
    c->places[i] = place_of(c, at, coordinate, lead, width);
  }
  for (int32_t d = 0; d < c->n; ++d) free(at[d]);
}

static void drop(sample_t *c) {
  tp_tensor_release(c->tensor);
  for (int32_t d = 0; d < c->n; ++d) tp_tensor_release(c->indices[d]);
  free(c->places);
}

static const tp_tensor_t *const *entries(const sample_t *c) { return (const tp_tensor_t *const *)c->indices; }

static void check_read(const sample_t *c) {
  double *values = values_download(c->tensor);
  tp_tensor_t *result = tp_index(c->tensor, c->n, entries(c));
  CHECK(result && result->ndim == c->ndim && result->dtype == c->tensor->dtype);
  for (int32_t d = 0; d < c->ndim; ++d) CHECK(result->shape[d] == c->shape[d]);
  double *got = values_download(result);
  for (int64_t i = 0; i < c->numel; ++i) CHECK_CLOSE(got[i], values[c->places[i]], 0, i);
  free(values);
  free(got);
  tp_tensor_release(result);
}

/* Of several values for one place, any may have stayed. */
static void check_put(const sample_t *c, bool accumulate) {
  double *expected = values_download(c->tensor), *from;
  int32_t dtype = c->tensor->dtype, skipped = c->ndim ? (int32_t)values_between(0, 2) : 0;
  int64_t repeat = skipped ? c->numel / c->shape[0] : c->numel; /* broadcast along the first dimension */
  tp_tensor_t *values = values_random(dtype, c->ndim - skipped, c->shape + skipped, &from);
  size_t numel = (size_t)c->tensor->numel;
  double *size = calloc(numel, sizeof *size), *found = calloc(numel, sizeof *found);
  CHECK_OK(tp_index_put(c->tensor, c->n, entries(c), values, accumulate));
  double *got = values_download(c->tensor);
  for (int64_t i = 0; i < c->numel; ++i) {
    int64_t place = c->places[i];
    if (accumulate) {
      size[place] += fabs(from[i % repeat]) + fabs(expected[place]);
      expected[place] += from[i % repeat];
    } else {
      found[place] = found[place] == 2 || got[place] == from[i % repeat] ? 2 : 1;
    }
  }
  for (int64_t i = 0; i < c->tensor->numel; ++i) {
    double want = tp__dtype_is_floating(dtype) ? expected[i] : values_rounded(dtype, expected[i]);
    if (found[i])
      CHECK(found[i] == 2);
    else
      CHECK_CLOSE(got[i], want, values_epsilon(dtype) * (size[i] + fabs(want)), i);
  }
  free(expected);
  free(from);
  free(size);
  free(found);
  free(got);
  tp_tensor_release(values);
}

static void test_random_cases(void) {
  for (int32_t dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
    for (int i = 0; i < 40; ++i) {
      sample_t c;
      make(&c, dtype);
      check_read(&c);
      check_put(&c, i % 2);
      drop(&c);
    }
  }
}

/* Every dimension by an index of its own. */
static void test_most_dimensions(void) {
  int64_t shape[TP_MAX_NDIM];
  const tp_tensor_t *indices[TP_MAX_NDIM];
  for (int32_t d = 0; d < TP_MAX_NDIM; ++d) shape[d] = d % 8 ? 1 : 3;
  tp_tensor_t *x = values_random(TP_DTYPE_float64, TP_MAX_NDIM, shape, NULL);
  for (int32_t d = 0; d < TP_MAX_NDIM; ++d) indices[d] = random_index(1, (int64_t[]){4}, shape[d]);
  double *values = values_download(x), *rows = values_download(indices[0]), *columns = values_download(indices[8]);
  tp_tensor_t *result = tp_index(x, TP_MAX_NDIM, indices), *view = tp_tensor_unsqueeze(indices[0], 0);
  CHECK(result && result->ndim == 1 && result->numel == 4);
  double *got = values_download(result);
  for (int i = 0; i < 4; ++i)
    CHECK(got[i] == values[((int)rows[i] + 3) % 3 * 3 + ((int)columns[i] + 3) % 3]);
  CHECK(!tp_index(x, 1, (const tp_tensor_t *[]){view}) && tp_error_status() == TP_SHAPE);
  free(values);
  free(rows);
  free(columns);
  free(got);
  for (int32_t d = 0; d < TP_MAX_NDIM; ++d) tp_tensor_release((tp_tensor_t *)indices[d]);
  tp_tensor_release(x);
  tp_tensor_release(result);
  tp_tensor_release(view);
}

/* x[x] = x and the like: everything is read as it was before. */
static void test_overlap(void) {
  for (int accumulate = 0; accumulate < 2; ++accumulate) {
    double values[] = {3, 2, -4, 0, 4};
    tp_tensor_t *x = values_upload(TP_DTYPE_int64, 1, (int64_t[]){5}, values);
    CHECK_OK(tp_index_put(x, 1, (const tp_tensor_t *[]){x}, x, accumulate));
    double *got = values_download(x);
    for (int i = 0; i < 5; ++i) {
      int place = ((int)values[i] + 5) % 5;
      CHECK_CLOSE(got[place], values[i] + accumulate * values[place], 0, i);
    }
    free(got);
    tp_tensor_release(x);
  }
}

static void test_faults(void) {
  tp_tensor_t *good = values_upload(TP_DTYPE_int64, 1, (int64_t[]){2}, (double[]){0, 1});
  tp_tensor_t *bad = values_upload(TP_DTYPE_int64, 1, (int64_t[]){2}, (double[]){1, -4});
  tp_tensor_t *x = values_poisoned(TP_DTYPE_float32, 2, (int64_t[]){3, 3});
  tp_tensor_t *one = values_upload(TP_DTYPE_float32, 0, NULL, (double[]){1});
  const tp_tensor_t *keys[][2] = {{bad, NULL}, {NULL, bad}, {good, bad}, {bad, good}};
  for (int k = 0; k < 4; ++k) {
    for (int what = 0; what < 3; ++what) {
      CHECK_OK(tp_tensor_fill_int(x, 0));
      tp_tensor_t *result = what ? NULL : tp_index(x, 2, keys[k]);
      if (what) CHECK_OK(tp_index_put(x, 2, keys[k], one, what == 2));
      CHECK(tp_device_synchronize(0) == TP_INDEX);
      CHECK(strcmp(tp_error_operation(), what ? "index_put_" : "index") == 0);
      CHECK(strstr(tp_error_text(), "index -4 is out of range for a dimension of size 3"));
      CHECK_OK(tp_device_synchronize(0));
      double *got = values_download(x), sum = 0;
      for (int i = 0; i < 9; ++i) sum += got[i];
      CHECK(sum == (what == 0 ? 0 : k < 2 ? 3 : 1));
      free(got);
      tp_tensor_release(result);
    }
  }
  tp_tensor_t *tensors[] = {good, bad, x, one};
  for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
}

/* Each failure on the way is told, and nothing stays allocated. */
static void test_failures(void) {
  tp_tensor_t *x = values_random(TP_DTYPE_float16, 3, (int64_t[]){6, 5, 30}, NULL);
  tp_tensor_t *rows = random_index(1, (int64_t[]){100}, 6), *columns = random_index(1, (int64_t[]){100}, 5);
  tp_tensor_t *values = values_random(TP_DTYPE_float16, 1, (int64_t[]){30}, NULL);
  CHECK_OK(tp_device_synchronize(0));
  int64_t allocated = tp_memory_stat(0, TP_STAT_allocated_bytes), failures = 0;
  for (int64_t nth = 1;; ++nth, ++failures) {
    tp_emulated_fail("cudaLaunchKernel", nth, tp_emulated_error_code("cudaErrorInvalidValue"));
    if (!tp_index_put(x, 2, (const tp_tensor_t *[]){rows, columns}, values, 1)) break;
    CHECK(tp_memory_stat(0, TP_STAT_allocated_bytes) == allocated);
  }
  CHECK(failures > 4);
  tp_emulated_fail("cudaLaunchKernel", 0, 0);
  CHECK(tp_memory_stat(0, TP_STAT_allocated_bytes) == allocated);
  tp_tensor_t *tensors[] = {x, rows, columns, values};
  for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
}

static void test_refusals(void) {
  tp_tensor_t *x = values_random(TP_DTYPE_float32, 2, (int64_t[]){2, 3}, NULL), *row = tp_tensor_slice(x, 0, 0, 1, 1);
  tp_tensor_t *two = random_index(1, (int64_t[]){2}, 2), *three = random_index(1, (int64_t[]){3}, 2);
  tp_tensor_t *none = tp_tensor_empty(TP_DTYPE_float32, 0, 2, (int64_t[]){0, 0});
  tp_tensor_t *wide = tp_tensor_expand(row, 2, x->shape);
  tp_tensor_t *nothing = tp_tensor_slice(two, 0, 0, 0, 1), *half = values_random(TP_DTYPE_float16, 0, NULL, NULL);
  const tp_tensor_t *both[] = {two, three, two}, *whole[] = {NULL, NULL}, *floats[] = {x};
  CHECK(!tp_index(x, 2, both) && tp_error_status() == TP_SHAPE);
  CHECK(!tp_index(x, 3, both) && tp_error_status() == TP_INDEX);
  CHECK(!tp_index(x, 2, whole) && tp_error_status() == TP_INVALID_ARGUMENT);
  CHECK(!tp_index(x, 1, floats) && tp_error_status() == TP_DTYPE);
  CHECK(!tp_index(none, 1, both) && tp_error_status() == TP_INDEX);
  CHECK(tp_index_put(x, 1, both, half, 0) == TP_DTYPE);
  CHECK(tp_index_put(x, 1, both + 1, x, 0) == TP_SHAPE);
  CHECK(tp_index_put(wide, 1, both, row, 0) == TP_INVALID_ARGUMENT);
  tp_tensor_t *empty = tp_index(none, 1, (const tp_tensor_t *[]){nothing});
  CHECK(empty && empty->numel == 0);
  CHECK_OK(tp_index_put(none, 1, (const tp_tensor_t *[]){nothing}, none, 1));
  tp_tensor_t *tensors[] = {x, row, two, three, none, wide, nothing, half, empty};
  for (size_t t = 0; t < 9; ++t) tp_tensor_release(tensors[t]);
}

int main(void) {
  values_start();
  for (int32_t fibres = 0; fibres < 2; ++fibres) {
    tp_emulated_set_fibres(fibres);
    test_random_cases();
    test_most_dimensions();
    test_overlap();
    test_faults();
  }
  test_failures();
  test_refusals();
  return 0;
}
