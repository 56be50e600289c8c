"""Several tensors to one. Composed: an empty tensor, and one copy into a slice of it for each part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from .._operands import device_of
from ..errors import DTypeError, InvalidArgumentError
from .view_functions import atleast_1d, atleast_2d, atleast_3d

if TYPE_CHECKING:
    from .._tensor import Tensor


def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors behind one another along `dim`; their other sizes are equal.

    As in torch, tensors of shape (0,) go along with all others.

    Raises
    ------
    DTypeError
        No sequence of tensors; a tensor is none.
    InvalidArgumentError
        No tensors, different devices, or other sizes that differ.
    """
    parts = _parts("cat", tensors)
    dtype = _together(parts)
    first, *others = parts = [part for part in parts if part.shape != (0,)] or parts[:1]
    dim = _shape.sized_dim("cat", _shape.integer("cat", dim), first.ndim)
    around = first.shape[:dim], first.shape[dim + 1 :]
    for part in others:
        if part.ndim != first.ndim or (part.shape[:dim], part.shape[dim + 1 :]) != around:
            raise InvalidArgumentError(
                f"cat: got shapes {first.shape} and {part.shape}, expected equal sizes outside dimension {dim}"
            )
    shape = (*around[0], sum(part.shape[dim] for part in parts), *around[1])
    backend = first._backend
    result = backend.empty(shape, dtype, first.device)
    start = 0
    for part in parts:
        stop = start + part.shape[dim]
        backend.copy_(backend.slice(result, dim, start, stop, 1), part)
        start = stop
    return _dispatch.into("cat", result, out)


def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors, all of one shape, along a new dimension.

    Raises
    ------
    DTypeError
        No sequence of tensors; a tensor is none.
    InvalidArgumentError
        No tensors, different devices, or shapes that differ.

    Examples
    --------
    >>> tp.stack([tp.zeros(2), tp.ones(2)], dim=1)
    tensor([[0., 1.],
            [0., 1.]])
    """
    parts = _parts("stack", tensors)
    first = parts[0]
    for part in parts:
        if part.shape != first.shape:
            raise InvalidArgumentError(f"stack: got shapes {first.shape} and {part.shape}, expected equal shapes")
    dim = _shape.wrap_dim("stack", _shape.integer("stack", dim), first.ndim + 1)
    shape = (*first.shape[:dim], len(parts), *first.shape[dim:])
    backend = first._backend
    result = backend.empty(shape, _together(parts), first.device)
    for place, part in enumerate(parts):
        backend.copy_(backend.select(result, dim, place), part)
    return _dispatch.into("stack", result, out)


def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side: along the second dimension, or the first of vectors."""
    parts = atleast_1d(_parts("hstack", tensors))
    return cat(parts, 0 if parts[0].ndim == 1 else 1, out=out)  # type: ignore[arg-type]


def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors below one another along the first dimension; vectors are rows."""
    return cat(atleast_2d(_parts("vstack", tensors)), 0, out=out)  # type: ignore[arg-type]


def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors behind one another along the third dimension."""
    return cat(atleast_3d(_parts("dstack", tensors)), 2, out=out)  # type: ignore[arg-type]


def _parts(operation: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    if not isinstance(tensors, Sequence):
        raise DTypeError(f"{operation}: got {type(tensors).__name__}, expected a sequence of tensors")
    parts = list(tensors)
    if not parts:
        raise InvalidArgumentError(f"{operation}: got no tensors, expected at least one")
    _dispatch.check_tensor(operation, *parts)
    device_of(operation, *parts)
    return parts


def _together(parts: Sequence[Tensor]) -> _dtype.DType:
    return reduce(_dtype.promote, (part.dtype for part in parts))
