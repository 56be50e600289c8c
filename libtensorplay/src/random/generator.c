/* Each device's generator: a seed, and how many words were drawn since. It stands on the host, until a graph is
 * replayed whose conditional bodies draw: how much that is only the device knows, so from then on it stands at a place
 * of the device, until the host asks for it, or sets it. Work on the place is in one order, whatever the streams. */
#include "random.h"

#define DEFAULT_SEED 67280421310721u

static tp__generator_t generators[TP_MAX_DEVICES] = {
    [0 ... TP_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER, .state = {.seed = DEFAULT_SEED}},
};

/* In a forked child a thread that it lacks may hold any lock for ever. There is one thread there, which can seed, but
 * not draw. */
tp__generator_t *tp__generator_lock(int32_t device) {
  if (!tp__device_is_inherited()) pthread_mutex_lock(&generators[device].lock);
  return &generators[device];
}

void tp__generator_unlock(tp__generator_t *generator) {
  if (!tp__device_is_inherited()) pthread_mutex_unlock(&generator->lock);
}

/* ---- work on the place ---- */

static tp__kernel_t kernel = TP_KERNEL_INIT("random", "tp_k_generator", NULL);

tp_status_t tp__generator_move(const tp_generator_args_t *args, tp_stream_t *stream, const char *operation) {
  return tp__launch(&kernel, tp_stream_device(stream), stream, 1, 1, 1, 1, args, operation);
}

tp_status_t tp__generator_params(const tp_generator_args_t *args, int32_t device, void *list[1],
                                 struct cudaKernelNodeParams *out, const char *operation) {
  list[0] = (void *)args;
  *out = (struct cudaKernelNodeParams){.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = list};
  TP_TRY(tp__device_enter(device, operation));
  return tp__launch_find(&kernel, device, &out->func);
}

tp_status_t tp__generator_wait(const tp__generator_t *generator, tp_stream_t *stream, const char *operation) {
  if (!generator->is_used) return TP_OK;
  TP_TRY_CUDA(cudaStreamWaitEvent(tp__stream_cuda(stream), generator->used, 0), operation);
  return TP_OK;
}

tp_status_t tp__generator_note(tp__generator_t *generator, tp_stream_t *stream, const char *operation) {
  TP_TRY_CUDA(cudaEventRecord(generator->used, tp__stream_cuda(stream)), operation);
  generator->is_used = true;
  return TP_OK;
}

static tp_status_t make_place(tp__generator_t *generator, int32_t device, const char *operation) {
  if (!generator->used) TP_TRY(tp__event_pool_take(device, &generator->used));
  if (generator->place) return TP_OK;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  cudaError_t error = cudaMalloc((void **)&generator->place, sizeof *generator->place);
  tp__capture_restore(mode);
  if (!error) return TP_OK;
  generator->place = NULL;
  return tp__error_set_cuda(error, operation, "cudaMalloc");
}

tp_status_t tp__generator_prepare(int32_t device, const char *operation) {
  TP_TRY(tp__device_enter(device, operation));
  tp__generator_t *generator = tp__generator_lock(device);
  tp_status_t status = make_place(generator, device, operation);
  tp__generator_unlock(generator);
  return status;
}

/* ---- drawing ---- */

/* Under the lock; false when it stands on the device. */
static bool take_on_host(tp__generator_t *generator, tp__draw_t *draw) {
  if (generator->is_on_device) return false;
  draw->state = generator->state;
  generator->state.offset += draw->words;
  return true;
}

/* Under the lock. The fill reads a copy of its own, so that the place may move on before it has run. */
static tp_status_t take_on_device(tp__generator_t *generator, tp__draw_t *draw, const char *operation) {
  tp_generator_state_t *copy = tp__alloc_address(draw->copy);
  const tp_generator_args_t args = {
      .source = generator->place, .target = copy, .next = generator->place, .words = draw->words};
  draw->base = copy;
  TP_TRY(tp__device_enter(tp_stream_device(draw->stream), operation));
  TP_TRY(tp__generator_wait(generator, draw->stream, operation));
  TP_TRY(tp__generator_move(&args, draw->stream, operation));
  return tp__generator_note(generator, draw->stream, operation);
}

tp_status_t tp__generator_take(tp__draw_t *draw, const char *operation) {
  tp__generator_t *generator = tp__generator_lock(tp_stream_device(draw->stream));
  bool taken = take_on_host(generator, draw);
  tp__generator_unlock(generator);
  if (taken) return TP_OK;
  draw->copy = tp__alloc(sizeof(tp_generator_state_t), draw->stream); /* under no lock: it may call back */
  if (!draw->copy) return tp_error_status();
  generator = tp__generator_lock(tp_stream_device(draw->stream));
  tp_status_t status = take_on_host(generator, draw) ? TP_OK : take_on_device(generator, draw, operation);
  tp__generator_unlock(generator);
  if (status) tp__alloc_free(draw->copy);
  return status;
}

/* ---- asking and setting ---- */

/* The numbers of a capture are those of its replays, so a state in it is of no time. */
static tp_status_t check_capture(int32_t device, const char *operation) {
  if (!tp__capture_draws(tp__stream_current(device))) return TP_OK;
  return tp__error_set(TP_STATE, operation,
                       "the current stream of cuda:%d is being captured: seeds and states of generators are read and "
                       "set before the capture, after it, and between replays",
                       (int)device);
}

static tp_status_t set_state(int32_t device, uint64_t seed, uint64_t offset, const char *operation) {
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  TP_TRY(check_capture(device, operation));
  tp__generator_t *generator = tp__generator_lock(device);
  generator->state = (tp_generator_state_t){seed, offset};
  generator->is_on_device = false;
  tp__generator_unlock(generator);
  return TP_OK;
}

tp_status_t tp_generator_seed(int32_t device, uint64_t seed) {
  return set_state(device, seed, 0, "manual_seed");
}

tp_status_t tp_generator_set_state(int32_t device, uint64_t seed, uint64_t offset) {
  if (offset % 4)
    return tp__error_set(TP_INVALID_ARGUMENT, "set_rng_state", "got offset %llu, expected a multiple of 4",
                         (unsigned long long)offset);
  return set_state(device, seed, offset, "set_rng_state");
}

/* Under the lock: waits for the work on the place, and brings the state to the host. */
static tp_status_t fetch(tp__generator_t *generator, int32_t device, const char *operation) {
  tp_stream_t *stream = tp__stream_current(device);
  tp_generator_state_t state;
  TP_TRY(tp__wait_note_locked(operation));
  TP_TRY(tp__device_enter(device, operation));
  TP_TRY(tp__generator_wait(generator, stream, operation));
  TP_TRY_CUDA(cudaMemcpyAsync(&state, generator->place, sizeof state, cudaMemcpyDeviceToHost, tp__stream_cuda(stream)),
              operation);
  TP_TRY_CUDA(cudaStreamSynchronize(tp__stream_cuda(stream)), operation);
  tp__order_reach(stream);
  generator->state = state;
  generator->is_on_device = false;
  return TP_OK;
}

tp_status_t tp_generator_get_state(int32_t device, uint64_t *out_seed, uint64_t *out_offset) {
  const char *operation = "get_rng_state";
  device = tp__device_resolve(device, operation);
  if (device < 0) return device;
  TP_TRY(check_capture(device, operation));
  tp__generator_t *generator = tp__generator_lock(device);
  tp_status_t status = generator->is_on_device ? fetch(generator, device, operation) : TP_OK;
  *out_seed = generator->state.seed;
  *out_offset = generator->state.offset;
  tp__generator_unlock(generator);
  tp_status_t told = tp__wait_tell_owed();
  return told ? told : status;
}
