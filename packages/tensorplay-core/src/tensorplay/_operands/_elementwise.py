"""Operations that work element by element: broadcasting and promotion, torch's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dtype, _shape, _tables
from .._dtype import DType
from .._handle import Handle
from ..errors import DTypeError
from ._spec import Spec, device_of, into, scalar_dtype

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


def unary(op: str, a: Tensor, out: Tensor | None = None) -> Spec:
    """One operand."""
    _, takes, rule = _tables.UNARY[op]
    result, compute = _apply_rule(op, takes, rule, a.dtype)
    return into(op, Spec(a.shape, result, a.device, compute), out)


def binary(op: str, a: Tensor | Scalar, b: Tensor | Scalar, out: Tensor | None = None) -> Spec:
    """Two operands, one of which may be a number."""
    tensors = [operand for operand in (a, b) if isinstance(operand, Handle)]
    device = device_of(op, *tensors)
    dtype = _promoted(op, a, b)
    _, takes, rule = _tables.BINARY[op]
    result, compute = _apply_rule(op, takes, rule, dtype)
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
    if isinstance(operand, Handle):
        return operand.dtype, 2 if operand.ndim else 1
    return scalar_dtype(operation, operand), 0


#: The first and the last category that an op takes, and the words for them.
_TAKEN = {
    "ALL": (_dtype.BOOL, _dtype.COMPLEX, "any dtype"),
    "REAL": (_dtype.BOOL, _dtype.FLOAT, "a dtype that is not complex"),
    "NUMBERS": (_dtype.INT, _dtype.COMPLEX, "a dtype of numbers"),
    "REAL_NUMBERS": (_dtype.INT, _dtype.FLOAT, "an integer or floating dtype"),
    "BITS": (_dtype.BOOL, _dtype.INT, "bool or an integer dtype"),
    "INTEGERS": (_dtype.INT, _dtype.INT, "an integer dtype"),
    "FLOATS": (_dtype.FLOAT, _dtype.FLOAT, "a floating dtype"),
}


def _apply_rule(op: str, takes: str, rule: str, dtype: DType) -> tuple[DType, DType]:
    """Dtype of the result, and dtype to compute in, by the rules of ops.def."""
    lowest, highest, words = _TAKEN[takes]
    if not lowest <= dtype.category <= highest:
        raise DTypeError(f"{op}: got dtype {dtype.name}, expected {words}")
    if rule == "FLOAT" and dtype.category < _dtype.FLOAT:
        dtype = _dtype.DEFAULTS[_dtype.FLOAT]
    if rule == "BOOL":
        return _dtype.bool, dtype
    return (dtype.to_real() if rule == "MAGNITUDE" else dtype), dtype
