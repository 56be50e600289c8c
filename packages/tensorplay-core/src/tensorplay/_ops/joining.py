"""Several tensors to one. Composed: an empty tensor, and one copy into a slice of it for each part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from ..errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from .._tensor import Tensor


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors behind one another along `dim`; their other sizes are equal.

    Raises
    ------
    DTypeError
        No sequence of tensors; a tensor is none.
    InvalidArgumentError
        No tensors, different devices, or other sizes that differ.
    """
    parts, first = _parts("cat", tensors)
    dim = _shape.wrap_dim("cat", _shape.integer("cat", dim), first.ndim)
    for part in parts:
        sizes = [size for place, size in enumerate(part.shape) if place != dim]
        if not part.ndim or sizes != [size for place, size in enumerate(first.shape) if place != dim]:
            raise InvalidArgumentError(
                f"cat: got shapes {first.shape} and {part.shape}, expected equal sizes outside dimension {dim}"
            )
    total = sum(part.shape[dim] for part in parts)
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    result = first._backend.empty(shape, _together(parts), first.device)
    start = 0
    for part in parts:
        stop = start + part.shape[dim]
        result.narrow(dim, start, stop - start).copy_(part)
        start = stop
    return result


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, all of one shape, along a new dimension.

    Raises
    ------
    DTypeError
        No sequence of tensors; a tensor is none.
    InvalidArgumentError
        No tensors, different devices, or shapes that differ.
    """
    parts, first = _parts("stack", tensors)
    for part in parts:
        if part.shape != first.shape:
            raise InvalidArgumentError(f"stack: got shapes {first.shape} and {part.shape}, expected equal shapes")
    dim = _shape.wrap_dim("stack", _shape.integer("stack", dim), first.ndim + 1)
    shape = (*first.shape[:dim], len(parts), *first.shape[dim:])
    result = first._backend.empty(shape, _together(parts), first.device)
    for place, part in enumerate(parts):
        result.select(dim, place).copy_(part)
    return result


def _parts(operation: str, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
    from .._operands import device_of

    if not isinstance(tensors, Sequence):
        raise DTypeError(f"{operation}: got {type(tensors).__name__}, expected a sequence of tensors")
    parts = list(tensors)
    if not parts:
        raise InvalidArgumentError(f"{operation}: got no tensors, expected at least one")
    _dispatch.check_tensor(operation, *parts)
    device_of(operation, *parts)
    return parts, parts[0]


def _together(parts: Sequence[Tensor]) -> _dtype.DType:
    return reduce(_dtype.promote, (part.dtype for part in parts))
