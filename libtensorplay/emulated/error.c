/* Names and texts of CUDA's errors: the codes that the emulation returns, or that a test may inject. */
#include "emulated.h"

#include <string.h>

static const struct {
  cudaError_t code;
  const char *name;
  const char *text;
} table[] = {
#define ERROR(name, text) {name, #name, text},
    ERROR(cudaSuccess, "no error")
    ERROR(cudaErrorInvalidValue, "invalid argument")
    ERROR(cudaErrorMemoryAllocation, "out of memory")
    ERROR(cudaErrorInitializationError, "initialization error")
    ERROR(cudaErrorCudartUnloading, "driver shutting down")
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument")
    ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument")
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")
    ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")
    ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function")
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected")
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal")
    ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid")
    ERROR(cudaErrorDeviceUninitialized, "invalid device context")
    ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed")
    ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")
    ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")
    ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed")
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle")
    ERROR(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")
    ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state")
    ERROR(cudaErrorSymbolNotFound, "named symbol not found")
    ERROR(cudaErrorNotReady, "device not ready")
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered")
    ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch")
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated")
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")
    ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")
    ERROR(cudaErrorAssert, "device-side assert triggered")
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure")
    ERROR(cudaErrorNotPermitted, "operation not permitted")
    ERROR(cudaErrorNotSupported, "operation not supported")
    ERROR(cudaErrorSystemNotReady, "system not yet initialized")
    ERROR(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver combination")
    ERROR(cudaErrorCompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW")
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")
    ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")
    ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences")
    ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")
    ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")
    ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")
    ERROR(cudaErrorStreamCaptureImplicit,
          "operation would make the legacy stream depend on a capturing blocking stream")
    ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream")
    ERROR(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread")
    ERROR(cudaErrorGraphExecUpdateFailure, "the graph update was not performed because it included changes which "
                                           "violated constraints specific to instantiated graph update")
    ERROR(cudaErrorUnknown, "unknown error")
#undef ERROR
};

const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].code == error) return table[i].name;
  return "unrecognized error code";
}

/* A malformed switch fails every call with cudaErrorInitializationError; its text then says which. */
const char *cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorInitializationError) {
    emu_lock();
    const char *problem = emu_settings()->problem;
    emu_unlock();
    if (problem[0]) return problem;
  }
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].code == error) return table[i].text;
  return "unrecognized error code";
}

int emu_error_code(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) return (int)table[i].code;
  return -1;
}
