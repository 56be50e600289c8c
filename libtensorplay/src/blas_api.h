/* The part of cuBLASLt that blas.c uses, in our own words: the library is opened at run time and its
 * headers are not needed to build. Numbers are those of its ABI, the same in CUDA 12 and 13. */
#ifndef TP_BLAS_API_H
#define TP_BLAS_API_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_api.h"

typedef void *blas_handle_t; /* cublasLtHandle_t */
typedef void *blas_desc_t;   /* cublasLtMatmulDesc_t */
typedef void *blas_layout_t; /* cublasLtMatrixLayout_t */
typedef void *blas_preference_t;
typedef int blas_status_t; /* 0: success */

enum { BLAS_COMPUTE_32F = 68, BLAS_COMPUTE_64F = 70, BLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum { BLAS_R_32F = 0, BLAS_R_64F = 1, BLAS_R_16F = 2, BLAS_C_32F = 4, BLAS_C_64F = 5, BLAS_R_16BF = 14 };
enum { BLAS_OP_N = 0, BLAS_OP_T = 1 };
/* Bits: with both, the bias comes first. GELU is its approximation by tanh. */
enum { BLAS_EPILOGUE_BIAS = 4, BLAS_EPILOGUE_GELU = 32 };

/* cublasLtMatmulDescAttributes_t */
enum { BLAS_DESC_TRANSA = 3, BLAS_DESC_TRANSB = 4, BLAS_DESC_EPILOGUE = 7, BLAS_DESC_BIAS_POINTER = 8 };
/* cublasLtMatrixLayoutAttribute_t */
enum { BLAS_LAYOUT_BATCH_COUNT = 5, BLAS_LAYOUT_STRIDED_BATCH_OFFSET = 6 };
/* cublasLtMatmulPreferenceAttributes_t; alignments of A, B, C, D follow each other */
enum {
  BLAS_PREF_MAX_WORKSPACE_BYTES = 1,
  BLAS_PREF_REDUCTION_SCHEME_MASK = 3,
  BLAS_PREF_MIN_ALIGNMENT_A_BYTES = 5
};
/* Partial sums of a split k are added in the type that is computed in, in a fixed order. */
enum { BLAS_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

typedef struct blas_algo {
  uint64_t data[8];
} blas_algo_t;

typedef struct blas_heuristic {
  blas_algo_t algo;
  size_t workspace_nbytes;
  blas_status_t state;
  float waves_count;
  int reserved[4];
} blas_heuristic_t;

/* Every function, once: BLAS_FUNCTION(name after "cublasLt", arguments). */
#define BLAS_FUNCTIONS(BLAS_FUNCTION)                                                                        \
  BLAS_FUNCTION(Create, (blas_handle_t * out))                                                               \
  BLAS_FUNCTION(MatmulDescCreate, (blas_desc_t * out, int compute_type, int scale_type))                     \
  BLAS_FUNCTION(MatmulDescDestroy, (blas_desc_t desc))                                                       \
  BLAS_FUNCTION(MatmulDescSetAttribute, (blas_desc_t desc, int attribute, const void *value, size_t nbytes)) \
  BLAS_FUNCTION(MatrixLayoutCreate,                                                                          \
                (blas_layout_t * out, int type, uint64_t rows, uint64_t columns, int64_t ld))                \
  BLAS_FUNCTION(MatrixLayoutDestroy, (blas_layout_t layout))                                                 \
  BLAS_FUNCTION(MatrixLayoutSetAttribute,                                                                    \
                (blas_layout_t layout, int attribute, const void *value, size_t nbytes))                     \
  BLAS_FUNCTION(MatmulPreferenceCreate, (blas_preference_t * out))                                           \
  BLAS_FUNCTION(MatmulPreferenceDestroy, (blas_preference_t preference))                                     \
  BLAS_FUNCTION(MatmulPreferenceSetAttribute,                                                                \
                (blas_preference_t preference, int attribute, const void *value, size_t nbytes))             \
  BLAS_FUNCTION(                                                                                             \
      MatmulAlgoGetHeuristic,                                                                                \
      (blas_handle_t handle, blas_desc_t desc, blas_layout_t a, blas_layout_t b, blas_layout_t c,            \
       blas_layout_t d, blas_preference_t preference, int wanted, blas_heuristic_t *out, int *out_found))    \
  BLAS_FUNCTION(Matmul,                                                                                      \
                (blas_handle_t handle, blas_desc_t desc, const void *alpha, const void *a,                   \
                 blas_layout_t a_layout, const void *b, blas_layout_t b_layout, const void *beta,            \
                 const void *c, blas_layout_t c_layout, void *d, blas_layout_t d_layout,                     \
                 const blas_algo_t *algo, void *workspace, size_t workspace_nbytes, cudaStream_t stream))

typedef struct blas_api {
#define BLAS_FUNCTION(name, arguments) blas_status_t(*name) arguments;
  BLAS_FUNCTIONS(BLAS_FUNCTION)
#undef BLAS_FUNCTION
} blas_api_t;

#endif
