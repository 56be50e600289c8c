/* Where an operation writes that cannot write into every `out`: into out itself, or into a fresh
 * contiguous tensor that is then copied. */
#include "../internal.h"

tp_tensor_t *tp__target_take(tp_tensor_t *out, int32_t dtype, bool direct, const char *operation) {
  if (direct) return tp__tensor_retain(out);
  return tp__tensor_new(dtype, out->device, out->ndim, out->shape, operation);
}

tp_tensor_t *tp__target_finish(tp_tensor_t *out, tp_tensor_t *target, tp_status_t status) {
  if (!status && target && target != out) status = tp_tensor_copy(out, target);
  bool done = target && !status;
  tp_tensor_release(target);
  if (done) return out;
  tp_tensor_release(out);
  return NULL;
}
