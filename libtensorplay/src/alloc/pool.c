/* Free blocks: best fit among the blocks of one pool and stream.
 *
 * A shelf sorts its blocks into bins, one for each size below 2 MiB and then 16 to an octave, and marks the bins in
 * use in a bitmap, and its words in use in another one. A bin of one size is a list, the block that was freed last in
 * front; the others are treaps, which order by size and address and stay balanced through random priorities. So a
 * search looks into at most one small tree and then at the front of the next bin in use. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

/* ---- trees ---- */

static bool comes_before(const tp__block_t *a, const tp__block_t *b) {
  return a->nbytes != b->nbytes ? a->nbytes < b->nbytes : a->address < b->address;
}

static void tree_insert(tp__block_t **slot, tp__block_t *block) {
  while (*slot && (*slot)->priority >= block->priority) {
    slot = comes_before(block, *slot) ? &(*slot)->left : &(*slot)->right;
  }
  /* The block takes this place; what stood here is parted into what comes before it and after it. */
  tp__block_t *rest = *slot;
  *slot = block;
  tp__block_t **before = &block->left;
  tp__block_t **after = &block->right;
  while (rest) {
    if (comes_before(rest, block)) {
      *before = rest;
      before = &rest->right;
      rest = rest->right;
    } else {
      *after = rest;
      after = &rest->left;
      rest = rest->left;
    }
  }
  *before = *after = NULL;
}

static void tree_remove(tp__block_t **slot, tp__block_t *block) {
  while (*slot != block) slot = comes_before(block, *slot) ? &(*slot)->left : &(*slot)->right;
  tp__block_t *left = block->left;
  tp__block_t *right = block->right;
  while (left && right) {
    if (left->priority >= right->priority) {
      *slot = left;
      slot = &left->right;
      left = left->right;
    } else {
      *slot = right;
      slot = &right->left;
      right = right->left;
    }
  }
  *slot = left ? left : right;
}

static tp__block_t *tree_find(tp__block_t *block, size_t nbytes) {
  tp__block_t *best = NULL;
  while (block) {
    if (block->nbytes >= nbytes) {
      best = block;
      block = block->left;
    } else {
      block = block->right;
    }
  }
  return best;
}

/* ---- lists ---- */

static void list_insert(tp__block_t **first, tp__block_t *block) {
  block->left = NULL;
  block->right = *first;
  if (block->right) block->right->left = block;
  *first = block;
}

static void list_remove(tp__block_t **first, tp__block_t *block) {
  if (block->right) block->right->left = block->left;
  *(block->left ? &block->left->right : first) = block->right;
}

/* ---- bins ---- */

enum { BINS_PER_OCTAVE = 16 };

/* Units below 4096 have a bin each, then come 16 to an octave; the last bin also takes all above it. */
static int bin_of(size_t nbytes) {
  size_t units = nbytes / TP_BLOCK_UNIT;
  if (units < TP_BIN_LISTS) return (int)units;
  int octave = 63 - __builtin_clzll(units);
  int bin = TP_BIN_LISTS + (octave - 12) * BINS_PER_OCTAVE + (int)((units >> (octave - 4)) % BINS_PER_OCTAVE);
  return bin < TP_BIN_COUNT ? bin : TP_BIN_COUNT - 1;
}

static bool is_list(int bin) { return bin < TP_BIN_LISTS; }

/* The first bit that is set from `bit` on, among those of n words; 64 * n where none is. */
static int next_bit(const uint64_t *words, int n, int bit) {
  int word = bit / 64;
  if (word >= n) return 64 * n;
  uint64_t bits = words[word] & (~(uint64_t)0 << bit % 64);
  while (!bits) {
    if (++word == n) return 64 * n;
    bits = words[word];
  }
  return 64 * word + __builtin_ctzll(bits);
}

/* The first bin in use from `bin` on, or TP_BIN_COUNT. */
static int next_bin(const tp__shelf_t *shelf, int bin) {
  int word = bin / 64;
  int found = next_bit(shelf->occupied, word < TP_BIN_WORDS ? word + 1 : TP_BIN_WORDS, bin);
  if (found < 64 * (word + 1)) return found;
  word = next_bit(shelf->words, sizeof shelf->words / sizeof *shelf->words, word + 1);
  return word < TP_BIN_WORDS ? 64 * word + __builtin_ctzll(shelf->occupied[word]) : TP_BIN_COUNT;
}

static tp__block_t *bin_find(const tp__shelf_t *shelf, int bin, size_t nbytes) {
  if (is_list(bin)) return shelf->bins[bin];
  return bin < TP_BIN_COUNT ? tree_find(shelf->bins[bin], nbytes) : NULL;
}

static void mark_bin(tp__shelf_t *shelf, int bin, bool used) {
  int word = bin / 64;
  uint64_t bit = (uint64_t)1 << bin % 64, word_bit = (uint64_t)1 << word % 64;
  if (used) {
    shelf->occupied[word] |= bit;
    shelf->words[word / 64] |= word_bit;
  } else if (!(shelf->occupied[word] &= ~bit)) {
    shelf->words[word / 64] &= ~word_bit;
  }
}

tp__shelf_t *tp__pool_shelf(const tp__block_t *block) {
  return block->segment->pool->shelves[tp__stream_id(block->stream)];
}

/* Free pieces of a split segment cannot go back to the driver, which is why they are counted; of one that grows they
 * can. */
static bool is_piece(const tp__block_t *block) {
  return (block->previous || block->next) && !block->segment->grows_for;
}

/* ---- pools ---- */

bool tp__pool_prepare(tp__pool_t *pool, tp_stream_t *stream) {
  int32_t id = tp__stream_id(stream);
  if (id >= pool->room) {
    int32_t room = 2 * id + 1;
    tp__shelf_t **shelves = realloc(pool->shelves, (size_t)room * sizeof(tp__shelf_t *));
    if (!shelves) return false;
    memset(shelves + pool->room, 0, (size_t)(room - pool->room) * sizeof(tp__shelf_t *));
    pool->shelves = shelves;
    pool->room = room;
  }
  if (!pool->shelves[id]) {
    pool->shelves[id] = calloc(1, sizeof(tp__shelf_t));
    if (!pool->shelves[id]) return false;
    pool->shelves[id]->stream = stream;
  }
  return true;
}

/* Oversize blocks are whole, and for requests of about their size; but those of growing segments, which are not lost in
 * pieces. */
static bool may_have(size_t nbytes, const tp__block_t *block) {
  const tp_memory_settings_t *settings = tp__settings();
  if (block->nbytes < settings->max_split_size || block->segment->grows_for) return true;
  return nbytes >= settings->max_split_size && block->nbytes - nbytes <= settings->max_non_split_rounding;
}

static tp__block_t *smallest(const tp__shelf_t *shelf, size_t nbytes) {
  int bin = bin_of(nbytes);
  tp__block_t *block = bin_find(shelf, bin, nbytes);
  return block ? block : bin_find(shelf, next_bin(shelf, bin + 1), nbytes);
}

/* A block before a gap can grow, and is left to requests that nothing else serves. */
static bool can_grow(const tp__block_t *block) { return block->next && block->next->state == TP_BLOCK_GAP; }

tp__block_t *tp__pool_find(const tp__pool_t *pool, int32_t stream_id, size_t nbytes) {
  const tp__shelf_t *shelf = stream_id < pool->room ? pool->shelves[stream_id] : NULL;
  if (!shelf) return NULL;
  tp__block_t *block = smallest(shelf, nbytes), *other = block;
  while (other && can_grow(other)) other = smallest(shelf, other->nbytes + TP_BLOCK_UNIT);
  if (other) block = other;
  /* Where the smallest is too large, all are. */
  return block && may_have(nbytes, block) ? block : NULL;
}

void tp__pool_insert(tp__heap_t *heap, tp__block_t *block) {
  tp__shelf_t *shelf = tp__pool_shelf(block);
  int bin = bin_of(block->nbytes);
  block->state = TP_BLOCK_FREE;
  (is_list(bin) ? list_insert : tree_insert)(&shelf->bins[bin], block);
  mark_bin(shelf, bin, true);
  if (is_piece(block)) {
    tp__stat_increase(heap->stats, TP_STAT_inactive_split, block->segment->pool->class, 1);
    tp__stat_increase(heap->stats, TP_STAT_inactive_split_bytes, block->segment->pool->class, block->nbytes);
  }
}

void tp__pool_remove(tp__heap_t *heap, tp__block_t *block) {
  tp__shelf_t *shelf = tp__pool_shelf(block);
  int bin = bin_of(block->nbytes);
  (is_list(bin) ? list_remove : tree_remove)(&shelf->bins[bin], block);
  if (!shelf->bins[bin]) mark_bin(shelf, bin, false);
  if (is_piece(block)) {
    tp__stat_decrease(heap->stats, TP_STAT_inactive_split, block->segment->pool->class, 1);
    tp__stat_decrease(heap->stats, TP_STAT_inactive_split_bytes, block->segment->pool->class, block->nbytes);
  }
}

tp__block_t *tp__pool_insert_merged(tp__heap_t *heap, tp__block_t *block) {
  tp__block_t *previous = block->previous;
  if (previous && previous->state == TP_BLOCK_FREE && previous->stream == block->stream) {
    tp__pool_remove(heap, previous);
    tp__block_merge(heap, previous, block);
    block = previous;
  }
  tp__block_t *next = block->next;
  if (next && next->state == TP_BLOCK_FREE && next->stream == block->stream) {
    tp__pool_remove(heap, next);
    tp__block_merge(heap, block, next);
  }
  tp__pool_insert(heap, block);
  return block;
}
