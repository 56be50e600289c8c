"""Which dtypes tensors have, alone and together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _operands
from .._dtype import DType

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


def result_type(tensor1: Tensor | Scalar, tensor2: Tensor | Scalar) -> DType:
    """The dtype that two operands have together: numbers are weaker than 0-d tensors, and those than others."""
    return together("result_type", tensor1, tensor2)


def together(operation: str, *operands: Tensor | Scalar) -> DType:
    """As `result_type`, of any number of operands; a weaker one has a say only by the category of its dtype."""
    ranks: list[DType | None] = [None, None, None]  # Of numbers, of 0-d tensors, of the others.
    for operand in operands:
        plain = _dispatch.tensor_or_number(operation, operand)
        if _dispatch.is_tensor(plain):
            rank, dtype = (2 if plain.ndim else 1), plain.dtype
        else:
            rank, dtype = 0, _operands.scalar_dtype(operation, plain)  # type: ignore[arg-type]
        before = ranks[rank]
        ranks[rank] = dtype if before is None else _dtype.promote(before, dtype)
    numbers, points, others = ranks
    result = others or points or numbers
    assert result is not None, "there is always an operand"
    for weaker in (points, numbers):
        result = result if weaker is None else _dtype.promote_weak(result, weaker)
    return result


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds the elements of both."""
    return _dtype.promote(_dtype.check("promote_types", type1), _dtype.check("promote_types", type2))


def can_cast(from_: DType, to: DType) -> bool:
    """Whether results of one dtype may be written into a tensor of another: into its category or a higher one."""
    return _dtype.can_cast(_dtype.check("can_cast", from_), _dtype.check("can_cast", to))


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype holds fractions and is not complex."""
    return _dispatch.tensor("is_floating_point", input).dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the dtype holds complex numbers."""
    return _dispatch.tensor("is_complex", input).dtype.is_complex


def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers."""
    return _dispatch.tensor("is_signed", input).dtype.is_signed
