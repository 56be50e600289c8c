/* Captures as the allocator sees them: where one allocates. */
#ifndef TP_ALLOC_CAPTURE_H
#define TP_ALLOC_CAPTURE_H

#include "../capture.h"

/* Until its end, what is allocated on streams of the capture that begins on `stream` comes from the pool. Called before
 * cudaStreamBeginCapture, so that nothing escapes, and ended after cudaStreamEndCapture or when there was no beginning;
 * the capture is a user of the pool until then. Everything runs on: captures on other streams, other threads. NULL
 * with HOST_MEMORY. */
tp__capture_t *tp__capture_begin(tp_mempool_t *mempool, tp_stream_t *stream);
/* The same for a body of a conditional node, which is captured by itself: it allocates from the pool of the outermost
 * capture, and as a part of it. */
tp__capture_t *tp__capture_begin_body(tp__capture_t *outermost, tp_stream_t *stream);
/* Before such a capture ends: what streams that were forked in it have allocated, and given back or not, is from now on
 * used again in the order of the stream where it began. Theirs is at an end: next time they may be forked from work
 * that runs beside it. Status: HOST_MEMORY, CUDA. */
tp_status_t tp__capture_gather(tp__capture_t *capture, const char *operation);
/* Release function. */
void tp__capture_end(tp__capture_t *capture);
/* From now on a live block is no longer counted as one of its capture's. */
void tp__capture_disown(tp__block_t *block);
/* How many blocks that were allocated in a capture still live, and their bytes. */
int64_t tp__capture_live_blocks(const tp_mempool_t *mempool, uint64_t id, size_t *out_nbytes);

#endif
