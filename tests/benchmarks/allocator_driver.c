/* Times an allocator that is handed in as two functions: bench_allocator.py compiles and calls this. Results are ns of
 * the host's clock for each pair of an allocation and a release; negative: an allocation failed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef void *allocate_t(size_t nbytes, void *stream);
typedef void release_t(void *address);

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double time_pairs(allocate_t *allocate, release_t *release, void *stream, size_t nbytes, int64_t count) {
  double start = now_ns();
  for (int64_t i = 0; i < count; i++) {
    void *address = allocate(nbytes, stream);
    if (!address) return -1;
    release(address);
  }
  return (now_ns() - start) / (double)count;
}

typedef struct work {
  allocate_t *allocate;
  release_t *release;
  void *stream;
  size_t nbytes;
  int64_t count;
  pthread_barrier_t *barrier;
  double begin, end;
  int failed;
} work_t;

static void *run_thread(void *argument) {
  work_t *work = argument;
  (void)time_pairs(work->allocate, work->release, work->stream, work->nbytes, 100);
  pthread_barrier_wait(work->barrier);
  work->begin = now_ns();
  work->failed = time_pairs(work->allocate, work->release, work->stream, work->nbytes, work->count) < 0;
  work->end = now_ns();
  return NULL;
}

/* From the first thread's begin to the last one's end, over the pairs of all. */
double time_threads(allocate_t *allocate, release_t *release, void *stream, size_t nbytes, int64_t count,
                    int32_t threads) {
  pthread_barrier_t barrier;
  pthread_t *handles = calloc((size_t)threads, sizeof *handles);
  work_t *works = calloc((size_t)threads, sizeof *works);
  if (!handles || !works || pthread_barrier_init(&barrier, NULL, (unsigned)threads)) return -1;
  for (int32_t i = 0; i < threads; i++) {
    works[i] = (work_t){allocate, release, stream, nbytes, count, &barrier, 0, 0, 0};
    if (pthread_create(&handles[i], NULL, run_thread, &works[i])) abort(); /* the others would wait for it for ever */
  }
  double begin = 0, end = 0;
  int failed = 0;
  for (int32_t i = 0; i < threads; i++) {
    pthread_join(handles[i], NULL);
    if (i == 0 || works[i].begin < begin) begin = works[i].begin;
    if (i == 0 || works[i].end > end) end = works[i].end;
    failed |= works[i].failed;
  }
  pthread_barrier_destroy(&barrier);
  free(handles);
  free(works);
  return failed ? -1 : (end - begin) / (double)(count * threads);
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* A random one of `live` blocks makes place for a new one of smallest to largest bytes. */
double time_replacement(allocate_t *allocate, release_t *release, void *stream, size_t smallest, size_t largest,
                        int64_t live, int64_t count) {
  uint64_t state = 88172645463325252u;
  void **blocks = calloc((size_t)live, sizeof *blocks);
  if (!blocks) return -1;
  int failed = 0;
  double start = 0;
  for (int64_t i = -live; i < count && !failed; i++) {
    if (i == 0) start = now_ns();
    void **block = &blocks[i < 0 ? i + live : (int64_t)(next_random(&state) % (uint64_t)live)];
    if (*block) release(*block);
    *block = allocate(smallest + next_random(&state) % (largest - smallest + 1), stream);
    failed = !*block;
  }
  double elapsed = now_ns() - start;
  for (int64_t i = 0; i < live; i++) {
    if (blocks[i]) release(blocks[i]);
  }
  free(blocks);
  return failed ? -1 : elapsed / (double)count;
}
