/* A library with cuBLASLt's functions and its meaning of layouts, on the host and slowly. test_blas.c
 * compiles it, loads it as if it were cuBLASLt, and so tests on any machine how products are described to it.
 */
#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct desc {
  int compute, scale, transa, transb, epilogue;
  const void *bias;
} desc_t;

typedef struct layout {
  int type, batch;
  uint64_t rows, columns;
  int64_t ld, stride;
} layout_t;

typedef struct heuristic {
  uint64_t algo[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} heuristic_t;

/* Copies between memory of the device and of the host, in the order of the stream; given by the test. */
typedef void (*copy_t)(void *target, const void *source, size_t nbytes, void *stream);
static copy_t copy;

int fake_searches, fake_products, fake_refuses, fake_compute, fake_epilogue;
size_t fake_workspace;

/* cublasLtEpilogue_t: 1 is none, 4 a bias, 32 GELU, 36 both. */
static int has_bias(const desc_t *desc) { return desc->epilogue == 4 || desc->epilogue == 36; }
static int has_gelu(const desc_t *desc) { return desc->epilogue == 32 || desc->epilogue == 36; }

void fake_connect(copy_t given) { copy = given; }

int cublasLtCreate(void **out) { return (*out = calloc(1, 1)) ? 0 : 3; }

int cublasLtMatmulDescCreate(desc_t **out, int compute, int scale) {
  *out = calloc(1, sizeof **out);
  **out = (desc_t){.compute = compute, .scale = scale, .epilogue = 1};
  return 0;
}

int cublasLtMatmulDescDestroy(desc_t *desc) {
  free(desc);
  return 0;
}

int cublasLtMatmulDescSetAttribute(desc_t *desc, int attribute, const void *value, size_t nbytes) {
  void *target = attribute == 3 ? (void *)&desc->transa
               : attribute == 4 ? (void *)&desc->transb
               : attribute == 7 ? (void *)&desc->epilogue
               : attribute == 8 ? (void *)&desc->bias
                                : NULL;
  if (!target || nbytes != (attribute == 8 ? sizeof(void *) : sizeof(int))) return 7;
  memcpy(target, value, nbytes);
  return 0;
}

int cublasLtMatrixLayoutCreate(layout_t **out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  if (ld < (int64_t)rows) return 7; /* columns would overlap */
  *out = calloc(1, sizeof **out);
  **out = (layout_t){.type = type, .batch = 1, .rows = rows, .columns = columns, .ld = ld};
  return 0;
}

int cublasLtMatrixLayoutDestroy(layout_t *layout) {
  free(layout);
  return 0;
}

int cublasLtMatrixLayoutSetAttribute(layout_t *layout, int attribute, const void *value, size_t nbytes) {
  if (attribute == 5 && nbytes == sizeof(int))
    memcpy(&layout->batch, value, nbytes);
  else if (attribute == 6 && nbytes == sizeof(int64_t))
    memcpy(&layout->stride, value, nbytes);
  else
    return 7;
  return 0;
}

int cublasLtMatmulPreferenceCreate(void **out) { return (*out = calloc(1, 1)) ? 0 : 3; }

int cublasLtMatmulPreferenceDestroy(void *preference) {
  free(preference);
  return 0;
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t nbytes) {
  (void)preference;
  if (attribute == 1 && nbytes == sizeof(uint64_t)) return *(const uint64_t *)value < fake_workspace ? 7 : 0;
  if (nbytes != sizeof(uint32_t)) return 7;
  uint32_t number = *(const uint32_t *)value;
  if (attribute == 3) return number == 2 ? 0 : 7;
  return attribute >= 5 && attribute <= 8 && number > 0 && (number & (number - 1)) == 0 ? 0 : 7;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, desc_t *desc, layout_t *a, layout_t *b, layout_t *c,
                                   layout_t *d, void *preference, int wanted, heuristic_t *out,
                                   int *out_found) {
  uint64_t m = desc->transa ? a->columns : a->rows, k = desc->transa ? a->rows : a->columns;
  uint64_t n = desc->transb ? b->rows : b->columns, other = desc->transb ? b->columns : b->rows;
  *out_found = 0;
  ++fake_searches;
  if (!handle || !preference || wanted < 1 || c != d || d->rows != m || d->columns != n || other != k)
    return 7;
  int wide = d->type == 1 || d->type == 5; /* float64 and complex128 */
  int rounds = desc->compute == 77 && (d->type == 0 || d->type == 4); /* TF32 */
  int scale = d->type == 4 || d->type == 5 ? d->type : wide;
  if ((desc->compute != (wide ? 70 : 68) && !rounds) || desc->scale != scale) return 7;
  if (a->type != d->type || b->type != d->type) return 7;
  if (a->batch != d->batch || b->batch != d->batch) return 7;
  if (has_gelu(desc) && d->type != 0 && d->type != 2 && d->type != 14) return 7;
  if (has_bias(desc) && !desc->bias) return 7; /* its alignment must be known */
  if (fake_refuses) return 15;
  fake_compute = desc->compute;
  fake_epilogue = desc->epilogue;
  *out = (heuristic_t){.workspace = fake_workspace};
  *out_found = 1;
  return 0;
}

/* By cudaDataType: float32, float64, float16, complex64, complex128; bfloat16 is 14. */
static size_t size_of(int type) { return type == 14 ? 2 : (size_t[]){4, 8, 2, 0, 8, 16}[type]; }

static double complex element(const void *base, int type, int64_t at) {
  switch (type) {
    case 0: return ((const float *)base)[at];
    case 1: return ((const double *)base)[at];
    case 2: return (double)((const _Float16 *)base)[at];
    case 4: return ((const float complex *)base)[at];
    case 5: return ((const double complex *)base)[at];
  }
  uint32_t bits = (uint32_t)((const uint16_t *)base)[at] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void set_element(void *base, int type, int64_t at, double complex value) {
  float narrow = (float)creal(value);
  uint32_t bits;
  switch (type) {
    case 0: ((float *)base)[at] = narrow; return;
    case 1: ((double *)base)[at] = creal(value); return;
    case 2: ((_Float16 *)base)[at] = (_Float16)narrow; return;
    case 4: ((float complex *)base)[at] = (float complex)value; return;
    case 5: ((double complex *)base)[at] = value; return;
  }
  memcpy(&bits, &narrow, sizeof bits);
  ((uint16_t *)base)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double gelu(double x) { return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

/* The elements that a layout covers, on the host. */
static size_t extent(const layout_t *layout) {
  int64_t last = (layout->batch - 1) * layout->stride + ((int64_t)layout->columns - 1) * layout->ld +
                 (int64_t)layout->rows;
  return (size_t)last * size_of(layout->type);
}

static char *fetch(const void *device, size_t nbytes, void *stream) {
  char *host = malloc(nbytes);
  copy(host, device, nbytes, stream);
  return host;
}

int cublasLtMatmul(void *handle, desc_t *desc, const void *alpha, const void *a, layout_t *la, const void *b,
                   layout_t *lb, const void *beta, const void *c, layout_t *lc, void *d, layout_t *ld,
                   const void *algo, void *workspace, size_t workspace_nbytes, void *stream) {
  if (!handle || !algo || c != d || lc != ld) return 7;
  double complex scale = element(alpha, desc->scale, 0), keep = element(beta, desc->scale, 0);
  if (workspace_nbytes < fake_workspace || (fake_workspace && !workspace)) return 7;
  ++fake_products;
  char *x = fetch(a, extent(la), stream), *y = fetch(b, extent(lb), stream),
       *z = fetch(d, extent(ld), stream);
  char *bias = has_bias(desc) ? fetch(desc->bias, ld->rows * size_of(ld->type), stream) : NULL;
  int64_t m = (int64_t)ld->rows, n = (int64_t)ld->columns,
          k = (int64_t)(desc->transa ? la->rows : la->columns);
  for (int64_t p = 0; p < ld->batch; ++p)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double complex sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          int64_t at = p * la->stride + (desc->transa ? i * la->ld + l : l * la->ld + i);
          int64_t bt = p * lb->stride + (desc->transb ? l * lb->ld + j : j * lb->ld + l);
          sum += element(x, la->type, at) * element(y, lb->type, bt);
        }
        int64_t at = p * ld->stride + j * ld->ld + i;
        sum *= scale;
        if (bias) sum += element(bias, ld->type, i);
        if (keep != 0) sum += keep * element(z, ld->type, at); /* else not even nan is read */
        if (has_gelu(desc)) sum = gelu(creal(sum));
        set_element(z, ld->type, at, sum);
      }
  copy(d, z, extent(ld), stream);
  free(x);
  free(y);
  free(z);
  free(bias);
  return 0;
}
