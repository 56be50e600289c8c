/* Tensors with known elements, for tests that compare results with float64. Elements are doubles on the host,
 * exact in the tensor's dtype. */
#ifndef TP_TESTS_VALUES_H
#define TP_TESTS_VALUES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "internal.h"

__attribute__((unused)) static const int32_t value_dtypes[] = {
    TP_DTYPE_bool, TP_DTYPE_int32, TP_DTYPE_int64, TP_DTYPE_float16, TP_DTYPE_bfloat16, TP_DTYPE_float32};
__attribute__((unused)) static const int32_t floating_dtypes[] = {TP_DTYPE_float16, TP_DTYPE_bfloat16,
                                                                  TP_DTYPE_float32, TP_DTYPE_float64};

static uint64_t values_state;

/* The data of the run that TENSORPLAY_TEST_SEED names (tests/conftest.py). */
static inline void values_start(void) {
  const char *given = getenv("TENSORPLAY_TEST_SEED");
  values_state = given ? strtoull(given, NULL, 10) : 0;
  CHECK_OK(tp_kernels_set_path(TP_TEST_KERNELS));
}

static inline uint64_t values_bits(void) {
  uint64_t z = values_state += 0x9E3779B97F4A7C15u; /* splitmix64 */
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* low .. high-1 */
static inline int64_t values_between(int64_t low, int64_t high) {
  return low + (int64_t)(values_bits() % (uint64_t)(high - low));
}

/* The element of a dtype that x becomes; integers wrap, complex numbers have no imaginary part. */
static inline double values_encode(int32_t dtype, double x, void *element) {
  switch (dtype) {
    case TP_DTYPE_bool: return *(uint8_t *)element = x != 0;
    case TP_DTYPE_uint8: return *(uint8_t *)element = (uint8_t)(int64_t)x;
    case TP_DTYPE_int8: return *(int8_t *)element = (int8_t)(int64_t)x;
    case TP_DTYPE_int16: return *(int16_t *)element = (int16_t)(int64_t)x;
    case TP_DTYPE_int32: return *(int32_t *)element = (int32_t)(int64_t)x;
    case TP_DTYPE_int64: return (double)(*(int64_t *)element = (int64_t)x);
    case TP_DTYPE_float16: return *(_Float16 *)element = (_Float16)x;
    case TP_DTYPE_bfloat16: {
      float value = (float)x;
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      bits += 0x7fff + (bits >> 16 & 1);
      *(uint16_t *)element = (uint16_t)(bits >> 16);
      bits &= 0xffff0000u;
      memcpy(&value, &bits, sizeof value);
      return isnan(x) ? x : value;
    }
    case TP_DTYPE_float64: return *(double *)element = x;
    case TP_DTYPE_complex64: ((float *)element)[1] = 0; return *(float *)element = (float)x;
    case TP_DTYPE_complex128: ((double *)element)[1] = 0; return *(double *)element = x;
    default: return *(float *)element = (float)x;
  }
}

/* x as the dtype holds it. */
static inline double values_rounded(int32_t dtype, double x) {
  double element[2];
  return values_encode(dtype, x, element);
}

/* Of complex numbers the real part. */
static inline double values_decode(int32_t dtype, const void *element) {
  switch (dtype) {
    case TP_DTYPE_bool:
    case TP_DTYPE_uint8: return *(const uint8_t *)element;
    case TP_DTYPE_int8: return *(const int8_t *)element;
    case TP_DTYPE_int16: return *(const int16_t *)element;
    case TP_DTYPE_int32: return *(const int32_t *)element;
    case TP_DTYPE_int64: return (double)*(const int64_t *)element;
    case TP_DTYPE_float16: return (double)*(const _Float16 *)element;
    case TP_DTYPE_bfloat16: {
      uint32_t bits = (uint32_t)*(const uint16_t *)element << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    case TP_DTYPE_float64:
    case TP_DTYPE_complex128: return *(const double *)element;
    default: return *(const float *)element;
  }
}

/* A contiguous tensor; values become what its dtype holds of them. */
static inline tp_tensor_t *values_upload(int32_t dtype, int32_t ndim, const int64_t *shape, double *values) {
  tp_tensor_t *tensor = tp_tensor_empty(dtype, 0, ndim, shape);
  CHECK(tensor);
  size_t itemsize = tp__dtype_size(dtype), nbytes = (size_t)tensor->numel * itemsize;
  char *bytes = malloc(nbytes + 1);
  for (int64_t i = 0; i < tensor->numel; ++i)
    values[i] = values_encode(dtype, values[i], bytes + (size_t)i * itemsize);
  CHECK_OK(tp_tensor_copy_from_host(tensor, bytes, nbytes));
  free(bytes);
  return tensor;
}

/* Elements in C order; the caller frees them. */
static inline double *values_download(const tp_tensor_t *tensor) {
  CHECK(tensor);
  size_t itemsize = tp__dtype_size(tensor->dtype), nbytes = (size_t)tensor->numel * itemsize;
  char *bytes = malloc(nbytes + 1);
  CHECK_OK(tp_tensor_copy_to_host(tensor, bytes, nbytes));
  double *values = malloc((size_t)(tensor->numel + 1) * sizeof *values);
  for (int64_t i = 0; i < tensor->numel; ++i)
    values[i] = values_decode(tensor->dtype, bytes + (size_t)i * itemsize);
  free(bytes);
  return values;
}

/* Fresh numbers of a dtype: bool 0 or 1, small integers, which narrow ones wrap, others of -1 to 1. */
static inline tp_tensor_t *values_random(int32_t dtype, int32_t ndim, const int64_t *shape,
                                         double **out_values) {
  int64_t numel = 1;
  for (int32_t d = 0; d < ndim; ++d) numel *= shape[d];
  double *values = malloc((size_t)(numel + 1) * sizeof *values);
  for (int64_t i = 0; i < numel; ++i) {
    if (dtype == TP_DTYPE_bool)
      values[i] = (double)(values_bits() & 1);
    else if (tp__dtype_category(dtype) == TP_CATEGORY_INT)
      values[i] = (double)values_between(-1000, 1000);
    else
      values[i] = (double)(int64_t)values_bits() * 0x1p-63;
  }
  tp_tensor_t *tensor = values_upload(dtype, ndim, shape, values);
  if (out_values)
    *out_values = values;
  else
    free(values);
  return tensor;
}

/* A tensor full of what no result is, to be written into. */
static inline tp_tensor_t *values_poisoned(int32_t dtype, int32_t ndim, const int64_t *shape) {
  tp_tensor_t *tensor = tp_tensor_empty(dtype, 0, ndim, shape);
  CHECK(tensor);
  CHECK_OK(tp_tensor_fill_float(tensor, tp__dtype_is_floating(dtype) ? (double)NAN : 117.0));
  return tensor;
}

/* Distance of neighbouring numbers near 1. */
static inline double values_epsilon(int32_t dtype) {
  switch (dtype) {
    case TP_DTYPE_float16: return 0x1p-10;
    case TP_DTYPE_bfloat16: return 0x1p-7;
    case TP_DTYPE_float32:
    case TP_DTYPE_complex64: return 0x1p-23;
    case TP_DTYPE_float64:
    case TP_DTYPE_complex128: return 0x1p-52;
    default: return 0;
  }
}

/* Both NaN, or at most `tolerance` apart. */
static inline bool values_close(double got, double expected, double tolerance) {
  if (isnan(got) || isnan(expected)) return isnan(got) && isnan(expected);
  return got == expected || fabs(got - expected) <= tolerance;
}

#define CHECK_CLOSE(got, expected, tolerance, at)                                                         \
  do {                                                                                                    \
    if (!values_close(got, expected, tolerance)) {                                                        \
      fprintf(stderr, "%s:%d: element %lld: got %.17g, expected %.17g within %.3g\n", __FILE__, __LINE__, \
              (long long)(at), (double)(got), (double)(expected), (double)(tolerance));                   \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)

/* The elements in C order, exactly. */
static inline void values_check(const tp_tensor_t *tensor, const double *expected) {
  double *got = values_download(tensor);
  for (int64_t i = 0; i < tp_tensor_numel(tensor); ++i) CHECK_CLOSE(got[i], expected[i], 0, i);
  free(got);
}

#endif
