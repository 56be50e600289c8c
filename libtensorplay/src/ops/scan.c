/* Running totals: dtypes of the result, and the plan of the launches (docs/design/reductions.md). */
#include "../../kernels/args_scan.h"
#include "../internal.h"

enum { OP_cumsum = TP_SCAN_SUM, OP_cumprod = TP_SCAN_PRODUCT };

static const struct {
  const char *name;
  int32_t op;
} ops[] = {
#define TP_SCAN(name, code, rule) [code] = {#name, OP_##name},
#include "../../kernels/ops.def"
};
enum { OP_COUNT = sizeof ops / sizeof *ops };

static const tp__access_t accesses[] = {
    TP_WRITES(tp_scan_args_t, out), TP_WRITES(tp_scan_args_t, totals), TP_READS(tp_scan_args_t, input), {0}};

/* By the category of elements. */
#define WIDE_KERNELS(form)                                     \
  {                                                            \
    [TP_CATEGORY_INT] = TP_KERNEL_INIT("scan", form "_i64", accesses),   \
    [TP_CATEGORY_FLOAT] = TP_KERNEL_INIT("scan", form "_f64", accesses), \
    [TP_CATEGORY_COMPLEX] = TP_KERNEL_INIT("scan", form "_c128", accesses), \
  }
static tp__kernel_t row_kernels[] = WIDE_KERNELS("tp_k_scan_rows");
static tp__kernel_t column_kernels[] = WIDE_KERNELS("tp_k_scan_columns");

/* The dtype of totals, by the category of elements. */
static const int32_t wide_dtypes[] = {TP_DTYPE_int64, TP_DTYPE_int64, TP_DTYPE_float64, TP_DTYPE_complex128};

/* Rows of fewer elements get a thread, not a block. */
#define ROW_LEAST 64
/* Elements that are worth a split, and the most splits: one block scans their totals. */
#define ROW_SPLIT (2 * TP_SCAN_TILE)
#define COLUMN_SPLIT 64
#define MOST_SPLITS (1 << 14)

static bool uses_rows(const tp_scan_args_t *args) { return args->inner == 1 && args->size >= ROW_LEAST; }

/* Chooses args->split and args->splits. */
static void plan(tp_scan_args_t *args) {
  int64_t lines = args->outer * args->inner;
  bool rows = uses_rows(args);
  int64_t unit = rows ? TP_SCAN_TILE : 1;
  int64_t splits = (rows ? TP_MANY_BLOCKS : TP_MANY_THREADS) / lines;
  int64_t useful = args->size / (rows ? ROW_SPLIT : COLUMN_SPLIT);
  if (splits > useful) splits = useful;
  if (splits > MOST_SPLITS) splits = MOST_SPLITS;
  if (splits < 1) splits = 1;
  args->split = tp__divide_up(tp__divide_up(args->size, splits), unit) * unit;
  args->splits = tp__divide_up(args->size, args->split);
}

static tp_status_t launch(const tp_scan_args_t *args, int32_t device, tp_stream_t *stream, const char *operation) {
  int32_t category = tp__dtype_category(args->in_dtype);
  if (category == TP_CATEGORY_BOOL) category = TP_CATEGORY_INT;
  int64_t items = args->outer * args->inner * args->splits;
  if (!uses_rows(args))
    return tp__launch(&column_kernels[category], device, stream, tp__launch_grid(items, TP_SCAN_COLUMNS), 1, 1,
                      TP_BLOCK_THREADS, args, operation);
  int64_t longest = args->split < args->size ? args->split : args->size;
  uint32_t threads = 32;
  while (threads < TP_BLOCK_THREADS && threads * TP_SCAN_UNIT < longest) threads *= 2;
  return tp__launch(&row_kernels[category], device, stream, tp__launch_grid(items, 1), 1, 1, threads, args,
                    operation);
}

/* The totals of the splits, their running totals in the same place, and the elements'. */
static tp_status_t launch_split(tp_scan_args_t *args, int32_t device, tp_stream_t *stream, const char *operation) {
  int64_t lines = args->outer * args->inner;
  int32_t wide = wide_dtypes[tp__dtype_category(args->in_dtype)];
  tp__block_t *block = tp__alloc((size_t)(lines * args->splits) * tp__dtype_size(wide), stream);
  if (!block) return tp_error_status();
  void *out = args->out;
  args->out = NULL;
  args->totals = tp__alloc_address(block);
  tp_scan_args_t totals = {.input = args->totals,
                           .out = args->totals,
                           .outer = lines,
                           .size = args->splits,
                           .inner = 1,
                           .split = args->splits,
                           .splits = 1,
                           .op = args->op,
                           .in_dtype = wide,
                           .out_dtype = wide};
  tp_status_t status = launch(args, device, stream, operation);
  if (!status) status = launch(&totals, device, stream, operation);
  args->out = out;
  if (!status) status = launch(args, device, stream, operation);
  tp__alloc_free(block); /* in stream order: the launches above come first */
  return status;
}

static tp_status_t run(tp_scan_args_t *args, int32_t device, tp_stream_t *stream, const char *operation) {
  plan(args);
  if (args->splits == 1) return launch(args, device, stream, operation);
  return launch_split(args, device, stream, operation);
}

tp_status_t tp__scan_counts(void *counts, int64_t n, int32_t device, tp_stream_t *stream, const char *operation) {
  tp_scan_args_t args = {.input = counts,
                         .out = counts,
                         .outer = 1,
                         .size = n,
                         .inner = 1,
                         .op = TP_SCAN_SUM,
                         .in_dtype = TP_DTYPE_int64,
                         .out_dtype = TP_DTYPE_int64};
  return run(&args, device, stream, operation);
}

/* The dtype of the result, or -1 with the slot filled. */
static int32_t result_dtype(const char *operation, int32_t operand, int32_t wanted) {
  if (wanted == TP_DTYPE_NONE) return tp__dtype_category(operand) <= TP_CATEGORY_INT ? TP_DTYPE_int64 : operand;
  if (wanted > TP_DTYPE_bool && wanted < TP_DTYPE_COUNT) return wanted;
  tp__error_set(TP_DTYPE, operation, "got dtype %s, expected a dtype of numbers", tp__dtype_name(wanted));
  return -1;
}

/* The operand, contiguous, in a dtype that the kernel of the result's takes. */
static tp_tensor_t *convert(const tp_tensor_t *a, int32_t result) {
  int32_t from = wide_dtypes[tp__dtype_category(a->dtype)], to = wide_dtypes[tp__dtype_category(result)];
  return from == to ? tp_tensor_contiguous(a) : tp_tensor_to(a, result, a->device);
}

static tp_status_t scan(int32_t op, const tp_tensor_t *a, int32_t dim, tp_tensor_t *target, const char *operation) {
  tp_scan_args_t args = {.input = a->data,
                         .out = target->data,
                         .outer = 1,
                         .size = 1,
                         .inner = 1,
                         .op = op,
                         .in_dtype = a->dtype,
                         .out_dtype = target->dtype};
  for (int32_t d = 0; d < a->ndim; ++d)
    *(d < dim ? &args.outer : d == dim ? &args.size : &args.inner) *= a->shape[d];
  return run(&args, a->device, tp__stream_current(a->device), operation);
}

tp_tensor_t *tp_scan(int32_t op, const tp_tensor_t *a, int32_t dim, int32_t dtype, tp_tensor_t *out) {
  if (op < 0 || op >= OP_COUNT) {
    tp__error_set(TP_INVALID_ARGUMENT, "scan", "got op %d, expected 0 to %d", (int)op, OP_COUNT - 1);
    return NULL;
  }
  const char *operation = ops[op].name;
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0) return NULL;
  int32_t result = result_dtype(operation, a->dtype, dtype);
  if (result < 0) return NULL;
  out = tp__check_out(out, result, a->device, a->ndim, a->shape, operation);
  if (!out || out->numel == 0) return out;
  tp_tensor_t *operand = convert(a, result);
  /* An element is read for the last time before it is written, so out may be the operand. */
  bool direct = out->contiguous && out->dtype == result && !tp__tensor_overlaps(out, a);
  tp_tensor_t *target = operand ? tp__target_take(out, result, direct, operation) : NULL;
  tp_status_t status = target ? scan(ops[op].op, operand, dim, target, operation) : TP_OK;
  tp_tensor_release(operand);
  return tp__target_finish(out, target, status);
}
