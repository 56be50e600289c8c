/* The error slot of each thread: what failed last, as status, text and, for CUDA's errors, its number and
 * name. The texts live in the slot, so they stay valid until the thread's next failure; release functions
 * never come here (docs/design/errors.md). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

typedef struct slot {
  tp_status_t status;
  int32_t cuda_code;
  char operation[64];
  char cuda_name[64];
  char text[2048];
  uint64_t number;
} slot_t;

static _Thread_local slot_t slot;

tp_status_t tp_error_status(void) { return slot.status; }

const char *tp_error_text(void) { return slot.text; }

const char *tp_error_operation(void) { return slot.operation; }

int32_t tp_error_cuda_code(void) { return slot.cuda_code; }

const char *tp_error_cuda_name(void) { return slot.cuda_name; }

uint64_t tp__error_number(void) { return slot.number; }

static void fill(tp_status_t status, const char *operation, cudaError_t error) {
  slot.number++;
  slot.status = status;
  snprintf(slot.operation, sizeof slot.operation, "%s", operation);
  slot.cuda_code = (int32_t)error;
  snprintf(slot.cuda_name, sizeof slot.cuda_name, "%s", error ? cudaGetErrorName(error) : "");
}

tp_status_t tp__error_set(tp_status_t status, const char *operation, const char *format, ...) {
  /* Written apart first: an argument may be the slot's own text. */
  char text[sizeof slot.text];
  int prefix = snprintf(text, sizeof slot.operation, "%s", operation);
  prefix = prefix < (int)sizeof slot.operation ? prefix : (int)sizeof slot.operation - 1;
  prefix += snprintf(text + prefix, sizeof text - (size_t)prefix, ": ");
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + prefix, sizeof text - (size_t)prefix, format, arguments);
  va_end(arguments);
  fill(status, operation, status == TP_OUT_OF_MEMORY ? cudaErrorMemoryAllocation : cudaSuccess);
  memcpy(slot.text, text, sizeof text);
  return status;
}

static tp_status_t status_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return TP_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
      return TP_UNAVAILABLE;
    default:
      return TP_CUDA;
  }
}

/* What usually helps, in general terms; "" where nothing can be said. */
static const char *advice(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress: /* from here on: every later call of the process fails */
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return "; the device is lost to this process: restart it";
    case cudaErrorStreamCaptureUnsupported:
      return "; while work is captured nothing may wait for it or ask how far it is: do that before the capture begins "
             "or after its end; calls of other threads disturb only captures of the error mode \"global\"";
    case cudaErrorStreamCaptureMerge:
      return "; the two streams take part in different captures: end one of them first";
    case cudaErrorStreamCaptureUnmatched:
      return "; a capture ends on the stream where it began";
    case cudaErrorStreamCaptureUnjoined:
      return "; before the end, the stream where the capture began has to wait_stream() for every other one that took "
             "part";
    case cudaErrorStreamCaptureIsolation:
      return "; a capture cannot wait for work outside of it: wait for that work before the capture begins, or capture "
             "it too (its stream first has to wait_stream() for the captured one)";
    case cudaErrorStreamCaptureImplicit:
      return "; the default stream takes no part in captures: give this work another stream";
    case cudaErrorCapturedEvent:
      return "; an event that is recorded in a capture stands for nothing outside of it: wait for the stream after a "
             "replay, or record an event made with external=True";
    case cudaErrorStreamCaptureWrongThread:
      return "; a capture ends in the thread where it began, unless its error mode is \"relaxed\"";
    default:
      return "";
  }
}

static _Atomic(tp__error_listener_t) listener;

void tp__error_listen(tp__error_listener_t replacement) {
  atomic_store_explicit(&listener, replacement, memory_order_release);
}

/* A failure of CUDA that has to do with captures has broken one, or comes of a broken one. */
static void tell(cudaError_t error) {
  if (error < cudaErrorStreamCaptureUnsupported || error > cudaErrorStreamCaptureWrongThread) return;
  tp__error_listener_t found = atomic_load_explicit(&listener, memory_order_acquire);
  if (found) found(error);
}

tp_status_t tp__error_set_cuda(cudaError_t error, const char *operation, const char *call) {
  (void)cudaGetLastError(); /* else a later call of anybody in this thread would report it again */
  tp_status_t status = status_of(error);
  fill(status, operation, status == TP_UNAVAILABLE ? cudaSuccess : error);
  /* Of `call`, which may be the text of a whole expression, the function's name is enough. */
  snprintf(slot.text, sizeof slot.text, "%s: %s: %s (in %.*s)%s", slot.operation, cudaGetErrorName(error),
           cudaGetErrorString(error), (int)strcspn(call, "("), call, advice(error));
  tell(error);
  return status;
}

void tp__error_add(const char *format, ...) {
  size_t length = strlen(slot.text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(slot.text + length, sizeof slot.text - length, format, arguments);
  va_end(arguments);
}

int32_t tp__error_or_done(cudaError_t answer, const char *operation, const char *call) {
  if (answer == cudaErrorNotReady) {
    (void)cudaGetLastError(); /* an answer, but CUDA keeps it as an error */
    return 0;
  }
  return answer ? tp__error_set_cuda(answer, operation, call) : 1;
}

void tp__error_clear(void) {
  slot.status = TP_OK;
  slot.cuda_code = 0;
  slot.operation[0] = slot.cuda_name[0] = slot.text[0] = '\0';
}
