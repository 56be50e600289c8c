/* TENSORPLAY_LAUNCH_BLOCKING=1: what is queued is waited for at once. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of TENSORPLAY_LAUNCH_BLOCKING; neither changes after loading. */
static bool launches_block;
static char not_taken[32]; /* the beginning of a value that it does not take */

__attribute__((constructor)) static void read_environment(void) {
  const char *text = getenv("TENSORPLAY_LAUNCH_BLOCKING");
  launches_block = text && strcmp(text, "1") == 0;
  if (text && !launches_block && strcmp(text, "0") != 0) snprintf(not_taken, sizeof not_taken, "%s", text);
}

tp_status_t tp__settle_check(const char *operation) {
  if (!*not_taken) return TP_OK;
  return tp__error_set(TP_STATE, operation,
                       "the variable TENSORPLAY_LAUNCH_BLOCKING cannot be obeyed: got '%s', expected 0 or 1",
                       not_taken);
}

tp_status_t tp__settle(tp_stream_t *stream, const char *operation) {
  if (!launches_block || tp__stream_is_capturing(stream)) return TP_OK;
  TP_TRY_CUDA(cudaStreamSynchronize(tp__stream_cuda(stream)), operation);
  return tp__device_check_fault(tp_stream_device(stream));
}
