/* Functions of the driver, for what the CUDA runtime has no calls for. */
#include "internal.h"

/* Theirs of CUDA 12.0, which have not changed since. */
#define VERSION 12000

tp_status_t tp__driver_find(const tp__driver_function_t *wanted, size_t count, bool *out_found, const char *operation) {
  *out_found = false;
  for (size_t i = 0; i < count; i++) {
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(wanted[i].name, wanted[i].place, VERSION, cudaEnableDefault, &found);
    if (error && error != cudaErrorSymbolNotFound)
      return tp__error_set_cuda(error, operation, "cudaGetDriverEntryPointByVersion");
    if (error) (void)cudaGetLastError();
    if (error || found != cudaDriverEntryPointSuccess) return TP_OK;
  }
  *out_found = true;
  return TP_OK;
}
