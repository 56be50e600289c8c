/* Events of two processes: one makes the event, the other opens it, and each records it and waits for the other.
 * test_rules uses CUDA alone, but for what keeps a stream busy, and holds on a GPU as well:
 *     cc -std=c11 -D_GNU_SOURCE -DTP_TEST_ON_GPU -I libtensorplay/src tests/native/test_emulated_ipc.c -lcudart */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"
#ifdef TP_TEST_ON_GPU
#include <stdio.h>
#include <stdlib.h>
#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      const char *error = cudaGetErrorName(cudaGetLastError());                            \
      fprintf(stderr, "%s:%d: %s is false; %s\n", __FILE__, __LINE__, #condition, error);  \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)
#define CHECK_OK(call) CHECK((call) == 0)
#else
#include "check.h"
#include "tp_emulated.h"
#endif

#define SHARED (cudaEventInterprocess | cudaEventDisableTiming)
#define LIMIT_S 60

static int to_other, from_other; /* pipes */

static void send_bytes(const void *bytes, size_t nbytes) { CHECK(write(to_other, bytes, nbytes) == (ssize_t)nbytes); }

static void receive_bytes(void *bytes, size_t nbytes) { CHECK(read(from_other, bytes, nbytes) == (ssize_t)nbytes); }

/* "It is your turn", and waiting for that. */
static void tell(void) { send_bytes("", 1); }

static void hear(void) {
  char byte;
  receive_bytes(&byte, 1);
}

/* ---- a stream whose work does not end before let_go ---- */

#ifdef TP_TEST_ON_GPU
static int gate[2];

static void wait_at_gate(void *unused) {
  (void)unused;
  char byte;
  CHECK(read(gate[0], &byte, 1) == 1);
}

static void keep_busy(cudaStream_t stream) {
  CHECK_OK(pipe(gate));
  CHECK_OK(cudaLaunchHostFunc(stream, wait_at_gate, NULL));
}

static void let_go(cudaStream_t stream) {
  CHECK(write(gate[1], "", 1) == 1);
  CHECK_OK(cudaStreamSynchronize(stream));
}
#else
static void keep_busy(cudaStream_t stream) { CHECK_OK(tp_emulated_hold(0, (uintptr_t)stream)); }

static void let_go(cudaStream_t stream) {
  CHECK_OK(tp_emulated_release(0, (uintptr_t)stream));
  CHECK_OK(cudaStreamSynchronize(stream));
}
#endif

static cudaStream_t make_stream(void) {
  cudaStream_t stream;
  CHECK_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/* ---- the two processes ---- */

static void check_refusals(cudaEvent_t shared) {
  cudaEvent_t event;
  cudaIpcEventHandle_t handle;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess) == cudaErrorInvalidValue);
  CHECK_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaIpcGetEventHandle(&handle, event) == cudaErrorInvalidResourceHandle);
#ifndef TP_TEST_ON_GPU /* which ends the process */
  CHECK(cudaIpcGetEventHandle(NULL, shared) == cudaErrorInvalidValue);
#endif
  CHECK_OK(cudaEventDestroy(event));
  CHECK_OK(cudaIpcGetEventHandle(&handle, shared));
  CHECK(cudaIpcOpenEventHandle(&event, handle) == cudaErrorDeviceUninitialized); /* this process's own */
  (void)cudaGetLastError();
}

/* The one who recorded last is busy, and the other waits. */
static void record_and_be_waited_for(cudaEvent_t event, cudaStream_t stream) {
  keep_busy(stream);
  CHECK_OK(cudaEventRecord(event, stream));
  tell();
  hear();
  let_go(stream);
  CHECK_OK(cudaEventQuery(event));
  tell();
}

static void wait_for_the_record(cudaEvent_t event, cudaStream_t stream) {
  hear();
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK_OK(cudaStreamWaitEvent(stream, event, 0));
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  tell();
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_OK(cudaEventSynchronize(event));
  CHECK_OK(cudaEventQuery(event));
  hear();
}

/* What is recorded in an idle stream is done, whether or not the process that recorded it goes on. */
static void record_in_an_idle_stream(cudaEvent_t event, cudaStream_t stream) {
  CHECK_OK(cudaEventRecord(event, stream));
  tell();
  hear();
}

static void wait_for_an_idle_stream(cudaEvent_t event) {
  hear();
  CHECK_OK(cudaEventSynchronize(event));
  tell();
}

static void make_the_event(void) {
  cudaStream_t stream = make_stream();
  cudaEvent_t event;
  cudaIpcEventHandle_t handle;
  CHECK_OK(cudaEventCreateWithFlags(&event, SHARED));
  check_refusals(event);
  CHECK_OK(cudaIpcGetEventHandle(&handle, event));
  send_bytes(&handle, sizeof handle);
  hear();
  record_and_be_waited_for(event, stream);
  wait_for_the_record(event, stream);
  record_in_an_idle_stream(event, stream);
  wait_for_an_idle_stream(event);
  hear(); /* the other has destroyed its own */
  CHECK_OK(cudaEventDestroy(event));
  tell();
}

static void open_the_event(void) {
  cudaStream_t stream = make_stream();
  cudaEvent_t event;
  cudaIpcEventHandle_t handle;
  receive_bytes(&handle, sizeof handle);
  CHECK_OK(cudaIpcOpenEventHandle(&event, handle));
  CHECK_OK(cudaEventQuery(event)); /* never recorded */
  tell();
  wait_for_the_record(event, stream);
  record_and_be_waited_for(event, stream);
  wait_for_an_idle_stream(event);
  record_in_an_idle_stream(event, stream);
  CHECK(cudaIpcGetEventHandle(&(cudaIpcEventHandle_t){{0}}, event) == cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaEventDestroy(event));
  tell();
  hear();
#ifndef TP_TEST_ON_GPU /* where what has been destroyed is undefined */
  CHECK(cudaIpcOpenEventHandle(&event, handle) == cudaErrorMapBufferObjectFailed);
  memset(&handle, 0, sizeof handle);
  CHECK(cudaIpcOpenEventHandle(&event, handle) == cudaErrorInvalidValue);
#endif
}

static void test_rules(void) {
  int there[2], back[2], status;
  CHECK_OK(pipe(there));
  CHECK_OK(pipe(back));
  pid_t child = fork(); /* before either has used a device */
  alarm(LIMIT_S);
  to_other = child ? there[1] : back[1];
  from_other = child ? back[0] : there[0];
  CHECK_OK(close(child ? there[0] : there[1])); /* so that who waits for one that has ended notices */
  CHECK_OK(close(child ? back[1] : back[0]));
  if (child == 0) {
    open_the_event();
    _exit(0);
  }
  make_the_event();
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
  test_rules();
  return 0;
}
