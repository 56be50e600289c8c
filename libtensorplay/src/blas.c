/* Products by cuBLASLt, where the caller found it (docs/design/products.md).
 *
 * cuBLASLt thinks in columns. A matrix in rows is its transpose in columns, so out = a @ b is asked for as
 * out^T = b^T @ a^T: cuBLASLt's A is our b, its B our a, its rows our n and its columns our m. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "blas_api.h"
#include "internal.h"

/* Plans of a device that are kept; one that meets another in its place replaces it. */
#define PLANS 512
#define WORKSPACE_LIMIT (32 * TP_MiB)
/* The best alignment that algorithms ask for, in bytes. */
#define ALIGNMENT_LIMIT 256u

/* What a plan depends on. Compared as bytes: made by make_key, which clears the padding. */
typedef struct product {
  int64_t batch, m, n, k;
  int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, out_batch, out_row;
  uint32_t alignment[4]; /* of b, a, out and bias in bytes */
  int32_t dtype, compute;
  int32_t has_bias, has_gelu;
} product_t;

/* served is false for a layout that cuBLASLt does not take: also worth remembering. */
typedef struct plan {
  bool used, served;
  product_t key;
  blas_desc_t desc;
  blas_layout_t a, b, out; /* in cuBLASLt's terms */
  blas_algo_t algo;
  size_t workspace_nbytes;
} plan_t;

typedef struct context {
  /* Held from the search of a plan to its launch: a bias is part of the plan's descriptor. */
  pthread_mutex_t lock;
  blas_handle_t handle;
  plan_t *plans; /* PLANS of them */
} context_t;

static context_t contexts[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static blas_api_t table;                /* complete before api points at it */
static _Atomic(const blas_api_t *) api; /* NULL until loaded */

static _Atomic bool allows_tf32;

/* Of the elements, and what products and sums are computed in: its own number, its type, whether that has 64 bits.
 * Other dtypes have no products here: compute is 0. */
typedef struct blas_type {
  int element, compute, scale;
  bool wide;
} blas_type_t;

static const blas_type_t types[TP_DTYPE_COUNT] = {
    [TP_DTYPE_float16] = {BLAS_R_16F, BLAS_COMPUTE_32F, BLAS_R_32F, false},
    [TP_DTYPE_bfloat16] = {BLAS_R_16BF, BLAS_COMPUTE_32F, BLAS_R_32F, false},
    [TP_DTYPE_float32] = {BLAS_R_32F, BLAS_COMPUTE_32F, BLAS_R_32F, false},
    [TP_DTYPE_float64] = {BLAS_R_64F, BLAS_COMPUTE_64F, BLAS_R_64F, true},
    [TP_DTYPE_complex64] = {BLAS_C_32F, BLAS_COMPUTE_32F, BLAS_C_32F, false},
    [TP_DTYPE_complex128] = {BLAS_C_64F, BLAS_COMPUTE_64F, BLAS_C_64F, true}};

/* alpha or beta as the library reads it. */
typedef union scalar {
  float narrow[2];
  double wide[2];
} scalar_t;

static scalar_t scalar_of(const blas_type_t *own, const double *parts) {
  if (own->wide) return (scalar_t){.wide = {parts[0], parts[1]}};
  return (scalar_t){.narrow = {(float)parts[0], (float)parts[1]}};
}

/* ---- opening ---- */

tp_status_t tp_blas_load(const char *path) {
  const char *operation = "blas_load";
  if (!path) return tp__error_set(TP_INVALID_ARGUMENT, operation, "got no path");
  pthread_mutex_lock(&load_lock);
  if (atomic_load(&api)) {
    pthread_mutex_unlock(&load_lock);
    return TP_OK;
  }
  const char *missing = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
#define BLAS_FUNCTION(name, arguments)                                                         \
  if (library && !missing) {                                                                   \
    void *symbol = dlsym(library, "cublasLt" #name);                                           \
    if (!symbol) missing = "cublasLt" #name;                                                   \
    memcpy(&table.name, &symbol, sizeof symbol); /* ISO C has no cast from data to function */ \
  }
  BLAS_FUNCTIONS(BLAS_FUNCTION)
#undef BLAS_FUNCTION
  tp_status_t status = TP_OK;
  if (!library)
    status = tp__error_set(TP_UNAVAILABLE, operation, "%s", dlerror());
  else if (missing)
    status = tp__error_set(TP_UNAVAILABLE, operation, "%s has no function %s", path, missing);
  else
    atomic_store(&api, &table);
  if (status && library) dlclose(library);
  pthread_mutex_unlock(&load_lock);
  return status;
}

int32_t tp_blas_is_loaded(void) { return atomic_load(&api) != NULL; }

void tp_blas_allow_tf32(int32_t allowed) { atomic_store(&allows_tf32, allowed != 0); }

/* ---- plans ---- */

/* A matrix of ours as cuBLASLt stores it, in columns, transposed when op says so. */
typedef struct stored {
  int op;
  uint64_t rows, columns;
  int64_t ld; /* elements from column to column; 0 when it cannot be stored so */
} stored_t;

static stored_t stored_of(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  int64_t ld = rows > 1 ? row : columns;
  if ((column == 1 || columns == 1) && ld >= columns)
    return (stored_t){BLAS_OP_N, (uint64_t)columns, (uint64_t)rows, ld};
  ld = columns > 1 ? column : rows;
  if ((row == 1 || rows == 1) && ld >= rows)
    return (stored_t){BLAS_OP_T, (uint64_t)rows, (uint64_t)columns, ld};
  return (stored_t){.ld = 0};
}

static uint32_t alignment_of(const void *address) {
  uintptr_t bits = (uintptr_t)address | ALIGNMENT_LIMIT;
  return (uint32_t)(bits & -bits);
}

static void make_key(product_t *key, const tp__gemm_t *gemm) {
  memset(key, 0, sizeof *key);
  key->batch = gemm->batch;
  key->m = gemm->m;
  key->n = gemm->n;
  key->k = gemm->k;
  key->a_batch = gemm->a_batch;
  key->a_row = gemm->a_row;
  key->a_col = gemm->a_col;
  key->b_batch = gemm->b_batch;
  key->b_row = gemm->b_row;
  key->b_col = gemm->b_col;
  key->out_batch = gemm->out_batch;
  key->out_row = gemm->out_row;
  key->alignment[0] = alignment_of(gemm->b);
  key->alignment[1] = alignment_of(gemm->a);
  key->alignment[2] = alignment_of(gemm->out);
  key->alignment[3] = alignment_of(gemm->bias);
  key->dtype = gemm->dtype;
  key->compute = types[gemm->dtype].compute;
  bool rounds = key->compute == BLAS_COMPUTE_32F && tp__dtype_size(gemm->dtype) > 2;
  if (rounds && atomic_load_explicit(&allows_tf32, memory_order_relaxed)) key->compute = BLAS_COMPUTE_32F_FAST_TF32;
  key->has_bias = gemm->bias != NULL;
  key->has_gelu = gemm->gelu;
}

static uint32_t hash_of(const product_t *key) {
  const unsigned char *bytes = (const unsigned char *)key;
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < sizeof *key; ++i) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static void drop_plan(const blas_api_t *blas, plan_t *plan) {
  if (plan->desc) blas->MatmulDescDestroy(plan->desc);
  if (plan->a) blas->MatrixLayoutDestroy(plan->a);
  if (plan->b) blas->MatrixLayoutDestroy(plan->b);
  if (plan->out) blas->MatrixLayoutDestroy(plan->out);
  memset(plan, 0, sizeof *plan);
}

static bool make_layout(const blas_api_t *blas, blas_layout_t *layout, int type, uint64_t rows,
                        uint64_t columns, int64_t ld, int64_t batch, int64_t batch_stride) {
  int32_t count = (int32_t)batch;
  return !blas->MatrixLayoutCreate(layout, type, rows, columns, ld) &&
         !blas->MatrixLayoutSetAttribute(*layout, BLAS_LAYOUT_BATCH_COUNT, &count, sizeof count) &&
         !blas->MatrixLayoutSetAttribute(*layout, BLAS_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride,
                                         sizeof batch_stride);
}

static bool choose(const blas_api_t *blas, blas_handle_t handle, plan_t *plan) {
  blas_preference_t preference = NULL;
  if (blas->MatmulPreferenceCreate(&preference)) return false;
  size_t workspace = WORKSPACE_LIMIT;
  uint32_t reduction = BLAS_REDUCTION_SCHEME_COMPUTE_TYPE;
  const uint32_t *align = plan->key.alignment;
  uint32_t alignments[] = {align[0], align[1], align[2], align[2]}; /* A, B, C, D */
  bool set = !blas->MatmulPreferenceSetAttribute(preference, BLAS_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                 sizeof workspace) &&
             !blas->MatmulPreferenceSetAttribute(preference, BLAS_PREF_REDUCTION_SCHEME_MASK, &reduction,
                                                 sizeof reduction);
  for (int i = 0; set && i < 4; ++i)
    set = !blas->MatmulPreferenceSetAttribute(preference, BLAS_PREF_MIN_ALIGNMENT_A_BYTES + i, &alignments[i],
                                              sizeof alignments[i]);
  blas_heuristic_t found;
  int count = 0;
  bool chosen = set &&
                !blas->MatmulAlgoGetHeuristic(handle, plan->desc, plan->a, plan->b, plan->out, plan->out,
                                              preference, 1, &found, &count) &&
                count == 1 && found.state == 0;
  blas->MatmulPreferenceDestroy(preference);
  if (!chosen) return false;
  plan->algo = found.algo;
  plan->workspace_nbytes = found.workspace_nbytes;
  return true;
}

static bool set_bias(const blas_api_t *blas, plan_t *plan, const void *bias) {
  return !blas->MatmulDescSetAttribute(plan->desc, BLAS_DESC_BIAS_POINTER, &bias, sizeof bias);
}

/* Fills plan->desc and what follows from plan->key; false where cuBLASLt does not take the product. The
 * choice of an algorithm looks at the bias' alignment. */
static bool make_plan(const blas_api_t *blas, blas_handle_t handle, plan_t *plan, const void *bias) {
  const product_t *key = &plan->key;
  stored_t a = stored_of(key->k, key->n, key->b_row, key->b_col);
  stored_t b = stored_of(key->m, key->k, key->a_row, key->a_col);
  if (!a.ld || !b.ld || key->out_row < key->n || key->batch > INT32_MAX) return false;
  const blas_type_t *own = &types[key->dtype];
  if (key->has_gelu && own->wide) return false; /* no such epilogue */
  int epilogue = (bias ? BLAS_EPILOGUE_BIAS : 0) | (key->has_gelu ? BLAS_EPILOGUE_GELU : 0);
  return !blas->MatmulDescCreate(&plan->desc, key->compute, own->scale) &&
         !blas->MatmulDescSetAttribute(plan->desc, BLAS_DESC_TRANSA, &a.op, sizeof a.op) &&
         !blas->MatmulDescSetAttribute(plan->desc, BLAS_DESC_TRANSB, &b.op, sizeof b.op) &&
         (!epilogue ||
          !blas->MatmulDescSetAttribute(plan->desc, BLAS_DESC_EPILOGUE, &epilogue, sizeof epilogue)) &&
         (!bias || set_bias(blas, plan, bias)) &&
         make_layout(blas, &plan->a, own->element, a.rows, a.columns, a.ld, key->batch, key->b_batch) &&
         make_layout(blas, &plan->b, own->element, b.rows, b.columns, b.ld, key->batch, key->a_batch) &&
         make_layout(blas, &plan->out, own->element, (uint64_t)key->n, (uint64_t)key->m, key->out_row,
                     key->batch, key->out_batch) &&
         choose(blas, handle, plan);
}

/* The plan for a product, or NULL. The context's lock is held. */
static plan_t *find_plan(const blas_api_t *blas, context_t *context, const tp__gemm_t *gemm) {
  if (!context->plans) context->plans = calloc(PLANS, sizeof *context->plans);
  if (!context->plans) return NULL;
  if (!context->handle && blas->Create(&context->handle)) {
    context->handle = NULL;
    return NULL;
  }
  product_t key;
  make_key(&key, gemm);
  plan_t *plan = &context->plans[hash_of(&key) % PLANS];
  if (!plan->used || memcmp(&plan->key, &key, sizeof key)) {
    drop_plan(blas, plan);
    plan->used = true;
    plan->key = key;
    plan->served = make_plan(blas, context->handle, plan, gemm->bias);
  }
  return plan->served ? plan : NULL;
}

/* ---- products ---- */

static tp_status_t tell(const tp__gemm_t *gemm, tp_stream_t *stream, const tp__block_t *workspace) {
  if (!tp__is_watched()) return TP_OK;
  const tp__touch_t touches[] = {{gemm->a, false},
                                 {gemm->b, false},
                                 {gemm->bias, false},
                                 {gemm->out, true},
                                 {workspace ? tp__alloc_address(workspace) : NULL, true}};
  return tp__watch_tell(stream, sizeof touches / sizeof *touches, touches, "matmul");
}

static tp_status_t multiply(const blas_api_t *blas, context_t *context, const tp__gemm_t *gemm,
                            tp_stream_t *stream, bool *out_served) {
  plan_t *plan = find_plan(blas, context, gemm);
  if (!plan) return TP_OK;
  if (gemm->bias && !set_bias(blas, plan, gemm->bias)) return TP_OK;
  tp__block_t *block = NULL;
  if (plan->workspace_nbytes) {
    block = tp__alloc(plan->workspace_nbytes, stream);
    if (!block) return tp_error_status();
  }
  tp_status_t refusal = tell(gemm, stream, block);
  if (refusal) {
    if (block) tp__alloc_free(block);
    return refusal;
  }
  const scalar_t alpha = scalar_of(&types[gemm->dtype], gemm->alpha), beta = scalar_of(&types[gemm->dtype], gemm->beta);
  blas_status_t status =
      blas->Matmul(context->handle, plan->desc, &alpha, gemm->b, plan->a, gemm->a, plan->b, &beta,
                   gemm->out, plan->out, gemm->out, plan->out, &plan->algo, block ? tp__alloc_address(block) : NULL,
                   plan->workspace_nbytes, tp__stream_cuda(stream));
  if (block) tp__alloc_free(block); /* in stream order: the product comes first */
  *out_served = status == 0;
  return TP_OK;
}

tp_status_t tp__blas_gemm(const tp__gemm_t *gemm, tp_stream_t *stream, bool *out_served) {
  *out_served = false;
  const blas_api_t *blas = atomic_load_explicit(&api, memory_order_acquire);
  if (!blas || !types[gemm->dtype].compute) return TP_OK;
  TP_TRY(tp__device_enter(gemm->device, "matmul"));
  context_t *context = &contexts[gemm->device];
  /* The library's first use of a device allocates there, which a capture in another thread must not meet. */
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  pthread_mutex_lock(&context->lock);
  tp_status_t status = multiply(blas, context, gemm, stream, out_served);
  pthread_mutex_unlock(&context->lock);
  tp__capture_restore(mode);
  return status || !*out_served ? status : tp__settle(stream, "matmul");
}
