/* Programmatic edges. Between two kernels of a graph the device stands still for a moment: the second is launched when
 * the first has ended. A programmatic edge lets it be launched before, and wait by itself; which all of ours do before
 * they touch memory (kernels/kernel.h, docs/design/graphs.md "Programmatic edges"). So where both are ours, the edge
 * becomes such a one. Kernels of others, copies and fills keep plain edges. */
#include <stdlib.h>

#include "graph.h"

/* The instructions by which a kernel waits; older devices run images without them. */
#define FIRST_MAJOR 9
#define MOST_IMAGES 64

/* Whose kernel a node runs only the driver tells: the runtime knows its own kernels. */
typedef struct driver {
  __typeof__(&cuCtxGetCurrent) get_context;
  __typeof__(&cuLibraryGetModule) get_library_module;
  __typeof__(&cuKernelGetFunction) get_function;
  __typeof__(&cuFuncGetModule) get_module;
  __typeof__(&cuGraphKernelNodeGetParams) get_params;
} driver_t;

/* *out_found is false with a driver that lacks one. */
static tp_status_t find_driver(driver_t *driver, bool *out_found, const char *operation) {
  const tp__driver_function_t wanted[] = {
      {"cuCtxGetCurrent", (void **)&driver->get_context},
      {"cuLibraryGetModule", (void **)&driver->get_library_module},
      {"cuKernelGetFunction", (void **)&driver->get_function},
      {"cuFuncGetModule", (void **)&driver->get_module},
      {"cuGraphKernelNodeGetParams", (void **)&driver->get_params},
  };
  return tp__driver_find(wanted, sizeof wanted / sizeof *wanted, out_found, operation);
}

/* ---- whose kernels ---- */

/* Our images as a device holds them. */
typedef struct images {
  driver_t driver;
  CUcontext context; /* the device's */
  CUmodule modules[MOST_IMAGES];
  int32_t count;
} images_t;

/* Those that the driver tells. */
static void list_images(images_t *images, int32_t device) {
  cudaLibrary_t libraries[MOST_IMAGES];
  int32_t count = tp__launch_libraries(device, libraries, MOST_IMAGES);
  if (images->driver.get_context(&images->context)) return;
  for (int32_t i = 0; i < count; i++)
    if (!images->driver.get_library_module(&images->modules[images->count], (CUlibrary)libraries[i])) images->count++;
}

/* Whether the node runs a kernel of ours on that device. What the driver does not tell is another one. */
static bool is_ours(const images_t *images, cudaGraphNode_t node) {
  enum cudaGraphNodeType type;
  CUDA_KERNEL_NODE_PARAMS params = {0};
  CUmodule module;
  if (cudaGraphNodeGetType(node, &type)) {
    (void)cudaGetLastError();
    return false;
  }
  const driver_t *driver = &images->driver;
  if (type != cudaGraphNodeTypeKernel || driver->get_params(node, &params)) return false;
  if (!params.func && params.ctx && params.ctx != images->context) return false;
  if (!params.func && driver->get_function(&params.func, params.kern)) return false;
  if (driver->get_module(&module, params.func)) return false;
  for (int32_t i = 0; i < images->count; i++)
    if (images->modules[i] == module) return true;
  return false;
}

/* ---- edges ---- */

typedef struct edge_list {
  size_t count;
  cudaGraphNode_t *from, *to;
  cudaGraphEdgeData *data;
} edge_list_t;

static void forget(edge_list_t *edges) {
  free(edges->from);
  free(edges->to);
  free(edges->data);
}

/* All edges of the graph; in any case to be forgotten. */
static tp_status_t list_edges(cudaGraph_t graph, edge_list_t *out, const char *operation) {
  *out = (edge_list_t){0};
  TP_TRY_CUDA(cudaGraphGetEdges(graph, NULL, NULL, NULL, &out->count), operation);
  if (out->count == 0) return TP_OK;
  out->from = calloc(out->count, sizeof *out->from);
  out->to = calloc(out->count, sizeof *out->to);
  out->data = calloc(out->count, sizeof *out->data);
  if (!out->from || !out->to || !out->data)
    return tp__error_set(TP_HOST_MEMORY, operation, "no host memory to list %zu edges", out->count);
  TP_TRY_CUDA(cudaGraphGetEdges(graph, out->from, out->to, out->data, &out->count), operation);
  return TP_OK;
}

/* Keeps those that are plain, between kernels of ours. */
static void choose(edge_list_t *edges, const images_t *images) {
  size_t kept = 0;
  for (size_t i = 0; i < edges->count; i++) {
    const cudaGraphEdgeData *data = &edges->data[i];
    bool is_plain = !data->from_port && !data->to_port && data->type == cudaGraphDependencyTypeDefault;
    if (!is_plain || !is_ours(images, edges->from[i]) || !is_ours(images, edges->to[i])) continue;
    edges->from[kept] = edges->from[i];
    edges->to[kept++] = edges->to[i];
  }
  edges->count = kept;
}

static tp_status_t exchange(cudaGraph_t graph, const edge_list_t *edges, const char *operation) {
  if (edges->count == 0) return TP_OK;
  TP_TRY_CUDA(cudaGraphRemoveDependencies(graph, edges->from, edges->to, NULL, edges->count), operation);
  for (size_t i = 0; i < edges->count; i++)
    edges->data[i] = (cudaGraphEdgeData){.from_port = cudaGraphKernelNodePortProgrammatic,
                                         .type = cudaGraphDependencyTypeProgrammatic};
  TP_TRY_CUDA(cudaGraphAddDependencies(graph, edges->from, edges->to, edges->data, edges->count), operation);
  return TP_OK;
}

static tp_status_t hasten(cudaGraph_t graph, int32_t device, const char *operation) {
  images_t images = {.count = 0};
  bool found;
  edge_list_t edges;
  TP_TRY(find_driver(&images.driver, &found, operation));
  if (!found) return TP_OK;
  list_images(&images, device);
  tp_status_t status = list_edges(graph, &edges, operation);
  if (!status) {
    choose(&edges, &images);
    status = exchange(graph, &edges, operation);
  }
  forget(&edges);
  return status;
}

tp_status_t tp__edges_hasten(cudaGraph_t graph, int32_t device, const char *operation) {
  if (tp__device_properties(device)->major < FIRST_MAJOR) return TP_OK;
  enum cudaStreamCaptureMode mode = tp__capture_relax(); /* modules may be loaded, in a capture around a body */
  tp_status_t status = hasten(graph, device, operation);
  tp__capture_restore(mode);
  return status;
}
