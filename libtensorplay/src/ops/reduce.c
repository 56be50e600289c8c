/* Reductions: dtypes and shapes of the result, and the plan of the launches (docs/design/reductions.md). */
#include <math.h>

#include "../../kernels/args_reduce.h"
#include "../internal.h"

enum {
#define TP_REDUCE(name, code, rule) TP_REDUCE_##name = code,
#define TP_SCAN(name, code, rule) TP_SCAN_##name = code,
#include "../../kernels/ops.def"
};

enum { RULE_SUM, RULE_SAME, RULE_FLOAT, RULE_BOOL };

enum {
  FOLD_sum = TP_FOLD_SUM,
  FOLD_mean = TP_FOLD_SUM,
  FOLD_amax = TP_FOLD_HIGHEST,
  FOLD_amin = TP_FOLD_LOWEST,
  FOLD_any = TP_FOLD_HIGHEST,
  FOLD_all = TP_FOLD_LOWEST,
  FOLD_prod = TP_FOLD_PRODUCT
};

static const struct {
  const char *name;
  int32_t rule, fold;
} ops[] = {
#define TP_REDUCE(name, code, rule) [code] = {#name, RULE_##rule, FOLD_##name},
#include "../../kernels/ops.def"
};
enum { OP_COUNT = sizeof ops / sizeof *ops };

static const tp__access_t accesses[] = {TP_WRITES(tp_reduce_args_t, out), TP_READS(tp_reduce_args_t, input), {0}};

static tp__kernel_t row_kernels[TP_DTYPE_COUNT] = {
#define KERNEL(dtype, suffix, element) [TP_DTYPE_##dtype] = TP_KERNEL_INIT("reduce", "tp_k_rows_" #suffix, accesses),
    TP_REDUCE_SOURCES(KERNEL)
#undef KERNEL
};

static tp__kernel_t column_kernels[TP_DTYPE_COUNT] = {
#define KERNEL(dtype, suffix, element) [TP_DTYPE_##dtype] = TP_KERNEL_INIT("reduce", "tp_k_columns_" #suffix, accesses),
    TP_REDUCE_SOURCES(KERNEL)
#undef KERNEL
};

/* Reduced elements that are worth a block of their own in the rows form, and a thread in the columns form. */
#define ROWS_SPLIT 8192
#define COLUMNS_SHARE 16
/* Threads of a block of the columns form that share results, at most. */
#define COLUMNS_GROUP 8
/* Splits begin at multiples: in rows these keep reads of 16 bytes aligned for every dtype. */
#define SPLIT_MULTIPLE 64
/* With fewer reduced elements one thread folds them, with fewer neighbouring results columns do not pay. */
#define COLUMNS_MOST_REDUCED 32
#define COLUMNS_LEAST_ADJACENT 32
/* Threads of a group that needs no barrier, and the vectors that each thread of a larger one should have. */
#define WARP 32
#define VECTORS_WANTED 4

static bool is_adjacent(const tp_layout_t *reduced) {
  return reduced->ndim == 0 || (reduced->ndim == 1 && reduced->strides[0][0] == 1);
}

static bool uses_columns(const tp_reduce_args_t *args) {
  const tp_layout_t *kept = &args->kept, *reduced = &args->reduced;
  if (reduced->numel <= COLUMNS_MOST_REDUCED) return true;
  bool adjacent_kept = kept->ndim > 0 && kept->strides[1][0] == 1;
  return !is_adjacent(reduced) && adjacent_kept && kept->sizes[0] >= COLUMNS_LEAST_ADJACENT;
}

/* Whether neighbouring results have elements that lie in aligned vectors. */
static bool has_vectors(const tp_reduce_args_t *args, int64_t vector) {
  const tp_layout_t *kept = &args->kept, *reduced = &args->reduced;
  if (kept->ndim == 0 || kept->strides[1][0] != 1 || kept->sizes[0] % vector || (uintptr_t)args->input % 16)
    return false;
  for (int32_t d = 1; d < kept->ndim; ++d) {
    if (kept->strides[1][d] % vector) return false;
  }
  for (int32_t d = 0; d < reduced->ndim; ++d) {
    if (reduced->strides[0][d] % vector) return false;
  }
  return true;
}

/* Chooses args->split and args->splits, where one split keeps `threads` threads busy; least: reduced elements of a
 * split. */
static void split(tp_reduce_args_t *args, int64_t threads, int64_t least) {
  int64_t useful = args->reduced.numel / least, splits = threads < TP_MANY_THREADS ? TP_MANY_THREADS / threads : 1;
  if (splits > useful) splits = useful > 1 ? useful : 1;
  args->split = tp__divide_up(tp__divide_up(args->reduced.numel, splits), SPLIT_MULTIPLE) * SPLIT_MULTIPLE;
  args->splits = tp__divide_up(args->reduced.numel, args->split);
}

static void plan_columns(tp_reduce_args_t *args, int32_t source, bool may_split) {
  int64_t vector = 16 / (int64_t)tp__dtype_size(source);
  bool floating = tp__dtype_is_floating(source);
  args->packed = floating && args->kept.numel >= WARP * vector && has_vectors(args, vector);
  int64_t columns = args->packed ? args->kept.numel / vector : args->kept.numel;
  args->group = 1;
  while (args->group < COLUMNS_GROUP && columns * args->group < TP_MANY_THREADS &&
         args->reduced.numel >= 2 * args->group * COLUMNS_SHARE)
    args->group *= 2;
  split(args, columns * args->group, may_split ? args->group * COLUMNS_SHARE : args->reduced.numel);
}

static void plan_rows(tp_reduce_args_t *args, int32_t source, bool may_split) {
  int64_t vector = 16 / (int64_t)tp__dtype_size(source);
  split(args, args->kept.numel * TP_BLOCK_THREADS, may_split ? ROWS_SPLIT : args->reduced.numel);
  int64_t results = args->kept.numel * args->splits;
  int64_t units = args->split < args->reduced.numel ? args->split : args->reduced.numel;
  if (is_adjacent(&args->reduced)) units = tp__divide_up(units, vector);
  args->group = 1;
  while (args->group < WARP && args->group < units) args->group *= 2;
  while (args->group < TP_BLOCK_THREADS && args->group * VECTORS_WANTED < units &&
         results * args->group < TP_MANY_THREADS)
    args->group *= 2;
}

/* Chooses how the elements are shared among threads. */
static void plan(tp_reduce_args_t *args, int32_t source, bool may_split) {
  (uses_columns(args) ? plan_columns : plan_rows)(args, source, may_split);
}

static tp_status_t launch(const tp_reduce_args_t *args, int32_t source, int32_t device, tp_stream_t *stream,
                          const char *operation) {
  uint32_t group = (uint32_t)args->group, threads = group < WARP ? WARP : group;
  if (uses_columns(args)) {
    int64_t columns = args->packed ? args->kept.numel * (int64_t)tp__dtype_size(source) / 16 : args->kept.numel;
    while (threads < TP_BLOCK_THREADS && threads / group < columns) threads *= 2;
    return tp__launch(&column_kernels[source], device, stream, tp__launch_grid(columns, threads / group),
                      (uint32_t)args->splits, 1, threads, args, operation);
  }
  int64_t results = args->kept.numel * args->splits;
  while (threads < TP_BLOCK_THREADS && results * group > TP_MANY_THREADS) threads *= 2;
  return tp__launch(&row_kernels[source], device, stream, tp__launch_grid(results, threads / group), 1, 1, threads,
                    args, operation);
}

/* A complex element is two real ones: as many more results, or elements without a result of their own. */
static void add_parts(tp_tensor_t *part, bool kept) {
  for (int32_t d = 0; d < part->ndim; ++d) part->strides[d] *= 2;
  if (!kept) return;
  part->numel *= 2;
  part->shape[part->ndim] = 2;
  part->strides[part->ndim++] = 1;
}

/* Totals of the splits, (splits, kept), then folded as a reduction over the first dimension. */
static tp_status_t run_split(tp_reduce_args_t *args, int32_t source, tp_tensor_t *target, tp_stream_t *stream,
                             const char *operation) {
  tp__block_t *block = tp__alloc((size_t)(args->splits * args->kept.numel) * sizeof(double), stream);
  if (!block) return tp_error_status();
  void *totals = tp__alloc_address(block);
  int32_t out_dtype = args->out_dtype;
  args->out = totals;
  args->out_dtype = TP_REDUCE_TOTALS;
  tp_status_t status = launch(args, source, target->device, stream, operation);
  if (!status) {
    tp_tensor_t kept = {.ndim = 1, .shape = {args->kept.numel}, .strides = {1}};
    tp_tensor_t splits = {.ndim = 1, .shape = {args->splits}, .strides = {args->kept.numel}};
    args->input = totals;
    args->out = target->data;
    args->out_dtype = out_dtype;
    tp__layout_make(&args->kept, 1, kept.shape, 2, (const tp_tensor_t *[]){&kept, &kept});
    tp__layout_make(&args->reduced, 1, splits.shape, 1, (const tp_tensor_t *[]){&splits});
    int32_t total = tp__dtype_is_floating(source) ? (int32_t)TP_DTYPE_float64 : (int32_t)TP_DTYPE_int64;
    plan(args, total, false);
    status = launch(args, total, target->device, stream, operation);
  }
  tp__alloc_free(block); /* in stream order: the launches above come first */
  return status;
}

/* What a reduction of nothing gives. */
static tp_status_t fill(int32_t op, tp_tensor_t *target) {
  double value = op == TP_REDUCE_mean ? (double)NAN : op == TP_REDUCE_all || op == TP_REDUCE_prod ? 1.0 : 0.0;
  if (tp__dtype_category(target->dtype) < TP_CATEGORY_COMPLEX) return tp_tensor_fill_float(target, value);
  return tp_tensor_fill_complex(target, value, op == TP_REDUCE_mean ? value : 0);
}

/* a: of a dtype that kernels take, or complex, as then the target is. */
static tp_status_t run(int32_t op, const tp_tensor_t *a, uint32_t dims, tp_tensor_t *target,
                       const char *operation) {
  tp_tensor_t kept, reduced;
  tp__dims_take(&kept, a, ~dims);
  tp__dims_take(&reduced, a, dims);
  if (reduced.numel == 0) return fill(op, target);
  tp_reduce_args_t args = {.input = a->data,
                           .out = target->data,
                           .fold = ops[op].fold,
                           .out_dtype = target->dtype,
                           .divisor = op == TP_REDUCE_mean ? (double)reduced.numel : 1};
  int32_t source = a->dtype;
  if (tp__dtype_category(source) == TP_CATEGORY_COMPLEX) {
    add_parts(&kept, true);
    add_parts(&reduced, false);
    source = tp__dtype_real(source);
    args.out_dtype = tp__dtype_real(target->dtype);
  }
  tp_tensor_t result = kept;
  tp__contiguous_strides(result.ndim, result.shape, result.strides);
  tp__layout_make(&args.kept, kept.ndim, kept.shape, 2, (const tp_tensor_t *[]){&result, &kept});
  tp__layout_make(&args.reduced, reduced.ndim, reduced.shape, 1, (const tp_tensor_t *[]){&reduced});
  plan(&args, source, true);
  tp_stream_t *stream = tp__stream_current(a->device);
  if (args.splits == 1) return launch(&args, source, a->device, stream, operation);
  return run_split(&args, source, target, stream, operation);
}

/* The dtype of the result, or -1 with the slot filled. */
static int32_t result_dtype(int32_t op, int32_t operand, int32_t wanted) {
  int32_t rule = ops[op].rule;
  if (wanted != TP_DTYPE_NONE) {
    if (wanted < 0 || wanted >= TP_DTYPE_COUNT || (rule != RULE_SUM && rule != RULE_FLOAT)) {
      tp__error_set(TP_DTYPE, ops[op].name, "got dtype %s, which this reduction does not take",
                    tp__dtype_name(wanted));
      return -1;
    }
  }
  int32_t result = operand;
  if (rule == RULE_BOOL && operand != TP_DTYPE_uint8) result = TP_DTYPE_bool;
  if (rule == RULE_SUM && tp__dtype_category(operand) <= TP_CATEGORY_INT) result = TP_DTYPE_int64;
  if (wanted != TP_DTYPE_NONE) result = wanted;
  if (rule == RULE_FLOAT && tp__dtype_category(result) <= TP_CATEGORY_INT) {
    tp__error_set(TP_DTYPE, ops[op].name, "got dtype %s, expected a floating or complex one",
                  tp__dtype_name(result));
    return -1;
  }
  return result;
}

/* The dtype that elements are folded in: the operand's wherever a kernel takes it, or one to convert them to. */
static int32_t source_dtype(int32_t op, int32_t operand, int32_t result) {
  int32_t category = tp__dtype_category(result), from = tp__dtype_category(operand);
  bool product = op == TP_REDUCE_prod;
  if (ops[op].rule == RULE_BOOL) return TP_DTYPE_bool;
  if (category <= TP_CATEGORY_INT) {
    if (product) return TP_DTYPE_int64;
    return from == TP_CATEGORY_INT && tp__dtype_size(operand) < sizeof(int32_t) ? TP_DTYPE_int32 : operand;
  }
  if (category == TP_CATEGORY_COMPLEX && (product || from == TP_CATEGORY_COMPLEX))
    return tp__dtype_size(operand) < tp__dtype_size(result) || from != category ? result : operand;
  if (product) return TP_DTYPE_float64;
  int32_t real = tp__dtype_real(result);
  return real == TP_DTYPE_float64 || from != TP_CATEGORY_FLOAT ? real : operand;
}

/* Whole numbers, fractions or complex numbers. */
static int32_t kind(int32_t dtype) {
  int32_t category = tp__dtype_category(dtype);
  return category == TP_CATEGORY_BOOL ? (int32_t)TP_CATEGORY_INT : category;
}

static tp_tensor_t *convert(int32_t op, const tp_tensor_t *a, int32_t result) {
  if (kind(a->dtype) != kind(result) && kind(result) != TP_CATEGORY_COMPLEX) {
    /* Elements become of the result's dtype before anything else. */
    tp_tensor_t *cast = tp_tensor_to(a, result, a->device);
    tp_tensor_t *operand = cast ? convert(op, cast, result) : NULL;
    tp_tensor_release(cast);
    return operand;
  }
  int32_t source = source_dtype(op, a->dtype, result);
  return source == a->dtype ? tp__tensor_retain(a) : tp_tensor_to(a, source, a->device);
}

/* A product of complex numbers: the last of the running ones, over the reduced dimensions behind the kept ones. */
static tp_status_t run_complex_product(const tp_tensor_t *a, uint32_t dims, tp_tensor_t *target) {
  int64_t order[TP_MAX_NDIM], shape[2] = {1, 1};
  int32_t n = 0;
  for (int32_t reduced = 0; reduced < 2; ++reduced) {
    for (int32_t d = 0; d < a->ndim; ++d) {
      if (((dims >> d) & 1) != (uint32_t)reduced) continue;
      order[n++] = d;
      shape[reduced] *= a->shape[d];
    }
  }
  if (shape[1] == 0) return fill(TP_REDUCE_prod, target);
  tp_tensor_t *ordered = tp_tensor_permute(a, a->ndim, order);
  tp_tensor_t *rows = ordered ? tp_tensor_reshape(ordered, 2, shape) : NULL;
  tp_tensor_t *running = rows ? tp_scan(TP_SCAN_cumprod, rows, 1, target->dtype, NULL) : NULL;
  tp_tensor_t *last = running ? tp_tensor_select(running, 1, -1) : NULL;
  tp_tensor_t *view = last ? tp_tensor_view(target, 1, shape) : NULL;
  tp_status_t status = view ? tp_tensor_copy(view, last) : tp_error_status();
  tp_tensor_release(ordered);
  tp_tensor_release(rows);
  tp_tensor_release(running);
  tp_tensor_release(last);
  tp_tensor_release(view);
  return status;
}

tp_tensor_t *tp_reduce(int32_t op, const tp_tensor_t *a, uint32_t dims, int32_t keepdim, int32_t dtype,
                       tp_tensor_t *out) {
  if (op < 0 || op >= OP_COUNT) {
    tp__error_set(TP_INVALID_ARGUMENT, "reduce", "got op %d, expected 0 to %d", (int)op, OP_COUNT - 1);
    return NULL;
  }
  const char *operation = ops[op].name;
  uint32_t every = a->ndim ? ((uint32_t)1 << a->ndim) - 1 : 1;
  if (dims & ~every) {
    tp__error_set(TP_INDEX, operation, "got a dimension beyond the %d of the operand", (int)a->ndim);
    return NULL;
  }
  if (!dims) dims = every;
  int32_t result = result_dtype(op, a->dtype, dtype);
  if (result < 0) return NULL;
  if (ops[op].rule == RULE_SAME && (tp__dims_check_real(a, operation) || tp__dims_check_filled(a, dims, operation)))
    return NULL;
  int64_t shape[TP_MAX_NDIM];
  int32_t ndim = tp__dims_shape(a, dims, keepdim, shape);
  out = tp__check_out(out, result, a->device, ndim, shape, operation);
  if (!out || out->numel == 0) return out;
  /* A sum of bool asks whether any element is true, a product whether all are. */
  if (result == TP_DTYPE_bool && op == TP_REDUCE_sum) op = TP_REDUCE_any;
  if (result == TP_DTYPE_bool && op == TP_REDUCE_prod) op = TP_REDUCE_all;
  tp_tensor_t *operand = convert(op, a, result);
  bool direct = out->contiguous && !tp__tensor_shares(out, a) && out->dtype == result;
  tp_tensor_t *target = operand ? tp__target_take(out, result, direct, operation) : NULL;
  bool composed = op == TP_REDUCE_prod && tp__dtype_category(result) == TP_CATEGORY_COMPLEX;
  tp_status_t status = TP_OK;
  if (target)
    status = composed ? run_complex_product(operand, dims, target) : run(op, operand, dims, target, operation);
  tp_tensor_release(operand);
  return tp__target_finish(out, target, status);
}
