/* What decides whether the body of a conditional node runs. */
#define TP_FAMILY "condition"
#include "args_condition.h"
#include "kernel.h"

#ifdef __CUDACC__
/* The driver's, which finds it when the image is loaded. */
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
#endif

TP_KERNEL(tp_k_condition, tp_condition_args_t) {
  if (blockIdx.x == 0 && tp_thread() == 0) cudaGraphSetConditional(p.condition, *tp_at<bool>(p.predicate));
}

#undef TP_FAMILY
