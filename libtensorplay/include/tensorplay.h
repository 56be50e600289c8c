/* libtensorplay: the whole C ABI. No CUDA type crosses it, so this one header, and the one cffi module
 * made from it, serve every variant of the library.
 *
 * The numbers of statuses, dtypes, operations and statistics stand in lists (the .def files). Programs find them by
 * name in tensorplay_codes.h, which the build makes from these.
 *
 * Conventions
 *   status    A tp_status_t is 0 (TP_OK) or negative; the names and meanings stand in src/status.def.
 *             A function that returns a pointer returns NULL on failure, one that returns a count or a
 *             flag a negative status. In each case the thread's error slot then holds status and text.
 *             Comments name the statuses that a call's arguments explain. Besides, whatever takes a device
 *             may return UNAVAILABLE and CUDA, whatever makes an object HOST_MEMORY, and whatever waits
 *             INDEX: a fault of earlier work (docs/design/errors.md).
 *   release   tp_<noun>_release never fails, never writes the error slot, takes NULL, and may be called
 *             from any thread and while the process ends.
 *   forks     In a child of a process that had started a device, what needs a device, and the statistics,
 *             return CUDA (cudaErrorInitializationError); release functions do nothing.
 *   device    An int32_t index; TP_DEVICE_CURRENT (-1) means the thread's current device.
 *   stream    Work is queued on the thread's current stream of the tensors' device, unless a function
 *             says that it runs now. Queued work may be captured.
 *   out       An operation with an `out` argument makes a new tensor when out is NULL. Otherwise it
 *             writes into out, which must have the result's shape and a dtype that the result can be
 *             cast to within or above its category, and returns out with one more reference. out may be
 *             one of the inputs; when it overlaps an input otherwise, the result is as if it did not.
 *   borrowed  Arguments are borrowed; a returned tensor is owned by the caller (tp_tensor_release).
 *   NULL      A pointer of which no comment says what NULL means must not be NULL: few functions look. */
#ifndef TENSORPLAY_H
#define TENSORPLAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(TP_BUILD)
#define TP_API __attribute__((visibility("default")))
#else
#define TP_API
#endif

/* Another number for other declarations here, or other numbers in tensorplay_codes.h: abi.txt tells them apart. */
#define TP_ABI_VERSION 1
#define TP_DEVICE_CURRENT (-1)
#define TP_DTYPE_NONE (-1)
#define TP_MAX_NDIM 16
#define TP_NO_LIMIT SIZE_MAX

#ifdef __cplusplus
extern "C" {
#endif

/* cffi begin: from here to "cffi end" the build reads the declarations; keep one per statement. */

typedef int32_t tp_status_t;

typedef struct tp_tensor tp_tensor_t;
typedef struct tp_stream tp_stream_t;
typedef struct tp_event tp_event_t;

/* ---- library -------------------------------------------------------------------------------- */

/* TP_ABI_VERSION of the library that was loaded. */
TP_API int32_t tp_abi_version(void);

/* "cuda12", "cuda13" or "emulated". Static text. */
TP_API const char *tp_variant(void);

/* CUDART_VERSION of the headers that the library was compiled against, for example 13000. */
TP_API int32_t tp_cuda_version(void);

/* Tells the library in which folder its kernel images lie. Copies the text. Runs now, touches no
 * device. Status: INVALID_ARGUMENT for NULL or a path of 4096 bytes or more. */
TP_API tp_status_t tp_kernels_set_path(const char *folder);

/* ---- errors --------------------------------------------------------------------------------- */

/* Of the last failure in this thread. Texts stay valid until the thread's next failure. */
TP_API tp_status_t tp_error_status(void);
TP_API const char *tp_error_text(void);
/* The operation that failed, "add" for example. */
TP_API const char *tp_error_operation(void);
/* CUDA's number and name where the status is TP_CUDA or TP_OUT_OF_MEMORY, else 0 and "". */
TP_API int32_t tp_error_cuda_code(void);
TP_API const char *tp_error_cuda_name(void);

/* ---- origins -------------------------------------------------------------------------------- */

/* Gives a number for the place in the program that the calling thread is at: positive, with a meaning that only the
 * listener knows. Asked before any lock is taken, from any thread, also by release functions; must not fail. */
typedef int64_t (*tp_origin_hook_t)(void);

/* One listener for the process; NULL: none, origins are 0. Runs now. Calls underway may still ask the former hook. */
TP_API void tp_origin_set_hook(tp_origin_hook_t hook);

/* ---- the order checker ---------------------------------------------------------------------- */

/* Off; what is not ordered is refused with ORDER, and not queued; or it is queued and noted. */
#define TP_ORDER_OFF 0
#define TP_ORDER_ERROR 1
#define TP_ORDER_COLLECT 2

/* Two pieces of work that use the same memory, one of them to write, and that no wait orders: [0] came earlier. */
typedef struct tp_order_report {
  const char *operations[2]; /* static text */
  tp_stream_t *streams[2];
  int64_t origins[2];
  int64_t storage_origin;    /* of the allocation; 0 where it is not known */
  uintptr_t address;
  size_t nbytes;             /* of the block; 0 where it is not known */
  int32_t writes[2];
  int32_t is_reused;         /* [0] worked on the block that was there before, and was dropped */
} tp_order_report_t;

/* One of TP_ORDER_*, for the whole process; begins anew when it was off. Runs now. Status: INVALID_ARGUMENT. */
TP_API tp_status_t tp_order_set_mode(int32_t mode);

/* The report behind this thread's last status of ORDER. Runs now. */
TP_API void tp_order_last(tp_order_report_t *out);

/* The oldest of those that were noted and not taken, each pair of places once, 256 at most: 1; 0 when there is none. */
TP_API int32_t tp_order_take(tp_order_report_t *out);

/* ---- waits ---------------------------------------------------------------------------------- */

/* What a call does before it makes the host wait for a device: nothing, tell the hook, or return STATE instead. For the
 * whole process. Release functions, which may wait for streams of other libraries, are left out. */
#define TP_WAIT_SILENT 0
#define TP_WAIT_TOLD 1
#define TP_WAIT_REFUSED 2
/* Status: INVALID_ARGUMENT. */
TP_API tp_status_t tp_wait_set_debug_mode(int32_t mode);
TP_API int32_t tp_wait_debug_mode(void);

/* Called from any thread with the operation that is about to wait, or that has waited where it held locks. Not 0: the
 * operation ends with STATE. */
typedef int32_t (*tp_wait_hook_t)(const char *operation);
/* One for the process; NULL: none. */
TP_API void tp_wait_set_hook(tp_wait_hook_t hook);

/* ---- devices -------------------------------------------------------------------------------- */

typedef struct tp_device_properties {
  char name[256];
  size_t total_memory; /* bytes */
  int32_t major;       /* compute capability */
  int32_t minor;
  int32_t multi_processor_count;
  int32_t max_threads_per_block;
  int32_t warp_size;
} tp_device_properties_t;

/* Number of devices, 0 where there is no driver or none is visible; a driver that fails is CUDA.
 * Initialises the driver (cuInit), creates no context. */
TP_API int32_t tp_device_count(void);

/* The thread's current device; 0 at first. Starts nothing. */
TP_API int32_t tp_device_current(void);

/* Makes a device current for this thread. Starts no context. Status: DEVICE. */
TP_API tp_status_t tp_device_set(int32_t device);

/* Waits for all work of the device and reports its faults. Does nothing on a device that was never
 * started. Runs now; refused in a capture. Status: DEVICE. */
TP_API tp_status_t tp_device_synchronize(int32_t device);

/* Copied into *out. Starts nothing. Status: DEVICE, INVALID_ARGUMENT for NULL. */
TP_API tp_status_t tp_device_get_properties(int32_t device, tp_device_properties_t *out);

/* 1 when `device` can reach the memory of `peer` directly, else 0; of itself 0, as CUDA says. Starts nothing. Status:
 * DEVICE. */
TP_API int32_t tp_device_can_access_peer(int32_t device, int32_t peer);

/* 1 when this library has used the device in this process, else 0. Starts nothing. */
TP_API int32_t tp_device_is_started(int32_t device);

/* ---- streams -------------------------------------------------------------------------------- */

/* Stream objects are interned: two pointers are equal exactly when the streams are. They live as long
 * as the process and are never released. */

/* The next of the 32 non-blocking streams of this device and priority. Priority is clamped to the
 * device's range; smaller is more urgent. Starts the device. Status: DEVICE. */
TP_API tp_stream_t *tp_stream_from_pool(int32_t device, int32_t priority);

/* The legacy default stream. Starts nothing. Status: DEVICE. */
TP_API tp_stream_t *tp_stream_default(int32_t device);

/* The thread's current stream of a device; the default stream at first. Starts nothing. Status: DEVICE. */
TP_API tp_stream_t *tp_stream_current(int32_t device);

/* Makes a stream current for this thread on the stream's device; the current device stays. Status:
 * INVALID_ARGUMENT for NULL. */
TP_API tp_status_t tp_stream_set_current(tp_stream_t *stream);

/* What tp_stream_enter found: the current device, and the current stream of the entered stream's device. */
typedef struct tp_place {
  tp_stream_t *stream;
  int32_t device;
} tp_place_t;

/* What tp_stream_enter would find now: for those who have to know it before. Cannot fail. */
TP_API tp_place_t tp_stream_place(const tp_stream_t *stream);

/* Makes a stream and its device current for this thread; tp_stream_leave puts back what was. Neither can fail. */
TP_API tp_place_t tp_stream_enter(tp_stream_t *stream);
TP_API void tp_stream_leave(tp_place_t former);

/* The stream of another library with this handle (cudaStream_t; 0 and 1 are the default stream), one of ours where it
 * is. Its owner keeps it as long as memory is used on it. Starts the device. Status: DEVICE. */
TP_API tp_stream_t *tp_stream_external(int32_t device, uintptr_t handle);

/* The stream on which graphs of this device are captured unless another one is chosen: not one of the 32. Starts the
 * device. Status: DEVICE. */
TP_API tp_stream_t *tp_stream_of_captures(int32_t device);

/* 1 when work of the stream is captured now, also where the capture has failed, else 0. Starts nothing. */
TP_API int32_t tp_stream_is_capturing(const tp_stream_t *stream);

/* Neither can fail. */
TP_API int32_t tp_stream_device(const tp_stream_t *stream);
TP_API int32_t tp_stream_priority(const tp_stream_t *stream);
/* cudaStream_t as a number; 0 for the default stream. */
TP_API uintptr_t tp_stream_handle(const tp_stream_t *stream);

/* 1 when all work is done, 0 when not, else a status. */
TP_API int32_t tp_stream_query(tp_stream_t *stream);

/* Waits for the stream's work. Runs now. */
TP_API tp_status_t tp_stream_synchronize(tp_stream_t *stream);

/* Work queued on `stream` from now on waits for the event's last record; an event that was never
 * recorded is not waited for. Queued. Status: STATE for an event of a capture that has ended, and across the border of
 * a conditional node's body; of the functions on events below as well. */
TP_API tp_status_t tp_stream_wait_event(tp_stream_t *stream, tp_event_t *event);

/* Work queued on `stream` from now on waits for all that `other` holds now. Queued. Status: STATE across the border of
 * a conditional node's body. */
TP_API tp_status_t tp_stream_wait_stream(tp_stream_t *stream, tp_stream_t *other);

/* ---- events --------------------------------------------------------------------------------- */

#define TP_EVENT_TIMING 1
#define TP_EVENT_BLOCKING 2
#define TP_EVENT_EXTERNAL 4 /* records and waits that are captured are nodes of the graph, and happen in each replay */
#define TP_EVENT_INTERPROCESS 8 /* other processes may record it and wait for it; not with TP_EVENT_TIMING */

/* A new event; CUDA's event is made at the first record, on the stream's device. flags: a sum of
 * TP_EVENT_*. Owned by the caller. Status: INVALID_ARGUMENT. */
TP_API tp_event_t *tp_event_create(int32_t flags);
TP_API void tp_event_release(tp_event_t *event);

/* The event now stands for what the stream holds. Queued. Status: DEVICE when the event was first recorded
 * on another device. */
TP_API tp_status_t tp_event_record(tp_event_t *event, tp_stream_t *stream);
/* The same in the current stream of the current device. */
TP_API tp_status_t tp_event_record_current(tp_event_t *event);

/* 1 when the recorded work is done or nothing was ever recorded, 0 when not, else a status. */
TP_API int32_t tp_event_query(tp_event_t *event);

/* Waits for the recorded work; returns at once when nothing was recorded. Runs now. */
TP_API tp_status_t tp_event_synchronize(tp_event_t *event);

/* Milliseconds from start to end, negative when end came first. Both need TP_EVENT_TIMING, must have
 * been recorded on one device and be complete: else STATE, with a text that says which. Never waits. */
TP_API tp_status_t tp_event_elapsed_time_ms(tp_event_t *start, tp_event_t *end, double *out_ms);

/* The handle by which other processes open an interprocess event, which they may as long as it lives here. Makes
 * CUDA's event, on the current device, where there is none. Runs now. Status: STATE when it is not for others. */
#define TP_EVENT_HANDLE_NBYTES 64
TP_API tp_status_t tp_event_ipc_handle(tp_event_t *event, uint8_t *out);
/* Another process's event, for this device. Owned by the caller. Runs now. Status: DEVICE. */
TP_API tp_event_t *tp_event_from_ipc_handle(int32_t device, const uint8_t *handle);

/* The device of the first record, -1 before. */
TP_API int32_t tp_event_device(const tp_event_t *event);
/* cudaEvent_t as a number, 0 before the first record. */
TP_API uintptr_t tp_event_handle(const tp_event_t *event);

/* ---- memory --------------------------------------------------------------------------------- */

/* One statistic in its own unit; keys are numbered by src/alloc/stats.def. 0 on a device that was never
 * started. Runs now and starts nothing. Status: DEVICE, INVALID_ARGUMENT (as a negative value). */
TP_API int64_t tp_memory_stat(int32_t device, int32_t key);

/* All statistics, one consistent reading, in the order of src/alloc/stats.def; n is the room in out and
 * must be their number. Status: DEVICE, INVALID_ARGUMENT (n). */
TP_API tp_status_t tp_memory_stats(int32_t device, int64_t *out, int32_t n);

/* Peaks := current values. Both run now and start nothing. Status: DEVICE. */
TP_API tp_status_t tp_memory_reset_peak_stats(int32_t device);
/* Sums of increases and decreases, retries and failures := 0. */
TP_API tp_status_t tp_memory_reset_accumulated_stats(int32_t device);

/* Gives every cached segment without live blocks back to the driver; waits for blocks that other
 * streams still use. Only this device, current devices are unchanged; a device that was never started
 * is left alone, and so is everything while a capture is underway. Runs now. Status: DEVICE. */
TP_API tp_status_t tp_memory_empty_cache(int32_t device);

/* The driver's free and total bytes. Starts the device. Status: DEVICE. */
TP_API tp_status_t tp_memory_get_info(int32_t device, size_t *out_free, size_t *out_total);

/* A reading of a device's memory: every segment, with its blocks in address order, which cover it exactly. */
typedef struct tp_memory_segment {
  int64_t address;
  int64_t nbytes;
  int64_t stream;        /* handle of the stream that its first block belongs to */
  int64_t pool[2];       /* (0, 0): the default pool */
  int64_t is_large;      /* which size class it serves */
  int64_t is_expandable;
  int64_t block_count;
  int64_t origin;        /* of the call that obtained it, as tp_origin_set_hook says */
} tp_memory_segment_t;

#define TP_MEMORY_INACTIVE 0
#define TP_MEMORY_ALLOCATED 1    /* the program holds it */
#define TP_MEMORY_PENDING_FREE 2 /* given back, and waited for: other streams use it */

typedef struct tp_memory_block {
  int64_t nbytes;
  int64_t requested_nbytes; /* 0 when inactive */
  int64_t stream;           /* handle of the stream whose order makes reuse safe */
  int64_t state;            /* TP_MEMORY_* */
  int64_t origin;           /* of the call that allocated it; 0 when inactive */
} tp_memory_block_t;

/* An entry of the history. */
typedef struct tp_memory_entry {
  int64_t time_us;  /* since 1970 */
  int64_t action;   /* numbered by src/alloc/trace.def */
  int64_t address;  /* of oom: the device's free bytes */
  int64_t nbytes;   /* of blocks: what the program asked for; of snapshot: bytes in use */
  int64_t stream;
  int64_t pool[2];
  int64_t origin;
} tp_memory_entry_t;

typedef struct tp_memory_snapshot {
  int64_t segment_count;
  int64_t block_count; /* of all segments, in their order */
  int64_t entry_count; /* the latest ones, oldest first */
  tp_memory_segment_t *segments;
  tp_memory_block_t *blocks;
  tp_memory_entry_t *entries;
} tp_memory_snapshot_t;

/* One consistent reading, owned by the caller; empty for a device that was never used. with_entries: the history as
 * well, else entry_count is 0 and the cost does not depend on it. Runs now and starts nothing. Status: DEVICE,
 * HOST_MEMORY. */
TP_API tp_memory_snapshot_t *tp_memory_snapshot_take(int32_t device, int32_t with_entries);
TP_API void tp_memory_snapshot_release(tp_memory_snapshot_t *snapshot);

#define TP_HISTORY_ORIGINS 1 /* origins of allocations, kept with live blocks */
#define TP_HISTORY_ENTRIES 2 /* an entry for whatever happens, in a ring */
#define TP_HISTORY_FREES 4   /* origins of blocks given back, for the entries */
#define TP_HISTORY_WITHOUT 256 /* times 2**n: no entries of action n of src/alloc/trace.def */

/* Starts to record (mode: a sum of TP_HISTORY_*), or ends it (0), on all devices; what was recorded before is dropped.
 * most_entries: room of a device's ring at most, 1 or more; the oldest entries make place. Runs now and starts nothing.
 * Status: INVALID_ARGUMENT. */
TP_API tp_status_t tp_memory_record_history(int32_t mode, int64_t most_entries);

/* A block of at least nbytes (0 is legal and gives a NULL address with TP_OK in the slot), aligned to
 * 512 bytes, for use on `stream`. Free with tp_memory_free. Starts the device.
 * Status: OUT_OF_MEMORY, OVERFLOW, INVALID_ARGUMENT for NULL as the stream. */
TP_API void *tp_memory_alloc(size_t nbytes, tp_stream_t *stream);
/* A release function. The block can be reused at once by its own stream, by others after their recorded
 * use. An address that is not a live block of tp_memory_alloc is ignored. */
TP_API void tp_memory_free(void *address);

/* What the allocator holds from the driver stays at or below nbytes, or where it is if that is more; TP_NO_LIMIT: no
 * limit, as at first. The cache is given back before a request is refused for it. Starts nothing. Status: DEVICE. */
TP_API tp_status_t tp_memory_set_limit(int32_t device, size_t nbytes);
TP_API tp_status_t tp_memory_get_limit(int32_t device, size_t *out_nbytes);

/* Of the allocators; docs/guide/memory.md explains them. Sizes are bytes. */
#define TP_ROUNDUP_INTERVALS 18
typedef struct tp_memory_settings {
  const char *text;                   /* as it was given, without blanks; lives as long as the process */
  size_t max_split_size;              /* TP_NO_LIMIT: none */
  size_t max_non_split_rounding;
  size_t large_segment_size;
  size_t pinned_max_cached_size;      /* TP_NO_LIMIT: none */
  double garbage_collection_threshold; /* 0: off */
  double per_process_memory_fraction; /* recorded only */
  uint32_t roundup_power2_divisions[TP_ROUNDUP_INTERVALS]; /* below 1 MiB, below 2, ... below 64 GiB, the rest */
  int32_t rounds_up;                  /* some of them are above 1 */
  int32_t expandable_segments;
  int32_t release_lock_on_cudamalloc;
  int32_t caching;                    /* 0: TENSORPLAY_NO_CUDA_MEMORY_CACHING is set */
} tp_memory_settings_t;

/* All settings at once, in the syntax of TENSORPLAY_CUDA_ALLOC_CONF: keys that the text does not name get their
 * defaults. After a failure the settings are as before. Starts nothing. Status: INVALID_ARGUMENT. */
TP_API tp_status_t tp_memory_set_settings(const char *text);
TP_API void tp_memory_get_settings(tp_memory_settings_t *out);

/* Why a request was refused. */
#define TP_SHORTAGE_DEVICE 0 /* the driver has no room */
#define TP_SHORTAGE_LIMIT 1  /* of tp_memory_set_limit */
#define TP_SHORTAGE_BUDGET 2

#define TP_BUDGET_NAME_ROOM 64
#define TP_SHORTAGE_STREAMS 16

/* A budget; nbytes of live blocks, each rounded up as it was asked for, and what the program asked for. */
typedef struct tp_budget_figures {
  char name[TP_BUDGET_NAME_ROOM];
  size_t live;
  size_t peak;
  size_t requested;
  size_t limit; /* TP_NO_LIMIT */
} tp_budget_figures_t;

/* A request that was refused, and its device at that moment. All sizes in bytes. */
typedef struct tp_memory_shortage {
  int32_t device;
  int32_t cause;        /* TP_SHORTAGE_* */
  int32_t is_capturing; /* the request's stream */
  int32_t is_hopeless;  /* it exceeds the device or a limit alone */
  size_t requested;     /* by the program */
  size_t rounded;       /* of the block */
  size_t device_free;   /* as the driver counts */
  size_t device_total;
  size_t others;        /* of the device: neither free nor reserved here */
  size_t limit;         /* of this device; TP_NO_LIMIT */
  size_t allocated;     /* of this device's allocator: live blocks */
  size_t reserved;
  size_t pending;       /* dropped by the program, but still used by other streams */
  size_t returnable;    /* of reserved: segments of the default pool without live or pending blocks */
  size_t private_pools; /* of reserved: segments of pools other than the default one */
  size_t largest_free;  /* cached block */
  tp_budget_figures_t budget; /* that refused; its name is empty where none did */
  int32_t stream_count;
  /* Streams with a cached block, those with the largest ones, and its size. */
  uintptr_t streams[TP_SHORTAGE_STREAMS];
  size_t stream_largest_free[TP_SHORTAGE_STREAMS];
} tp_memory_shortage_t;

/* The shortage that was the last failure of this thread. Status: STATE when that was another one. */
TP_API tp_status_t tp_memory_shortage(tp_memory_shortage_t *out);
/* A call that met such a shortage is about to be repeated: it counts as a retry and no longer as a failure. Status:
 * DEVICE. */
TP_API tp_status_t tp_memory_repeat(int32_t device, int32_t cause);

/* ---- budgets: blocks counted by the part of the program that they serve ---------------------- */

/* Over all devices. A budget lives as long as a handle, a scope or a block of it. */
typedef struct tp_budget tp_budget_t;
typedef struct tp_budget_scope tp_budget_scope_t;

/* The budget of that name, made where there is none; owned by the caller. limit: from now on, for all its scopes;
 * TP_NO_LIMIT leaves it as it is, at first without. Starts nothing. Status: INVALID_ARGUMENT (a name of none or too
 * many bytes). */
TP_API tp_budget_t *tp_budget_create(const char *name, size_t limit);
TP_API void tp_budget_release(tp_budget_t *budget);
/* Blocks that this thread allocates from now on are counted in the budget, and in those of the scopes that the thread
 * is in already, in each once; a request above the limit of one is OUT_OF_MEMORY. Starts nothing. */
TP_API tp_budget_scope_t *tp_budget_enter(tp_budget_t *budget);
/* A release function: ends a scope, in whatever order. Its blocks stay counted until they are freed. */
TP_API void tp_budget_leave(tp_budget_scope_t *scope);
/* All budgets in the order of their names, as many as there is room for. How many there are. */
TP_API int32_t tp_budget_list(int32_t room, tp_budget_figures_t *out);

/* ---- private pools: memory apart from the default pool's --------------------------------------- */

/* Over all devices; its id is a pair, of which one number is 0. It lives as long as it is owned, in force or used by a
 * capture, which are its users; then its memory goes back to the driver, what live blocks occupy once they are freed.
 * While a capture is underway nothing goes back. */
typedef struct tp_mempool tp_mempool_t;
typedef struct tp_mempool_scope tp_mempool_scope_t;

/* Where a pool has its segments from, instead of the driver: NULL where there is no room. stream: cudaStream_t. Called
 * with the device current and with a lock of the allocator held. */
typedef void *(*tp_mempool_allocate_t)(ptrdiff_t nbytes, int32_t device, void *stream);
typedef void (*tp_mempool_free_t)(void *address, ptrdiff_t nbytes, int32_t device, void *stream);

#define TP_MEMPOOL_USE_ON_OOM 1 /* its free blocks serve other requests for which the driver has no room */
#define TP_MEMPOOL_NO_SPLIT 2   /* a block is always a whole segment */
#define TP_MEMPOOL_OF_CAPTURE 4 /* the first number of its id is not 0 */

/* Owned by the caller. flags: a sum of TP_MEMPOOL_*; both functions or none. Starts nothing. Status:
 * INVALID_ARGUMENT. */
TP_API tp_mempool_t *tp_mempool_create(int32_t flags, tp_mempool_allocate_t allocate, tp_mempool_free_t release);
/* The pool of that id, owned by the caller once more. Status: INVALID_ARGUMENT when there is none with users. */
TP_API tp_mempool_t *tp_mempool_find(int64_t first, int64_t second);
TP_API void tp_mempool_release(tp_mempool_t *mempool);
TP_API void tp_mempool_id(const tp_mempool_t *mempool, int64_t *out_first, int64_t *out_second);
TP_API int64_t tp_mempool_use_count(const tp_mempool_t *mempool);

/* What this thread allocates on the device from now on comes from the pool; of several the innermost. Streams in a
 * capture have the capture's pool all the same. Starts nothing. Status: DEVICE. */
TP_API tp_mempool_scope_t *tp_mempool_enter(tp_mempool_t *mempool, int32_t device);
/* The thread's innermost scope, NULL where there is none. Cannot fail. */
TP_API tp_mempool_scope_t *tp_mempool_scope(void);
/* A release function: ends a scope, in whatever order. */
TP_API void tp_mempool_leave(tp_mempool_scope_t *scope);

/* What a private pool holds of a device from the driver. */
typedef struct tp_mempool_figures {
  int64_t id[2];
  int64_t reserved; /* bytes */
} tp_mempool_figures_t;

/* Of the device's pools, as many as there is room for. How many there are. Starts nothing. Status: DEVICE. */
TP_API int32_t tp_mempool_list(int32_t device, int32_t room, tp_mempool_figures_t *out);

/* ---- pinned memory: of the host, page-locked, so that devices copy from and to it by themselves -- */

/* At least nbytes (0 is legal and gives NULL with TP_OK in the slot), aligned to 512 bytes, for all devices; not
 * initialised. From the cache, else from the driver, through a device that is started: the current one, if need be.
 * Status: HOST_MEMORY, OVERFLOW. */
TP_API void *tp_pinned_alloc(size_t nbytes);
/* A release function. Serves again once the copies have run that tp_tensor_queue_* queued. An address that is not one
 * of tp_pinned_alloc is ignored. */
TP_API void tp_pinned_free(void *address);
/* 1 for an address inside of such memory, or of memory that another library has pinned, else 0. Runs now, starts
 * nothing. */
TP_API int32_t tp_pinned_contains(const void *address);
/* All statistics, one consistent reading, in the order of src/pinned/stats.def; n is the room in out and must be their
 * number. This and the following run now and start nothing. Status: INVALID_ARGUMENT (n). */
TP_API tp_status_t tp_pinned_stats(int64_t *out, int32_t n);
/* Peaks := current values; the longest and shortest times := 0. */
TP_API tp_status_t tp_pinned_reset_peak_stats(void);
/* Sums of increases and decreases, times and numbers of calls := 0. */
TP_API tp_status_t tp_pinned_reset_accumulated_stats(void);
/* Gives all cached memory back to the driver, which waits for the devices; waits for copies that use memory given back.
 * Does nothing while a capture is underway. */
TP_API tp_status_t tp_pinned_empty_cache(void);

/* ---- tensors: life and description ---------------------------------------------------------- */

/* Uninitialised, contiguous. Starts the device. Status: DTYPE, DEVICE, SHAPE (ndim above TP_MAX_NDIM),
 * INVALID_ARGUMENT (a negative size), OVERFLOW, OUT_OF_MEMORY. */
TP_API tp_tensor_t *tp_tensor_empty(int32_t dtype, int32_t device, int32_t ndim, const int64_t *shape);

/* As tp_tensor_empty with one dimension: the most frequent shape, without an array to convert. */
TP_API tp_tensor_t *tp_tensor_empty_1d(int32_t dtype, int32_t device, int64_t numel);

/* As tp_tensor_empty, the same shape, dtype and device as `like`, contiguous. */
TP_API tp_tensor_t *tp_tensor_empty_like(const tp_tensor_t *like);

TP_API void tp_tensor_release(tp_tensor_t *tensor);

/* None of these can fail. Sizes and strides are counted in elements; the arrays have ndim entries and
 * live as long as the tensor. */
TP_API int32_t tp_tensor_dtype(const tp_tensor_t *tensor);
TP_API int32_t tp_tensor_device(const tp_tensor_t *tensor);
TP_API int32_t tp_tensor_ndim(const tp_tensor_t *tensor);
TP_API const int64_t *tp_tensor_shape(const tp_tensor_t *tensor);
TP_API const int64_t *tp_tensor_strides(const tp_tensor_t *tensor);
TP_API int64_t tp_tensor_numel(const tp_tensor_t *tensor);
TP_API int64_t tp_tensor_storage_offset(const tp_tensor_t *tensor);
TP_API int32_t tp_tensor_is_contiguous(const tp_tensor_t *tensor);
/* Device address of the first element; 0 without elements. */
TP_API uintptr_t tp_tensor_data(const tp_tensor_t *tensor);
/* Identity of the storage (equal for views of one storage), and its bytes. */
TP_API uintptr_t tp_tensor_storage(const tp_tensor_t *tensor);
TP_API size_t tp_tensor_storage_nbytes(const tp_tensor_t *tensor);

/* Marks that `stream` uses the tensor's memory: once the tensor is dropped, its block is reused only
 * after the work that the stream holds at that time. Status: DEVICE. */
TP_API tp_status_t tp_tensor_record_stream(tp_tensor_t *tensor, tp_stream_t *stream);

/* ---- tensors: views (share the storage, launch nothing) ------------------------------------- */

/* In all of them dimensions may be negative, counted from the end; INDEX when there is none of that number,
 * SHAPE beyond TP_MAX_NDIM, OVERFLOW when 63 bits do not count the elements. */

TP_API tp_tensor_t *tp_tensor_transpose(const tp_tensor_t *tensor, int32_t dim0, int32_t dim1);
/* dims: each dimension once, in the new order. Status: INVALID_ARGUMENT when they are not. */
TP_API tp_tensor_t *tp_tensor_permute(const tp_tensor_t *tensor, int32_t ndim, const int64_t *dims);
/* One size may be -1: deduced. Status: SHAPE when numel differs; STATE when no view has that shape. */
TP_API tp_tensor_t *tp_tensor_view(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape);
/* As view, with a contiguous copy where no view exists: that one is queued, and may be OUT_OF_MEMORY. */
TP_API tp_tensor_t *tp_tensor_reshape(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape);
/* Sizes of 1 become the given size, new dimensions come in front, -1 keeps a size. Status: SHAPE. */
TP_API tp_tensor_t *tp_tensor_expand(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape);
/* Elements start, start + step, ... before stop; nothing is clamped. Status: INDEX unless start and stop lie
 * in 0 .. size and step > 0. */
TP_API tp_tensor_t *tp_tensor_slice(const tp_tensor_t *tensor, int32_t dim, int64_t start, int64_t stop,
                                    int64_t step);
/* One index of the dimension, which is dropped. The index may be negative. Status: INDEX. */
TP_API tp_tensor_t *tp_tensor_select(const tp_tensor_t *tensor, int32_t dim, int64_t index);
/* A new dimension of size 1 before dim, -ndim - 1 to ndim. */
TP_API tp_tensor_t *tp_tensor_unsqueeze(const tp_tensor_t *tensor, int32_t dim);
/* Drops the dimension when its size is 1, else gives an equal view. */
TP_API tp_tensor_t *tp_tensor_squeeze(const tp_tensor_t *tensor, int32_t dim);
/* Any view inside the storage; strides and offset in elements, not negative. Status: SHAPE, INDEX (it
 * would leave the storage). */
TP_API tp_tensor_t *tp_tensor_as_strided(const tp_tensor_t *tensor, int32_t ndim, const int64_t *shape,
                                         const int64_t *strides, int64_t offset);
/* The same bytes as elements of another dtype. Where its size differs the last dimension becomes longer or shorter.
 * Status: DTYPE, SHAPE (no dimension, or bytes left over in the last one), STATE (the last dimension's elements are
 * not adjacent, or another stride or the offset is no multiple of the new size), OVERFLOW. */
TP_API tp_tensor_t *tp_tensor_view_dtype(const tp_tensor_t *tensor, int32_t dtype);
/* The same tensor again: another handle to the same elements. */
TP_API tp_tensor_t *tp_tensor_alias(const tp_tensor_t *tensor);

/* ---- copies --------------------------------------------------------------------------------- */

/* Source to target: any strides, any two dtypes, any two devices, the source broadcast to the target;
 * overlap is as if the source were copied first. Between devices both current streams are ordered.
 * Queued. Status: SHAPE, INVALID_ARGUMENT (elements of the target share memory), OUT_OF_MEMORY. */
TP_API tp_status_t tp_tensor_copy(tp_tensor_t *target, const tp_tensor_t *source);

/* A contiguous copy, always new memory; dtype TP_DTYPE_NONE keeps the dtype. Queued. Status: DTYPE, DEVICE,
 * OUT_OF_MEMORY. */
TP_API tp_tensor_t *tp_tensor_to(const tp_tensor_t *tensor, int32_t dtype, int32_t device);

/* A contiguous copy in which some dimensions run backwards. dims: bit d set for dimension d. Queued. Status: INDEX,
 * OUT_OF_MEMORY. */
TP_API tp_tensor_t *tp_tensor_flip(const tp_tensor_t *tensor, uint32_t dims);

/* The same tensor with one more reference when it is contiguous, else a contiguous copy. Queued. Status:
 * OUT_OF_MEMORY. */
TP_API tp_tensor_t *tp_tensor_contiguous(const tp_tensor_t *tensor);

/* nbytes = numel * itemsize, elements in C order. The memory at `source` may change as soon as the call
 * returns. Status: INVALID_ARGUMENT (nbytes, or a target as in tp_tensor_copy), STATE in a capture,
 * OUT_OF_MEMORY. */
TP_API tp_status_t tp_tensor_copy_from_host(tp_tensor_t *target, const void *source, size_t nbytes);

/* Waits for the copy: the bytes are there on return. Status: INVALID_ARGUMENT (nbytes), STATE in a capture,
 * OUT_OF_MEMORY. */
TP_API tp_status_t tp_tensor_copy_to_host(const tp_tensor_t *source, void *target, size_t nbytes);

/* The same, but queued where the host's memory is of tp_pinned_alloc: it must not change, or be read, before the copy
 * has run. Both memories are kept until then, whoever drops them. */
TP_API tp_status_t tp_tensor_queue_from_host(tp_tensor_t *target, const void *source, size_t nbytes);
TP_API tp_status_t tp_tensor_queue_to_host(const tp_tensor_t *source, void *target, size_t nbytes);

/* Every element := value, cast to the tensor's dtype as tp_tensor_copy casts. Queued. Status: OUT_OF_MEMORY,
 * INVALID_ARGUMENT (an imaginary part that is not 0 for integers or floating numbers). */
TP_API tp_status_t tp_tensor_fill_float(tp_tensor_t *tensor, double value);
TP_API tp_status_t tp_tensor_fill_int(tp_tensor_t *tensor, int64_t value);
TP_API tp_status_t tp_tensor_fill_complex(tp_tensor_t *tensor, double re, double im);

/* start + i * step for i in 0 .. numel-1, computed in double or int64 and cast. Queued. Status: as
 * tp_tensor_empty; DTYPE for bool and complex, too. */
TP_API tp_tensor_t *tp_tensor_arange_float(double start, double step, int64_t numel, int32_t dtype,
                                           int32_t device);
TP_API tp_tensor_t *tp_tensor_arange_int(int64_t start, int64_t step, int64_t numel, int32_t dtype,
                                         int32_t device);

/* ---- exchange: memory that several libraries use ---------------------------------------------- */

typedef void (*tp_release_t)(void *context);

/* A tensor over memory of another library, on the device where it lies (device: what the lender says, or
 * TP_DEVICE_CURRENT). Strides in elements; NULL: C order. release(context) is called once, from any thread, when the
 * last tensor over the memory was dropped and the streams that used it (the current one, and those of record_stream)
 * are done: at once, or in a later call that waits, imports or drops such memory. Memory statistics do not count it.
 * After a failure the memory is still the caller's. Status: DTYPE, SHAPE, DEVICE, OVERFLOW, INVALID_ARGUMENT (a
 * negative size), EXCHANGE (a negative stride, or an address that is not aligned to its dtype or not of a device). */
TP_API tp_tensor_t *tp_tensor_from_memory(uintptr_t data, int32_t dtype, int32_t device, int32_t ndim,
                                          const int64_t *shape, const int64_t *strides, tp_release_t release,
                                          void *context);

/* DLPack's DLManagedTensor, or DLManagedTensorVersioned, which holds the tensor until its deleter is called, from any
 * thread. `consumer` (or NULL: no order) waits for the current stream, and is noted as in tp_tensor_record_stream.
 * Status: DEVICE, STATE (a capture that the default stream cannot wait for). */
TP_API void *tp_dlpack_export(tp_tensor_t *tensor, tp_stream_t *consumer, int32_t is_versioned, uint64_t flags);
/* Calls the deleter: a release function. */
TP_API void tp_dlpack_release(void *managed, int32_t is_versioned);
/* A tensor over the memory, as tp_tensor_from_memory; a new handle to the same storage where tp_dlpack_export made
 * it. It owns `managed` from now on, after a failure it does not. *out_flags: DLPack's flags, 0 without a version.
 * Status: as tp_tensor_from_memory; EXCHANGE for another major version, too. */
TP_API tp_tensor_t *tp_dlpack_import(void *managed, int32_t is_versioned, uint64_t *out_flags);

/* ---- operations: op codes stand in kernels/ops.def; all are queued --------------------------- */

/* Status of all: INVALID_ARGUMENT (no such op, or an out whose elements share memory), DTYPE, SHAPE, DEVICE,
 * INDEX (a dimension), OUT_OF_MEMORY. */

/* The floating dtype in which bool and integers are computed where an op gives fractions, and which floating
 * scalars have; complex ones have its counterpart. Float32 at first; of the process. Runs now, starts nothing.
 * Status: DTYPE for what is not floating. */
TP_API tp_status_t tp_dtype_set_default(int32_t dtype);

TP_API tp_tensor_t *tp_unary(int32_t op, const tp_tensor_t *a, tp_tensor_t *out);

/* Broadcasts and promotes. A 0-d operand is weaker than one with dimensions of the same category. */
TP_API tp_tensor_t *tp_binary(int32_t op, const tp_tensor_t *a, const tp_tensor_t *b, tp_tensor_t *out);

/* One operand is a weak scalar. reversed != 0: scalar op a. is_bool: the scalar is True or False. */
TP_API tp_tensor_t *tp_binary_float(int32_t op, const tp_tensor_t *a, double b, int32_t reversed,
                                    tp_tensor_t *out);
TP_API tp_tensor_t *tp_binary_int(int32_t op, const tp_tensor_t *a, int64_t b, int32_t is_bool,
                                  int32_t reversed, tp_tensor_t *out);
TP_API tp_tensor_t *tp_binary_complex(int32_t op, const tp_tensor_t *a, double re, double im,
                                      int32_t reversed, tp_tensor_t *out);

/* condition: bool. Broadcasts all three, promotes a and b. */
TP_API tp_tensor_t *tp_where(const tp_tensor_t *condition, const tp_tensor_t *a, const tp_tensor_t *b,
                             tp_tensor_t *out);

/* dims: bit d set when dimension d is reduced; 0 means all. dtype TP_DTYPE_NONE: the family's rule. The
 * result is the same from run to run. */
TP_API tp_tensor_t *tp_reduce(int32_t op, const tp_tensor_t *a, uint32_t dims, int32_t keepdim,
                              int32_t dtype, tp_tensor_t *out);

/* Places along a dimension, or in all elements in C order, int64: of equal elements the first, NaN before all others.
 * No complex dtypes; INDEX for a dimension without elements. */
TP_API tp_tensor_t *tp_arg_reduce(int32_t op, const tp_tensor_t *a, int32_t dim, int32_t keepdim);
TP_API tp_tensor_t *tp_arg_reduce_all(int32_t op, const tp_tensor_t *a, int32_t keepdim);

/* Running totals along a dimension. dtype TP_DTYPE_NONE: the family's rule. The result is the same from run to run. */
TP_API tp_tensor_t *tp_scan(int32_t op, const tp_tensor_t *a, int32_t dim, int32_t dtype, tp_tensor_t *out);

/* Places that bring a dimension into order, int64; equal elements keep theirs. NaN is larger than all numbers, -0
 * equals 0. No complex dtypes. */
TP_API tp_tensor_t *tp_argsort(const tp_tensor_t *a, int32_t dim, int32_t descending);

/* Over one dimension; log != 0: its logarithm. Floating dtypes. */
TP_API tp_tensor_t *tp_softmax(const tp_tensor_t *a, int32_t dim, int32_t log, tp_tensor_t *out);

/* Over the last `ndim` dimensions; weight and bias have their shape, or are NULL. */
TP_API tp_tensor_t *tp_layer_norm(const tp_tensor_t *a, int32_t ndim, const tp_tensor_t *weight,
                                  const tp_tensor_t *bias, double eps, tp_tensor_t *out);

/* Rows of a along dim at index (1-d or 0-d, int32 or int64, negative refused as torch refuses it). An
 * index out of range is a fault of the device: INDEX at the next synchronising call. */
TP_API tp_tensor_t *tp_index_select(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index);

/* weight (n, d), index of any shape (int32 or int64): index.shape + (d,). Faults as index_select. */
TP_API tp_tensor_t *tp_embedding(const tp_tensor_t *weight, const tp_tensor_t *index);

/* Elements of a at index (int32 or int64) along dim, at the index's own place in all other dimensions: index's shape,
 * which exceeds a's along dim only. Faults as index_select. */
TP_API tp_tensor_t *tp_gather(const tp_tensor_t *a, int32_t dim, const tp_tensor_t *index);

/* target, where gather would read, := the elements of source (of index's shape or more, of target's dtype). Of several
 * writes to one place any stays. accumulate != 0: += each of them, the same sums in every run. Faults as gather; an
 * index that is one writes nothing. */
TP_API tp_status_t tp_scatter(tp_tensor_t *target, int32_t dim, const tp_tensor_t *index, const tp_tensor_t *source,
                              int32_t accumulate);

/* a[indices]: an entry (int32 or int64) for each of the first n dimensions, NULL for a whole one, at least one that is
 * not. They broadcast together; negative values count from the end. Their dimensions take the place of those indexed
 * when these are neighbours, else they come first. Faults as gather; INDEX at once for a dimension of size 0. */
TP_API tp_tensor_t *tp_index(const tp_tensor_t *a, int32_t n, const tp_tensor_t *const *indices);

/* target[indices] := values, broadcast, of target's dtype; the rest as in tp_index and tp_scatter. */
TP_API tp_status_t tp_index_put(tp_tensor_t *target, int32_t n, const tp_tensor_t *const *indices,
                                const tp_tensor_t *values, int32_t accumulate);

/* torch's matmul: vectors, matrices, broadcast batches. One dtype for both, not bool; integers wrap. */
TP_API tp_tensor_t *tp_matmul(const tp_tensor_t *a, const tp_tensor_t *b, tp_tensor_t *out);

/* beta * input + alpha * (a @ b), rounded once; input broadcasts to the product, and is not read where beta is 0. One
 * dtype for all three, not bool; integers are multiplied with the whole part of beta and alpha. */
TP_API tp_tensor_t *tp_addmm(const tp_tensor_t *input, const tp_tensor_t *a, const tp_tensor_t *b, double beta_re,
                             double beta_im, double alpha_re, double alpha_im, tp_tensor_t *out);

/* a @ weight.T + bias; weight (n, k), bias (n,) or NULL, a (..., k). One dtype, not bool. */
TP_API tp_tensor_t *tp_linear(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias);
/* gelu of tp_linear, of one floating dtype; by_tanh != 0: gelu_tanh, which is rounded once where cuBLASLt has both as
 * one kernel. */
TP_API tp_tensor_t *tp_linear_gelu(const tp_tensor_t *a, const tp_tensor_t *weight, const tp_tensor_t *bias,
                                   int32_t by_tanh);

/* Opens cuBLASLt from a file; later products use it. Does nothing once that was done. Runs now, touches no
 * device. Status: UNAVAILABLE with the loader's text, INVALID_ARGUMENT for NULL. */
TP_API tp_status_t tp_blas_load(const char *path);
/* 1 when cuBLASLt serves, 0 when the tiled kernel does. */
TP_API int32_t tp_blas_is_loaded(void);
/* allowed != 0: cuBLASLt may round float32 to TF32 (10 bits behind the point) before it multiplies. Not at first; of
 * the process. Runs now, starts nothing. */
TP_API void tp_blas_allow_tf32(int32_t allowed);

/* ---- random numbers: Philox4x32-10, one generator for each device --------------------------- */

/* Element i of a fill depends only on (seed, offset, i), never on the launch shape: counter
 * offset/4 + i/4, word i%4 of each counter; elements of 8 bytes have two words each. The offset moves on by the number
 * of words rounded up to 4. Fills that are captured draw in each replay, from where the generator stands then.
 * Behind the replay of a graph whose conditional bodies draw it stands on the device, until it is asked for or set.
 * Asking and setting: status STATE while the device's current stream is being captured. */

/* Sets the seed and offset 0. Starts nothing. Status: DEVICE. */
TP_API tp_status_t tp_generator_seed(int32_t device, uint64_t seed);
/* Starts nothing. While it stands on the device, waits for it. Status: DEVICE. */
TP_API tp_status_t tp_generator_get_state(int32_t device, uint64_t *out_seed, uint64_t *out_offset);
/* Starts nothing. Status: DEVICE, INVALID_ARGUMENT when the offset is not a multiple of 4. */
TP_API tp_status_t tp_generator_set_state(int32_t device, uint64_t seed, uint64_t offset);

/* Floating tensors, in place. uniform: low <= x < high; normal: Box-Muller. Queued. Status: DTYPE,
 * INVALID_ARGUMENT (limits, or elements that share memory); in a capture STATE (docs/design/random.md says when),
 * OUT_OF_MEMORY. */
TP_API tp_status_t tp_random_uniform(tp_tensor_t *tensor, double low, double high);
TP_API tp_status_t tp_random_normal(tp_tensor_t *tensor, double mean, double std);

/* All bits of the elements of an int64 tensor. Queued. Status: DTYPE, INVALID_ARGUMENT (elements share memory). */
TP_API tp_status_t tp_random_bits(tp_tensor_t *tensor);

/* ---- graphs: work that is captured once and replayed ------------------------------------------ */

/* What its capture allocates comes from a private pool, of which the graph is a user until it is reset or released. Any
 * thread may use a graph; a capture that is not relaxed ends in the thread where it began. */
typedef struct tp_graph tp_graph_t;

#define TP_CAPTURE_GLOBAL 0       /* calls of any thread that could break a capture fail, and break it */
#define TP_CAPTURE_THREAD_LOCAL 1 /* those of this thread */
#define TP_CAPTURE_RELAXED 2      /* none */

/* Empty, owned by the caller. Starts nothing. */
TP_API tp_graph_t *tp_graph_create(void);
/* A release function: abandons a capture that is underway. Tensors of the capture keep their memory. */
TP_API void tp_graph_release(tp_graph_t *graph);

/* Before a capture: waits for all work of the device, reports its faults, and gives its cached memory back, so that the
 * graph's pool can have it. Does nothing while a capture is underway, of whichever thread, which that would break.
 * Runs now. Status: DEVICE. */
TP_API tp_status_t tp_graph_prepare(int32_t device);

/* What is queued on `stream` from now on, and on streams that wait for it, becomes the graph. mempool: where to
 * allocate, NULL for a pool of its own; mode: TP_CAPTURE_*. Starts the device. Status: STATE when the graph is not
 * empty, or the stream is the default stream or is captured already; INVALID_ARGUMENT, HOST_MEMORY. */
TP_API tp_status_t tp_graph_capture_begin(tp_graph_t *graph, tp_stream_t *stream, tp_mempool_t *mempool, int32_t mode);
/* Ends the capture and compiles the graph; after a failure the graph is empty. Status: STATE when none is underway;
 * CUDA, with a text that names the call that broke the capture, or the streams that were not joined. */
TP_API tp_status_t tp_graph_capture_end(tp_graph_t *graph);
/* A release function: ends a capture that is underway, for nothing. */
TP_API void tp_graph_capture_abandon(tp_graph_t *graph);
/* 1 when the stream's work goes into the capture of this graph or into an open body of it, else 0. Starts nothing. */
TP_API int32_t tp_graph_is_capturing(tp_graph_t *graph, const tp_stream_t *stream);

/* In a capture, a conditional node behind what `stream` holds, which takes part in the capture, or in the body that is
 * open innermost. Each replay reads the predicate, one bool, when it comes there. What is queued on the stream that is
 * returned, until tp_graph_end_body, is the body. `if`: done where the predicate is true; `while`: again and again as
 * long as it is. Status: STATE, DEVICE, DTYPE, SHAPE, HOST_MEMORY, CUDA; what fails after the checks breaks the graph,
 * whose capture can then only end with STATE. */
TP_API tp_stream_t *tp_graph_begin_if(tp_graph_t *graph, tp_tensor_t *predicate, tp_stream_t *stream);
TP_API tp_stream_t *tp_graph_begin_while(tp_graph_t *graph, tp_tensor_t *predicate, tp_stream_t *stream);
/* What is done when the body of the if node was not, which is the last that `stream` holds. Status: also UNAVAILABLE
 * before CUDA 12.8. */
TP_API tp_stream_t *tp_graph_begin_else(tp_graph_t *graph, tp_stream_t *stream);
/* Ends the innermost body. That of a while node reads its predicate once more, unless tp_graph_set_condition was called
 * in it. Whatever the status, the body has ended. */
TP_API tp_status_t tp_graph_end_body(tp_graph_t *graph);
/* A release function: ends the innermost body, if any, for nothing, which breaks the graph. */
TP_API void tp_graph_abandon_body(tp_graph_t *graph);
/* The innermost body's node goes by this predicate, as it is when the work of `stream` comes here. Captured. */
TP_API tp_status_t tp_graph_set_condition(tp_graph_t *graph, const tp_tensor_t *predicate, tp_stream_t *stream);

/* Says where in the program the thread's last failure happened: captures that it has broken name the place at their
 * end. Runs now, cannot fail. */
TP_API void tp_capture_note_place(const char *place);

/* Nodes of the graph, without those in bodies and children; 0 before a capture has ended. */
TP_API int64_t tp_graph_node_count(tp_graph_t *graph);
/* How many pieces of work to write memory the thread of the capture has queued on streams that took part in none: they
 * ran at once, and no replay repeats them. If there are any: the two streams where the capture began and where the
 * first of them was queued, and its name, which is not the caller's to free. */
TP_API int64_t tp_graph_work_beside(tp_graph_t *graph, tp_stream_t **out_streams, const char **out_operation);

/* Runs the graph once; stream: NULL for the current one of the graph's device. Queued. All launches of a graph, of this
 * and the next function, run one after the other, whatever their streams. Status: STATE when nothing was captured, and
 * where the launch has to wait for one on a stream that is captured now; DEVICE for a stream of another device. */
TP_API tp_status_t tp_graph_replay(tp_graph_t *graph, tp_stream_t *stream);

/* Writes each input onto its static input, as tp_tensor_copy of one pair after the other, and runs the graph once, on
 * the current stream of its device. Pairs that are contiguous, of one dtype and on that device are one kernel, part of
 * the launch. Inputs may be dropped at once. Queued. Status: as tp_graph_replay and tp_tensor_copy, whose refusals come
 * before anything is queued. */
TP_API tp_status_t tp_graph_stage_and_launch(tp_graph_t *graph, int32_t count, tp_tensor_t *const *static_inputs,
                                             tp_tensor_t *const *inputs);

/* What is queued on the stream next comes behind all launches of the graph so far, and in front of the next one: for
 * copies to its inputs that the caller queues. NULL: the current stream of the graph's device. Status: as
 * tp_graph_replay. */
TP_API tp_status_t tp_graph_follow(tp_graph_t *graph, tp_stream_t *stream);

/* Empty again: gives up the executable graph and its share of the pool. Status: STATE while a capture is underway, or
 * blocks that it allocated are in use; then the graph is as before. */
TP_API tp_status_t tp_graph_reset(tp_graph_t *graph);

/* Its pool, owned by the caller once more. Status: STATE when nothing was captured. */
TP_API tp_mempool_t *tp_graph_mempool(tp_graph_t *graph);
/* 1 when what was captured writes memory of the tensor's storage, else 0. What other libraries queue is not known. */
TP_API int32_t tp_graph_writes(tp_graph_t *graph, const tp_tensor_t *tensor);
/* cudaGraph_t and cudaGraphExec_t as numbers, 0 where there is none; the graph's own. */
TP_API uintptr_t tp_graph_handle(tp_graph_t *graph);
TP_API uintptr_t tp_graph_exec_handle(tp_graph_t *graph);
/* Writes the graph in the language DOT. is_verbose: with all that CUDA tells of nodes. Status: STATE when nothing was
 * captured, CUDA for a path that cannot be written. */
TP_API tp_status_t tp_graph_write_dot(tp_graph_t *graph, const char *path, int32_t is_verbose);

/* cffi end */

#ifdef __cplusplus
}
#endif
#endif
