"""How a composition rounds once: half types are computed in float32, as kernels do."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .. import _dispatch, _dtype

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._dtype import DType
    from .._tensor import Tensor

_Operand = TypeVar("_Operand", "Tensor", "Tensor | Scalar")


def wide(operand: _Operand, dtype: DType) -> _Operand:
    """A tensor as `dtype` holds its elements, in the dtype that is computed in; a number as it is."""
    if not _dispatch.is_tensor(operand):
        return operand
    held, working = operand.to(dtype), computed(dtype)
    return held if held.dtype is working else held.to(working)


def computed(dtype: DType) -> DType:
    """The dtype that elements of a dtype are computed in."""
    return _dtype.float32 if dtype in (_dtype.float16, _dtype.bfloat16) else dtype


def fractions(dtype: DType) -> DType:
    """The dtype of what a function that gives fractions makes of a dtype."""
    return _dtype.DEFAULTS[_dtype.FLOAT] if dtype.category < _dtype.FLOAT else dtype
