/* Inputs onto static inputs, and a replay, in one launch: the kernel that copies is the first node of a second
 * executable graph, made at the first use, and its table of pairs is renewed where it differs from the last one. What
 * that kernel cannot copy is copied before, as by tp_tensor_copy. */
#include <stdlib.h>
#include <string.h>

#include "../../kernels/args_stage.h"
#include "../alloc/alloc.h"
#include "graph.h"

static const char operation[] = "stage_and_launch";

/* The smallest first. */
static struct {
  int room;
  tp__kernel_t kernel;
} kernels[] = {
    {8, TP_KERNEL_INIT("stage", "tp_k_stage_8", NULL)},
    {32, TP_KERNEL_INIT("stage", "tp_k_stage_32", NULL)},
    {TP_STAGE_PAIRS, TP_KERNEL_INIT("stage", "tp_k_stage_64", NULL)},
};

typedef struct span {
  const char *begin, *end;
} span_t;

/* Pairs for the kernel, and the same by what they write, in the order of addresses. */
typedef struct batch {
  tp_stage_table_t table;
  span_t written[TP_STAGE_PAIRS];
} batch_t;

struct tp__stage {
  cudaGraph_t graph; /* a clone behind the node; NULL where the graph has conditions and cannot be cloned */
  cudaGraphNode_t node;
  tp__exec_t exec;
  batch_t batch;     /* free of overlaps; empty without a node */
  bool is_stale;     /* the node still has another one */
  size_t size;       /* this, of kernels, and the next only grow: to change them costs more than to copy less */
  uint32_t blocks;
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

static bool have_one_shape(const tp_tensor_t *a, const tp_tensor_t *b) {
  return a->ndim == b->ndim && a->numel == b->numel &&
         (a->ndim <= 1 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

/* Whether it passes the check and, if what it writes is apart from what it reads, is plain, as most are: what can be
 * seen without a call. */
static bool is_plain_at_once(const tp_tensor_t *target, const tp_tensor_t *source, const tp_stream_t *stream,
                             int32_t device) {
  const tp__block_t *block = source->storage->block;
  return target->contiguous && source->contiguous && target->dtype == source->dtype && target->device == device &&
         source->device == device && have_one_shape(target, source) && block && block->stream == stream;
}

static int64_t nbytes_of(const tp_tensor_t *tensor) { return tensor->numel * (int64_t)tp__dtype_size(tensor->dtype); }

/* Nothing where nothing is to be moved. */
static void add(batch_t *batch, const tp_tensor_t *target, const tp_tensor_t *source) {
  int64_t nbytes = nbytes_of(target);
  if (nbytes == 0 || target->data == source->data) return;
  int number = batch->table.count++, tiles = (int)tp__divide_up(nbytes, TP_STAGE_TILE);
  tp_stage_pair_t *pair = &batch->table.pairs[number];
  pair->out = target->data;
  pair->source = source->data;
  pair->end = (number ? pair[-1].end : 0) + tiles;
  pair->rest = (int)(nbytes - (int64_t)(tiles - 1) * TP_STAGE_TILE);
  const char *begin = target->data;
  for (; number && batch->written[number - 1].begin > begin; number--)
    batch->written[number] = batch->written[number - 1];
  batch->written[number] = (span_t){begin, begin + nbytes};
}

/* All pairs, if there are not too many and each is plain at once. */
static bool fill(batch_t *batch, int32_t count, tp_tensor_t *const *targets, tp_tensor_t *const *sources,
                 const tp_stream_t *stream) {
  int32_t device = tp_stream_device(stream);
  batch->table.count = 0;
  if (count > TP_STAGE_PAIRS) return false;
  for (int32_t i = 0; i < count; i++) {
    if (!is_plain_at_once(targets[i], sources[i], stream, device)) return false;
    add(batch, targets[i], sources[i]);
  }
  return true;
}

static int64_t pair_nbytes(const tp_stage_table_t *table, int i) {
  const tp_stage_pair_t *pair = &table->pairs[i];
  return (int64_t)(pair->end - (i ? pair[-1].end : 0) - 1) * TP_STAGE_TILE + pair->rest;
}

/* Whether some pair, all of which write apart from each other, writes there. Most of what is read lies beyond all. */
static bool writes(const batch_t *batch, const char *begin, int64_t nbytes) {
  const span_t *written = batch->written;
  int low = 0, high = batch->table.count;
  if (begin >= written[high - 1].end || begin + nbytes <= written[0].begin) return false;
  while (low < high) {
    int middle = (low + high) / 2;
    if (written[middle].end <= begin)
      low = middle + 1;
    else
      high = middle;
  }
  return written[low].begin < begin + nbytes;
}

/* Whether no pair writes what any pair reads, or another one writes. */
static bool are_apart(const batch_t *batch) {
  const tp_stage_table_t *table = &batch->table;
  for (int i = 1; i < table->count; i++) {
    if (batch->written[i - 1].end > batch->written[i].begin) return false;
  }
  for (int i = 0; i < table->count; i++) {
    if (writes(batch, table->pairs[i].source, pair_nbytes(table, i))) return false;
  }
  return true;
}

/* Whether all pairs are plain, and those of the last call but for their sources, which then take the place of the
 * former ones: what was found of the targets is not looked for again. */
static bool renew_sources(tp__stage_t *stage, int32_t count, tp_tensor_t *const *targets,
                          tp_tensor_t *const *sources, const tp_stream_t *stream) {
  tp_stage_table_t *table = &stage->batch.table;
  int32_t device = tp_stream_device(stream);
  if (count == 0 || count != table->count) return false;
  for (int32_t i = 0; i < count; i++) {
    const tp_tensor_t *target = targets[i], *source = sources[i];
    int64_t nbytes = pair_nbytes(table, i);
    if (target->data != table->pairs[i].out || nbytes_of(target) != nbytes ||
        !is_plain_at_once(target, source, stream, device) || writes(&stage->batch, source->data, nbytes))
      return false;
    if (source->data == table->pairs[i].source) continue;
    table->pairs[i].source = source->data;
    stage->is_stale = true;
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

static bool is_same(const tp_stage_table_t *a, const tp_stage_table_t *b) {
  return a->count == b->count && memcmp(a->pairs, b->pairs, (size_t)a->count * sizeof *a->pairs) == 0;
}

/* ---- the kernel ---- */

/* The smallest from that one on. */
static size_t size_for(const tp_stage_table_t *table, size_t size) {
  while (kernels[size].room < table->count) size++;
  return size;
}

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
static tp_status_t launch_kernel(tp_graph_t *graph, const tp_stage_table_t *table, tp_stream_t *stream) {
  tp__touch_t *touches;
  int32_t count;
  TP_TRY(tp__graph_follow(graph, NULL, stream, operation));
  TP_TRY(list_touches(graph, table, false, &touches, &count));
  tp_status_t status = tp__watch(stream, count, touches, operation);
  free(touches);
  if (status) return status;
  return tp__launch(&kernels[size_for(table, 0)].kernel, graph->device, stream, blocks_of(table), 1, 1,
                    TP_BLOCK_THREADS, table, operation);
}

/* ---- the second executable graph ---- */

/* Into params, and the list that they point to: the node as the batch wants it. */
static tp_status_t fill_params(tp__stage_t *stage, int32_t device, void **list, struct cudaKernelNodeParams *params) {
  const tp_stage_table_t *table = &stage->batch.table;
  void *function;
  stage->size = size_for(table, stage->size);
  if (stage->blocks < blocks_of(table)) stage->blocks = blocks_of(table);
  TP_TRY(tp__launch_find(&kernels[stage->size].kernel, device, &function));
  list[0] = (void *)table;
  *params = (struct cudaKernelNodeParams){
      .func = function, .gridDim = {stage->blocks, 1, 1}, .blockDim = {TP_BLOCK_THREADS, 1, 1}, .kernelParams = list};
  return TP_OK;
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
static tp_status_t add_node(tp__stage_t *stage, int32_t device) {
  struct cudaKernelNodeParams params;
  void *list[1];
  TP_TRY(fill_params(stage, device, list, &params));
  TP_TRY_CUDA(cudaGraphAddKernelNode(&stage->node, stage->graph, NULL, 0, &params), operation);
  size_t count = 0;
  TP_TRY_CUDA(cudaGraphGetRootNodes(stage->graph, NULL, &count), operation);
  cudaGraphNode_t *nodes = malloc(2 * count * sizeof *nodes);
  if (!nodes) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list %zu nodes", count);
  tp_status_t status = put_first(stage, count, nodes);
  free(nodes);
  return status;
}

static tp_status_t make(const tp_graph_t *graph, tp__stage_t *stage, const batch_t *batch) {
  cudaError_t error = cudaGraphClone(&stage->graph, graph->graph);
  if (error == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    stage->graph = NULL;
    return TP_OK;
  }
  if (error) return tp__error_set_cuda(error, operation, "cudaGraphClone");
  cudaGraphNode_t setter = graph->exec.setter;
  if (setter) TP_TRY_CUDA(cudaGraphNodeFindInClone(&stage->exec.setter, setter, stage->graph), operation);
  stage->batch = *batch;
  TP_TRY(add_node(stage, graph->device));
  TP_TRY(tp__edges_hasten(stage->graph, graph->device, operation));
  TP_TRY_CUDA(cudaGraphInstantiate(&stage->exec.cuda, stage->graph, 0), operation);
  return TP_OK;
}

/* At the first use. */
static tp_status_t prepare(tp_graph_t *graph, const batch_t *batch) {
  if (graph->stage) return TP_OK;
  tp__stage_t *stage = calloc(1, sizeof *stage);
  if (!stage) return tp__error_set(TP_HOST_MEMORY, operation, "no host memory for a second executable graph");
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  tp_status_t status = make(graph, stage, batch);
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
  free(stage);
}

/* Another batch takes the place of the last one. */
static void adopt(tp__stage_t *stage, const batch_t *batch) {
  if (is_same(&batch->table, &stage->batch.table)) return;
  stage->batch = *batch;
  stage->is_stale = true;
}

static tp_status_t renew_node(tp__stage_t *stage, int32_t device) {
  struct cudaKernelNodeParams params;
  void *list[1];
  if (!stage->is_stale) return TP_OK;
  TP_TRY(fill_params(stage, device, list, &params));
  TP_TRY_CUDA(cudaGraphExecKernelNodeSetParams(stage->exec.cuda, stage->node, &params), operation);
  stage->is_stale = false;
  return TP_OK;
}

/* ---- the call ---- */

static tp_status_t launch_plain(tp_graph_t *graph, tp_stream_t *stream) {
  return tp__graph_launch(graph, &graph->exec, graph->watch.touch_count, graph->watch.touches, stream, operation);
}

/* The pairs of the stage, then the graph. */
static tp_status_t launch_staged(tp_graph_t *graph, tp_stream_t *stream) {
  tp__stage_t *stage = graph->stage;
  tp__touch_t *touches;
  int32_t count;
  TP_TRY(renew_node(stage, graph->device));
  TP_TRY(list_touches(graph, &stage->batch.table, true, &touches, &count));
  tp_status_t status = tp__graph_launch(graph, &stage->exec, count, touches, stream, operation);
  free(touches);
  return status;
}

/* The pairs of the batch, then the graph. */
static tp_status_t launch(tp_graph_t *graph, const batch_t *batch, tp_stream_t *stream) {
  if (batch->table.count == 0) return launch_plain(graph, stream);
  TP_TRY(prepare(graph, batch));
  if (!graph->stage->graph) {
    TP_TRY(launch_kernel(graph, &batch->table, stream));
    return launch_plain(graph, stream);
  }
  adopt(graph->stage, batch);
  return launch_staged(graph, stream);
}

/* Queues all pairs but those that it leaves in the batch: in the order of the list where that shows, else the kernel's
 * last. */
static tp_status_t copy_some(tp_graph_t *graph, int32_t count, tp_tensor_t *const *targets,
                             tp_tensor_t *const *sources, tp_stream_t *stream, batch_t *batch) {
  bool tangled = are_tangled(count, targets, sources);
  batch->table.count = 0;
  for (int32_t i = 0; i < count; i++) {
    if (tangled || !is_plain(targets[i], sources[i], graph->device)) {
      TP_TRY(tp__graph_follow(graph, NULL, stream, operation));
      TP_TRY(tp_tensor_copy(targets[i], sources[i]));
      continue;
    }
    if (batch->table.count == TP_STAGE_PAIRS) {
      TP_TRY(launch_kernel(graph, &batch->table, stream));
      batch->table.count = 0;
    }
    add(batch, targets[i], sources[i]);
  }
  return TP_OK;
}

static tp_status_t stage_and_launch(tp_graph_t *graph, int32_t count, tp_tensor_t *const *targets,
                                    tp_tensor_t *const *sources) {
  tp_stream_t *stream = NULL;
  batch_t batch;
  TP_TRY(tp__graph_ready(graph, &stream, operation));
  if (graph->stage && renew_sources(graph->stage, count, targets, sources, stream)) return launch_staged(graph, stream);
  if (!fill(&batch, count, targets, sources, stream) || !are_apart(&batch)) {
    TP_TRY(check_pairs(count, targets, sources));
    TP_TRY(copy_some(graph, count, targets, sources, stream, &batch));
  }
  return launch(graph, &batch, stream);
}

tp_status_t tp_graph_stage_and_launch(tp_graph_t *graph, int32_t count, tp_tensor_t *const *static_inputs,
                                      tp_tensor_t *const *inputs) {
  TP_TRY(tp__device_check_process(operation));
  pthread_mutex_lock(&graph->lock);
  tp_status_t status = stage_and_launch(graph, count, static_inputs, inputs);
  pthread_mutex_unlock(&graph->lock);
  return status;
}
