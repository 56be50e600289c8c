/* Products: the operands as strided matrices, and the choice between cuBLASLt and the tiled kernel
 * (docs/design/products.md). */
#include <string.h>

#include "../../kernels/args_matmul.h"
#include "../internal.h"

enum {
#define TP_UNARY(name, code, takes, rule, kernels) TP_UNARY_##name = code,
#include "../../kernels/ops.def"
};

static const tp__access_t accesses[] = {
    TP_WRITES(tp_matmul_args_t, out), TP_READS(tp_matmul_args_t, a), TP_READS(tp_matmul_args_t, b),
    TP_READS(tp_matmul_args_t, addend), {0}};

static tp__kernel_t tiled[TP_DTYPE_COUNT] = {
    [TP_DTYPE_float16] = TP_KERNEL_INIT("matmul", "tp_k_matmul_f16", accesses),
    [TP_DTYPE_bfloat16] = TP_KERNEL_INIT("matmul", "tp_k_matmul_bf16", accesses),
    [TP_DTYPE_float32] = TP_KERNEL_INIT("matmul", "tp_k_matmul_f32", accesses),
    [TP_DTYPE_float64] = TP_KERNEL_INIT("matmul", "tp_k_matmul_f64", accesses),
    [TP_DTYPE_complex64] = TP_KERNEL_INIT("matmul", "tp_k_matmul_c64", accesses),
    [TP_DTYPE_complex128] = TP_KERNEL_INIT("matmul", "tp_k_matmul_c128", accesses),
    [TP_DTYPE_int64] = TP_KERNEL_INIT("matmul", "tp_k_matmul_i64", accesses),
};

/* Limit of gridDim.y and gridDim.z; the kernel strides over the rest. */
#define GRID_LIMIT 65535

static uint32_t blocks(int64_t numel, int64_t per_block) {
  int64_t count = (numel + per_block - 1) / per_block;
  return (uint32_t)(count < GRID_LIMIT ? count : GRID_LIMIT);
}

static bool has_beta(const tp__gemm_t *gemm) { return gemm->beta[0] != 0 || gemm->beta[1] != 0; }

static tp_status_t run(const tp__gemm_t *gemm, const char *operation) {
  tp_stream_t *stream = tp__stream_current(gemm->device);
  bool served = false;
  if (gemm->k > 0) TP_TRY(tp__blas_gemm(gemm, stream, &served));
  if (served) return TP_OK;
  tp_matmul_args_t args = {.a = gemm->a,
                           .b = gemm->b,
                           .addend = gemm->bias,
                           .out = gemm->out,
                           .batch = gemm->batch,
                           .m = gemm->m,
                           .n = gemm->n,
                           .k = gemm->k,
                           .a_batch = gemm->a_batch,
                           .a_row = gemm->a_row,
                           .a_col = gemm->a_col,
                           .b_batch = gemm->b_batch,
                           .b_row = gemm->b_row,
                           .b_col = gemm->b_col,
                           .out_batch = gemm->out_batch,
                           .out_row = gemm->out_row,
                           .alpha = {gemm->alpha[0], gemm->alpha[1]},
                           .beta = {1, 0}};
  if (has_beta(gemm)) {
    args.addend = gemm->out;
    args.addend_batch = gemm->out_batch;
    args.addend_row = gemm->out_row;
    memcpy(args.beta, gemm->beta, sizeof args.beta);
  }
  if (gemm->k == 0) args.a_batch = args.b_batch = 0; /* the operands have no memory to point into */
  return tp__launch(&tiled[gemm->dtype], gemm->device, stream, blocks(gemm->n, TP_MATMUL_TILE),
                    blocks(gemm->m, TP_MATMUL_TILE), blocks(gemm->batch, 1), TP_BLOCK_THREADS, &args,
                    operation);
}

/* One stride that steps through dimensions as C order does; false where there is none. */
static bool collapse(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t *out_stride) {
  int64_t next = 0;
  bool first = true;
  *out_stride = 0;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    if (shape[d] == 1) continue;
    if (!first && strides[d] != next) return false;
    if (first) *out_stride = strides[d];
    first = false;
    next = strides[d] * shape[d];
  }
  return true;
}

/* As collapse, for the batch of a matrix tensor, broadcast to the result's batch. */
static bool collapse_batch(const tp_tensor_t *x, int32_t ndim, const int64_t *shape, int64_t *out_stride) {
  int64_t strides[TP_MAX_NDIM] = {0};
  for (int32_t d = 0; d < ndim; ++d) {
    int32_t own = d - (ndim - (x->ndim - 2));
    strides[d] = own < 0 || x->shape[own] == 1 ? 0 : x->strides[own];
  }
  return collapse(ndim, shape, strides, out_stride);
}

/* Rows or columns are runs of elements, and lie apart: what every product takes as it is. */
static bool is_matrix(const tp_tensor_t *x) {
  int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
  int64_t row = x->strides[x->ndim - 2], column = x->strides[x->ndim - 1];
  bool by_rows = (columns <= 1 || column == 1) && (rows <= 1 || row >= columns);
  bool by_columns = (rows <= 1 || row == 1) && (columns <= 1 || column >= rows);
  return by_rows || by_columns;
}

/* The operand as a tensor of at least two dimensions whose matrices are usable and whose batch, broadcast
 * to the result's, has one stride. A view where that exists, else a copy. */
static tp_tensor_t *matrices(const tp_tensor_t *x, int32_t vector_dim, int32_t ndim, const int64_t *batch,
                             int64_t *out_stride) {
  tp_tensor_t *view = x->ndim == 1 ? tp_tensor_unsqueeze(x, vector_dim) : tp__tensor_retain(x);
  if (!view) return NULL;
  if (!is_matrix(view)) {
    tp_tensor_t *copy = tp_tensor_contiguous(view);
    tp_tensor_release(view);
    view = copy;
  }
  if (!view || collapse_batch(view, ndim, batch, out_stride)) return view;
  int64_t shape[TP_MAX_NDIM];
  for (int32_t d = 0; d < ndim; ++d) shape[d] = batch[d];
  shape[ndim] = view->shape[view->ndim - 2];
  shape[ndim + 1] = view->shape[view->ndim - 1];
  tp_tensor_t *expanded = tp_tensor_expand(view, ndim + 2, shape);
  tp_tensor_t *copy = expanded ? tp_tensor_contiguous(expanded) : NULL;
  tp_tensor_release(expanded);
  tp_tensor_release(view);
  *out_stride = shape[ndim] * shape[ndim + 1];
  return copy;
}

/* Status DEVICE, DTYPE: one device, and one dtype of numbers. */
static tp_status_t check_pair(const tp_tensor_t *a, const tp_tensor_t *b, const char *operation) {
  if (a->device != b->device)
    return tp__error_set(TP_DEVICE, operation, "got operands on devices %d and %d", (int)a->device,
                         (int)b->device);
  if (a->dtype != b->dtype || a->dtype == TP_DTYPE_bool)
    return tp__error_set(TP_DTYPE, operation, "got dtypes %s and %s, expected one dtype of numbers",
                         tp__dtype_name(a->dtype), tp__dtype_name(b->dtype));
  return TP_OK;
}

/* The dtype that has products in the stead of `dtype`: integers wrap, so all of them are multiplied as the widest. */
static int32_t multiplied(int32_t dtype) {
  return tp__dtype_category(dtype) == TP_CATEGORY_INT ? TP_DTYPE_int64 : dtype;
}

static tp_tensor_t *operand(const tp_tensor_t *x) {
  const int32_t dtype = multiplied(x->dtype);
  return dtype == x->dtype ? tp__tensor_retain(x) : tp_tensor_to(x, dtype, x->device);
}

/* Sets everything but the result of a product of matrix tensors; folds the batch of `a` into its rows when
 * b has none. */
static void describe(tp__gemm_t *gemm, const tp_tensor_t *a, const tp_tensor_t *b) {
  gemm->dtype = a->dtype;
  gemm->device = a->device;
  gemm->a = a->data;
  gemm->b = b->data;
  gemm->m = a->shape[a->ndim - 2];
  gemm->k = a->shape[a->ndim - 1];
  gemm->n = b->shape[b->ndim - 1];
  gemm->a_row = a->strides[a->ndim - 2];
  gemm->a_col = a->strides[a->ndim - 1];
  gemm->b_row = b->strides[b->ndim - 2];
  gemm->b_col = b->strides[b->ndim - 1];
  int64_t row;
  if (b->ndim == 2 && gemm->batch > 1 && collapse(a->ndim - 1, a->shape, a->strides, &row)) {
    gemm->m *= gemm->batch;
    gemm->batch = 1;
    gemm->a_row = row;
  }
  gemm->out_row = gemm->n;
  gemm->out_batch = gemm->m * gemm->n;
}

/* The result's shape, its batch first: *out_batch dimensions. Status SHAPE. */
static tp_status_t shape_of(const tp_tensor_t *a, const tp_tensor_t *b, int32_t *out_batch, int32_t *out_ndim,
                            int64_t *shape, const char *operation) {
  if (a->ndim == 0 || b->ndim == 0)
    return tp__error_set(TP_SHAPE, operation, "got operands of %d and %d dimensions, expected 1 or more",
                         (int)a->ndim, (int)b->ndim);
  int64_t inner = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
  if (a->shape[a->ndim - 1] != inner)
    return tp__error_set(TP_SHAPE, operation, "got inner sizes %lld and %lld, expected equal ones",
                         (long long)a->shape[a->ndim - 1], (long long)inner);
  TP_TRY(tp__check_broadcast(a->ndim > 2 ? a->ndim - 2 : 0, a->shape, b->ndim > 2 ? b->ndim - 2 : 0, b->shape,
                             out_batch, shape, operation));
  *out_ndim = *out_batch;
  if (a->ndim > 1) shape[(*out_ndim)++] = a->shape[a->ndim - 2];
  if (b->ndim > 1) shape[(*out_ndim)++] = b->shape[b->ndim - 1];
  return TP_OK;
}

static bool same_memory(const tp_tensor_t *x, const tp_tensor_t *target) {
  return x->contiguous && x->data == target->data && x->numel == target->numel;
}

/* The product in `gemm`, whose scalars are set, into out; input is NULL where beta is 0. */
static tp_tensor_t *product(tp__gemm_t *gemm, const tp_tensor_t *input, const tp_tensor_t *a, const tp_tensor_t *b,
                            tp_tensor_t *out, int32_t ndim, const int64_t *batch, const char *operation) {
  const int32_t dtype = multiplied(a->dtype);
  tp_tensor_t *x = operand(a), *y = operand(b);
  tp_tensor_t *left = x ? matrices(x, 0, ndim, batch, &gemm->a_batch) : NULL;
  tp_tensor_t *right = y ? matrices(y, 1, ndim, batch, &gemm->b_batch) : NULL;
  bool direct = out->contiguous && out->dtype == dtype && !tp__tensor_shares(out, a) && !tp__tensor_shares(out, b) &&
                (!input || !tp__tensor_shares(input, out) || same_memory(input, out));
  tp_tensor_t *target = left && right ? tp__target_take(out, dtype, direct, operation) : NULL;
  tp_status_t status = TP_OK;
  if (target && input && !same_memory(input, target)) status = tp__copy_same_device(target, input, operation);
  if (target && !status) {
    describe(gemm, left, right);
    gemm->out = target->data;
    status = run(gemm, operation);
  }
  tp_tensor_t *tensors[] = {x, y, left, right};
  for (size_t t = 0; t < 4; ++t) tp_tensor_release(tensors[t]);
  return tp__target_finish(out, target, status);
}

tp_tensor_t *tp_matmul(const tp_tensor_t *a, const tp_tensor_t *b, tp_tensor_t *out) {
  const char *operation = "matmul";
  int32_t batch, ndim;
  int64_t shape[TP_MAX_NDIM];
  if (check_pair(a, b, operation) || shape_of(a, b, &batch, &ndim, shape, operation)) return NULL;
  tp__gemm_t gemm = {.batch = 1, .alpha = {1, 0}};
  for (int32_t d = 0; d < batch; ++d) gemm.batch *= shape[d];
  out = tp__check_out(out, a->dtype, a->device, ndim, shape, operation);
  if (!out || out->numel == 0) return out;
  return product(&gemm, NULL, a, b, out, batch, shape, operation);
}

/* Status DEVICE, DTYPE, SHAPE. */
static tp_status_t check_addend(const tp_tensor_t *input, const tp_tensor_t *a, int32_t ndim, const int64_t *shape,
                                const char *operation) {
  TP_TRY(check_pair(input, a, operation));
  int32_t whole_ndim;
  int64_t whole[TP_MAX_NDIM];
  TP_TRY(tp__check_broadcast(input->ndim, input->shape, ndim, shape, &whole_ndim, whole, operation));
  bool fits = whole_ndim == ndim;
  for (int32_t d = 0; fits && d < ndim; ++d) fits = whole[d] == shape[d];
  if (!fits) return tp__error_set(TP_SHAPE, operation, "got an input that exceeds the product");
  return TP_OK;
}

tp_tensor_t *tp_addmm(const tp_tensor_t *input, const tp_tensor_t *a, const tp_tensor_t *b, double beta_re,
                      double beta_im, double alpha_re, double alpha_im, tp_tensor_t *out) {
  const char *operation = "addmm";
  int32_t batch, ndim;
  int64_t shape[TP_MAX_NDIM];
  if (check_pair(a, b, operation) || shape_of(a, b, &batch, &ndim, shape, operation) ||
      check_addend(input, a, ndim, shape, operation))
    return NULL;
  tp__gemm_t gemm = {.batch = 1, .alpha = {alpha_re, alpha_im}, .beta = {beta_re, beta_im}};
  for (int32_t d = 0; d < batch; ++d) gemm.batch *= shape[d];
  out = tp__check_out(out, a->dtype, a->device, ndim, shape, operation);
  if (!out || out->numel == 0) return out;
  return product(&gemm, has_beta(&gemm) ? input : NULL, a, b, out, batch, shape, operation);
}

static tp_status_t check_linear(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias,
                                const char *operation) {
  TP_TRY(check_pair(a, weight, operation));
  if (bias) TP_TRY(check_pair(a, bias, operation));
  if (weight->ndim != 2 || a->ndim == 0 || a->shape[a->ndim - 1] != weight->shape[1])
    return tp__error_set(TP_SHAPE, operation,
                         "got a last size of %lld and a weight of %d dimensions, expected (n, k)",
                         (long long)(a->ndim ? a->shape[a->ndim - 1] : 1), (int)weight->ndim);
  if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
    return tp__error_set(TP_SHAPE, operation, "got a bias of %lld elements, expected (%lld,)",
                         (long long)bias->numel, (long long)weight->shape[0]);
  return TP_OK;
}

/* As tp_linear, of dtypes whose products take no bias along. */
static tp_tensor_t *plain_linear(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias) {
  tp_tensor_t *turned = tp_tensor_transpose(weight, 0, 1), *out = NULL;
  if (turned) out = bias ? tp_addmm(bias, a, turned, 1, 0, 1, 0, NULL) : tp_matmul(a, turned, NULL);
  tp_tensor_release(turned);
  return out;
}

typedef enum activation { NO_ACTIVATION, GELU, GELU_TANH } activation_t;

/* The product in `gemm` into out, then an activation of it: in one kernel where cuBLASLt has that. */
static tp_status_t run_activated(tp__gemm_t *gemm, activation_t activation, tp_tensor_t *out, const char *operation) {
  if (activation == NO_ACTIVATION) return run(gemm, operation);
  bool served = false;
  gemm->gelu = activation == GELU_TANH;
  if (gemm->gelu && gemm->k > 0) TP_TRY(tp__blas_gemm(gemm, tp__stream_current(gemm->device), &served));
  if (served) return TP_OK;
  gemm->gelu = false;
  TP_TRY(run(gemm, operation));
  tp_tensor_t *done = tp_unary(activation == GELU ? TP_UNARY_gelu : TP_UNARY_gelu_tanh, out, out);
  tp_tensor_release(done);
  return done ? TP_OK : tp_error_status();
}

/* Of checked operands of one floating dtype. */
static tp_tensor_t *floating_linear(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias,
                                    activation_t activation, const char *operation) {
  int64_t shape[TP_MAX_NDIM];
  for (int32_t d = 0; d < a->ndim - 1; ++d) shape[d] = a->shape[d];
  shape[a->ndim - 1] = weight->shape[0];
  tp_tensor_t *out = tp__tensor_new(a->dtype, a->device, a->ndim, shape, operation);
  if (!out || out->numel == 0) return out;
  int32_t ndim = a->ndim > 2 ? a->ndim - 2 : 0;
  tp__gemm_t gemm = {.batch = 1, .alpha = {1, 0}};
  for (int32_t d = 0; d < ndim; ++d) gemm.batch *= a->shape[d];
  tp_tensor_t *turned = tp_tensor_transpose(weight, 0, 1);
  tp_tensor_t *left = matrices(a, 0, ndim, shape, &gemm.a_batch);
  tp_tensor_t *right = turned ? matrices(turned, 1, ndim, shape, &gemm.b_batch) : NULL;
  tp_tensor_t *shift = bias ? tp_tensor_contiguous(bias) : NULL;
  bool done = false;
  if (left && right && (shift || !bias)) {
    describe(&gemm, left, right);
    gemm.bias = shift ? shift->data : NULL;
    gemm.out = out->data;
    done = !run_activated(&gemm, activation, out, operation);
  }
  tp_tensor_release(turned);
  tp_tensor_release(left);
  tp_tensor_release(right);
  tp_tensor_release(shift);
  if (done) return out;
  tp_tensor_release(out);
  return NULL;
}

tp_tensor_t *tp_linear(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias) {
  const char *operation = "linear";
  if (check_linear(a, weight, bias, operation)) return NULL;
  return tp__dtype_is_floating(a->dtype) ? floating_linear(a, weight, bias, NO_ACTIVATION, operation)
                                         : plain_linear(a, weight, bias);
}

tp_tensor_t *tp_linear_gelu(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias, int32_t by_tanh) {
  const char *operation = "linear_gelu";
  if (check_linear(a, weight, bias, operation)) return NULL;
  if (!tp__dtype_is_floating(a->dtype)) {
    tp__error_set(TP_DTYPE, operation, "got dtype %s, expected a floating one", tp__dtype_name(a->dtype));
    return NULL;
  }
  return floating_linear(a, weight, bias, by_tanh ? GELU_TANH : GELU, operation);
}
