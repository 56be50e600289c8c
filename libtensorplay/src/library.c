/* What this build of the library is. */
#include "internal.h"

int32_t tp_abi_version(void) { return TP_ABI_VERSION; }

const char *tp_variant(void) { return TP_VARIANT; }

int32_t tp_cuda_version(void) { return CUDART_VERSION; }
