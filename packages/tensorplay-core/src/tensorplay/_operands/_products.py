"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dtype, _shape
from ..errors import DTypeError, InvalidArgumentError
from ._spec import Spec, device_of, floating, into, sized

if TYPE_CHECKING:
    from .._dtype import DType
    from .._shape import Shape
    from .._tensor import Tensor


def matmul(a: Tensor, b: Tensor, out: Tensor | None = None) -> Spec:
    """Vectors, matrices, and batches of them."""
    device, dtype = device_of("matmul", a, b), _numbers("matmul", a, b)
    return into("matmul", Spec(_shape_of("matmul", a, b), dtype, device, dtype), out)


def addmm(
    input: Tensor, a: Tensor, b: Tensor, beta: complex = 1, alpha: complex = 1, out: Tensor | None = None
) -> Spec:
    """As `matmul`, and a tensor that broadcasts to the product."""
    device, dtype = device_of("addmm", input, a, b), _numbers("addmm", input, a, b)
    shape = _shape_of("addmm", a, b)
    if _shape.broadcast("addmm", input.shape, shape) != shape:
        raise InvalidArgumentError(f"addmm: got an input of shape {input.shape}, expected one that expands to {shape}")
    return into("addmm", Spec(shape, dtype, device, dtype), out)


def linear(a: Tensor, weight: Tensor, bias: Tensor | None) -> Spec:
    """a @ weight.T + bias."""
    device = device_of("linear", a, weight, bias)
    dtype = _numbers("linear", a, weight, *(() if bias is None else (bias,)))
    return sized("linear", Spec(_linear_shape("linear", a, weight, bias), dtype, device, dtype))


def linear_gelu(op: str, a: Tensor, weight: Tensor, bias: Tensor | None) -> Spec:
    """As `linear`, of a floating dtype."""
    device, dtype = device_of("linear_gelu", a, weight, bias), floating("linear_gelu", a, weight, bias)
    return sized("linear_gelu", Spec(_linear_shape("linear_gelu", a, weight, bias), dtype, device, dtype))


def _numbers(operation: str, *operands: Tensor) -> DType:
    dtypes = list(dict.fromkeys(operand.dtype for operand in operands))
    if len(dtypes) != 1 or dtypes[0] is _dtype.bool:
        names = " and ".join(dtype.name for dtype in dtypes)
        raise DTypeError(f"{operation}: got {names}, expected one dtype of numbers")
    return dtypes[0]


def _linear_shape(operation: str, a: Tensor, weight: Tensor, bias: Tensor | None) -> Shape:
    if weight.ndim != 2:
        raise InvalidArgumentError(f"{operation}: got a weight of shape {weight.shape}, expected two dimensions")
    rows, inner = weight.shape
    if a.ndim == 0 or a.shape[-1] != inner:
        raise InvalidArgumentError(
            f"{operation}: got an input of shape {a.shape}, expected {inner} in its last dimension"
        )
    if bias is not None and bias.shape != (rows,):
        raise InvalidArgumentError(f"{operation}: got a bias of shape {bias.shape}, expected {(rows,)}")
    return (*a.shape[:-1], rows)


def _shape_of(operation: str, a: Tensor, b: Tensor) -> Shape:
    got = f"{operation}: got shapes {a.shape} and {b.shape}"
    if a.ndim == 0 or b.ndim == 0:
        raise InvalidArgumentError(f"{got}, expected at least one dimension in each")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise InvalidArgumentError(f"{got}, expected equal inner sizes, not {a.shape[-1]} and {inner}")
    batch = _shape.broadcast(operation, a.shape[:-2], b.shape[:-2])
    return batch + a.shape[-2:-1] + (b.shape[-1:] if b.ndim > 1 else ())
