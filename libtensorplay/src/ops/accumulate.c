/* Sums of what a selection sends to the same place (docs/design/indexing.md). */
#include "../../kernels/args_accumulate.h"
#include "selection.h"

static const tp__access_t add_accesses[] = {
    TP_WRITES(tp_indexed_args_t, tensor), TP_READS(tp_indexed_args_t, plain),
    TP_READS(tp_indexed_args_t, index.values), {0}};
static const tp__access_t runs_accesses[] = {
    TP_WRITES(tp_runs_args_t, target), TP_WRITES(tp_runs_args_t, out_keys), TP_WRITES(tp_runs_args_t, out_sums),
    TP_READS(tp_runs_args_t, values), TP_READS(tp_runs_args_t, keys), TP_READS(tp_runs_args_t, order), {0}};

static tp__kernel_t add_bool = TP_KERNEL_INIT("accumulate", "tp_k_add_bool", add_accesses);
/* By the bytes of an element. */
static tp__kernel_t add[] = {
    [1] = TP_KERNEL_INIT("accumulate", "tp_k_add_1", add_accesses),
    [2] = TP_KERNEL_INIT("accumulate", "tp_k_add_2", add_accesses),
    [4] = TP_KERNEL_INIT("accumulate", "tp_k_add_4", add_accesses),
    [8] = TP_KERNEL_INIT("accumulate", "tp_k_add_8", add_accesses)};
static tp__kernel_t runs[TP_DTYPE_COUNT] = {
    [TP_DTYPE_float16] = TP_KERNEL_INIT("accumulate", "tp_k_runs_f16", runs_accesses),
    [TP_DTYPE_bfloat16] = TP_KERNEL_INIT("accumulate", "tp_k_runs_bf16", runs_accesses),
    [TP_DTYPE_float32] = TP_KERNEL_INIT("accumulate", "tp_k_runs_f32", runs_accesses),
    [TP_DTYPE_float64] = TP_KERNEL_INIT("accumulate", "tp_k_runs_f64", runs_accesses),
    [TP_DTYPE_complex64] = TP_KERNEL_INIT("accumulate", "tp_k_runs_c64", runs_accesses),
    [TP_DTYPE_complex128] = TP_KERNEL_INIT("accumulate", "tp_k_runs_c128", runs_accesses)};

/* ---- integers: one by one ---- */

static tp_status_t add_each(const tp__selection_t *selection, const tp_tensor_t *source, const char *name) {
  int32_t dtype = selection->base.dtype;
  tp_indexed_args_t args;
  tp__selection_args(selection, source, &args);
  return tp__launch_tiles(dtype == TP_DTYPE_bool ? &add_bool : &add[tp__dtype_size(dtype)], selection->base.device,
                          args.layout.numel, TP_STRIDED_TILE, &args, name);
}

/* ---- floating and complex numbers: in the order of their places ---- */

/* Rows that are added at one key each. */
typedef struct rows {
  int64_t count, width;
  tp_tensor_t *values; /* (count, width) */
  tp_tensor_t *keys;   /* (count); the order of places is that of keys */
  tp_tensor_t *order;  /* (count): brings the keys into order; NULL: they are */
} rows_t;

static void release(rows_t *rows) {
  tp_tensor_release(rows->values);
  tp_tensor_release(rows->keys);
  tp_tensor_release(rows->order);
}

static bool is_complete(const rows_t *rows) { return rows->values && rows->keys; }

/* Dimensions in which one index serves many elements make up a row, the others have the keys. Bits. */
static uint32_t dims_of_keys(const tp__selection_t *selection) {
  uint32_t dims = 0;
  for (int32_t d = 0; d < selection->base.ndim; ++d) {
    if (selection->base.strides[d] == 0 || selection->index.strides[d] != 0) dims |= 1u << d;
  }
  return dims;
}

/* source as rows: the dimensions of the keys first. */
static tp_tensor_t *rows_of(const tp_tensor_t *source, const tp_tensor_t *shape, uint32_t keys) {
  int64_t dims[TP_MAX_NDIM];
  int32_t n = 0;
  for (int32_t of_keys = 1; of_keys >= 0; --of_keys) {
    for (int32_t d = 0; d < shape->ndim; ++d) {
      if ((int32_t)(keys >> d & 1) == of_keys) dims[n++] = d;
    }
  }
  tp_tensor_t *whole = tp_tensor_expand(source, shape->ndim, shape->shape);
  tp_tensor_t *turned = whole ? tp_tensor_permute(whole, n, dims) : NULL;
  tp_tensor_t *values = turned ? tp_tensor_contiguous(turned) : NULL;
  tp_tensor_release(whole);
  tp_tensor_release(turned);
  return values;
}

/* The target's elements of one row. */
static void describe_row(tp_layout_t *layout, const tp_tensor_t *base, uint32_t keys) {
  tp_tensor_t order = {0}, row = {0};
  for (int32_t d = 0; d < base->ndim; ++d) {
    if (keys >> d & 1) continue;
    order.shape[order.ndim] = row.shape[order.ndim] = base->shape[d];
    row.strides[order.ndim++] = base->strides[d];
  }
  row.ndim = order.ndim;
  (void)tp__contiguous_strides(order.ndim, order.shape, order.strides);
  tp__layout_make(layout, order.ndim, order.shape, 2, (const tp_tensor_t *[]){&order, &row});
}

static int32_t wide_dtype(int32_t dtype) {
  return dtype == TP_DTYPE_float16 || dtype == TP_DTYPE_bfloat16 ? TP_DTYPE_float32 : dtype;
}

/* Rows that remain of so many: the first and the last run of each chunk; of one chunk none. */
static int64_t rest_count(int64_t count) {
  int64_t chunks = tp__divide_up(count, TP_RUNS_CHUNK);
  return chunks > 1 ? 2 * chunks : 0;
}

/* Memory for what remains of so many rows, and of that, and so on in turn. All of it is there before anything is added,
 * so that a call which finds no room can be repeated. */
static tp_status_t make_rests(rows_t rests[2], int64_t count, int64_t width, const tp_tensor_t *target,
                              const char *name) {
  for (int i = 0; i < 2; ++i) {
    count = rest_count(count);
    if (!count) break;
    rests[i].width = width;
    rests[i].keys = tp__tensor_new(TP_DTYPE_int64, target->device, 1, &count, name);
    rests[i].values = tp__tensor_new(wide_dtype(target->dtype), target->device, 2, (int64_t[]){count, width}, name);
    if (!is_complete(&rests[i])) return tp_error_status();
  }
  return TP_OK;
}

/* Adds the rows but for those that remain, which become the rows of `rest`. */
static tp_status_t add_rows(const tp__selection_t *selection, const tp_layout_t *row, const rows_t *rows, rows_t *rest,
                            const char *name) {
  int32_t dtype = selection->base.dtype;
  rest->count = rest_count(rows->count);
  tp_runs_args_t args = {.target = selection->base.data,
                         .values = rows->values->data,
                         .keys = rows->keys->data,
                         .order = rows->order ? rows->order->data : NULL,
                         .out_keys = rest->count ? rest->keys->data : NULL,
                         .out_sums = rest->count ? rest->values->data : NULL,
                         .count = rows->count,
                         .width = rows->width,
                         .keys_are_int64 = rows->keys->dtype == TP_DTYPE_int64,
                         .row = *row};
  return tp__launch_tiles(&runs[dtype], selection->base.device,
                          tp__divide_up(rows->count, TP_RUNS_CHUNK) * rows->width, TP_RUNS_TILE, &args, name);
}

static tp_status_t add_in_order(const tp__selection_t *selection, const tp_tensor_t *source, const char *name) {
  uint32_t keys = dims_of_keys(selection);
  tp_layout_t row;
  describe_row(&row, &selection->base, keys);
  /* Sorting keys of 32 bits takes half of the time. */
  int32_t dtype = selection->reach <= INT32_MAX ? TP_DTYPE_int32 : TP_DTYPE_int64;
  rows_t all = {.count = selection->base.numel / row.numel, .width = row.numel}, rests[2] = {{0}};
  all.values = rows_of(source, &selection->base, keys);
  all.keys = all.values ? tp__selection_offsets(selection, keys, dtype, name) : NULL;
  all.order = all.keys ? tp_argsort(all.keys, 0, false) : NULL;
  tp_status_t status = all.order ? make_rests(rests, all.count, all.width, &selection->base, name) : tp_error_status();
  const rows_t *rows = &all;
  for (int level = 0; rows->count && !status; ++level) {
    status = add_rows(selection, &row, rows, &rests[level % 2], name);
    rows = &rests[level % 2];
  }
  release(&all); /* in stream order: what reads it comes first */
  release(&rests[0]);
  release(&rests[1]);
  return status;
}

tp_status_t tp__selection_add(const tp__selection_t *selection, const tp_tensor_t *source, const char *name) {
  if (tp__dtype_category(selection->base.dtype) < TP_CATEGORY_FLOAT) return add_each(selection, source, name);
  return add_in_order(selection, source, name);
}
