/* Every function that crosses a file inside libtensorplay, under the file that defines it; those of order/ and watch.c
 * are in watch.h, those of mark.c, captured.c, capture.c, alloc/capture.c and random/ in headers beside them. The files
 * stand in layers, lowest first, and call downwards only (tests/layout checks it):
 *
 *   1  error, driver, library, origin, settings, wait
 *   2  device, captured, stream, settle, capture, event, mark, foreign, staging, order/, watch
 *   3  alloc/, pinned/
 *   4  image (with inflate), launch, descriptor, tensor, check, view, layout, exchange
 *   5  copy (with fill), random/, blas, dlpack
 *   6  ops/ (promote, target and dims below the operations)
 *   7  graph/
 *
 * Names: tp_ public, tp__ shared inside, static functions bare. */
#ifndef TP_INTERNAL_H
#define TP_INTERNAL_H

#include "../kernels/args_layout.h"
#include "cuda_api.h"
#include "types.h"
#include "watch.h"

/* Returns the status of `call` when it is not TP_OK. */
#define TP_TRY(call)                         \
  do {                                       \
    tp_status_t tp__try_status = (call);     \
    if (tp__try_status) return tp__try_status; \
  } while (0)

/* Runs a CUDA runtime call; on failure records it under `operation` and returns the status. */
#define TP_TRY_CUDA(call, operation)                                                      \
  do {                                                                                    \
    cudaError_t tp__try_error = (call);                                                   \
    if (tp__try_error) return tp__error_set_cuda(tp__try_error, (operation), #call);      \
  } while (0)

static inline int64_t tp__divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* To a multiple of the unit. */
static inline size_t tp__round_up(size_t nbytes, size_t unit) { return (nbytes + unit - 1) / unit * unit; }

/* ---- error.c ---- */
/* Fills the thread's slot with the text "operation: formatted" and returns status, so that
 * `return tp__error_set(...)` reads well. */
tp_status_t tp__error_set(tp_status_t status, const char *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears CUDA's last error, fills the slot with "operation: name: text (in call)"; cudaErrorMemoryAllocation
 * becomes TP_OUT_OF_MEMORY, missing drivers and devices TP_UNAVAILABLE, everything else TP_CUDA. */
tp_status_t tp__error_set_cuda(cudaError_t error, const char *operation, const char *call);
/* What a query says: 1 when CUDA's answer is success, 0 when it is "not ready", else tp__error_set_cuda's. */
int32_t tp__error_or_done(cudaError_t answer, const char *operation, const char *call);
/* For the few functions that return NULL without having failed. */
void tp__error_clear(void);
/* Changes with each failure of this thread. */
uint64_t tp__error_number(void);
/* Adds to the text of the thread's last failure. */
void tp__error_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Is called at each failure by which CUDA says that a capture forbids a call or is broken (900 to 908), with the slot
 * filled, and whatever locks the thread holds. */
typedef void (*tp__error_listener_t)(cudaError_t error);
void tp__error_listen(tp__error_listener_t replacement);

/* ---- driver.c ---- */
/* A function of the driver, and the pointer that it is put to. */
typedef struct tp__driver_function {
  const char *name;
  void **place;
} tp__driver_function_t;
/* Finds them at run time; *out_found: all of them, as the driver may lack one. */
tp_status_t tp__driver_find(const tp__driver_function_t *wanted, size_t count, bool *out_found, const char *operation);

/* ---- origin.c ---- */
/* The listener's number for where the calling thread is; 0 while nobody listens, which costs a load. No lock may be
 * held: the listener may wait for an interpreter, and free tensors. */
int64_t tp__origin(void);

/* ---- settings.c ---- */
/* Those in force: a record that does not change, and lives as long as the process. */
const tp_memory_settings_t *tp__settings(void);
/* STATE while the variable says what cannot be obeyed and nothing else was set. */
tp_status_t tp__settings_check(const char *operation);

/* ---- wait.c ---- */
/* Called before the host waits for a device, once in a call of the public header: STATE when it must not. No lock may
 * be held, as for tp__origin. */
tp_status_t tp__wait_note(const char *operation);
/* The same under locks: the listener is told by the second function, once they are free. */
tp_status_t tp__wait_note_locked(const char *operation);
tp_status_t tp__wait_tell_owed(void);

/* ---- device.c ---- */
/* Resolves TP_DEVICE_CURRENT and checks the range: the index (>= 0), or a negative status. */
int32_t tp__device_resolve(int32_t device, const char *operation);
/* Makes sure that the device is started and is CUDA's current device of this thread. The fast path is
 * two loads with one visible device, one cudaGetDevice with several (docs/design/devices.md). Every function
 * that calls CUDA for a device calls this first. */
tp_status_t tp__device_enter(int32_t device, const char *operation);
/* The same for release functions, on a device that was started: never writes the slot. False on failure.
 * Ends with tp__device_leave, which puts back the device that was current before. */
bool tp__device_visit(int32_t device, int32_t *out_before);
void tp__device_leave(int32_t before);
/* Whether this process was forked from one that had started a device: CUDA is lost to it, and no lock of
 * that time may be taken. Release functions then do nothing. What else takes a lock before it enters a
 * device asks the second function, which says CUDA. */
bool tp__device_is_inherited(void);
tp_status_t tp__device_check_process(const char *operation);
/* Between these two, CUDA calls of this thread that a capture forbids (allocations, queries) neither break
 * nor wait for a capture, ours or another library's. */
static inline enum cudaStreamCaptureMode tp__capture_relax(void) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  (void)cudaThreadExchangeStreamCaptureMode(&mode); /* fails only where every other call fails too */
  return mode;
}
static inline void tp__capture_restore(enum cudaStreamCaptureMode mode) {
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
}
/* Device-visible address of the device's fault word (struct tp_fault of kernels/fault.h). */
void *tp__device_fault_word(int32_t device);
/* After a successful wait: turns a recorded fault into TP_INDEX with its text and clears it. */
tp_status_t tp__device_check_fault(int32_t device);
/* Cached properties of a started device. */
const tp_device_properties_t *tp__device_properties(int32_t device);
/* Switches on peer access where there is any; asked once for each pair. */
tp_status_t tp__device_enable_peer(int32_t from, int32_t to);
/* Whether that has been done, and there is access. */
bool tp__device_has_peer(int32_t from, int32_t to);

/* ---- stream.c ---- */
/* Current stream of a device for this thread: never NULL for a checked index. */
tp_stream_t *tp__stream_current(int32_t device);
cudaStream_t tp__stream_cuda(const tp_stream_t *stream);
/* tp_stream_synchronize on a started device, as a part of another operation that has noted the wait. */
tp_status_t tp__stream_finish(tp_stream_t *stream, const char *operation);
/* A small number, dense per device, that identifies the stream in the allocator (0: default stream). */
int32_t tp__stream_id(const tp_stream_t *stream);
/* Whether another library made the stream, and may destroy it: CUDA follows the handle of a stream that is gone. */
bool tp__stream_is_external(const tp_stream_t *stream);
/* True when work of the stream is being captured now, or when it cannot be told without breaking a
 * capture. Such a stream must not be queried, and its events never. */
bool tp__stream_is_capturing(const tp_stream_t *stream);
/* CUDA's number of the capture that the stream takes part in; 0 when it is in none, or CUDA does not tell. The second
 * case is counted: a capture that it has happened in is given up at its end. */
uint64_t tp__stream_capture(const tp_stream_t *stream);
extern _Atomic uint32_t tp__stream_unknown;
/* Calls `visit` with those of the device's streams that the library has made. */
void tp__stream_each(int32_t device, void (*visit)(const tp_stream_t *stream, void *context), void *context);
/* Where bodies of conditional nodes on the stream are captured: always the same one, so that memory that they reuse is
 * ordered as the stream is; it has one in turn. The device is entered. NULL with HOST_MEMORY, CUDA. */
tp_stream_t *tp__stream_body(tp_stream_t *stream, const char *operation);

/* ---- settle.c ---- */
/* Behind everything that is queued for a user: with TENSORPLAY_LAUNCH_BLOCKING=1 waits for it, so that what fails does
 * so here; else a load. Not in a capture. */
tp_status_t tp__settle(tp_stream_t *stream, const char *operation);
/* STATE where that variable has a value that it does not take. */
tp_status_t tp__settle_check(const char *operation);

/* ---- event.c ---- */
/* Whether what the stream does with the event now becomes a node of a graph: an external event, in a capture. */
bool tp__event_enters_graph(tp_event_t *event, const tp_stream_t *stream);
/* Refuses what CUDA refuses without a reason: see tp__watch_check_wait. */
tp_status_t tp__event_check_wait(const tp_event_t *event, const tp_stream_t *stream, const char *operation);
/* Pooled untimed events of a device, for the library's own use. */
tp_status_t tp__event_pool_take(int32_t device, cudaEvent_t *out);
void tp__event_pool_give(int32_t device, cudaEvent_t event);
/* Tells the order checker that the stream waits for the event. */
void tp__event_order(tp_event_t *event, tp_stream_t *stream);

/* ---- foreign.c ---- */
/* Notes memory of another library, which the current stream uses. NULL on failure: the memory is still the caller's. */
tp__foreign_t *tp__foreign_new(int32_t device, tp_release_t release, void *context, const char *operation);
/* Status: HOST_MEMORY, CUDA. */
tp_status_t tp__foreign_record_stream(tp__foreign_t *foreign, tp_stream_t *stream);
/* Release function: the memory goes back once the streams that use it have done what they hold now. */
void tp__foreign_drop(tp__foreign_t *foreign);
/* Gives back what waits for nothing any more. Calls into other libraries: no lock may be held. */
void tp__foreign_poll(void);

/* ---- staging.c ---- */
/* Copies to and from the stream's device, whatever kind of host memory it is; no capture. The source may change when
 * the first returns; the second waits for the stream. */
tp_status_t tp__staging_send(void *target, const void *source, size_t nbytes, tp_stream_t *stream,
                             const char *operation);
tp_status_t tp__staging_fetch(void *target, const void *source, size_t nbytes, tp_stream_t *stream,
                              const char *operation);

/* ---- alloc/private_pool.c ---- */
/* One user more, and one less, which may give memory back: no heap's lock may be held. */
void tp__mempool_retain(tp_mempool_t *mempool);
void tp__mempool_drop(tp_mempool_t *mempool);

/* ---- alloc/alloc.c ---- */
/* nbytes > 0. NULL on failure with the slot filled. The stream's device is started. */
tp__block_t *tp__alloc(size_t nbytes, tp_stream_t *stream);
void *tp__alloc_address(const tp__block_t *block);
/* Release function: any thread, never fails. */
void tp__alloc_free(tp__block_t *block);
/* tp__device_enable_peer, also for memory that the allocator has obtained already. */
tp_status_t tp__alloc_enable_peer(int32_t from, int32_t to);
/* Status: HOST_MEMORY. A no-op for the block's own stream. */
tp_status_t tp__alloc_record_stream(tp__block_t *block, tp_stream_t *stream);

/* ---- pinned/use.c ---- */
/* A copy between the stream's device and a block of tp_pinned_alloc, queued; the block is kept until it has run. Of
 * other memory, which nobody keeps, *out_served is false and nothing was copied. In one of our captures the graph keeps
 * the block. */
tp_status_t tp__pinned_copy(void *target, const void *source, size_t nbytes, enum cudaMemcpyKind kind,
                            tp_stream_t *stream, bool *out_served, const char *operation);
/* Whether tp__pinned_copy does with this memory. */
bool tp__pinned_serves(const void *memory, size_t nbytes);

/* ---- pinned/hold.c ---- */
/* Pinned memory that the nodes of a graph copy from and to: kept, given back or not, until the graph is gone. */
typedef struct tp__hold tp__hold_t;
/* What the copies of a capture use becomes the caller's, in addition to *hold (NULL: nothing). What nobody has taken
 * when the capture ends is dropped. */
void tp__hold_take(uint64_t capture, tp__hold_t **hold);
/* Behind each launch of the graph, on a stream whose device is entered. */
tp_status_t tp__hold_launched(tp__hold_t *hold, tp_stream_t *stream, const char *operation);
/* Release function, when the graph is gone: what was given back is free once the launches have run. NULL is nothing. */
void tp__hold_drop(tp__hold_t *hold);

/* ---- image.c, inflate.c ---- */
/* The kernel image of a family ("elementwise") for a device, unpacked; kept for the process. */
tp_status_t tp__image_find(const char *family, int32_t device, const void **out_image, size_t *out_nbytes);
/* Inflates a zlib stream into out (exactly out_nbytes). False on a damaged stream. */
bool tp__inflate(const void *source, size_t nbytes, void *out, size_t out_nbytes);

/* ---- launch.c ---- */
/* A kernel by name, found once per device and kept. `kernel` is static storage:
 *     static tp__kernel_t add = TP_KERNEL_INIT("elementwise", "tp_k_add_f32", add_accesses);
 * Blocks of `block` threads, `grid` of them, one argument structure. Queued on `stream`. */
/* A pointer in an argument structure; the list of a kernel ends with one of size 0. */
typedef struct tp__access {
  uint16_t offset;
  uint8_t size; /* of the pointer */
  bool writes;
} tp__access_t;
#define TP_READS(args, member) {offsetof(args, member), sizeof(((args *)0)->member), false}
#define TP_WRITES(args, member) {offsetof(args, member), sizeof(((args *)0)->member), true}
typedef struct tp__kernel {
  const char *family;
  const char *name;
  const tp__access_t *accesses; /* what it reads and writes; pointers that are NULL, and memory of the library that has
                                   an order of its own, do not count. NULL where there is nothing else, or whoever
                                   launches it calls tp__watch */
  _Atomic(void *) functions[TP_MAX_DEVICES]; /* cudaKernel_t */
} tp__kernel_t;
#define TP_KERNEL_INIT(family_, name_, accesses_) {.family = (family_), .name = (name_), .accesses = (accesses_)}
/* Kernels of one name by the floating dtype, or by the bytes, of what they work on. */
#define TP_FLOAT_KERNELS(family, name, accesses)                                  \
  {                                                                               \
    [TP_DTYPE_float16] = TP_KERNEL_INIT(family, "tp_k_" name "_f16", accesses),   \
    [TP_DTYPE_bfloat16] = TP_KERNEL_INIT(family, "tp_k_" name "_bf16", accesses), \
    [TP_DTYPE_float32] = TP_KERNEL_INIT(family, "tp_k_" name "_f32", accesses),   \
    [TP_DTYPE_float64] = TP_KERNEL_INIT(family, "tp_k_" name "_f64", accesses),   \
  }
#define TP_SIZE_KERNELS(family, name, accesses)                  \
  {                                                              \
    [1] = TP_KERNEL_INIT(family, "tp_k_" name "_1", accesses),   \
    [2] = TP_KERNEL_INIT(family, "tp_k_" name "_2", accesses),   \
    [4] = TP_KERNEL_INIT(family, "tp_k_" name "_4", accesses),   \
    [8] = TP_KERNEL_INIT(family, "tp_k_" name "_8", accesses),   \
    [16] = TP_KERNEL_INIT(family, "tp_k_" name "_16", accesses), \
  }
/* Blocks, and threads, that keep a large GPU busy. Constants, so that the order of a sum is the same everywhere. */
#define TP_MANY_BLOCKS 1024
#define TP_MANY_THREADS (TP_MANY_BLOCKS * TP_BLOCK_THREADS)
tp_status_t tp__launch(tp__kernel_t *kernel, int32_t device, tp_stream_t *stream, uint32_t grid_x,
                       uint32_t grid_y, uint32_t grid_z, uint32_t block, const void *arguments,
                       const char *operation);
/* The kernel's function on a device that is entered, loaded at first use. */
tp_status_t tp__launch_find(tp__kernel_t *kernel, int32_t device, void **out_function);
/* The images whose kernels were found for a device, at most `room` of them: how many. */
int32_t tp__launch_libraries(int32_t device, cudaLibrary_t *out, int32_t room);
/* Blocks for numel elements with `per_block` elements each. */
uint32_t tp__launch_grid(int64_t numel, int64_t per_block);
/* A kernel whose blocks share tiles of `tile` elements, on the device's current stream; numel > 0. */
tp_status_t tp__launch_tiles(tp__kernel_t *kernel, int32_t device, int64_t numel, int64_t tile,
                             const void *arguments, const char *operation);

/* ---- descriptor.c ---- */
/* Memory for one object, not initialised, from the thread's list of dropped ones; NULL with HOST_MEMORY in
 * the slot. */
tp_tensor_t *tp__descriptor_take_tensor(const char *operation);
tp__storage_t *tp__descriptor_take_storage(const char *operation);
void tp__descriptor_give_tensor(tp_tensor_t *tensor);
void tp__descriptor_give_storage(tp__storage_t *storage);

/* ---- tensor.c ---- */
size_t tp__dtype_size(int32_t dtype);
const char *tp__dtype_name(int32_t dtype);
enum { TP_CATEGORY_BOOL, TP_CATEGORY_INT, TP_CATEGORY_FLOAT, TP_CATEGORY_COMPLEX };
int32_t tp__dtype_category(int32_t dtype);
bool tp__dtype_is_floating(int32_t dtype);
/* Of the parts of a complex dtype; itself when it is none. */
int32_t tp__dtype_real(int32_t dtype);
/* Strides of C order, in which sizes of 0 count as 1, as in torch. The product of the sizes, counted in the
 * same way, or -1 when it needs more than 63 bits. */
int64_t tp__contiguous_strides(int32_t ndim, const int64_t *shape, int64_t *out_strides);
/* Fresh contiguous tensor on the device's current stream; arguments checked by the caller. */
tp_tensor_t *tp__tensor_new(int32_t dtype, int32_t device, int32_t ndim, const int64_t *shape,
                            const char *operation);
/* A view: shares storage; sets numel, contiguous and data from the arguments. */
tp_tensor_t *tp__tensor_view(const tp_tensor_t *base, int32_t ndim, const int64_t *shape,
                             const int64_t *strides, int64_t offset);
tp_tensor_t *tp__tensor_retain(const tp_tensor_t *tensor);
bool tp__tensor_has_shape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape);
/* True when the two may have memory in common, whoever lent it. */
bool tp__tensor_shares(const tp_tensor_t *a, const tp_tensor_t *b);
/* True when an element of the one may lie where one of the other does. */
bool tp__tensor_meets(const tp_tensor_t *a, const tp_tensor_t *b);
/* True when writing to a could change what is read from b in another place than b's own element. */
bool tp__tensor_overlaps(const tp_tensor_t *a, const tp_tensor_t *b);
/* True when two elements may lie at one address, as in an expanded tensor. */
bool tp__tensor_overlaps_itself(const tp_tensor_t *tensor);

/* ---- check.c: what views, copies and operations share ---- */
/* Broadcast shape of two shapes. Status SHAPE. */
tp_status_t tp__check_broadcast(int32_t a_ndim, const int64_t *a_shape, int32_t b_ndim,
                                const int64_t *b_shape, int32_t *out_ndim, int64_t *out_shape,
                                const char *operation);
/* Wraps a negative dimension; -1 on failure with INDEX in the slot. A 0-d tensor has the dimensions -1
 * and 0. */
int32_t tp__check_dim(int32_t dim, int32_t ndim, const char *operation);
/* Status DEVICE, DTYPE, INVALID_ARGUMENT: operands on one device; a floating dtype; elements that can be written one
 * by one. */
tp_status_t tp__check_devices(const tp_tensor_t *a, const tp_tensor_t *b, const char *operation);
tp_status_t tp__check_floating(const tp_tensor_t *tensor, const char *operation);
tp_status_t tp__check_target(const tp_tensor_t *target, const char *operation);
/* An index into a tensor: int32 or int64, on its device. Status DEVICE, DTYPE. */
tp_status_t tp__check_index(const tp_tensor_t *tensor, const tp_tensor_t *index, const char *operation);
/* Refuses elements of an index along a dimension of size 0, whose wrong values no kernel would see. Status INDEX. */
tp_status_t tp__check_room(const tp_tensor_t *tensor, int32_t dim, const tp_tensor_t *index, const char *operation);
/* Makes the result, or checks the given out (shape, device, castable dtype) and retains it. */
tp_tensor_t *tp__check_out(tp_tensor_t *out, int32_t dtype, int32_t device, int32_t ndim,
                           const int64_t *shape, const char *operation);

/* ---- view.c ---- */
/* The view of that shape, or NULL in *out_view where none exists; out_shape is the shape with a size of -1
 * deduced. Status: as tp_tensor_view, without STATE. */
tp_status_t tp__view_of_shape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape,
                              int64_t *out_shape, tp_tensor_t **out_view, const char *operation);

/* ---- layout.c ---- */
/* The layout of an operation over `ndim` dimensions: sizes of 1 dropped, dimensions ordered by the first
 * operand's strides, runs merged. tensors[i] is broadcast to the shape; NULL takes no part (strides 0). */
void tp__layout_make(tp_layout_t *layout, int32_t ndim, const int64_t *shape, int32_t n,
                     const tp_tensor_t *const *tensors);
/* 1 when the operand is one run of elements, 0 when it is the same element everywhere, else -1. */
int32_t tp__layout_step(const tp_layout_t *layout, int32_t operand);
/* The same in the form that most kernels get; false when it has too many dimensions or reaches too far. */
bool tp__layout_places(const tp_layout_t *layout, int32_t n, tp_places_t *places);
/* Whether vectors of so many elements, one behind the other in dimension 0, are adjacent in the first operand, and
 * in every other adjacent or one element; each starts at a multiple of its size from the operand's start. */
bool tp__layout_has_vectors(const tp_layout_t *layout, int32_t n, int64_t vector);
/* How many whole units of so many elements there are, in each of which every operand is adjacent or one element;
 * the rest are single elements. *out_aligned: units start at a multiple of their size from the operand's start. */
int64_t tp__layout_units(const tp_layout_t *layout, int32_t n, int64_t unit, bool *out_aligned);
/* Takes dimension 0 in wider elements where the operands `moved` (bits) are adjacent along it and the others of n stay
 * at one place: the most bytes, up to `most`, that addresses and all places of the moved ones are multiples of. The
 * bytes of an element from now on, `size` before. */
size_t tp__layout_widen(tp_layout_t *layout, int32_t n, uint32_t moved, uintptr_t addresses, size_t size, size_t most);
/* Elements of a tile of the kernels of flat.h. */
int32_t tp__layout_tile(int64_t numel, size_t itemsize);

/* ---- copy.c ---- */
/* What tp_tensor_copy refuses. Status: SHAPE, INVALID_ARGUMENT. */
tp_status_t tp__copy_check(const tp_tensor_t *target, const tp_tensor_t *source, const char *operation);
/* dst := cast(src), same device, src broadcast; no overlap check. */
tp_status_t tp__copy_same_device(tp_tensor_t *target, const tp_tensor_t *source, const char *operation);

/* ---- blas.c ---- */
/* out (batch, m, n) := alpha * a (batch, m, k) @ b (batch, k, n) + beta * out [+ bias (n), where beta is 0], strides in
 * elements, out contiguous in its last dimension; alpha and beta have two parts. gelu: then gelu_tanh of it.
 * *out_served is false when cuBLASLt is not loaded or does not take the product. */
typedef struct tp__gemm {
  int32_t dtype;
  int32_t device;
  int64_t batch, m, n, k;
  const void *a, *b, *bias;
  void *out;
  int64_t a_batch, a_row, a_col;
  int64_t b_batch, b_row, b_col;
  int64_t out_batch, out_row;
  double alpha[2], beta[2];
  bool gelu;
} tp__gemm_t;
tp_status_t tp__blas_gemm(const tp__gemm_t *gemm, tp_stream_t *stream, bool *out_served);

/* ---- ops/rows.c ---- */
/* a at index along dim as a fresh tensor of that shape, which has index's dimensions, or as many elements, in the stead
 * of dim. wraps: negative indices count from the end. fault: TP_FAULT_OP_*. */
tp_tensor_t *tp__rows_take(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index, int32_t ndim,
                           const int64_t *shape, bool wraps, int32_t fault, const char *operation);

/* ---- ops/target.c ---- */
/* Where an operation whose result is `out` (of tp__check_out) writes: out itself when it may write there
 * directly, else a fresh tensor of that dtype. */
tp_tensor_t *tp__target_take(tp_tensor_t *out, int32_t dtype, bool direct, const char *operation);
/* Ends the operation: copies the target to out unless it is out, and gives out. NULL, with out released,
 * when status is not TP_OK or there is no target. */
tp_tensor_t *tp__target_finish(tp_tensor_t *out, tp_tensor_t *target, tp_status_t status);

/* ---- ops/dims.c: a set of dimensions has a bit for each ---- */
/* These dimensions as a tensor that only has numel, shape and strides. */
void tp__dims_take(tp_tensor_t *part, const tp_tensor_t *tensor, uint32_t dims);
/* The shape of a reduction over them: they are left out, or have size 1. Its number of dimensions. */
int32_t tp__dims_shape(const tp_tensor_t *a, uint32_t dims, bool keepdim, int64_t *out_shape);
/* Status INDEX: one of them has no elements. */
tp_status_t tp__dims_check_filled(const tp_tensor_t *a, uint32_t dims, const char *operation);
/* Status DTYPE. */
tp_status_t tp__dims_check_real(const tp_tensor_t *a, const char *operation);

/* ---- ops/scan.c ---- */
/* Running totals of n numbers of 64 bits, in their place. */
tp_status_t tp__scan_counts(void *counts, int64_t n, int32_t device, tp_stream_t *stream, const char *operation);

/* ---- ops/promote.c ---- */
int32_t tp__promote(int32_t a_dtype, bool a_weak, int32_t b_dtype, bool b_weak);
/* What tp_dtype_set_default set. */
int32_t tp__dtype_default(void);

#endif
