/* Elementwise operations: which kernel, over which elements (docs/design/kernels.md). */
#include "../../kernels/args_elementwise.h"
#include "../internal.h"

typedef enum takes { ALL, REAL, NUMBERS, REAL_NUMBERS, BITS, INTEGERS, FLOATS } takes_t;
typedef enum rule { SAME, FLOAT, BOOL, MAGNITUDE } rule_t;

enum {
#define TP_UNARY(name, code, takes, rule, kernels) TP_UNARY_##name = code,
#define TP_BINARY(name, code, takes, rule, kernels) TP_BINARY_##name = code,
#include "../../kernels/ops.def"
};

typedef struct op {
  const char *name;
  takes_t takes;
  rule_t rule;
  tp__kernel_t flat[TP_DTYPE_COUNT]; /* by the dtype that is computed in; no name: none */
} op_t;

static const tp__access_t flat_accesses[] = {
    TP_WRITES(tp_flat_args_t, out), TP_READS(tp_flat_args_t, operands[0]),
    TP_READS(tp_flat_args_t, operands[1]), {0}};
static const tp__access_t general_accesses[] = {
    TP_WRITES(tp_general_args_t, out), TP_READS(tp_general_args_t, operands[0]),
    TP_READS(tp_general_args_t, operands[1]), {0}};

#define FLAT_KERNEL(op, suffix, dtype, element, result) \
  [TP_DTYPE_##dtype] = TP_KERNEL_INIT("elementwise", "tp_k_" #op "_" #suffix, flat_accesses),

static op_t unary_ops[] = {
#define TP_UNARY(name_, code, takes_, rule_, kernels) \
  [code] = {.name = #name_, .takes = takes_, .rule = rule_, .flat = {TP_FLAT_##kernels(FLAT_KERNEL, name_)}},
#include "../../kernels/ops.def"
};

static op_t binary_ops[] = {
#define TP_BINARY(name_, code, takes_, rule_, kernels) \
  [code] = {.name = #name_, .takes = takes_, .rule = rule_, .flat = {TP_FLAT_##kernels(FLAT_KERNEL, name_)}},
#include "../../kernels/ops.def"
};

/* The kernels for any op, by what elements of the dtype are computed in. */
static tp__kernel_t *general_kernel(int32_t dtype) {
  static tp__kernel_t in_int64 = TP_KERNEL_INIT("general", "tp_k_general_i64", general_accesses),
                      in_float32 = TP_KERNEL_INIT("general", "tp_k_general_f32", general_accesses),
                      in_float64 = TP_KERNEL_INIT("general", "tp_k_general_f64", general_accesses),
                      in_complex64 = TP_KERNEL_INIT("general", "tp_k_general_c64", general_accesses),
                      in_complex128 = TP_KERNEL_INIT("general", "tp_k_general_c128", general_accesses);
  switch (dtype) {
    case TP_DTYPE_float64: return &in_float64;
    case TP_DTYPE_complex64: return &in_complex64;
    case TP_DTYPE_complex128: return &in_complex128;
    default: return tp__dtype_is_floating(dtype) ? &in_float32 : &in_int64;
  }
}

/* One operation, ready to run: operands[i] is NULL where the scalar stands. */
typedef struct call {
  op_t *op;
  int32_t code; /* as general kernels have it */
  int32_t n;
  const tp_tensor_t *operands[2];
  tp_scalar_t scalar;
  int32_t compute; /* the dtype that operands are taken to */
  int32_t result;
} call_t;

static op_t *find_op(op_t *ops, size_t n, int32_t code, const char *family) {
  if (code >= 0 && (size_t)code < n) return &ops[code];
  tp__error_set(TP_INVALID_ARGUMENT, family, "got op code %d, expected 0 to %zu", (int)code, n - 1);
  return NULL;
}

/* The categories that ops take. */
static const struct {
  int32_t lowest, highest;
} taken[] = {[ALL] = {TP_CATEGORY_BOOL, TP_CATEGORY_COMPLEX},    [REAL] = {TP_CATEGORY_BOOL, TP_CATEGORY_FLOAT},
             [NUMBERS] = {TP_CATEGORY_INT, TP_CATEGORY_COMPLEX}, [REAL_NUMBERS] = {TP_CATEGORY_INT, TP_CATEGORY_FLOAT},
             [BITS] = {TP_CATEGORY_BOOL, TP_CATEGORY_INT},       [INTEGERS] = {TP_CATEGORY_INT, TP_CATEGORY_INT},
             [FLOATS] = {TP_CATEGORY_FLOAT, TP_CATEGORY_FLOAT}};

static tp_status_t apply_rule(call_t *call, int32_t dtype) {
  int32_t category = tp__dtype_category(dtype);
  if (category < taken[call->op->takes].lowest || category > taken[call->op->takes].highest)
    return tp__error_set(TP_DTYPE, call->op->name, "got dtype %s, which it does not take", tp__dtype_name(dtype));
  if (call->op->rule == FLOAT && category < TP_CATEGORY_FLOAT) dtype = tp__dtype_default();
  call->compute = dtype;
  call->result = dtype;
  if (call->op->rule == BOOL) call->result = TP_DTYPE_bool;
  if (call->op->rule == MAGNITUDE) call->result = tp__dtype_real(dtype);
  return TP_OK;
}

/* ---- choosing the kernel ---- */

static bool has_flat_kernel(const call_t *call, const tp_tensor_t *target) {
  if (!call->op->flat[call->compute].name || target->dtype != call->result) return false;
  for (int32_t i = 0; i < call->n; ++i) {
    if (call->operands[i] && call->operands[i]->dtype != call->compute) return false;
  }
  return true;
}

/* The common cases, without a layout: contiguous operands of the result's size, or of one element. */
static bool steps_of_contiguous(const call_t *call, const tp_tensor_t *target, int32_t *steps) {
  if (!target->contiguous) return false;
  for (int32_t i = 0; i < call->n; ++i) {
    const tp_tensor_t *operand = call->operands[i];
    steps[i] = !operand ? -1 : operand->numel == target->numel;
    if (operand && operand->numel != 1 && !(steps[i] && operand->contiguous)) return false;
  }
  return true;
}

static bool steps_of_layout(const call_t *call, const tp_layout_t *layout, int32_t *steps) {
  for (int32_t i = 0; i < call->n; ++i) {
    if (!call->operands[i]) {
      steps[i] = -1;
      continue;
    }
    steps[i] = tp__layout_step(layout, 1 + i);
    if (steps[i] < 0) return false;
  }
  return tp__layout_step(layout, 0) == 1;
}

/* Whether target and the operands that advance start where a vector may. */
static bool is_aligned(const call_t *call, const tp_tensor_t *target, const int32_t *steps) {
  uintptr_t addresses = (uintptr_t)target->data;
  for (int32_t i = 0; i < call->n; ++i) {
    if (steps[i] > 0) addresses |= (uintptr_t)call->operands[i]->data;
  }
  return addresses % 16 == 0;
}

/* places: NULL for operands that are runs or one element. */
static tp_status_t launch_flat(const call_t *call, tp_tensor_t *target, const int32_t *steps, bool aligned,
                               const tp_places_t *places) {
  tp_flat_args_t args;
  args.out = target->data;
  for (int32_t i = 0; i < call->n; ++i) {
    args.operands[i] = call->operands[i] ? call->operands[i]->data : NULL;
    args.steps[i] = steps[i];
  }
  args.aligned = aligned;
  args.tile = tp__layout_tile(target->numel, tp__dtype_size(call->compute));
  args.numel = target->numel;
  args.scalar = call->scalar;
  args.places.ndim = 0;
  if (places) args.places = *places;
  return tp__launch_tiles(&call->op->flat[call->compute], target->device, target->numel, args.tile, &args,
                          call->op->name);
}

/* *served is false where the layout is beyond these kernels. */
static tp_status_t launch_places(const call_t *call, tp_tensor_t *target, const tp_layout_t *layout,
                                 bool *served) {
  int32_t steps[2];
  for (int32_t i = 0; i < call->n; ++i) steps[i] = call->operands[i] ? (int32_t)layout->strides[1 + i][0] : -1;
  tp_places_t places;
  *served = tp__layout_places(layout, 1 + call->n, &places);
  if (!*served) return TP_OK;
  bool aligned = is_aligned(call, target, steps) &&
                 tp__layout_has_vectors(layout, 1 + call->n, 16 / (int64_t)tp__dtype_size(call->compute));
  return launch_flat(call, target, steps, aligned, &places);
}

static tp_status_t launch_general(const call_t *call, tp_tensor_t *target, tp_general_args_t *args) {
  uintptr_t addresses = (uintptr_t)target->data;
  for (int32_t i = 0; i < call->n; ++i) {
    const tp_tensor_t *operand = call->operands[i];
    args->operands[i] = operand ? operand->data : NULL;
    args->dtypes[i] = operand ? operand->dtype : call->compute;
    addresses |= (uintptr_t)args->operands[i];
  }
  if (call->n == 1) args->operands[1] = NULL;
  bool aligned;
  args->units = tp__layout_units(&args->layout, 1 + call->n, TP_GENERAL_UNIT, &aligned);
  args->aligned = aligned && addresses % 16 == 0;
  args->out = target->data;
  args->out_dtype = target->dtype;
  args->op = call->code;
  args->round = call->compute;
  args->round_scalar = call->op->rule == BOOL || tp__dtype_category(call->compute) < TP_CATEGORY_FLOAT;
  args->scalar = call->scalar;
  int64_t units = args->units + (target->numel - args->units * TP_GENERAL_UNIT);
  return tp__launch_tiles(general_kernel(call->compute), target->device, units, TP_UNITS_TILE, args, call->op->name);
}

static tp_status_t launch(const call_t *call, tp_tensor_t *target) {
  int32_t steps[2];
  bool may_be_flat = has_flat_kernel(call, target);
  if (may_be_flat && steps_of_contiguous(call, target, steps))
    return launch_flat(call, target, steps, is_aligned(call, target, steps), NULL);
  tp_general_args_t args;
  const tp_tensor_t *tensors[] = {target, call->operands[0], call->operands[1]};
  tp__layout_make(&args.layout, target->ndim, target->shape, 3, tensors); /* general kernels read all three */
  if (may_be_flat && steps_of_layout(call, &args.layout, steps))
    return launch_flat(call, target, steps, is_aligned(call, target, steps), NULL);
  bool served = false;
  if (may_be_flat) TP_TRY(launch_places(call, target, &args.layout, &served));
  return served ? TP_OK : launch_general(call, target, &args);
}

/* ---- the operations ---- */

static tp_tensor_t *run(const call_t *call, int32_t device, int32_t ndim, const int64_t *shape,
                        tp_tensor_t *out) {
  const char *operation = call->op->name;
  tp_tensor_t *result = tp__check_out(out, call->result, device, ndim, shape, operation);
  if (!result || result->numel == 0) return result;
  bool direct = true;
  for (int32_t i = 0; out && i < call->n; ++i)
    direct = direct && !(call->operands[i] && tp__tensor_overlaps(out, call->operands[i]));
  tp_tensor_t *target = tp__target_take(result, result->dtype, direct, operation);
  return tp__target_finish(result, target, target ? launch(call, target) : tp_error_status());
}

tp_tensor_t *tp_unary(int32_t op, const tp_tensor_t *a, tp_tensor_t *out) {
  call_t call = {.op = find_op(unary_ops, sizeof unary_ops / sizeof *unary_ops, op, "unary"),
                 .code = op,
                 .n = 1,
                 .operands = {a}};
  if (!call.op || apply_rule(&call, a->dtype)) return NULL;
  /* In the integers that it is computed in, a bool has other bits than its own. */
  if (op == TP_UNARY_bitwise_not && a->dtype == TP_DTYPE_bool) call.code = TP_UNARY_logical_not;
  return run(&call, a->device, a->ndim, a->shape, out);
}

tp_tensor_t *tp_binary(int32_t op, const tp_tensor_t *a, const tp_tensor_t *b, tp_tensor_t *out) {
  call_t call = {.op = find_op(binary_ops, sizeof binary_ops / sizeof *binary_ops, op, "binary"),
                 .code = TP_GENERAL_BINARY + op,
                 .n = 2,
                 .operands = {a, b}};
  if (!call.op || tp__check_devices(a, b, call.op->name)) return NULL;
  if (apply_rule(&call, tp__promote(a->dtype, a->ndim == 0, b->dtype, b->ndim == 0))) return NULL;
  if (tp__tensor_has_shape(a, b->ndim, b->shape)) return run(&call, a->device, a->ndim, a->shape, out);
  int32_t ndim;
  int64_t shape[TP_MAX_NDIM];
  if (tp__check_broadcast(a->ndim, a->shape, b->ndim, b->shape, &ndim, shape, call.op->name)) return NULL;
  return run(&call, a->device, ndim, shape, out);
}

/* The dtype of the number is the one that its kind has by default. */
static tp_tensor_t *with_scalar(int32_t op, const tp_tensor_t *a, tp_scalar_t scalar, int32_t scalar_dtype,
                                int32_t reversed, tp_tensor_t *out) {
  call_t call = {.op = find_op(binary_ops, sizeof binary_ops / sizeof *binary_ops, op, "binary"),
                 .code = TP_GENERAL_BINARY + op,
                 .n = 2,
                 .scalar = scalar};
  call.operands[reversed ? 1 : 0] = a;
  if (!call.op || apply_rule(&call, tp__promote(a->dtype, false, scalar_dtype, true))) return NULL;
  if (tp__dtype_category(scalar_dtype) < TP_CATEGORY_FLOAT) {
    /* Rounded once, to what is computed in. */
    bool wide = call.compute == TP_DTYPE_float64 || call.compute == TP_DTYPE_complex128;
    call.scalar.as_float = wide ? (double)scalar.as_int : (double)(float)scalar.as_int;
  }
  /* A square is a product, as torch has it: that takes no more than moving the elements. */
  bool is_square = op == TP_BINARY_pow && !reversed && call.scalar.as_float == 2;
  if (is_square && tp__dtype_is_floating(a->dtype)) return tp_binary(TP_BINARY_mul, a, a, out);
  return run(&call, a->device, a->ndim, a->shape, out);
}

tp_tensor_t *tp_binary_float(int32_t op, const tp_tensor_t *a, double b, int32_t reversed, tp_tensor_t *out) {
  return with_scalar(op, a, (tp_scalar_t){.as_float = b}, tp__dtype_default(), reversed, out);
}

tp_tensor_t *tp_binary_int(int32_t op, const tp_tensor_t *a, int64_t b, int32_t is_bool, int32_t reversed,
                           tp_tensor_t *out) {
  return with_scalar(op, a, (tp_scalar_t){.as_int = b}, is_bool ? TP_DTYPE_bool : TP_DTYPE_int64, reversed, out);
}

tp_tensor_t *tp_binary_complex(int32_t op, const tp_tensor_t *a, double re, double im, int32_t reversed,
                               tp_tensor_t *out) {
  int32_t dtype = tp__dtype_default() == TP_DTYPE_float64 ? TP_DTYPE_complex128 : TP_DTYPE_complex64;
  return with_scalar(op, a, (tp_scalar_t){.as_float = re, .imaginary = im}, dtype, reversed, out);
}
