/* Fills with random numbers (docs/design/random.md). */
#include <math.h>

#include "random.h"

/* Floating dtypes within double: bits of the significand, exponent of the smallest step, largest number. */
static const struct {
  int bits, least;
  double most;
} formats[TP_DTYPE_COUNT] = {
    [TP_DTYPE_float16] = {11, -24, 65504.0},
    [TP_DTYPE_bfloat16] = {8, -133, 0x1.fep127},
    [TP_DTYPE_float32] = {24, -149, 0x1.fffffep127},
};

static const tp__access_t accesses[] = {TP_WRITES(tp_random_args_t, out), {0}};

static tp__kernel_t uniforms[TP_DTYPE_COUNT] = TP_FLOAT_KERNELS("random", "uniform", accesses);
static tp__kernel_t normals[TP_DTYPE_COUNT] = TP_FLOAT_KERNELS("random", "normal", accesses);
static tp__kernel_t bits_kernel = TP_KERNEL_INIT("random", "tp_k_bits_i64", accesses);

/* ---- limits ---- */

/* Distance of x to the next number of a dtype away from zero. */
static double step_at(double x, int32_t dtype) {
  int exponent;
  frexp(x, &exponent);
  int step = exponent - formats[dtype].bits;
  return ldexp(1, x == 0 || step < formats[dtype].least ? formats[dtype].least : step);
}

static double round_to(double x, int32_t dtype) {
  if (!isfinite(x) || dtype == TP_DTYPE_float64) return x;
  double step = step_at(x, dtype);
  double rounded = nearbyint(x / step) * step;
  return fabs(rounded) > formats[dtype].most ? copysign(INFINITY, x) : rounded;
}

/* The largest number of the dtype below x, which is one itself. Steps are half as long below a power of 2. */
static double below(double x, int32_t dtype) {
  if (dtype == TP_DTYPE_float64) return nextafter(x, -INFINITY);
  double step = step_at(x, dtype);
  double near = x - step / 2;
  return round_to(near, dtype) == near ? near : x - step;
}

/* ---- fills ---- */

static tp_status_t fill(tp__kernel_t *kernel, tp_tensor_t *tensor, tp_random_args_t *args, const char *operation) {
  if (tensor->numel == 0) return TP_OK;
  args->out = tensor->data;
  args->contiguous = tensor->contiguous;
  args->layout.numel = tensor->numel;
  if (!tensor->contiguous) {
    /* Operand 0 gives the order of the elements, operand 1 their places. */
    tp_tensor_t order = {.ndim = tensor->ndim};
    for (int32_t d = 0; d < tensor->ndim; ++d) order.shape[d] = tensor->shape[d];
    (void)tp__contiguous_strides(tensor->ndim, tensor->shape, order.strides); /* of a tensor that exists */
    tp__layout_make(&args->layout, tensor->ndim, tensor->shape, 2, (const tp_tensor_t *[]){&order, tensor});
  }
  int64_t words = tp__dtype_size(tensor->dtype) == 8 ? 2 : 1;
  tp__draw_t draw = {.stream = tp__stream_current(tensor->device),
                     .words = ((uint64_t)tensor->numel * (uint64_t)words + 3) / 4 * 4};
  TP_TRY(tp__draw_begin(&draw, operation));
  args->base = draw.base;
  args->state = draw.state;
  int64_t groups = tp__divide_up(tensor->numel, 4 / words);
  tp_status_t status = tp__launch_tiles(kernel, tensor->device, groups, TP_RANDOM_TILE, args, operation);
  return tp__draw_end(&draw, status, operation);
}

tp_status_t tp_random_uniform(tp_tensor_t *tensor, double low, double high) {
  const char *operation = "uniform_";
  TP_TRY(tp__check_floating(tensor, operation));
  TP_TRY(tp__check_target(tensor, operation));
  double least = round_to(low, tensor->dtype), most = round_to(high, tensor->dtype), span = most - least;
  if (tensor->dtype != TP_DTYPE_float64) span = (double)(float)span;
  if (!isfinite(span) || span < 0)
    return tp__error_set(TP_INVALID_ARGUMENT, operation,
                         "got limits %g and %g, expected finite ones in rising order", low, high);
  double last = below(most, tensor->dtype);
  tp_random_args_t args = {.low = least, .span = span, .below = last < least ? least : last};
  return fill(&uniforms[tensor->dtype], tensor, &args, operation);
}

tp_status_t tp_random_normal(tp_tensor_t *tensor, double mean, double std) {
  const char *operation = "normal_";
  TP_TRY(tp__check_floating(tensor, operation));
  TP_TRY(tp__check_target(tensor, operation));
  if (!isfinite(std) || std < 0)
    return tp__error_set(TP_INVALID_ARGUMENT, operation, "got a standard deviation of %g, expected one of 0 or more",
                         std);
  tp_random_args_t args = {.mean = mean, .std = std};
  return fill(&normals[tensor->dtype], tensor, &args, operation);
}

tp_status_t tp_random_bits(tp_tensor_t *tensor) {
  const char *operation = "random_bits_";
  if (tensor->dtype != TP_DTYPE_int64)
    return tp__error_set(TP_DTYPE, operation, "got dtype %s, expected int64", tp__dtype_name(tensor->dtype));
  TP_TRY(tp__check_target(tensor, operation));
  tp_random_args_t args = {0};
  return fill(&bits_kernel, tensor, &args, operation);
}
