/* A recorded run in which one call of the driver fails, for every call that it makes: nothing is lost. */
#include "alloc_case.h"

enum { STEPS = 40, SLOTS = 8, MAX_CALLS = 100 };

static tp_stream_t *streams[2];

/* Always the same requests; a request that fails leaves its slot empty. The number of requests that failed. */
static int run(void) {
  tp__block_t *held[SLOTS] = {NULL};
  uint32_t random = 12345;
  int failed = 0;
  for (int step = 0; step < STEPS; step++) {
    random = random * 1664525u + 1013904223u;
    tp__block_t **slot = &held[(random >> 8) % SLOTS];
    if (*slot) {
      tp__alloc_free(*slot);
      *slot = NULL;
    } else {
      size_t nbytes = (random >> 16) % 3 == 0 ? 1 + random % 4096 : 1 + random % (24 * TP_MiB);
      *slot = tp__alloc(nbytes, streams[random >> 20 & 1]);
      if (!*slot) {
        failed++;
        CHECK(tp_error_status() == TP_CUDA || tp_error_status() == TP_OUT_OF_MEMORY);
      } else if (random >> 24 & 1) {
        CHECK_OK(tp__alloc_record_stream(*slot, streams[random >> 20 & 1 ? 0 : 1]));
      }
    }
    if (step % 16 == 15) (void)tp_memory_empty_cache(0);
    if (step % 5 == 0) validate_heap(0);
  }
  for (int i = 0; i < SLOTS; i++) {
    if (held[i]) tp__alloc_free(held[i]);
  }
  validate_heap(0);
  return failed;
}

/* Fails the n-th call of a kind, for each of them; `must_fail`: a request sees it, where nothing else helps. */
static void fail_each(const char *call, const char *error, bool must_fail) {
  CHECK_OK(tp_device_synchronize(0));
  int64_t before = tp_emulated_call_count(call, -1);
  CHECK(run() == 0);
  int64_t calls = tp_emulated_call_count(call, -1) - before;
  clear();
  CHECK(calls > 5 && calls < MAX_CALLS);
  for (int64_t n = 1; n <= calls; n++) {
    tp_emulated_fail(call, (int32_t)n, tp_emulated_error_code(error));
    int failed = run();
    CHECK(must_fail ? failed == 1 : failed <= 1);
    clear();
  }
}

static void run_with(const char *settings) {
  CHECK_OK(tp_memory_set_settings(settings));
  clear();
  fail_each("cudaMalloc", "cudaErrorInvalidValue", true);
  fail_each("cudaMalloc", "cudaErrorMemoryAllocation", false);
  fail_each("cudaFree", "cudaErrorInvalidValue", false);
  CHECK_OK(tp_memory_set_settings(""));
}

int main(void) {
  CHECK(tp_emulated_set_capacity(0, 256 * TP_MiB) == 0);
  streams[0] = tp_stream_default(0);
  streams[1] = tp_stream_from_pool(0, 0);
  CHECK(streams[1]);
  drop(take(512, streams[0]));
  clear();
  run_with("");
  run_with("max_split_size_mb:20,garbage_collection_threshold:0.3,release_lock_on_cudamalloc:True");
  return 0;
}
