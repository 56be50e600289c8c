/* Sorting: checks, and the launches of the three ways to do it (docs/design/reductions.md). */
#include "../../kernels/args_sort.h"
#include "../internal.h"

static const tp__access_t whole_accesses[] = {TP_WRITES(tp_sort_args_t, out), TP_READS(tp_sort_args_t, input), {0}};
static const tp__access_t keys_accesses[] = {TP_WRITES(tp_sort_args_t, keys), TP_READS(tp_sort_args_t, input), {0}};
static const tp__access_t count_accesses[] = {TP_WRITES(tp_sort_args_t, counts), TP_READS(tp_sort_args_t, keys), {0}};
static const tp__access_t move_accesses[] = {
    TP_WRITES(tp_sort_args_t, next_keys), TP_WRITES(tp_sort_args_t, next_places),
    TP_WRITES(tp_sort_args_t, out), TP_READS(tp_sort_args_t, keys), TP_READS(tp_sort_args_t, places),
    TP_READS(tp_sort_args_t, counts), {0}};

/* By the bytes of a key, 4 and 8. */
#define KEY_KERNELS(name, accesses) \
  {TP_KERNEL_INIT("sort", name "_32", accesses), TP_KERNEL_INIT("sort", name "_64", accesses)}
static tp__kernel_t short_kernels[] = KEY_KERNELS("tp_k_sort_short", whole_accesses);
static tp__kernel_t medium_kernels[] = KEY_KERNELS("tp_k_sort_medium", whole_accesses);
static tp__kernel_t keys_kernels[] = KEY_KERNELS("tp_k_sort_keys", keys_accesses);
static tp__kernel_t count_kernels[] = KEY_KERNELS("tp_k_sort_count", count_accesses);
static tp__kernel_t move_kernels[] = KEY_KERNELS("tp_k_sort_move", move_accesses);

typedef struct target {
  int32_t device;
  tp_stream_t *stream;
  const char *operation;
} target_t;

static tp_status_t launch(tp__kernel_t *kernels, const tp_sort_args_t *args, bool wide, int64_t blocks,
                          uint32_t threads, const target_t *target) {
  return tp__launch(&kernels[wide], target->device, target->stream, tp__launch_grid(blocks, 1), 1, 1, threads, args,
                    target->operation);
}

static tp_status_t sort_short_rows(tp_sort_args_t *args, bool wide, const target_t *target) {
  args->slots = 1;
  while (args->slots < args->size) args->slots *= 2;
  int64_t rows = TP_SORT_SLOTS / args->slots, in_block = rows < args->rows.numel ? rows : args->rows.numel;
  uint32_t threads = 32;
  while (threads < TP_BLOCK_THREADS && threads * 2 < in_block * args->slots) threads *= 2;
  return launch(short_kernels, args, wide, tp__divide_up(args->rows.numel, rows), threads, target);
}

static void exchange(void **a, void **b) {
  void *other = *a;
  *a = *b;
  *b = other;
}

/* Digit after digit, between two pairs of keys and places. */
static tp_status_t sort_long_rows(tp_sort_args_t *args, bool wide, const target_t *target) {
  size_t width = wide ? 8 : 4, numel = (size_t)(args->rows.numel * args->size);
  args->tiles = tp__divide_up(args->size, TP_SORT_TILE_NBYTES / (int64_t)width);
  int64_t blocks = args->rows.numel * args->tiles, counts = blocks * TP_SORT_DIGITS;
  size_t part = (numel * width + 15) / 16 * 16;
  tp__block_t *block = tp__alloc(4 * part + (size_t)counts * sizeof(int64_t), target->stream);
  if (!block) return tp_error_status();
  char *memory = tp__alloc_address(block);
  void *places = memory + 2 * part, *other_keys = memory + part, *other_places = memory + 3 * part;
  args->keys = memory;
  args->places = NULL;
  args->counts = memory + 4 * part;
  tp_status_t status = launch(keys_kernels, args, wide, blocks, TP_BLOCK_THREADS, target);
  for (args->shift = 0; !status && args->shift < args->key_bits; args->shift += TP_SORT_DIGIT_BITS) {
    bool last = args->shift + TP_SORT_DIGIT_BITS >= args->key_bits;
    args->next_keys = last ? NULL : other_keys;
    args->next_places = other_places;
    status = launch(count_kernels, args, wide, blocks, TP_BLOCK_THREADS, target);
    if (!status) status = tp__scan_counts(args->counts, counts, target->device, target->stream, target->operation);
    if (!status) status = launch(move_kernels, args, wide, blocks, TP_BLOCK_THREADS, target);
    exchange(&args->keys, &other_keys);
    exchange(&places, &other_places);
    args->places = places;
  }
  tp__alloc_free(block); /* in stream order: the launches above come first */
  return status;
}

/* a has elements; the result is contiguous. */
static tp_status_t run(const tp_tensor_t *a, int32_t dim, bool descending, tp_tensor_t *result,
                       const char *operation) {
  uint32_t others = ~((uint32_t)1 << dim);
  tp_tensor_t from, to;
  tp__dims_take(&from, a, others);
  tp__dims_take(&to, result, others);
  tp_sort_args_t args = {.input = a->data,
                         .out = result->data,
                         .size = a->ndim ? a->shape[dim] : 1,
                         .in_stride = a->ndim ? a->strides[dim] : 1,
                         .out_stride = a->ndim ? result->strides[dim] : 1,
                         .dtype = a->dtype,
                         .descending = descending,
                         .key_bits = a->dtype == TP_DTYPE_bool ? 1 : 8 * (int32_t)tp__dtype_size(a->dtype)};
  tp__layout_make(&args.rows, to.ndim, to.shape, 2, (const tp_tensor_t *[]){&to, &from});
  target_t target = {a->device, tp__stream_current(a->device), operation};
  bool wide = tp__dtype_size(a->dtype) == 8 || args.size > UINT32_MAX;
  if (args.size <= TP_SORT_SHORT) return sort_short_rows(&args, wide, &target);
  if (args.size > TP_SORT_TILE_NBYTES / (wide ? 8 : 4)) return sort_long_rows(&args, wide, &target);
  return launch(medium_kernels, &args, wide, args.rows.numel, TP_BLOCK_THREADS, &target);
}

tp_tensor_t *tp_argsort(const tp_tensor_t *a, int32_t dim, int32_t descending) {
  const char *operation = "argsort";
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0 || tp__dims_check_real(a, operation)) return NULL;
  tp_tensor_t *out = tp__tensor_new(TP_DTYPE_int64, a->device, a->ndim, a->shape, operation);
  if (!out || out->numel == 0 || !run(a, dim, descending, out, operation)) return out;
  tp_tensor_release(out);
  return NULL;
}
