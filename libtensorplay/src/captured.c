/* To ask about a stream that another thread's capture has, in the moment in which that thread ends it, can end the
 * process: CUDA 13 looks at what is no longer there. So any number may ask at once, but nobody while a capture begins
 * or ends. Only the calls of other libraries are not in our hands. */
#include "captured.h"

#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* no other one is taken inside of it */

cudaError_t tp__captured_begin(const tp_stream_t *stream, enum cudaStreamCaptureMode mode) {
  pthread_rwlock_wrlock(&lock);
  cudaError_t error = cudaStreamBeginCapture(tp__stream_cuda(stream), mode);
  pthread_rwlock_unlock(&lock);
  return error;
}

cudaError_t tp__captured_end(const tp_stream_t *stream, cudaGraph_t *out) {
  pthread_rwlock_wrlock(&lock);
  cudaError_t error = cudaStreamEndCapture(tp__stream_cuda(stream), out);
  pthread_rwlock_unlock(&lock);
  return error;
}

cudaError_t tp__captured_status(const tp_stream_t *stream, enum cudaStreamCaptureStatus *out) {
  pthread_rwlock_rdlock(&lock);
  cudaError_t error = cudaStreamIsCapturing(tp__stream_cuda(stream), out);
  pthread_rwlock_unlock(&lock);
  return error;
}

cudaError_t tp__captured_info(const tp_stream_t *stream, enum cudaStreamCaptureStatus *out,
                              unsigned long long *out_capture, cudaGraph_t *out_graph,
                              const cudaGraphNode_t **out_nodes, const cudaGraphEdgeData **out_edges,
                              size_t *out_count) {
  pthread_rwlock_rdlock(&lock);
  cudaError_t error = cudaStreamGetCaptureInfo(tp__stream_cuda(stream), out, out_capture, out_graph, out_nodes,
                                               out_edges, out_count);
  pthread_rwlock_unlock(&lock);
  return error;
}

bool tp__captured_tail(const tp_stream_t *stream, uint64_t capture, const cudaGraphNode_t **out, size_t *out_count) {
  if (!tp__stream_cuda(stream)) return false; /* the default stream is never captured, nor to be asked beside it */
  enum cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaError_t error = tp__captured_info(stream, &status, &id, NULL, out, NULL, out_count);
  if (error) (void)cudaGetLastError();
  return !error && status == cudaStreamCaptureStatusActive && id == capture;
}
