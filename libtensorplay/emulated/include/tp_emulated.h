/* Control of the emulated device: what tests need and CUDA has no call for. Exported by
 * libtensorplay_emulated.so only; tensorplay.testing.emulated is the Python form. Everything may be called
 * from any thread, at any time, and starts no device. Names of functions and errors are CUDA's
 * ("cudaMalloc", "cudaErrorMemoryAllocation"). Where a name or a device is unknown, a function does nothing
 * and returns -1. */
#ifndef TP_EMULATED_H
#define TP_EMULATED_H

#include "tensorplay.h" /* TP_API, and nothing else */

#ifdef __cplusplus
extern "C" {
#endif

/* cffi begin: from here to "cffi end" the build reads the declarations; keep one per statement. */

/* Everything below as the environment has it: no failures, no held streams, counts 0, errors that had
 * ended a device forgotten, the seed's sequence from its start. Memory and queued work stay. */
TP_API void tp_emulated_reset(void);

/* The number of devices, 0 to 8; only before the first call of any CUDA function, else -1. */
TP_API int32_t tp_emulated_set_device_count(int32_t count);

/* Bytes of a device (0: what the environment says), which may be fewer than are in use. */
TP_API int32_t tp_emulated_set_capacity(int32_t device, size_t nbytes);
/* Bytes; -1 for an unknown device. */
TP_API int64_t tp_emulated_capacity(int32_t device);
TP_API int64_t tp_emulated_used(int32_t device);

/* Starts the sequence that decides which ready stream goes next. */
TP_API void tp_emulated_set_seed(uint64_t seed);
/* The seed that was set last. */
TP_API uint64_t tp_emulated_seed(void);

/* The number of a CUDA error, -1 when the emulation lacks it. */
TP_API int32_t tp_emulated_error_code(const char *name);

/* The nth call of a function from now (1: the next one), once, does nothing and returns `error`; nth 0
 * takes an earlier order back. One order for each function. */
TP_API int32_t tp_emulated_fail(const char *function, int64_t nth, int32_t error);

/* Calls of a function while a device was current (-1: any device), failed ones included. */
TP_API int64_t tp_emulated_call_count(const char *function, int32_t device);
TP_API void tp_emulated_clear_call_counts(void);
/* Names of all functions, by number; NULL behind the last. */
TP_API const char *tp_emulated_function_name(int32_t number);

/* While a stream is held, neither queries nor other streams' progress run what it holds. A call that
 * waits for it runs it all the same, and so does an enqueue on it when it is full: a hold delays, it
 * never blocks. handle: cudaStream_t, 0 for the device's default stream. */
TP_API int32_t tp_emulated_hold(int32_t device, uintptr_t handle);
TP_API int32_t tp_emulated_release(int32_t device, uintptr_t handle);

/* How many times the scheduler passes over each copy that is queued from now on before it runs it. Calls
 * that wait for a copy run it at once. */
TP_API int32_t tp_emulated_set_copy_delay(int32_t steps);
TP_API int32_t tp_emulated_copy_delay(void);

/* Pieces of work that are queued: of one stream, or of a device's streams together (-1: all devices). */
TP_API int64_t tp_emulated_stream_queued(int32_t device, uintptr_t handle);
TP_API int64_t tp_emulated_queued(int32_t device);

/* Takes up to n steps of the scheduler and returns how many there were to take. */
TP_API int32_t tp_emulated_step(int32_t n);

/* Threads of a block: 1 when off, up to 32 when on. */
TP_API void tp_emulated_set_fibres(int32_t on);
TP_API int32_t tp_emulated_fibres(void);

/* 1 when a live allocation of an emulated device, or of its pinned memory, holds the address; else 0. */
TP_API int32_t tp_emulated_is_own_address(uintptr_t address);

/* What the last kernel that was ended early did: its name, its block and why; "" when there was none.
 * Valid until the thread's next call of this function. */
TP_API const char *tp_emulated_fault_text(void);

/* cffi end */

#ifdef __cplusplus
}
#endif
#endif
