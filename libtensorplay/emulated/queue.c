/* Queued work, and what runs next.
 *
 * Nothing runs when it is queued. A synchronising call runs what it waits for (`blocker` finds the piece
 * that everything else waits for), and by the seed also pieces of other streams that are ready. Pieces
 * wait only for pieces that were queued earlier, so the search for a blocker ends. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAP_US 200

static uint64_t next_order = 1;
static uint64_t host_ns; /* virtual time that the host has reached */
static uint64_t seed;
static uint64_t random_state;
static bool queued_since_query;
static int copy_patience;
static struct {
  emu_stream_t *stream; /* NULL while no piece runs */
  emu_piece_t *last;    /* the piece, or the last that it has put behind itself */
} running;

/* ---- seeded choice (splitmix64) ---- */

void emu_random_seed(uint64_t value) {
  random_state = seed = value;
  queued_since_query = false;
}
uint64_t emu_seed(void) { return seed; }

static uint64_t random_number(void) {
  uint64_t z = random_state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t emu_random_below(uint64_t n) { return random_number() % n; }

void emu_copy_patience_set(int steps) { copy_patience = steps; }
int emu_copy_patience(void) { return copy_patience; }

void emu_host_saw(uint64_t time_ns) {
  if (host_ns < time_ns) host_ns = time_ns;
}

/* ---- marks and pieces ---- */

emu_mark_t *emu_mark_retain(emu_mark_t *mark) {
  mark->references++;
  return mark;
}

void emu_mark_release(emu_mark_t *mark) {
  if (!mark || --mark->references) return;
  emu_shared_release(mark->shared);
  free(mark);
}

bool emu_mark_done(emu_mark_t *mark) {
  if (!mark->stream && mark->shared) mark->done = emu_shared_reached(mark->shared, mark->number);
  return mark->done;
}

static void complete(emu_mark_t *mark) {
  mark->done = true;
  if (mark->shared) emu_shared_reach(mark->shared, mark->number);
}

emu_piece_t *emu_piece_new(enum cudaGraphNodeType type, size_t payload_nbytes) {
  emu_piece_t *piece = calloc(1, sizeof *piece + payload_nbytes);
  if (!piece) return NULL;
  piece->type = type;
  piece->payload_nbytes = payload_nbytes;
  return piece;
}

emu_piece_t *emu_piece_copy(const emu_piece_t *piece) {
  emu_piece_t *copy = emu_piece_new(piece->type, piece->payload_nbytes);
  if (copy) memcpy(copy, piece, sizeof *piece + piece->payload_nbytes);
  return copy;
}

/* What waits for a piece that was never queued must not wait for ever. */
static void free_piece(emu_piece_t *piece) {
  if (piece->completes) complete(piece->completes);
  if (piece->forget) piece->forget(piece->payload);
  emu_mark_release(piece->completes);
  emu_mark_release(piece->waits_for);
  free(piece);
}

void emu_piece_free(emu_piece_t *piece) {
  while (piece) {
    emu_piece_t *next = piece->next;
    free_piece(piece);
    piece = next;
  }
}

bool emu_chain_add(emu_chain_t *chain, emu_piece_t *piece) {
  if (!piece) {
    emu_piece_free(chain->first);
    *chain = (emu_chain_t){0};
    return false;
  }
  if (chain->last)
    chain->last->next = piece;
  else
    chain->first = piece;
  chain->last = piece;
  return true;
}

/* ---- which piece a stream waits for ---- */

/* The legacy stream waits for what the device's blocking streams held when its piece was queued, and they
 * for what it held: the stream whose first piece is the earliest of those, or NULL. */
static emu_stream_t *legacy_blocker(const emu_stream_t *stream) {
  uint64_t order = stream->first->order;
  emu_stream_t *earliest = NULL;
  emu_stream_t *legacy = emu_stream_legacy(stream->device);
  if (!emu_stream_blocking(stream)) return NULL;
  if (stream != legacy) return legacy->first && legacy->first->order < order ? legacy : NULL;
  emu_stream_t *const *all;
  size_t count = emu_streams(&all);
  for (size_t i = 0; i < count; i++) {
    const emu_piece_t *first = all[i]->first;
    if (!first || first->order >= order || all[i]->device != stream->device || !emu_stream_blocking(all[i])) continue;
    earliest = all[i];
    order = first->order;
  }
  return earliest;
}

static bool waits(const emu_stream_t *stream) {
  const emu_piece_t *piece = stream->first;
  return piece->waits_for && !emu_mark_done(piece->waits_for);
}

/* The stream whose first piece must run before anything of this one can; itself when it is ready, or when that is up
 * to another process. */
static emu_stream_t *blocker(emu_stream_t *stream) {
  for (;;) {
    emu_stream_t *before = NULL;
    if (stream->running) return stream;
    if (waits(stream))
      before = stream->first->waits_for->stream;
    else
      before = legacy_blocker(stream);
    if (!before) return stream;
    stream = before;
  }
}

static bool ready(emu_stream_t *stream) {
  if (!stream->first || stream->running || stream->held) return false;
  return !waits(stream) && !legacy_blocker(stream);
}

/* The ready stream whose first piece is the earliest behind `order`, NULL when there is none. */
static emu_stream_t *ready_after(uint64_t order) {
  emu_stream_t *const *all;
  emu_stream_t *earliest = NULL;
  size_t count = emu_streams(&all);
  for (size_t i = 0; i < count; i++)
    if (ready(all[i]) && all[i]->first->order > order)
      if (!earliest || all[i]->first->order < earliest->first->order) earliest = all[i];
  return earliest;
}

/* One of the ready streams by the seed, NULL when there is none. They are numbered by their first pieces, so that a
 * seed does the same whichever streams a program was given. */
static emu_stream_t *choose(void) {
  size_t candidates = 0;
  emu_stream_t *stream = ready_after(0);
  for (emu_stream_t *each = stream; each; each = ready_after(each->first->order)) candidates++;
  size_t chosen = candidates > 1 ? emu_random_below(candidates) : 0;
  while (chosen--) stream = ready_after(stream->first->order);
  return stream;
}

/* ---- running ---- */

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Virtual time at which the first piece of a stream may start: everything it waited for has ended. */
static uint64_t start_ns(const emu_stream_t *stream) {
  const emu_piece_t *piece = stream->first;
  uint64_t time = later(stream->clock_ns, piece->not_before_ns);
  if (piece->waits_for) time = later(time, piece->waits_for->time_ns);
  if (!emu_stream_blocking(stream)) return time;
  emu_stream_t *legacy = emu_stream_legacy(stream->device);
  if (stream != legacy) return later(time, legacy->clock_ns);
  emu_stream_t *const *all;
  size_t count = emu_streams(&all);
  for (size_t i = 0; i < count; i++)
    if (all[i]->device == stream->device && emu_stream_blocking(all[i])) time = later(time, all[i]->clock_ns);
  return time;
}

/* A host function may wait for other threads, and they for the lock: it runs without it. */
static void run_unlocked(emu_stream_t *stream, emu_piece_t *piece) {
  stream->running = true;
  emu_unlock();
  emu_in_host_function(true);
  piece->run(piece->device, piece->payload);
  emu_in_host_function(false);
  emu_lock();
  stream->running = false;
  emu_wake_others();
}

/* Runs the first piece of a stream, which must be ready (or held). After a sticky error nothing runs. */
static void run_first(emu_stream_t *stream) {
  emu_piece_t *piece = stream->first;
  uint64_t end_ns = start_ns(stream) + piece->cost_ns;
  if (piece->run && !emu_context_error(piece->device)) {
    if (piece->unlocked) {
      run_unlocked(stream, piece);
    } else {
      running.stream = stream;
      running.last = piece;
      cudaError_t error = piece->run(piece->device, piece->payload);
      running.stream = NULL;
      if (error) emu_context_fail(piece->device, error);
    }
  }
  stream->clock_ns = end_ns;
  stream->first = piece->next;
  stream->count--;
  if (piece->completes) piece->completes->time_ns = end_ns;
  free_piece(piece);
  if (!stream->first) {
    stream->last = NULL;
    if (!stream->live) emu_stream_drained(stream);
  }
}

/* Lets other processes, and other threads of this one, get on. */
static void nap(void) {
  emu_unlock();
  (void)usleep(NAP_US);
  emu_lock();
}

/* Runs one piece towards the first piece of `stream`; held streams run too, as someone waits for them. */
static void advance(emu_stream_t *stream) {
  emu_stream_t *next = blocker(stream);
  if (next->running)
    emu_wait_for_others();
  else if (waits(next))
    nap();
  else
    run_first(next);
}

void emu_run_ahead(emu_stream_t *stream, uint64_t order) {
  while (stream->first && stream->first->order <= order) {
    emu_stream_t *next = blocker(stream);
    if (next->running || next->held || waits(next)) return;
    run_first(next);
  }
}

/* One piece of the scheduler's choice. False when none is ready; a copy that is passed over counts. */
static bool step(void) {
  emu_stream_t *stream = choose();
  if (!stream) return false;
  if (stream->first->patience > 0)
    stream->first->patience--;
  else
    run_first(stream);
  return true;
}

/* Runs until the stream's pieces up to `order` are done, and by the seed others. */
static void run_until(emu_stream_t *stream, uint64_t order) {
  bool eager = emu_random_below(2);
  while (stream->first && stream->first->order <= order)
    if (!eager || emu_random_below(2) || !step()) advance(stream);
}

void emu_mark_wait(emu_mark_t *mark) {
  while (!emu_mark_done(mark)) {
    if (mark->stream)
      run_until(mark->stream, mark->order);
    else
      nap();
  }
}

/* The latest stream first, the others as they are waited for and as the seed decides. Streams may come and go while a
 * host function runs, so the search starts again after each stream. */
static void run_all(int device, bool only_blocking) {
  uint64_t order = next_order - 1;
  for (;;) {
    emu_stream_t *const *all;
    emu_stream_t *pending = NULL;
    size_t count = emu_streams(&all);
    for (size_t i = 0; i < count; i++) {
      if (device >= 0 && all[i]->device != device) continue;
      if (only_blocking && !emu_stream_blocking(all[i])) continue;
      emu_host_saw(all[i]->clock_ns);
      const emu_piece_t *first = all[i]->first;
      if (first && first->order <= order && (!pending || first->order > pending->first->order)) pending = all[i];
    }
    if (!pending) return;
    run_until(pending, order);
  }
}

void emu_run_device(int device) { run_all(device, false); }

void emu_run_stream(emu_stream_t *stream) {
  if (stream == emu_stream_legacy(stream->device)) run_all(stream->device, true);
  if (stream->last) run_until(stream, stream->last->order);
  emu_host_saw(stream->clock_ns);
}

int emu_step(int n) {
  int steps = 0;
  while (steps < n && step()) steps++;
  return steps;
}

void emu_query_step(void) {
  if (!queued_since_query) step();
  queued_since_query = false;
}

/* Each piece is given the number of the call that queued it, and what it completes learns where it is. */
static void enter(emu_stream_t *stream, emu_piece_t *piece, uint64_t order) {
  piece->order = order;
  piece->not_before_ns = host_ns;
  if (piece->completes) {
    piece->completes->order = order;
    piece->completes->stream = stream;
  }
  stream->count++;
}

void emu_push(emu_stream_t *stream, emu_piece_t *piece) {
  while (stream->count >= EMU_MAX_QUEUE) advance(stream);
  for (emu_piece_t *each = piece; each; each = each->next) {
    enter(stream, each, next_order++);
    if (stream->last)
      stream->last->next = each;
    else
      stream->first = each;
    stream->last = each;
  }
  queued_since_query = true;
}

/* They take the running piece's number: who waits for what it belongs to waits for them too. */
void emu_push_next(emu_piece_t *piece) {
  emu_stream_t *stream = running.stream;
  emu_piece_t *rest = running.last->next;
  running.last->next = piece;
  for (; piece; piece = piece->next) {
    enter(stream, piece, running.last->order);
    running.last = piece;
  }
  running.last->next = rest;
  if (!rest) stream->last = running.last;
}
