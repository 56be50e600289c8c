"""Operations that work element by element: broadcasting and promotion, torch's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dtype, _shape, _tables
from .._dtype import DType
from ..errors import DTypeError
from ._spec import Spec, device_of, into, scalar_dtype

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


def unary(op: str, a: Tensor, out: Tensor | None = None) -> Spec:
    """One operand."""
    rule = _tables.UNARY[op][1]
    result, compute = _apply_rule(op, rule, a.dtype)
    return into(op, Spec(a.shape, result, a.device, compute), out)


def binary(op: str, a: Tensor | Scalar, b: Tensor | Scalar, out: Tensor | None = None) -> Spec:
    """Two operands, one of which may be a number."""
    from .._tensor import Tensor

    tensors = [operand for operand in (a, b) if isinstance(operand, Tensor)]
    device = device_of(op, *tensors)
    dtype = _promoted(op, a, b)
    result, compute = _apply_rule(op, _tables.BINARY[op][1], dtype)
    shape = _shape.broadcast(op, *(tensor.shape for tensor in tensors))
    return into(op, Spec(shape, result, device, compute), out)


def where(condition: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None) -> Spec:
    """A choice between two operands."""
    device = device_of("where", condition, a, b)
    if condition.dtype is not _dtype.bool:
        raise DTypeError(f"where: got a condition of dtype {condition.dtype.name}, expected bool")
    dtype = _promoted("where", a, b)
    shape = _shape.broadcast("where", condition.shape, a.shape, b.shape)
    return into("where", Spec(shape, dtype, device, dtype), out)


def _promoted(operation: str, a: Tensor | Scalar, b: Tensor | Scalar) -> DType:
    """The dtype of both operands together: numbers are weaker than 0-d tensors, those than others."""
    (a_dtype, a_rank), (b_dtype, b_rank) = _ranked(operation, a), _ranked(operation, b)
    if a_rank == b_rank:
        return _dtype.promote(a_dtype, b_dtype)
    if a_rank > b_rank:
        return _dtype.promote_weak(a_dtype, b_dtype)
    return _dtype.promote_weak(b_dtype, a_dtype)


def _ranked(operation: str, operand: Tensor | Scalar) -> tuple[DType, int]:
    from .._tensor import Tensor

    if isinstance(operand, Tensor):
        return operand.dtype, 2 if operand.ndim else 1
    return scalar_dtype(operation, operand), 0


def _apply_rule(op: str, rule: str, dtype: DType) -> tuple[DType, DType]:
    """Dtype of the result, and dtype to compute in, by the rules of ops.def."""
    if rule == "NUMERIC" and dtype is _dtype.bool:
        raise DTypeError(f"{op}: got dtype bool, expected a dtype of numbers")
    if rule == "FLOAT" and not dtype.is_floating_point:
        dtype = _dtype.float32
    return (_dtype.bool if rule == "BOOL" else dtype), dtype
