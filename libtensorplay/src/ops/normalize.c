/* Softmax and layer normalisation: checks and launches (docs/design/reductions.md). */
#include "../../kernels/args_normalize.h"
#include "../internal.h"

static const tp__access_t softmax_accesses[] = {
    TP_WRITES(tp_softmax_args_t, out), TP_READS(tp_softmax_args_t, input), {0}};
static const tp__access_t norm_accesses[] = {
    TP_WRITES(tp_layer_norm_args_t, out), TP_READS(tp_layer_norm_args_t, input),
    TP_READS(tp_layer_norm_args_t, weight), TP_READS(tp_layer_norm_args_t, bias), {0}};

static tp__kernel_t softmax_rows[TP_DTYPE_COUNT] = TP_FLOAT_KERNELS("normalize", "softmax_rows", softmax_accesses);
static tp__kernel_t softmax_columns[TP_DTYPE_COUNT] =
    TP_FLOAT_KERNELS("normalize", "softmax_columns", softmax_accesses);
static tp__kernel_t layer_norms[TP_DTYPE_COUNT] = TP_FLOAT_KERNELS("normalize", "layer_norm", norm_accesses);

/* Chooses rows->group and rows->aligned; addresses: of all that is read or written in vectors. */
static void plan_rows(tp_rows_t *rows, int64_t count, int64_t size, size_t itemsize, uintptr_t addresses) {
  int64_t vector = 16 / (int64_t)itemsize;
  rows->count = count;
  rows->aligned = size % vector == 0 && addresses % 16 == 0;
  rows->group = 1;
  while (rows->group < TP_BLOCK_THREADS && rows->group * TP_NORMALIZE_VECTORS * vector < size) rows->group *= 2;
}

/* Where rows are fewer than keep a GPU busy, blocks get fewer threads. */
static tp_status_t launch_rows(tp__kernel_t *kernel, int32_t device, const tp_rows_t *rows, const void *args,
                               const char *operation) {
  uint32_t threads = rows->group < 32 ? 32 : (uint32_t)rows->group;
  while (threads < TP_BLOCK_THREADS && rows->count * rows->group > (int64_t)threads * TP_MANY_BLOCKS) threads *= 2;
  return tp__launch(kernel, device, tp__stream_current(device),
                    tp__launch_grid(rows->count, threads / (uint32_t)rows->group), 1, 1, threads, args, operation);
}

static tp_status_t run_softmax(const tp_tensor_t *a, int32_t dim, int32_t log, tp_tensor_t *target,
                               const char *operation) {
  tp_softmax_args_t args = {
      .input = a->data, .out = target->data, .outer = 1, .size = 1, .inner = 1, .log = log};
  for (int32_t d = 0; d < a->ndim; ++d)
    *(d < dim ? &args.outer : d == dim ? &args.size : &args.inner) *= a->shape[d];
  if (args.inner == 1) {
    plan_rows(&args.rows, args.outer, args.size, tp__dtype_size(a->dtype),
              (uintptr_t)args.input | (uintptr_t)args.out);
    return launch_rows(&softmax_rows[a->dtype], a->device, &args.rows, &args, operation);
  }
  return tp__launch_tiles(&softmax_columns[a->dtype], a->device, args.outer * args.inner, TP_SOFTMAX_TILE, &args,
                          operation);
}

tp_tensor_t *tp_softmax(const tp_tensor_t *a, int32_t dim, int32_t log, tp_tensor_t *out) {
  const char *operation = log ? "log_softmax" : "softmax";
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0 || tp__check_floating(a, operation)) return NULL;
  out = tp__check_out(out, a->dtype, a->device, a->ndim, a->shape, operation);
  if (!out || out->numel == 0) return out;
  /* The kernels read an element for the last time before they write it, so out may be the operand. */
  tp_tensor_t *operand = tp_tensor_contiguous(a);
  bool direct = out->contiguous && out->dtype == a->dtype && !tp__tensor_overlaps(out, a);
  tp_tensor_t *target = operand ? tp__target_take(out, a->dtype, direct, operation) : NULL;
  tp_status_t status = target ? run_softmax(operand, dim, log, target, operation) : TP_OK;
  tp_tensor_release(operand);
  return tp__target_finish(out, target, status);
}

/* weight or bias: NULL, or of the operand's dtype and device and of the normalised shape. */
static tp_status_t check_scale(const tp_tensor_t *scale, const tp_tensor_t *a, int32_t ndim,
                               const char *operation) {
  if (!scale) return TP_OK;
  TP_TRY(tp__check_devices(a, scale, operation));
  if (scale->dtype != a->dtype)
    return tp__error_set(TP_DTYPE, operation, "got dtypes %s and %s, expected one", tp__dtype_name(a->dtype),
                         tp__dtype_name(scale->dtype));
  if (tp__tensor_has_shape(scale, ndim, a->shape + a->ndim - ndim)) return TP_OK;
  return tp__error_set(TP_SHAPE, operation,
                       "got a weight or bias of another shape than the normalised dimensions");
}

static tp_status_t run_layer_norm(const tp_tensor_t *a, int32_t ndim, const tp_tensor_t *weight,
                                  const tp_tensor_t *bias, double eps, tp_tensor_t *target,
                                  const char *operation) {
  tp_layer_norm_args_t args = {.input = a->data,
                               .weight = weight ? weight->data : NULL,
                               .bias = bias ? bias->data : NULL,
                               .out = target->data,
                               .size = 1,
                               .eps = eps};
  for (int32_t d = a->ndim - ndim; d < a->ndim; ++d) args.size *= a->shape[d];
  plan_rows(&args.rows, a->numel / args.size, args.size, tp__dtype_size(a->dtype),
            (uintptr_t)args.input | (uintptr_t)args.out | (uintptr_t)args.weight | (uintptr_t)args.bias);
  return launch_rows(&layer_norms[a->dtype], a->device, &args.rows, &args, operation);
}

tp_tensor_t *tp_layer_norm(const tp_tensor_t *a, int32_t ndim, const tp_tensor_t *weight,
                           const tp_tensor_t *bias, double eps, tp_tensor_t *out) {
  const char *operation = "layer_norm";
  if (tp__check_floating(a, operation)) return NULL;
  if (ndim < 1 || ndim > a->ndim) {
    tp__error_set(TP_SHAPE, operation, "got %d dimensions to normalise, expected 1 to %d", (int)ndim,
                  (int)a->ndim);
    return NULL;
  }
  if (check_scale(weight, a, ndim, operation) || check_scale(bias, a, ndim, operation)) return NULL;
  out = tp__check_out(out, a->dtype, a->device, a->ndim, a->shape, operation);
  if (!out || out->numel == 0) return out;
  tp_tensor_t *operand = tp_tensor_contiguous(a);
  tp_tensor_t *scale = weight ? tp_tensor_contiguous(weight) : NULL;
  tp_tensor_t *shift = bias ? tp_tensor_contiguous(bias) : NULL;
  bool made = operand && (scale || !weight) && (shift || !bias);
  bool direct = out->contiguous && out->dtype == a->dtype && !tp__tensor_overlaps(out, a) &&
                (!weight || !tp__tensor_shares(out, weight)) && (!bias || !tp__tensor_shares(out, bias));
  tp_tensor_t *target = made ? tp__target_take(out, a->dtype, direct, operation) : NULL;
  tp_status_t status = target ? run_layer_norm(operand, ndim, scale, shift, eps, target, operation) : TP_OK;
  tp_tensor_release(operand);
  tp_tensor_release(scale);
  tp_tensor_release(shift);
  return tp__target_finish(out, target, status);
}
