/* Elements that come from numbers. */
#include <math.h>

#include "../kernels/args_copy.h"
#include "internal.h"

static const tp__access_t fill_accesses[] = {TP_WRITES(tp_fill_args_t, out), {0}};
static const tp__access_t arange_accesses[] = {TP_WRITES(tp_arange_args_t, out), {0}};

static tp__kernel_t fill_kernel = TP_KERNEL_INIT("fill", "tp_k_fill", fill_accesses);
static tp__kernel_t arange_float = TP_KERNEL_INIT("fill", "tp_k_arange_float", arange_accesses);
static tp__kernel_t arange_int = TP_KERNEL_INIT("fill", "tp_k_arange_int", arange_accesses);

enum { VECTOR = sizeof((tp_fill_args_t *)0)->pattern };

/* ---- one element of a dtype, of size tp__dtype_size ---- */

typedef union element {
  bool as_bool;
  uint8_t as_uint8;
  uint16_t as_uint16;
  int32_t as_int32;
  int64_t as_int64;
  float as_floats[2];
  double as_doubles[2];
  unsigned char bytes[VECTOR];
} element_t;

/* To the nearest, of two the even one. */
static uint16_t half_of_float(float value) {
  element_t x = {.as_floats = {fabsf(value)}};
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return 0x7fff;
  if (x.as_floats[0] >= 65520) return sign | 0x7c00;
  if (x.as_floats[0] < 0x1p-14f) return sign | (uint16_t)lrintf(x.as_floats[0] * 0x1p24f);
  uint32_t bits = (uint32_t)x.as_int32 - ((127 - 15) << 23);
  return sign | (uint16_t)((bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

static uint16_t bfloat16_of_float(float value) {
  element_t x = {.as_floats = {value}};
  uint32_t bits = (uint32_t)x.as_int32;
  return isnan(value) ? 0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A number, its real part in every form that a dtype may need. */
typedef struct number {
  double re, im;
  float as_float;
  int64_t as_int;
} number_t;

static element_t element_of(int32_t dtype, number_t number) {
  element_t element = {0};
  switch (dtype) {
    case TP_DTYPE_bool: element.as_bool = number.re != 0 || number.im != 0; break;
    case TP_DTYPE_uint8:
    case TP_DTYPE_int8: element.as_uint8 = (uint8_t)number.as_int; break;
    case TP_DTYPE_int16: element.as_uint16 = (uint16_t)number.as_int; break;
    case TP_DTYPE_int32: element.as_int32 = (int32_t)number.as_int; break;
    case TP_DTYPE_int64: element.as_int64 = number.as_int; break;
    case TP_DTYPE_float16: element.as_uint16 = half_of_float(number.as_float); break;
    case TP_DTYPE_bfloat16: element.as_uint16 = bfloat16_of_float(number.as_float); break;
    case TP_DTYPE_float32:
    case TP_DTYPE_complex64:
      element.as_floats[0] = number.as_float;
      element.as_floats[1] = (float)number.im;
      break;
    case TP_DTYPE_float64:
    case TP_DTYPE_complex128:
      element.as_doubles[0] = number.re;
      element.as_doubles[1] = number.im;
      break;
  }
  return element;
}

/* As a cast on the device: truncated, kept to the range of int32 or int64; narrower integers wrap. */
static int64_t int_of_double(double value, int32_t dtype) {
  bool narrow = dtype == TP_DTYPE_int32;
  if (isnan(value)) return narrow ? 0 : INT64_MIN;
  double beyond = narrow ? 0x1p31 : 0x1p63;
  if (value >= beyond) return narrow ? INT32_MAX : INT64_MAX;
  if (value < -beyond) return narrow ? INT32_MIN : INT64_MIN;
  return (int64_t)value;
}

/* ---- fills ---- */

/* target is contiguous and has elements. */
static tp_status_t fill_run(tp_tensor_t *target, element_t element) {
  static const char operation[] = "fill";
  size_t size = tp__dtype_size(target->dtype), nbytes = (size_t)target->numel * size;
  bool same = true;
  for (size_t i = 1; i < size; ++i) same = same && element.bytes[i] == element.bytes[0];
  if (same) {
    TP_TRY(tp__device_enter(target->device, operation));
    tp_stream_t *stream = tp__stream_current(target->device);
    TP_TRY(tp__watch(stream, 1, &(tp__touch_t){target->data, true}, operation));
    TP_TRY_CUDA(cudaMemsetAsync(target->data, element.bytes[0], nbytes, tp__stream_cuda(stream)), operation);
    return tp__settle(stream, operation);
  }
  size_t head = -(uintptr_t)target->data % VECTOR;
  if (head > nbytes) head = nbytes;
  tp_fill_args_t args = {.out = target->data,
                         .head = (int)head,
                         .vectors = (long long)((nbytes - head) / VECTOR),
                         .tail = (int)((nbytes - head) % VECTOR)};
  /* Addresses of elements are multiples of their size, so the pattern begins with one. */
  for (size_t i = 0; i < VECTOR; ++i) ((unsigned char *)args.pattern)[i] = element.bytes[i % size];
  args.tile = tp__layout_tile(args.vectors, VECTOR);
  return tp__launch_tiles(&fill_kernel, target->device, args.vectors ? args.vectors : 1, args.tile, &args, operation);
}

static tp_status_t fill(tp_tensor_t *tensor, element_t element) {
  if (tensor->numel == 0) return TP_OK;
  if (tensor->contiguous) return fill_run(tensor, element);
  /* One element, copied everywhere: strides are the copy's business. */
  tp_tensor_t *one = tp__tensor_new(tensor->dtype, tensor->device, 0, NULL, "fill");
  if (!one) return tp_error_status();
  tp_status_t status = fill_run(one, element);
  if (!status) status = tp__copy_same_device(tensor, one, "fill");
  tp_tensor_release(one);
  return status;
}

tp_status_t tp_tensor_fill_float(tp_tensor_t *tensor, double value) {
  return tp_tensor_fill_complex(tensor, value, 0);
}

tp_status_t tp_tensor_fill_int(tp_tensor_t *tensor, int64_t value) {
  number_t number = {.re = (double)value, .as_float = (float)value, .as_int = value};
  return fill(tensor, element_of(tensor->dtype, number));
}

tp_status_t tp_tensor_fill_complex(tp_tensor_t *tensor, double re, double im) {
  int32_t category = tp__dtype_category(tensor->dtype);
  if (im != 0 && (category == TP_CATEGORY_INT || category == TP_CATEGORY_FLOAT))
    return tp__error_set(TP_INVALID_ARGUMENT, "fill", "got an imaginary part of %g for %s", im,
                         tp__dtype_name(tensor->dtype));
  number_t number = {.re = re, .im = im, .as_float = (float)re, .as_int = int_of_double(re, tensor->dtype)};
  return fill(tensor, element_of(tensor->dtype, number));
}

/* ---- sequences ---- */

static tp_tensor_t *arange(tp__kernel_t *kernel, tp_arange_args_t *args, int64_t numel, int32_t dtype,
                           int32_t device) {
  tp_tensor_t *out = tp_tensor_empty(dtype, device, 1, &numel);
  if (!out) return NULL;
  int32_t category = tp__dtype_category(dtype);
  if (category != TP_CATEGORY_INT && category != TP_CATEGORY_FLOAT) {
    tp__error_set(TP_DTYPE, "arange", "got %s, expected integers or floating numbers", tp__dtype_name(dtype));
    tp_tensor_release(out);
    return NULL;
  }
  if (numel == 0) return out;
  args->out = out->data;
  args->numel = numel;
  args->out_dtype = dtype;
  if (tp__launch_tiles(kernel, out->device, numel, TP_COPY_TILE, args, "arange")) {
    tp_tensor_release(out);
    return NULL;
  }
  return out;
}

tp_tensor_t *tp_tensor_arange_float(double start, double step, int64_t numel, int32_t dtype, int32_t device) {
  tp_arange_args_t args = {.float_start = start, .float_step = step};
  return arange(&arange_float, &args, numel, dtype, device);
}

tp_tensor_t *tp_tensor_arange_int(int64_t start, int64_t step, int64_t numel, int32_t dtype, int32_t device) {
  tp_arange_args_t args = {.int_start = start, .int_step = step};
  return arange(&arange_int, &args, numel, dtype, device);
}
