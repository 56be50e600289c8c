/* The emulated device: what its files share. Its nouns:
 *
 *   piece    one unit of queued work: a kernel, a copy, a fill, a record, a wait, a host function.
 *   stream   the pieces that are still to run, in order.
 *   mark     a point in a stream: what an event records, what a stream waits for.
 *   node     a piece that a graph keeps, and the nodes that it depends on.
 *   capture  makes nodes of what is queued on its streams. A stream's tail: what its next node depends on.
 *   range    one live allocation, of a device or of pinned host memory, or one mapping of virtual memory.
 *
 * Names begin with emu_ because these files are linked together with src/, whose shared names begin with
 * tp__. One lock guards everything; each function of CUDA takes it on entry and drops it on return, and
 * only a host function (cudaLaunchHostFunc) runs without it. */
#ifndef TP_EMULATED_INTERNAL_H
#define TP_EMULATED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../src/cuda_api.h" /* the spelling of the toolkit in use, nothing else */

#define EMU_MAX_DEVICES 8
#define EMU_FIBRES 32      /* threads of a block while fibres are on */
#define EMU_POISON 0xFF    /* what fresh memory holds: NaN in every floating dtype, -1 in integers */
#define EMU_MAX_QUEUE 1024 /* pieces of one stream, beyond which an enqueue runs the oldest */
#define EMU_PIECE_NS 1000   /* virtual time of any work, to which its bytes are added */

typedef enum emu_call {
#define EMU_CALL(name) EMU_##name,
#include "calls.def"
#undef EMU_CALL
  EMU_CALL_COUNT
} emu_call_t;

/* ---- queue.c: pieces, and which runs next ---- */

typedef struct emu_stream emu_stream_t;

typedef struct emu_shared emu_shared_t;

typedef struct emu_mark {
  int references;
  bool done;
  uint64_t order; /* of the piece that completes it */
  uint64_t time_ns;
  emu_stream_t *stream; /* NULL when it is one of another process */
  emu_shared_t *shared; /* or NULL: other processes know it under this number */
  uint64_t number;
} emu_mark_t;

typedef struct emu_piece {
  struct emu_piece *next;
  int device;             /* on which it runs */
  enum cudaGraphNodeType type;
  size_t payload_nbytes;
  uint64_t order;         /* number among all pieces of the process, in the order of the calls */
  uint64_t not_before_ns; /* virtual time of the call */
  uint64_t cost_ns;
  int patience;                                        /* how often the scheduler passes it over */
  emu_mark_t *waits_for;                               /* or NULL */
  emu_mark_t *completes;                               /* or NULL */
  cudaError_t (*run)(int device, void *payload);       /* or NULL; an error is the device's end */
  void (*forget)(void *payload);                       /* or NULL: called when the piece is freed */
  bool unlocked;                                       /* run without the lock */
  bool pageable;                                       /* a copy of pageable memory that a capture recorded */
  _Alignas(16) unsigned char payload[];
} emu_piece_t;

typedef struct emu_node emu_node_t;
typedef struct emu_graph emu_graph_t;
typedef struct emu_capture emu_capture_t;

/* Nodes without repetition, in the order of their coming. */
typedef struct emu_nodes {
  emu_node_t **items;
  size_t count;
  size_t room;
} emu_nodes_t;

struct emu_stream {
  emu_stream_t *next_free;
  int device;
  unsigned int flags;
  int priority;
  bool live;    /* false once destroyed: what it holds still runs */
  bool held;    /* the scheduler passes it over (tp_emulated_hold) */
  bool running; /* its first piece is a host function that some thread runs now */
  emu_piece_t *first;
  emu_piece_t *last;
  size_t count;
  uint64_t clock_ns; /* virtual time at which its last finished piece ended */
  emu_capture_t *capture; /* that it takes part in, or NULL */
  emu_nodes_t tail;
  cudaGraphEdgeData *edges; /* zeros, as many as the tail has nodes: for cudaStreamGetCaptureInfo */
};

/* A zeroed piece with room for a payload, NULL when the host has no memory. */
emu_piece_t *emu_piece_new(enum cudaGraphNodeType type, size_t payload_nbytes);
/* A copy of a piece that was never queued and has no marks. */
emu_piece_t *emu_piece_copy(const emu_piece_t *piece);
/* Frees a piece and what follows it. */
void emu_piece_free(emu_piece_t *piece);
/* Queues a piece and what follows it at once, whatever captures there are, and owns them from then on. */
void emu_push(emu_stream_t *stream, emu_piece_t *piece);
/* Called by a piece that runs: a piece and what follows it run next in its stream. */
void emu_push_next(emu_piece_t *piece);

/* Pieces that will be queued together. */
typedef struct emu_chain {
  emu_piece_t *first;
  emu_piece_t *last;
} emu_chain_t;
/* False, and all of the chain freed, when the piece is NULL. */
bool emu_chain_add(emu_chain_t *chain, emu_piece_t *piece);

/* Runs all that the stream, the device, or the process (device -1) holds now. */
void emu_run_stream(emu_stream_t *stream);
void emu_run_device(int device);
/* Runs up to n pieces by the scheduler's choice; how many ran. */
int emu_step(int n);
/* After a query has its answer: one step, unless something was queued since the last query. */
void emu_query_step(void);
/* Runs the stream's pieces up to `order` that wait for nothing else; a held stream stays. */
void emu_run_ahead(emu_stream_t *stream, uint64_t order);
emu_mark_t *emu_mark_retain(emu_mark_t *mark);
void emu_mark_release(emu_mark_t *mark);
bool emu_mark_done(emu_mark_t *mark);
/* Runs, or waits for another process, until it is done. */
void emu_mark_wait(emu_mark_t *mark);
/* The host has seen that something was done at this virtual time. */
void emu_host_saw(uint64_t time_ns);
/* A number in 0 .. n-1. */
uint64_t emu_random_below(uint64_t n);
void emu_random_seed(uint64_t seed);
uint64_t emu_seed(void);
/* How many times the scheduler passes over a copy before it runs it. */
void emu_copy_patience_set(int steps);
int emu_copy_patience(void);

/* ---- stream.c ---- */
/* The legacy default stream of a device. */
emu_stream_t *emu_stream_legacy(int device);
/* The stream of a handle, the current device's legacy stream for 0; NULL when it is none or destroyed. */
emu_stream_t *emu_stream_find(cudaStream_t handle);
/* All streams that live or hold pieces, the legacy ones of the devices first. */
size_t emu_streams(emu_stream_t *const **out);
/* Whether the legacy stream and this one wait for each other. */
bool emu_stream_blocking(const emu_stream_t *stream);
/* Called when the last piece of a destroyed stream is done. */
void emu_stream_drained(emu_stream_t *stream);

/* ---- capture.c ---- */
/* Queues a piece of work, or makes a node of it where the stream is captured. Owns the piece also when it fails. */
cudaError_t emu_enqueue(emu_stream_t *stream, emu_piece_t *piece);
/* Why nothing may be queued on a stream now: its capture is spoiled, or it is the legacy stream, which would
 * wait for blocking streams that are captured (which spoils them). */
cudaError_t emu_capture_check(emu_stream_t *stream);
/* Why a stream may not be waited for or asked now. */
cudaError_t emu_capture_check_wait(emu_stream_t *stream);
cudaError_t emu_capture_check_device_wait(int device);
/* Why no graph may be launched on a stream now. */
cudaError_t emu_capture_check_launch(emu_stream_t *stream);
/* Why an event that was recorded in the capture may not be waited for or asked now. */
cudaError_t emu_capture_check_event(emu_capture_t *capture);
/* Why a call that captures do not see is forbidden to this thread now; the captures that forbid it are spoiled. */
cudaError_t emu_capture_check_unsafe(void);
/* The stream waits for a captured event: it joins the capture, where it is in none. */
cudaError_t emu_capture_join(emu_stream_t *stream, emu_capture_t *capture, const emu_nodes_t *tail);
void emu_capture_spoil(emu_capture_t *capture);
emu_capture_t *emu_capture_retain(emu_capture_t *capture);
void emu_capture_release(emu_capture_t *capture);
/* A stream in a capture is destroyed. */
void emu_capture_leave(emu_stream_t *stream);
/* A graph to which captures add is freed: they are spoiled. */
void emu_capture_forget(const emu_graph_t *graph);

/* ---- graph.c, edge.c ---- */
struct emu_node {
  emu_graph_t *graph;
  size_t index;              /* in the graph */
  emu_piece_t *piece;        /* of which each launch queues a copy */
  emu_nodes_t dependencies;  /* earlier nodes of the graph */
  emu_nodes_t dependents;
  emu_nodes_t early;          /* of the dependencies, those whose edges are programmatic (edge.c) */
  const emu_node_t *original; /* of which it is a copy, or NULL; only to be compared */
  emu_graph_t **bodies;       /* of a conditional node; of a child node its one graph */
  size_t body_count;
  cudaGraphConditionalHandle condition;
  enum cudaGraphConditionalNodeType condition_type;
  bool reached;   /* scratch of emu_nodes_reach */
  size_t missing; /* scratch of emu_graph_order: dependencies that are not yet in it */
};

struct emu_graph {
  emu_graph_t *next; /* of all that live */
  size_t number;     /* of all that were made, from 1: its name in dumps */
  bool owned;        /* by a node, or by an executable graph */
  emu_nodes_t nodes; /* in the order in which they were made, so each behind its dependencies */
  int captures;      /* that are adding to it */
};

/* A new graph, NULL when the host has no memory. */
emu_graph_t *emu_graph_new(void);
/* A copy, bodies included, whose owner is to be the caller. */
emu_graph_t *emu_graph_copy(const emu_graph_t *graph);
void emu_graph_free(emu_graph_t *graph);
/* Whether captures are adding to the graph or its bodies. */
bool emu_graph_busy(const emu_graph_t *graph);
emu_graph_t *emu_graph_find(cudaGraph_t handle);
emu_node_t *emu_node_find(cudaGraphNode_t handle);
/* A new node of the graph, which owns the piece from then on; NULL when the host has no memory. */
emu_node_t *emu_graph_add(emu_graph_t *graph, emu_piece_t *piece, const emu_nodes_t *dependencies);
/* The node is given the graph as one more body. */
bool emu_node_add_body(emu_node_t *node, emu_graph_t *body);
/* All nodes, each behind its dependencies, otherwise as the seed decides; false when the host has no memory. */
bool emu_graph_order(const emu_graph_t *graph, emu_nodes_t *out);
/* Whether all of these handles are nodes of the graph. */
bool emu_graph_has(const emu_graph_t *graph, const cudaGraphNode_t *handles, size_t count);
/* Adds those that are not yet among them; false when the host has no memory. */
bool emu_nodes_add(emu_nodes_t *nodes, emu_node_t *const *items, size_t count);
void emu_nodes_clear(emu_nodes_t *nodes);
bool emu_nodes_have(const emu_nodes_t *nodes, const emu_node_t *node);
/* CUDA's way of giving a list: its length where there is no array, else as many as there is room for, and NULL in what
 * is left of the room. */
cudaError_t emu_nodes_give(const emu_nodes_t *nodes, cudaGraphNode_t *out, size_t *out_count);
/* Whether the graph's nodes `wanted` are among these or what these depend on. */
bool emu_nodes_reach(const emu_graph_t *graph, const emu_nodes_t *nodes, const emu_nodes_t *wanted);

/* ---- exec.c: executable graphs, and their launches ---- */
typedef struct emu_exec emu_exec_t;
/* Adds pieces for all of the graph, which is that of the executable graph or one of its bodies. */
bool emu_exec_expand(emu_exec_t *exec, const emu_graph_t *graph, emu_chain_t *chain);
emu_exec_t *emu_exec_retain(emu_exec_t *exec);
void emu_exec_release(emu_exec_t *exec);
/* The graph is freed: executable graphs that were made of it live on. */
void emu_exec_forget(const emu_graph_t *graph);

/* ---- conditional.c ---- */
cudaError_t emu_conditional_add(emu_node_t **out, emu_graph_t *graph, const emu_nodes_t *dependencies,
                                struct cudaConditionalNodeParams *params);
/* The piece that decides, when it runs, which body of the node runs next. */
emu_piece_t *emu_conditional_piece(emu_exec_t *exec, const emu_node_t *node);
/* Whether there are conditional nodes in the graph: it is nobody's child, and has one executable graph at a time. */
bool emu_conditional_in(const emu_graph_t *graph);
/* Whether the conditions of a graph, and what its bodies hold, can be run. */
bool emu_conditional_valid(const emu_graph_t *graph);
/* The values at the begin of a launch. */
void emu_conditional_reset(const emu_graph_t *graph);
void emu_conditional_forget(const emu_graph_t *graph);

/* ---- pointer.c: which memory an address belongs to ---- */

typedef struct emu_range {
  uintptr_t begin;
  size_t nbytes;
  int device; /* of pinned memory: current when it was allocated */
  void *mapping;        /* of memory that is mapped at reserved addresses: what virtual.c knows of it */
  unsigned int access;  /* of such memory: a bit for each device that may touch it */
} emu_range_t;

typedef enum emu_place { EMU_PAGEABLE, EMU_PINNED, EMU_DEVICE, EMU_INVALID } emu_place_t;

/* Where the nbytes at an address lie; EMU_INVALID when they begin in device memory and are not all of one
 * allocation. *out_device is set for EMU_DEVICE, *out_host to where the bytes can be touched. */
emu_place_t emu_locate(const void *address, size_t nbytes, int *out_device, unsigned char **out_host);
/* The allocation that holds an address, NULL when none does; one past its end counts when `end` is set. */
const emu_range_t *emu_range_find(uintptr_t address, bool end, emu_place_t *out_place);
/* Device memory of a fresh range, poisoned; 0 when the address space or the host's memory is used up. */
uintptr_t emu_range_make(int device, size_t nbytes);
/* Gives the range that begins at an address back; its size, 0 when none begins there. */
size_t emu_range_drop(uintptr_t begin);
/* Addresses without memory; 0 when there are none left. They go back as a whole, once nothing is mapped there. */
uintptr_t emu_reservation_make(size_t nbytes, size_t alignment);
bool emu_reservation_drop(uintptr_t begin, size_t nbytes);
/* Whether all of it is reserved and nothing of it mapped; then memory can be mapped there, poisoned. */
bool emu_mapping_fits(uintptr_t begin, size_t nbytes);
bool emu_mapping_make(emu_range_t mapping);
/* The mapping that begins at an address, or NULL. */
emu_range_t *emu_mapping_at(uintptr_t begin);
void emu_mapping_drop(uintptr_t begin);
/* Pinned memory is the host's own; these only keep its ranges. */
bool emu_pinned_add(uintptr_t begin, size_t nbytes, int device);
bool emu_pinned_remove(uintptr_t begin);

/* ---- device.c ---- */
/* Enters a function of CUDA: takes the lock and counts the call. The error with which the call fails at
 * once: a bad setting, an injected failure, or (when it needs the context) the device's sticky error. */
cudaError_t emu_begin(emu_call_t call, bool needs_context);
/* Leaves it: drops the lock, and remembers an error as this thread's last. Returns the error. */
cudaError_t emu_end(cudaError_t error);
/* The body of every function of CUDA. */
#define EMU_RETURN(name, needs_context, body)                  \
  do {                                                         \
    cudaError_t emu__error = emu_begin(EMU_##name, needs_context); \
    if (!emu__error) emu__error = (body);                      \
    return emu_end(emu__error);                                \
  } while (0)

/* The body of every function of the driver, whose errors are not the runtime's last one. Their numbers agree. */
#define EMU_RETURN_DRIVER(name, body)                          \
  do {                                                         \
    cudaError_t emu__error = emu_begin(EMU_##name, true);      \
    if (!emu__error) emu__error = (body);                      \
    emu_unlock();                                              \
    return (CUresult)emu__error;                               \
  } while (0)

void emu_lock(void);
void emu_unlock(void);
/* Waits, without the lock, for a host function of another thread to end. */
void emu_wait_for_others(void);
void emu_wake_others(void);
/* While a host function runs, CUDA's functions refuse to be called from it. */
void emu_in_host_function(bool inside);
int emu_device_count(void);
int emu_device_current(void);
bool emu_peer_enabled(int from, int to);
/* The sticky error of a device; setting keeps the first. */
cudaError_t emu_context_error(int device);
void emu_context_fail(int device, cudaError_t error);
void emu_contexts_clear(void);
/* Calls of a function so far while a device was current (-1: any). */
uint64_t emu_calls(emu_call_t call, int device);
void emu_calls_clear(void);
/* The n-th call from now (1: the next) of this function fails; n = 0 takes that back. */
void emu_fail(emu_call_t call, uint64_t nth, cudaError_t error);

/* ---- settings.c: the environment, read by the first call ---- */
typedef struct emu_settings {
  int devices;
  size_t memory; /* bytes of each device */
  uint64_t seed;
  bool fibres;
  bool peers; /* whether devices can reach each other's memory */
  char problem[256]; /* a sentence about the first malformed variable, or empty */
} emu_settings_t;

const emu_settings_t *emu_settings(void);
/* Only before the first call; false afterwards. */
bool emu_settings_set_devices(int devices);

/* ---- memory.c ---- */
size_t emu_capacity(int device);
size_t emu_used(int device);
void emu_capacity_set(int device, size_t nbytes);
/* Counts memory of a device, or not when it has no room for it. */
bool emu_memory_take(int device, size_t nbytes);
void emu_memory_give(int device, size_t nbytes);

/* ---- event.c ---- */
/* What a launch queues for a node that records an event, or waits for one; NULL when the host has no memory. */
emu_piece_t *emu_event_piece(const emu_piece_t *piece);

/* ---- ipc.c: events that processes share ---- */
/* NULL when there is no memory, or no file. */
emu_shared_t *emu_shared_new(void);
emu_shared_t *emu_shared_retain(emu_shared_t *shared);
void emu_shared_release(emu_shared_t *shared);
/* The event is recorded once more, by any process: the number of the record. Later ones count for all earlier ones. */
uint64_t emu_shared_record(emu_shared_t *shared);
uint64_t emu_shared_recorded(const emu_shared_t *shared);
void emu_shared_reach(emu_shared_t *shared, uint64_t number);
bool emu_shared_reached(const emu_shared_t *shared, uint64_t number);
/* False when the event is another process's. */
bool emu_shared_handle(const emu_shared_t *shared, cudaIpcEventHandle_t *out);
cudaError_t emu_shared_open(const cudaIpcEventHandle_t *handle, emu_shared_t **out);

/* ---- launch.c, fibre.c ---- */
/* A kernel as a piece, for the current device. */
cudaError_t emu_kernel_piece(emu_piece_t **out, const struct cudaKernelNodeParams *params);
/* Of such a piece; what it points to lives as long as that. */
struct cudaKernelNodeParams emu_kernel_params(emu_piece_t *piece);
const char *emu_kernel_name(const emu_piece_t *piece);
/* Calls of the driver, which cudaGetDriverEntryPointByVersion gives (virtual.c). A function is a kernel on one device,
 * and a module an image on one. */
CUfunction emu_kernel_on(const void *kernel, int device);
CUcontext emu_context_of(int device);
CUresult emu_current_context(CUcontext *out);
CUresult emu_library_module(CUmodule *out, CUlibrary library);
CUresult emu_kernel_function(CUfunction *out, CUkernel kernel);
CUresult emu_function_module(CUmodule *out, CUfunction function);
CUresult emu_kernel_node_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out);
/* Ends the running kernel: does not return. The text is for tp_emulated_fault_text. */
_Noreturn void emu_kernel_fault(cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define EMU_FAULT_NBYTES 256
/* EMU_FAULT_NBYTES of text. */
const char *emu_fault_text(void);
void emu_fault_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void emu_fault_clear(void);
/* The device whose kernel runs now. */
int emu_kernel_device(void);
bool emu_fibres(void);
void emu_fibres_set(bool on);
typedef enum emu_block_end {
  EMU_BLOCK_DONE,
  EMU_BLOCK_DIVERGENT, /* some threads ended while others wait at a barrier */
  EMU_BLOCK_ABANDONED, /* emu_fibre_abandon */
  EMU_BLOCK_NO_STACK
} emu_block_end_t;
/* Runs one block of `threads` fibres, at most EMU_FIBRES. */
emu_block_end_t emu_fibre_block(void (*thread)(const void *), const void *arguments, unsigned int threads);
/* Whether a fibre runs now; the barrier of all of them; and leaving the block from inside one. */
bool emu_fibre_inside(void);
void emu_fibre_barrier(void);
_Noreturn void emu_fibre_abandon(void);

/* ---- error.c ---- */
/* The number of a CUDA error by name, -1 when the table lacks it. */
int emu_error_code(const char *name);

#endif
