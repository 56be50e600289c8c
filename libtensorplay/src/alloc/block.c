/* Records of blocks. They come from slabs that are kept for the life of the process, so that an allocation
 * costs no malloc, and a stale pointer to a record is a wrong record and never wild. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

enum { RECORDS_PER_SLAB = 128 };

/* Marsaglia's xorshift: enough to balance trees. */
static uint32_t next_random(tp__heap_t *heap) {
  uint32_t x = heap->random;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return heap->random = x;
}

static bool add_slab(tp__heap_t *heap) {
  tp__block_t *slab = calloc(RECORDS_PER_SLAB, sizeof *slab);
  if (!slab) return false;
  for (int i = 0; i < RECORDS_PER_SLAB; i++) {
    slab[i].priority = next_random(heap);
    slab[i].right = i + 1 < RECORDS_PER_SLAB ? &slab[i + 1] : heap->spare_blocks;
  }
  heap->spare_blocks = slab;
  return true;
}

tp__block_t *tp__block_new(tp__heap_t *heap) {
  if (!heap->spare_blocks && !add_slab(heap)) return NULL;
  tp__block_t *block = heap->spare_blocks;
  heap->spare_blocks = block->right;
  uint32_t priority = block->priority;
  memset(block, 0, sizeof *block);
  block->priority = priority;
  return block;
}

void tp__block_delete(tp__heap_t *heap, tp__block_t *block) {
  block->right = heap->spare_blocks;
  heap->spare_blocks = block;
}

tp__block_t *tp__block_split(tp__heap_t *heap, tp__block_t *block, size_t nbytes) {
  tp__block_t *rest = tp__block_new(heap);
  if (!rest) return NULL;
  rest->address = block->address + nbytes;
  rest->nbytes = block->nbytes - nbytes;
  rest->segment = block->segment;
  rest->stream = block->stream;
  rest->state = block->state;
  rest->freed = block->freed;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->nbytes = nbytes;
  return rest;
}

void tp__block_merge(tp__heap_t *heap, tp__block_t *block, tp__block_t *next) {
  block->nbytes += next->nbytes;
  if (block->freed < next->freed) block->freed = next->freed;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  tp__block_delete(heap, next);
}
