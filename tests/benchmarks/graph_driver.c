/* Times launches of an executable graph without Python: bench_graphs.py compiles and calls this. The result is ns of
 * the host's clock for each launch; negative: one failed. */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

typedef int launch_t(void *exec, void *stream);

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double time_launches(launch_t *launch, void *exec, void *stream, int64_t count) {
  double start = now_ns();
  for (int64_t i = 0; i < count; i++) {
    if (launch(exec, stream)) return -1;
  }
  return (now_ns() - start) / (double)count;
}
