/* Places of the highest and lowest elements: checks, and the plan of the launches (docs/design/reductions.md). */
#include "../../kernels/args_arg_reduce.h"
#include "../internal.h"

enum { OP_argmax = TP_ARG_HIGHEST, OP_argmin = TP_ARG_LOWEST };

static const struct {
  const char *name;
  int32_t op;
} ops[] = {
#define TP_ARG_REDUCE(name, code, rule) [code] = {#name, OP_##name},
#include "../../kernels/ops.def"
};
enum { OP_COUNT = sizeof ops / sizeof *ops };

static const tp__access_t accesses[] = {
    TP_WRITES(tp_arg_reduce_args_t, out), TP_WRITES(tp_arg_reduce_args_t, keys),
    TP_WRITES(tp_arg_reduce_args_t, places), TP_READS(tp_arg_reduce_args_t, input), {0}};

static tp__kernel_t kernel_32 = TP_KERNEL_INIT("arg_reduce", "tp_k_arg_reduce_32", accesses);
static tp__kernel_t kernel_64 = TP_KERNEL_INIT("arg_reduce", "tp_k_arg_reduce_64", accesses);

/* Elements that are worth a thread. */
#define SHARE 32
/* With fewer elements one thread compares them, as with so many neighbouring results that are not along them. */
#define GROUP_LEAST 32

/* Chooses how the elements are shared among threads. */
static void plan(tp_arg_reduce_args_t *args) {
  const tp_layout_t *kept = &args->kept;
  bool neighbours = kept->ndim > 0 && kept->strides[1][0] == 1 && kept->sizes[0] >= GROUP_LEAST;
  args->group = 1;
  if (args->stride == 1 || !neighbours) {
    while (args->group < TP_BLOCK_THREADS && args->group * GROUP_LEAST < args->size) args->group *= 2;
  }
  int64_t splits = TP_MANY_THREADS / (kept->numel * args->group), useful = args->size / (args->group * SHARE);
  if (splits > useful) splits = useful;
  args->split = tp__divide_up(args->size, splits > 1 ? splits : 1);
  args->splits = tp__divide_up(args->size, args->split);
}

static tp_status_t launch(const tp_arg_reduce_args_t *args, int32_t device, tp_stream_t *stream,
                          const char *operation) {
  tp__kernel_t *kernel = tp__dtype_size(args->dtype) == 8 ? &kernel_64 : &kernel_32;
  int64_t per_block = TP_BLOCK_THREADS / args->group;
  return tp__launch(kernel, device, stream, tp__launch_grid(args->kept.numel * args->splits, per_block), 1, 1,
                    TP_BLOCK_THREADS, args, operation);
}

static tp_status_t launch_split(tp_arg_reduce_args_t *args, int32_t device, tp_stream_t *stream,
                                const char *operation) {
  /* Keys behind the places, with 8 bytes for each in any case. */
  size_t places = (size_t)(args->splits * args->kept.numel) * sizeof(int64_t);
  tp__block_t *block = tp__alloc(2 * places, stream);
  if (!block) return tp_error_status();
  void *out = args->out;
  args->out = NULL;
  args->places = tp__alloc_address(block);
  args->keys = (char *)args->places + places;
  tp_status_t status = launch(args, device, stream, operation);
  if (!status) {
    args->input = NULL;
    args->out = out;
    args->size = args->split = args->splits;
    args->splits = args->group = 1;
    while (args->group < TP_BLOCK_THREADS && args->group < args->size) args->group *= 2;
    status = launch(args, device, stream, operation);
  }
  tp__alloc_free(block); /* in stream order: the launches above come first */
  return status;
}

/* a has elements; the result is contiguous. */
static tp_status_t run(int32_t op, const tp_tensor_t *a, int32_t dim, tp_tensor_t *result, const char *operation) {
  tp_tensor_t kept, out;
  tp__dims_take(&kept, a, ~((uint32_t)1 << dim));
  out = kept;
  tp__contiguous_strides(out.ndim, out.shape, out.strides);
  tp_arg_reduce_args_t args = {.input = a->data,
                               .out = result->data,
                               .size = a->ndim ? a->shape[dim] : 1,
                               .stride = a->ndim ? a->strides[dim] : 1,
                               .op = ops[op].op,
                               .dtype = a->dtype};
  tp__layout_make(&args.kept, kept.ndim, kept.shape, 2, (const tp_tensor_t *[]){&out, &kept});
  plan(&args);
  tp_stream_t *stream = tp__stream_current(a->device);
  if (args.splits == 1) return launch(&args, a->device, stream, operation);
  return launch_split(&args, a->device, stream, operation);
}

tp_tensor_t *tp_arg_reduce(int32_t op, const tp_tensor_t *a, int32_t dim, int32_t keepdim) {
  if (op < 0 || op >= OP_COUNT) {
    tp__error_set(TP_INVALID_ARGUMENT, "arg_reduce", "got op %d, expected 0 to %d", (int)op, OP_COUNT - 1);
    return NULL;
  }
  const char *operation = ops[op].name;
  dim = tp__check_dim(dim, a->ndim, operation);
  if (dim < 0) return NULL;
  uint32_t dims = (uint32_t)1 << dim;
  if (tp__dims_check_real(a, operation) || tp__dims_check_filled(a, dims, operation)) return NULL;
  int64_t shape[TP_MAX_NDIM];
  int32_t ndim = tp__dims_shape(a, dims, keepdim, shape);
  tp_tensor_t *out = tp__tensor_new(TP_DTYPE_int64, a->device, ndim, shape, operation);
  if (!out || out->numel == 0 || !run(op, a, dim, out, operation)) return out;
  tp_tensor_release(out);
  return NULL;
}

tp_tensor_t *tp_arg_reduce_all(int32_t op, const tp_tensor_t *a, int32_t keepdim) {
  tp_tensor_t *row = tp_tensor_reshape(a, 1, (int64_t[]){-1});
  if (!row) return NULL;
  tp_tensor_t *out = tp_arg_reduce(op, row, 0, 0);
  tp_tensor_release(row);
  if (!out || !keepdim) return out;
  int64_t shape[TP_MAX_NDIM];
  int32_t ndim = tp__dims_shape(a, ~(uint32_t)0, true, shape);
  tp_tensor_t *kept = tp_tensor_view(out, ndim, shape);
  tp_tensor_release(out);
  return kept;
}
