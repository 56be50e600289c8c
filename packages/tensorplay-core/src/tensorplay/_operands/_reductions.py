"""Operations over dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dtype, _shape, _tables
from .._dtype import DType
from .._shape import Shape
from ..errors import DTypeError, InvalidArgumentError, OutOfRangeError
from ._spec import Spec, device_of, floating, into, sized

if TYPE_CHECKING:
    from .._tensor import Tensor


def reduce(
    op: str,
    a: Tensor,
    dims: Sequence[int] | None,
    keepdim: bool = False,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Spec:
    """Some dimensions to one element each; () and None mean all of them."""
    reduced = _shape.wrap_dims(op, dims, a.ndim)
    result = _result_dtype(op, _tables.REDUCE[op][1], a.dtype, dtype)
    if _tables.REDUCE[op][1] == "SAME":
        _refuse_complex(op, a)
        _refuse_nothing(op, a, reduced)
    return into(op, Spec(_kept(a.shape, reduced, keepdim), result, a.device, a.dtype), out)


def arg_reduce(op: str, a: Tensor, dim: int | None, keepdim: bool = False) -> Spec:
    """The place of one element of a dimension, or of the whole tensor."""
    _refuse_complex(op, a)
    reduced = tuple(range(a.ndim)) if dim is None else _shape.wrap_dims(op, (dim,), a.ndim)
    _refuse_nothing(op, a, reduced)
    return sized(op, Spec(_kept(a.shape, reduced, keepdim), _dtype.int64, a.device, a.dtype))


def scan(op: str, a: Tensor, dim: int, dtype: DType | None = None, out: Tensor | None = None) -> Spec:
    """Running totals of a dimension."""
    _shape.wrap_dim(op, dim, a.ndim)
    if dtype is _dtype.bool:
        raise DTypeError(f"{op}: got dtype bool, expected a dtype of numbers")
    result = _result_dtype(op, _tables.SCAN[op][1], a.dtype, dtype)
    return into(op, Spec(a.shape, result, a.device, a.dtype), out)


def argsort(a: Tensor, dim: int, descending: bool = False) -> Spec:
    """Places in order."""
    _shape.wrap_dim("argsort", dim, a.ndim)
    _refuse_complex("argsort", a)
    return sized("argsort", Spec(a.shape, _dtype.int64, a.device, a.dtype))


def softmax(a: Tensor, dim: int, log: bool = False) -> Spec:
    """One dimension to numbers that add up to 1."""
    operation = "log_softmax" if log else "softmax"
    _shape.wrap_dim(operation, dim, a.ndim)
    dtype = floating(operation, a)
    return sized(operation, Spec(a.shape, dtype, a.device, dtype))


def layer_norm(
    a: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Spec:
    """The last dimensions to mean 0 and variance 1."""
    normalized = tuple(normalized_shape)
    device = device_of("layer_norm", a, weight, bias)
    dtype = floating("layer_norm", a, weight, bias)
    if not normalized or a.shape[max(a.ndim - len(normalized), 0) :] != normalized:
        raise InvalidArgumentError(
            f"layer_norm: got normalized_shape {normalized}, expected the last sizes of shape {a.shape}"
        )
    for name, operand in (("weight", weight), ("bias", bias)):
        if operand is not None and operand.shape != normalized:
            raise InvalidArgumentError(f"layer_norm: got {name} of shape {operand.shape}, expected {normalized}")
    return sized("layer_norm", Spec(a.shape, dtype, device, dtype))


def _kept(shape: Shape, reduced: Shape, keepdim: bool) -> Shape:
    """The shape without the reduced dimensions, or with sizes of 1 in their places."""
    return tuple(1 if place in reduced else size for place, size in enumerate(shape) if keepdim or place not in reduced)


def _refuse_complex(op: str, a: Tensor) -> None:
    if a.dtype.is_complex:
        raise DTypeError(f"{op}: got dtype {a.dtype.name}, expected one that is not complex")


def _refuse_nothing(op: str, a: Tensor, reduced: Shape) -> None:
    for dim in reduced:
        if a.shape[dim] == 0:
            raise OutOfRangeError(
                f"{op}: got shape {a.shape}, expected elements in dimension {dim}: {op} of nothing has no value"
            )


def _result_dtype(op: str, rule: str, operand: DType, wanted: DType | None) -> DType:
    """The dtype of the result by the rules of ops.def; only sums and means take another one."""
    if wanted is not None and rule not in ("SUM", "FLOAT"):
        raise DTypeError(f"{op}: got dtype {wanted.name}, expected none: the result's dtype is fixed")
    if rule == "BOOL":
        return operand if operand is _dtype.uint8 else _dtype.bool
    if rule == "SAME":
        return operand
    if rule == "SUM":
        return wanted or (operand if operand.category >= _dtype.FLOAT else _dtype.int64)
    result = wanted or operand
    if result.category < _dtype.FLOAT:
        raise DTypeError(f"{op}: got dtype {result.name}, expected a floating or complex dtype")
    return result
