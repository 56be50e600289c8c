/* Inputs onto static inputs, and a replay, in one launch: the kernel that copies is the first node of a second
 * executable graph, made at the first use, and its table of pairs is renewed where it differs from the last one. What
 * that kernel cannot copy is copied before, as by tp_tensor_copy. */
#include <stdlib.h>
#include <string.h>

#include "../../kernels/args_stage.h"
#include "../alloc/alloc.h"
#include "graph.h"

static const char operation[] = "stage_and_launch";

static tp__kernel_t kernel = TP_KERNEL_INIT("stage", "tp_k_stage", NULL);

struct tp__stage {
  cudaGraph_t graph; /* a clone behind the node; NULL where the graph has conditions and cannot be cloned */
  cudaGraphNode_t node;
  tp__exec_t exec;
  tp_stage_table_t table; /* of the node, and free of overlaps */
};

/* ---- pairs ---- */

/* What tp_tensor_copy would refuse; and inputs may be dropped at once, and be of another stream. */
static tp_status_t check_pairs(int32_t count, tp_tensor_t *const *targets, tp_tensor_t *const *sources) {
  for (int32_t i = 0; i < count; i++) TP_TRY(tp__copy_check(targets[i], sources[i], operation));
  for (int32_t i = 0; i < count; i++)
    TP_TRY(tp_tensor_record_stream(sources[i], tp__stream_current(sources[i]->device)));
  return TP_OK;
}

/* Whether the kernel can copy it, apart from other pairs. */
static bool is_plain(const tp_tensor_t *target, const tp_tensor_t *source, int32_t device) {
  return target->contiguous && source->contiguous && target->dtype == source->dtype &&
         target->numel == source->numel && target->device == device && source->device == device &&
         !tp__tensor_overlaps(target, source);
}

/* Whether it is plain and passes the check, as most are: what can be seen without a call. */
static bool is_plain_at_once(const tp_tensor_t *target, const tp_tensor_t *source, const tp_stream_t *stream,
                             int32_t device) {
  const tp__block_t *block = source->storage->block;
  return target->contiguous && source->contiguous && target->dtype == source->dtype &&
         target->device == device && source->device == device && target->ndim == source->ndim &&
         memcmp(target->shape, source->shape, (size_t)target->ndim * sizeof *target->shape) == 0 &&
         target->storage->block && block && target->storage != source->storage && block->stream == stream;
}

/* Nothing where nothing is to be moved. */
static void add(tp_stage_table_t *table, const tp_tensor_t *target, const tp_tensor_t *source) {
  if (target->numel == 0 || target->data == source->data) return;
  uintptr_t addresses = (uintptr_t)target->data | (uintptr_t)source->data;
  tp_stage_pair_t *pair = &table->pairs[table->count++];
  pair->out = target->data;
  pair->source = source->data;
  pair->nbytes = (long long)(target->numel * (int64_t)tp__dtype_size(target->dtype));
  pair->end = (table->count > 1 ? pair[-1].end : 0) + (int)tp__divide_up(pair->nbytes, TP_STAGE_TILE);
  pair->unit = addresses % 16 == 0 ? 16 : addresses % 4 == 0 ? 4 : 1;
}

/* All pairs, if there are not too many and each is plain at once. */
static bool fill(tp_stage_table_t *table, int32_t count, tp_tensor_t *const *targets, tp_tensor_t *const *sources,
                 const tp_stream_t *stream) {
  int32_t device = tp_stream_device(stream);
  table->count = 0;
  if (count > TP_STAGE_PAIRS) return false;
  for (int32_t i = 0; i < count; i++) {
    if (!is_plain_at_once(targets[i], sources[i], stream, device)) return false;
    add(table, targets[i], sources[i]);
  }
  return true;
}

static bool is_same(const tp_stage_table_t *a, const tp_stage_table_t *b) {
  return a->count == b->count && memcmp(a->pairs, b->pairs, (size_t)a->count * sizeof *a->pairs) == 0;
}

static bool meet(const void *a, long long a_nbytes, const void *b, long long b_nbytes) {
  return (uintptr_t)a < (uintptr_t)b + (size_t)b_nbytes && (uintptr_t)b < (uintptr_t)a + (size_t)a_nbytes;
}

/* Whether no pair writes what another one reads or writes. Most sources lie beyond all that is written. */
static bool are_apart(const tp_stage_table_t *table) {
  const char *low = (const char *)UINTPTR_MAX, *high = NULL;
  for (int i = 0; i < table->count; i++) {
    const tp_stage_pair_t *a = &table->pairs[i];
    const char *begin = a->out, *end = begin + a->nbytes;
    for (int j = 0; j < i; j++) {
      if (meet(begin, a->nbytes, table->pairs[j].out, table->pairs[j].nbytes)) return false;
    }
    if (begin < low) low = begin;
    if (end > high) high = end;
  }
  for (int i = 0; i < table->count; i++) {
    const tp_stage_pair_t *a = &table->pairs[i];
    if (!meet(a->source, a->nbytes, low, high - low)) continue;
    for (int j = 0; j < table->count; j++) {
      if (i != j && meet(a->source, a->nbytes, table->pairs[j].out, table->pairs[j].nbytes)) return false;
    }
  }
  return true;
}

/* The same of all pairs, whatever their kind. */
static bool are_tangled(int32_t count, tp_tensor_t *const *targets, tp_tensor_t *const *sources) {
  for (int32_t i = 0; i < count; i++) {
    for (int32_t j = 0; j < count; j++) {
      if (i != j && tp__tensor_meets(targets[i], sources[j])) return true;
      if (i < j && tp__tensor_meets(targets[i], targets[j])) return true;
    }
  }
  return false;
}

/* ---- the kernel ---- */

static uint32_t blocks_of(const tp_stage_table_t *table) { return (uint32_t)table->pairs[table->count - 1].end; }

/* What the table touches, and the graph if it is part of the launch; NULL, and a count of 0, while nobody asks. */
static tp_status_t list_touches(const tp_graph_t *graph, const tp_stage_table_t *table, bool with_graph,
                                tp__touch_t **out, int32_t *out_count) {
  int32_t more = with_graph ? graph->watch.touch_count : 0, count = 0;
  *out = NULL;
  *out_count = 0;
  if (!tp__is_watched()) return TP_OK;
  tp__touch_t *touches = malloc((size_t)(2 * table->count + more) * sizeof *touches);
  if (!touches) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list what it uses");
  for (int i = 0; i < table->count; i++) {
    touches[count++] = (tp__touch_t){table->pairs[i].out, true};
    touches[count++] = (tp__touch_t){table->pairs[i].source, false};
  }
  for (int32_t i = 0; i < more; i++) touches[count++] = graph->watch.touches[i];
  *out = touches;
  *out_count = count;
  return TP_OK;
}

/* The kernel by itself. */
static tp_status_t launch_kernel(const tp_graph_t *graph, const tp_stage_table_t *table, tp_stream_t *stream) {
  tp__touch_t *touches;
  int32_t count;
  TP_TRY(list_touches(graph, table, false, &touches, &count));
  tp_status_t status = tp__watch(stream, count, touches, operation);
  free(touches);
  if (status) return status;
  return tp__launch(&kernel, graph->device, stream, blocks_of(table), 1, 1, TP_BLOCK_THREADS, table, operation);
}

/* ---- the second executable graph ---- */

#define PARAMS(function, table)                                                                  \
  &(struct cudaKernelNodeParams) {                                                               \
    .func = (function), .gridDim = {blocks_of(table), 1, 1}, .blockDim = {TP_BLOCK_THREADS, 1, 1}, \
    .kernelParams = (void *[]){(void *)(table)},                                                 \
  }

/* `nodes` has room for count nodes of the clone, and as many copies of the first. */
static tp_status_t put_first(tp__stage_t *stage, size_t count, cudaGraphNode_t *nodes) {
  cudaGraphNode_t *roots = nodes, *befores = nodes + count;
  size_t others = 0;
  TP_TRY_CUDA(cudaGraphGetRootNodes(stage->graph, roots, &count), operation);
  for (size_t i = 0; i < count; i++) {
    if (roots[i] != stage->node) roots[others++] = roots[i];
  }
  for (size_t i = 0; i < others; i++) befores[i] = stage->node;
  if (others) TP_TRY_CUDA(cudaGraphAddDependencies(stage->graph, befores, roots, NULL, others), operation);
  return TP_OK;
}

/* The node, which all others come behind. */
static tp_status_t add_node(tp__stage_t *stage, const tp_stage_table_t *table, int32_t device) {
  void *function;
  TP_TRY(tp__launch_find(&kernel, device, &function));
  TP_TRY_CUDA(cudaGraphAddKernelNode(&stage->node, stage->graph, NULL, 0, PARAMS(function, table)), operation);
  stage->table = *table;
  size_t count = 0;
  TP_TRY_CUDA(cudaGraphGetRootNodes(stage->graph, NULL, &count), operation);
  cudaGraphNode_t *nodes = malloc(2 * count * sizeof *nodes);
  if (!nodes) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list %zu nodes", count);
  tp_status_t status = put_first(stage, count, nodes);
  free(nodes);
  return status;
}

static tp_status_t make(const tp_graph_t *graph, tp__stage_t *stage, const tp_stage_table_t *table) {
  cudaError_t error = cudaGraphClone(&stage->graph, graph->graph);
  if (error == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    stage->graph = NULL;
    return TP_OK;
  }
  if (error) return tp__error_set_cuda(error, operation, "cudaGraphClone");
  cudaGraphNode_t setter = graph->exec.setter;
  if (setter) TP_TRY_CUDA(cudaGraphNodeFindInClone(&stage->exec.setter, setter, stage->graph), operation);
  TP_TRY(add_node(stage, table, graph->device));
  TP_TRY_CUDA(cudaGraphInstantiate(&stage->exec.cuda, stage->graph, 0), operation);
  return TP_OK;
}

/* At the first use. */
static tp_status_t prepare(tp_graph_t *graph, const tp_stage_table_t *table) {
  if (graph->stage) return TP_OK;
  tp__stage_t *stage = calloc(1, sizeof *stage);
  if (!stage) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a second executable graph");
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  tp_status_t status = make(graph, stage, table);
  tp__capture_restore(mode);
  if (status)
    tp__stage_drop(stage);
  else
    graph->stage = stage;
  return status;
}

void tp__stage_drop(tp__stage_t *stage) {
  if (!stage) return;
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  if (stage->exec.cuda) (void)cudaGraphExecDestroy(stage->exec.cuda);
  if (stage->graph) (void)cudaGraphDestroy(stage->graph);
  tp__capture_restore(mode);
  tp__order_drop(stage->exec.point);
  free(stage);
}

static tp_status_t renew(tp__stage_t *stage, const tp_stage_table_t *table, int32_t device) {
  void *function;
  if (is_same(table, &stage->table)) return TP_OK;
  TP_TRY(tp__launch_find(&kernel, device, &function));
  TP_TRY_CUDA(cudaGraphExecKernelNodeSetParams(stage->exec.cuda, stage->node, PARAMS(function, table)), operation);
  stage->table = *table;
  return TP_OK;
}

/* ---- the call ---- */

static tp_status_t launch_plain(tp_graph_t *graph, tp_stream_t *stream) {
  return tp__graph_launch(graph, &graph->exec, graph->watch.touch_count, graph->watch.touches, stream, operation);
}

/* The pairs of the table, then the graph. */
static tp_status_t launch(tp_graph_t *graph, const tp_stage_table_t *table, tp_stream_t *stream) {
  if (table->count == 0) return launch_plain(graph, stream);
  TP_TRY(prepare(graph, table));
  tp__stage_t *stage = graph->stage;
  if (!stage->graph) {
    TP_TRY(launch_kernel(graph, table, stream));
    return launch_plain(graph, stream);
  }
  TP_TRY(renew(stage, table, graph->device));
  tp__touch_t *touches;
  int32_t count;
  TP_TRY(list_touches(graph, table, true, &touches, &count));
  tp_status_t status = tp__graph_launch(graph, &stage->exec, count, touches, stream, operation);
  free(touches);
  return status;
}

/* Queues all pairs but those that it leaves in the table: in the order of the list where that shows, else the kernel's
 * last. */
static tp_status_t copy_some(tp_graph_t *graph, int32_t count, tp_tensor_t *const *targets,
                             tp_tensor_t *const *sources, tp_stream_t *stream, tp_stage_table_t *table) {
  bool tangled = are_tangled(count, targets, sources);
  table->count = 0;
  for (int32_t i = 0; i < count; i++) {
    if (tangled || !is_plain(targets[i], sources[i], graph->device)) {
      TP_TRY(tp_tensor_copy(targets[i], sources[i]));
      continue;
    }
    if (table->count == TP_STAGE_PAIRS) {
      TP_TRY(launch_kernel(graph, table, stream));
      table->count = 0;
    }
    add(table, targets[i], sources[i]);
  }
  return TP_OK;
}

static tp_status_t stage_and_launch(tp_graph_t *graph, int32_t count, tp_tensor_t *const *targets,
                                    tp_tensor_t *const *sources) {
  tp_stream_t *stream = NULL;
  tp_stage_table_t table;
  TP_TRY(tp__graph_ready(graph, &stream, operation));
  bool all = fill(&table, count, targets, sources, stream);
  bool known = all && graph->stage && is_same(&table, &graph->stage->table);
  if (!known && !(all && are_apart(&table))) {
    TP_TRY(check_pairs(count, targets, sources));
    TP_TRY(copy_some(graph, count, targets, sources, stream, &table));
  }
  return launch(graph, &table, stream);
}

tp_status_t tp_graph_stage_and_launch(tp_graph_t *graph, int32_t count, tp_tensor_t *const *static_inputs,
                                      tp_tensor_t *const *inputs) {
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = stage_and_launch(graph, count, static_inputs, inputs);
  pthread_mutex_unlock(&graph->lock);
  return status;
}
