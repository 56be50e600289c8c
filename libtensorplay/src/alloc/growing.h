/* Growing segments and their pages, for the files of the allocator that tell them from others. */
#ifndef TP_GROWING_H
#define TP_GROWING_H

#include "alloc.h"

/* ---- pages.c: the device is entered ---- */

/* Addresses for memory. Status: UNAVAILABLE without virtual memory; *out_refused: there are none left, in which case
 * the error slot is left alone. */
tp_status_t tp__pages_reserve(int32_t device, size_t nbytes, char **out, const char *operation, bool *out_refused);
cudaError_t tp__pages_free(char *address, size_t nbytes);
/* Maps memory, all of it or nothing: fresh, or that which is mapped at `source`, and stays so. *out_refused as above:
 * the device has no room. */
tp_status_t tp__pages_map(int32_t device, char *address, size_t nbytes, char *source, const char *operation,
                          bool *out_refused);
/* Whole pages; nothing is waited for. */
cudaError_t tp__pages_unmap(char *address, size_t nbytes);
/* Gives the device's peers access to whole mapped pages, as those have that were mapped since they are peers. */
cudaError_t tp__pages_share(int32_t device, char *address, size_t nbytes);

/* ---- idle.c: the device is entered ---- */

/* Whole pages that free blocks cover. */
typedef struct tp__idle {
  tp__block_t *first; /* they begin in this one, or in one that follows */
  char *begin;
  size_t nbytes;
} tp__idle_t;

/* Those of the free blocks that follow each other from `first`; *out_end is what comes behind these. */
tp__idle_t tp__idle_from(tp__block_t *first, tp__block_t **out_end);
/* Bytes of all of a segment. */
size_t tp__idle_nbytes(const tp__segment_t *segment);
/* Asks the streams of default pools how far they are. No capture may be underway. */
void tp__idle_look(tp__heap_t *heap);
/* Bytes of those in blocks of default pools on which no work is left, but for blocks beside the gap, which may be NULL.
 * *out_most: the most in one block. */
size_t tp__idle_movable(const tp__heap_t *heap, const tp__block_t *gap, tp__idle_t *out_most);
/* Makes them a gap; nothing is waited for. Not *out_done: they stay, after an error or without host memory. */
cudaError_t tp__idle_unmap(tp__heap_t *heap, const tp__idle_t *idle, bool *out_done);

/* ---- growing.c: the device is entered ---- */

/* Whether a request's memory comes so: where the setting says it, but not that of private pools with a source of their
 * own, or without splitting. Segments that there are stay what they are. */
bool tp__growing_serves(const tp__request_t *request);
/* Where a request fits with the fewest bytes to map, and how many; without a gap where it takes a new segment. */
typedef struct tp__place {
  tp__block_t *gap;
  size_t nbytes;
  bool at_end;    /* of the gap, in front of a free block */
  size_t movable; /* bytes of idle pages elsewhere that could come, without a wait */
  size_t moved;   /* those that are to, since the heap holds enough */
} tp__place_t;
tp__place_t tp__growing_find(tp__heap_t *heap, const tp__request_t *request);
/* As tp__segment_obtain, at that place. On failure nothing is mapped anew; pages that have moved lie there. */
tp_status_t tp__growing_obtain(tp__heap_t *heap, const tp__request_t *request, tp__place_t place, tp__block_t **out,
                               bool *out_refused);
/* tp__segment_release: unmaps whole free pages, after the work of their streams is done. */
cudaError_t tp__growing_release(tp__heap_t *heap, tp__segment_t *segment, const char **out_call);
/* A device has become a peer: it gets access to what is mapped already. Under the heap's lock. */
tp_status_t tp__growing_share(tp__heap_t *heap, const char *operation);

#endif
