/* What CUDA knows of a stream that is captured, and the two calls that change it. */
#ifndef TP_CAPTURED_H
#define TP_CAPTURED_H

#include "internal.h"

/* cudaStreamBeginCapture and cudaStreamEndCapture, without anybody asking meanwhile. */
cudaError_t tp__captured_begin(const tp_stream_t *stream, enum cudaStreamCaptureMode mode);
cudaError_t tp__captured_end(const tp_stream_t *stream, cudaGraph_t *out);
/* cudaStreamIsCapturing and cudaStreamGetCaptureInfo; of the latter's results those may be NULL that CUDA lets be. */
cudaError_t tp__captured_status(const tp_stream_t *stream, enum cudaStreamCaptureStatus *out);
cudaError_t tp__captured_info(const tp_stream_t *stream, enum cudaStreamCaptureStatus *out,
                              unsigned long long *out_capture, cudaGraph_t *out_graph,
                              const cudaGraphNode_t **out_nodes, const cudaGraphEdgeData **out_edges,
                              size_t *out_count);
/* What the stream's next node would come behind, as long as nothing is captured there. False where the stream takes no
 * part in the capture with that number of CUDA's, where an edge is not a whole one, and where CUDA does not tell. */
bool tp__captured_tail(const tp_stream_t *stream, uint64_t capture, const cudaGraphNode_t **out, size_t *out_count);

#endif
