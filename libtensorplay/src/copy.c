/* Copies: between strides, dtypes, devices and the host (docs/design/kernels.md, "Copies"). */
#include "../kernels/args_copy.h"
#include "../kernels/args_elementwise.h"
#include "capture.h"
#include "captured.h"
#include "internal.h"

static const char copy_operation[] = "copy_";

static const tp__access_t cast_accesses[] = {TP_WRITES(tp_cast_args_t, out), TP_READS(tp_cast_args_t, source), {0}};
static const tp__access_t copy_accesses[] = {TP_WRITES(tp_copy_args_t, out), TP_READS(tp_copy_args_t, source), {0}};
static const tp__access_t move_accesses[] = {
    TP_WRITES(tp_flat_args_t, out), TP_READS(tp_flat_args_t, operands[0]), {0}};
static const tp__access_t turn_accesses[] = {TP_WRITES(tp_turn_args_t, out), TP_READS(tp_turn_args_t, source), {0}};

/* Runs of floating elements, by the source's dtype. */
static tp__kernel_t cast_run[TP_DTYPE_COUNT] = TP_FLOAT_KERNELS("copy", "cast", cast_accesses);
/* Any strides and dtypes, by the category of the source's. */
static tp__kernel_t cast_any[] = {
    [TP_CATEGORY_BOOL] = TP_KERNEL_INIT("copy", "tp_k_cast_any_int", copy_accesses),
    [TP_CATEGORY_INT] = TP_KERNEL_INIT("copy", "tp_k_cast_any_int", copy_accesses),
    [TP_CATEGORY_FLOAT] = TP_KERNEL_INIT("copy", "tp_k_cast_any_float", copy_accesses),
    [TP_CATEGORY_COMPLEX] = TP_KERNEL_INIT("copy", "tp_k_cast_any_complex", copy_accesses),
};
/* Elements as they are. */
static tp__kernel_t move_places[] = TP_SIZE_KERNELS("copy", "move_places", move_accesses);
static tp__kernel_t move_strided[] = TP_SIZE_KERNELS("copy", "move", copy_accesses);
/* Not of 16: its tiles are too large for shared memory. */
static tp__kernel_t turn[] = TP_SIZE_KERNELS("copy", "turn", turn_accesses);

/* Elements of a dimension that is worth tiles. */
#define TURN_LEAST 16

/* ---- on one device ---- */

static tp_status_t cast_any_strides(const tp_copy_args_t *args, int32_t device, const char *operation) {
  return tp__launch_tiles(&cast_any[tp__dtype_category(args->source_dtype)], device, args->layout.numel,
                          TP_STRIDED_TILE, args, operation);
}

/* Both are runs of target->numel elements. */
static tp_status_t copy_run(tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  if (target->dtype == source->dtype) {
    if (target->data == source->data) return TP_OK;
    size_t nbytes = (size_t)target->numel * tp__dtype_size(target->dtype);
    TP_TRY(tp__device_enter(target->device, operation));
    tp_stream_t *stream = tp__stream_current(target->device);
    TP_TRY(tp__watch(stream, 2, (tp__touch_t[]){{target->data, true}, {source->data, false}}, operation));
    TP_TRY_CUDA(cudaMemcpyAsync(target->data, source->data, nbytes, cudaMemcpyDeviceToDevice,
                                tp__stream_cuda(stream)),
                operation);
    return tp__settle(stream, operation);
  }
  if (tp__dtype_is_floating(target->dtype) && tp__dtype_is_floating(source->dtype)) {
    tp_cast_args_t args = {.out = target->data,
                           .source = source->data,
                           .numel = target->numel,
                           .out_dtype = target->dtype,
                           .aligned = ((uintptr_t)target->data | (uintptr_t)source->data) % 16 == 0};
    return tp__launch_tiles(&cast_run[source->dtype], target->device, target->numel, TP_COPY_TILE, &args,
                            operation);
  }
  tp_copy_args_t args = {.layout = {.ndim = 1,
                                    .numel = target->numel,
                                    .sizes = {target->numel},
                                    .strides = {{1}, {1}},
                                    .narrow = target->numel <= INT32_MAX},
                         .out = target->data,
                         .source = source->data,
                         .out_dtype = target->dtype,
                         .source_dtype = source->dtype};
  return cast_any_strides(&args, target->device, operation);
}

/* The dimension along which the source is adjacent while target is along dimension 0; 0 when there is none, or
 * when it is too short for tiles to pay. */
static int32_t turned_dim(const tp_layout_t *layout) {
  if (layout->strides[0][0] != 1 || layout->strides[1][0] <= 1 || layout->sizes[0] < TURN_LEAST) return 0;
  for (int32_t d = 1; d < layout->ndim; ++d) {
    if (layout->strides[1][d] == 1 && layout->sizes[d] >= TURN_LEAST) return d;
  }
  return 0;
}

static tp_status_t launch_turn(const tp_copy_args_t *args, int32_t dim, int32_t device, size_t size,
                               const char *operation) {
  const tp_layout_t *layout = &args->layout;
  tp_turn_args_t turned = {.out = args->out,
                           .source = args->source,
                           .width = layout->sizes[0],
                           .height = layout->sizes[dim],
                           .outer = layout->numel / (layout->sizes[0] * layout->sizes[dim]),
                           .out_stride = (int)layout->strides[0][dim],
                           .source_stride = (int)layout->strides[1][0]};
  tp_layout_t outer = {.narrow = layout->narrow};
  for (int32_t d = 1; d < layout->ndim; ++d) {
    if (d == dim) continue;
    for (int32_t i = 0; i < 2; ++i) outer.strides[i][outer.ndim] = layout->strides[i][d];
    outer.sizes[outer.ndim++] = layout->sizes[d];
  }
  (void)tp__layout_places(&outer, 2, &turned.places); /* fewer dimensions than the limit */
  int64_t tiles = tp__divide_up(turned.width, TP_TURN_TILE) * tp__divide_up(turned.height, TP_TURN_TILE) *
                  turned.outer;
  return tp__launch_tiles(&turn[size], device, tiles, 1, &turned, operation);
}

/* Elements as they are. */
static tp_status_t move(tp_copy_args_t *args, int32_t device, size_t size, const char *operation) {
  tp_layout_t *layout = &args->layout;
  if (!layout->narrow || layout->ndim > TP_PLACES_NDIM)
    return tp__launch_tiles(&move_strided[size], device, layout->numel, TP_STRIDED_TILE, args, operation);
  int32_t dim = size < 16 ? turned_dim(layout) : 0;
  if (dim) return launch_turn(args, dim, device, size, operation);
  uintptr_t addresses = (uintptr_t)args->out | (uintptr_t)args->source;
  size = tp__layout_widen(layout, 2, 3, addresses, size, 8);
  tp_flat_args_t flat = {.out = args->out,
                         .operands = {args->source},
                         .steps = {(int)layout->strides[1][0]},
                         .tile = tp__layout_tile(layout->numel, size),
                         .numel = layout->numel};
  (void)tp__layout_places(layout, 2, &flat.places); /* as checked above */
  flat.aligned = (flat.steps[0] ? addresses : (uintptr_t)args->out) % 16 == 0 &&
                 tp__layout_has_vectors(layout, 2, 16 / (int64_t)size);
  return tp__launch_tiles(&move_places[size], device, flat.numel, flat.tile, &flat, operation);
}

tp_status_t tp__copy_same_device(tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  if (target->numel == 0) return TP_OK;
  if (target->contiguous && source->contiguous && target->numel == source->numel)
    return copy_run(target, source, operation);
  tp_copy_args_t args = {.out = target->data,
                         .source = source->data,
                         .out_dtype = target->dtype,
                         .source_dtype = source->dtype};
  const tp_tensor_t *tensors[] = {target, source};
  tp__layout_make(&args.layout, target->ndim, target->shape, 2, tensors);
  if (tp__layout_step(&args.layout, 0) == 1 && tp__layout_step(&args.layout, 1) == 1)
    return copy_run(target, source, operation);
  if (target->dtype == source->dtype)
    return move(&args, target->device, tp__dtype_size(target->dtype), operation);
  return cast_any_strides(&args, target->device, operation);
}

/* A contiguous copy on the tensor's device. */
static tp_tensor_t *cast(const tp_tensor_t *tensor, int32_t dtype, const char *operation) {
  tp_tensor_t *copy = tp__tensor_new(dtype, tensor->device, tensor->ndim, tensor->shape, operation);
  if (copy && tp__copy_same_device(copy, tensor, operation)) {
    tp_tensor_release(copy);
    return NULL;
  }
  return copy;
}

/* As if the source were copied first. */
static tp_status_t copy_overlapping(tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  tp_tensor_t *apart = cast(source, source->dtype, operation);
  if (!apart) return tp_error_status();
  tp_status_t status = tp__copy_same_device(target, apart, operation);
  tp_tensor_release(apart);
  return status;
}

/* ---- between devices ---- */

/* Runs of elements of one dtype. The copy is queued on the source's stream, behind what the target's stream
 * holds; the target's stream then waits for it. */
static tp_status_t copy_peer(tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  tp_stream_t *from = tp__stream_current(source->device), *to = tp__stream_current(target->device);
  size_t nbytes = (size_t)target->numel * tp__dtype_size(target->dtype);
  TP_TRY(tp__alloc_enable_peer(source->device, target->device)); /* without access CUDA stages the copy */
  TP_TRY(tp_stream_wait_stream(from, to));
  TP_TRY(tp__device_enter(source->device, operation));
  TP_TRY(tp__watch(from, 2, (tp__touch_t[]){{target->data, true}, {source->data, false}}, operation));
  TP_TRY_CUDA(cudaMemcpyPeerAsync(target->data, target->device, source->data, source->device, nbytes,
                                  tp__stream_cuda(from)),
              operation);
  TP_TRY(tp__settle(from, operation));
  return tp_stream_wait_stream(to, from);
}

/* Casts on the source's device, so that what travels is one run in the target's dtype, and spreads on the
 * target's. The blocks of both temporaries are safe to reuse: each stream waits for the other's use. */
static tp_status_t copy_between(tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  if (target->numel == 0) return TP_OK;
  bool ready = source->contiguous && source->dtype == target->dtype;
  tp_tensor_t *sent = ready ? tp__tensor_retain(source) : cast(source, target->dtype, operation);
  if (!sent) return tp_error_status();
  bool direct = target->contiguous && target->numel == source->numel;
  tp_tensor_t *received =
      direct ? tp__tensor_retain(target)
             : tp__tensor_new(target->dtype, target->device, source->ndim, source->shape, operation);
  tp_status_t status = received ? copy_peer(received, sent, operation) : tp_error_status();
  if (!status && !direct) status = tp__copy_same_device(target, received, operation);
  tp_tensor_release(received);
  tp_tensor_release(sent);
  return status;
}

static tp_status_t check_fits(const tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  int32_t lead = target->ndim - source->ndim;
  bool fits = lead >= 0;
  for (int32_t d = 0; fits && d < source->ndim; ++d)
    fits = source->shape[d] == 1 || source->shape[d] == target->shape[lead + d];
  return fits ? TP_OK : tp__error_set(TP_SHAPE, operation, "the source does not broadcast to the target");
}

tp_status_t tp__copy_check(const tp_tensor_t *target, const tp_tensor_t *source, const char *operation) {
  if (!tp__tensor_has_shape(target, source->ndim, source->shape)) TP_TRY(check_fits(target, source, operation));
  return tp__check_target(target, operation);
}

tp_status_t tp_tensor_copy(tp_tensor_t *target, const tp_tensor_t *source) {
  TP_TRY(tp__copy_check(target, source, copy_operation));
  if (target->device != source->device) return copy_between(target, source, copy_operation);
  if (tp__tensor_overlaps(target, source)) return copy_overlapping(target, source, copy_operation);
  return tp__copy_same_device(target, source, copy_operation);
}

tp_tensor_t *tp_tensor_to(const tp_tensor_t *tensor, int32_t dtype, int32_t device) {
  static const char operation[] = "to";
  if (dtype == TP_DTYPE_NONE) dtype = tensor->dtype;
  if (dtype < 0 || dtype >= TP_DTYPE_COUNT) {
    tp__error_set(TP_DTYPE, operation, "got dtype %d, expected 0 to %d", (int)dtype, TP_DTYPE_COUNT - 1);
    return NULL;
  }
  device = tp__device_resolve(device, operation);
  if (device < 0) return NULL;
  if (device == tensor->device) return cast(tensor, dtype, operation);
  tp_tensor_t *copy = tp__tensor_new(dtype, device, tensor->ndim, tensor->shape, operation);
  if (copy && copy_between(copy, tensor, operation)) {
    tp_tensor_release(copy);
    return NULL;
  }
  return copy;
}

tp_tensor_t *tp_tensor_contiguous(const tp_tensor_t *tensor) {
  return tensor->contiguous ? tp__tensor_retain(tensor) : cast(tensor, tensor->dtype, "contiguous");
}

tp_tensor_t *tp_tensor_flip(const tp_tensor_t *tensor, uint32_t dims) {
  static const char operation[] = "flip";
  if (tensor->ndim < 32 && dims >> tensor->ndim) {
    tp__error_set(TP_INDEX, operation, "got dimensions %#x as bits for a tensor with %d", (unsigned)dims,
                  (int)tensor->ndim);
    return NULL;
  }
  tp_tensor_t *out = tp__tensor_new(tensor->dtype, tensor->device, tensor->ndim, tensor->shape, operation);
  if (!out || out->numel == 0) return out;
  /* The same elements from the last one on. Negative strides stay inside this function: only kernels for any strides
   * take them. */
  tp_tensor_t backwards = {.ndim = tensor->ndim};
  const char *first = tensor->data;
  size_t size = tp__dtype_size(tensor->dtype);
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    bool turned = dims >> d & 1;
    backwards.shape[d] = tensor->shape[d];
    backwards.strides[d] = turned ? -tensor->strides[d] : tensor->strides[d];
    if (turned) first += (tensor->shape[d] - 1) * tensor->strides[d] * (int64_t)size;
  }
  tp_copy_args_t args = {.out = out->data, .source = first};
  tp__layout_make(&args.layout, tensor->ndim, tensor->shape, 2, (const tp_tensor_t *[]){out, &backwards});
  if (tp__launch_tiles(&move_strided[size], out->device, out->numel, TP_STRIDED_TILE, &args, operation)) {
    tp_tensor_release(out);
    return NULL;
  }
  return out;
}

tp_tensor_t *tp_tensor_reshape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape) {
  static const char operation[] = "reshape";
  int64_t complete[TP_MAX_NDIM];
  tp_tensor_t *view;
  if (tp__view_of_shape(tensor, ndim, shape, complete, &view, operation)) return NULL;
  if (view) return view;
  tp_tensor_t *copy = cast(tensor, tensor->dtype, operation);
  if (!copy) return NULL;
  (void)tp__view_of_shape(copy, ndim, complete, complete, &view, operation);
  tp_tensor_release(copy);
  return view;
}

/* ---- to and from the host ---- */

/* A graph holds the address of the host's memory, which so must be memory that stays. */
static tp_status_t check_capture(const tp_stream_t *stream, const void *host, size_t nbytes, bool queues,
                                 const char *operation) {
  if (!queues)
    return tp__error_set(TP_STATE, operation,
                         "the stream is being captured, and this copy is waited for: queue it, to or from pinned "
                         "memory (non_blocking=True), or copy outside of the capture");
  if (!tp__pinned_serves(host, nbytes))
    return tp__error_set(TP_STATE, operation,
                         "the stream is being captured, and the host's memory may be gone when the graph is replayed: "
                         "use pinned memory (pin_memory), or copy before the capture");
  if (!tp__capture_is_ours(tp__stream_capture(stream)))
    return tp__error_set(TP_STATE, operation,
                         "another library captures the stream, and it is not known how long its graph needs the "
                         "host's memory: copy before the capture");
  return TP_OK;
}

static tp_status_t check_host_copy(const tp_tensor_t *tensor, const void *host, size_t nbytes, bool queues,
                                   const char *operation) {
  size_t expected = (size_t)tensor->numel * tp__dtype_size(tensor->dtype);
  if (nbytes != expected)
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got %zu bytes, expected %zu", nbytes, expected);
  if (nbytes == 0) return TP_OK;
  TP_TRY(tp__device_enter(tensor->device, operation));
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  tp_stream_t *stream = tp__stream_current(tensor->device);
  cudaError_t error = tp__captured_status(stream, &capture);
  if (error) return tp__error_set_cuda(error, operation, "cudaStreamIsCapturing");
  return capture == cudaStreamCaptureStatusNone ? TP_OK : check_capture(stream, host, nbytes, queues, operation);
}

/* queues: the copy may run after the call where tp__pinned_copy serves it. */
static tp_status_t send(tp_tensor_t *target, const void *source, size_t nbytes, bool queues) {
  const char *operation = "copy_from_host";
  TP_TRY(check_host_copy(target, source, nbytes, queues, operation));
  TP_TRY(tp__check_target(target, operation));
  if (nbytes == 0) return TP_OK;
  tp_tensor_t *received = target->contiguous ? tp__tensor_retain(target) : tp_tensor_empty_like(target);
  if (!received) return tp_error_status();
  tp_stream_t *stream = tp__stream_current(target->device);
  bool served = false;
  tp_status_t status = queues ? tp_tensor_record_stream(received, stream) : TP_OK;
  if (!status && queues)
    status = tp__pinned_copy(received->data, source, nbytes, cudaMemcpyHostToDevice, stream, &served, operation);
  if (!status && !served) status = tp__staging_send(received->data, source, nbytes, stream, operation);
  if (!status && received != target) status = tp__copy_same_device(target, received, operation);
  tp_tensor_release(received);
  return status;
}

static tp_status_t fetch(const tp_tensor_t *source, void *target, size_t nbytes, bool queues) {
  const char *operation = "copy_to_host";
  TP_TRY(check_host_copy(source, target, nbytes, queues, operation));
  if (nbytes == 0) return TP_OK;
  tp_tensor_t *sent = tp_tensor_contiguous(source);
  if (!sent) return tp_error_status();
  tp_stream_t *stream = tp__stream_current(source->device);
  bool served = false;
  tp_status_t status = queues ? tp_tensor_record_stream(sent, stream) : TP_OK;
  if (!status && queues)
    status = tp__pinned_copy(target, sent->data, nbytes, cudaMemcpyDeviceToHost, stream, &served, operation);
  if (!status && !served) status = tp__staging_fetch(target, sent->data, nbytes, stream, operation);
  tp_tensor_release(sent);
  return status;
}

tp_status_t tp_tensor_copy_from_host(tp_tensor_t *target, const void *source, size_t nbytes) {
  return send(target, source, nbytes, false);
}

tp_status_t tp_tensor_queue_from_host(tp_tensor_t *target, const void *source, size_t nbytes) {
  return send(target, source, nbytes, true);
}

tp_status_t tp_tensor_copy_to_host(const tp_tensor_t *source, void *target, size_t nbytes) {
  return fetch(source, target, nbytes, false);
}

tp_status_t tp_tensor_queue_to_host(const tp_tensor_t *source, void *target, size_t nbytes) {
  return fetch(source, target, nbytes, true);
}
