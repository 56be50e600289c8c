"""Matrices by the place of their elements, and coordinates of grids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _creation, _dispatch, _dtype, _pinned, _shape
from .._device import DeviceLike
from .._dtype import DType
from ..errors import DTypeError, InvalidArgumentError
from .choice import where
from .families import in_place
from .joining import stack

if TYPE_CHECKING:
    from .._tensor import Tensor


def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with 0 above a diagonal: 0 is the main one, 1 the next above it."""
    mask = _offsets("tril", input) <= _shape.integer("tril", diagonal)
    return where(mask, input, _creation.new_zeros(input, ()), out=out)


def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with 0 below a diagonal: 0 is the main one, 1 the next above it."""
    mask = _offsets("triu", input) >= _shape.integer("triu", diagonal)
    return where(mask, input, _creation.new_zeros(input, ()), out=out)


tril_ = in_place(tril)
triu_ = in_place(triu)


def _offsets(operation: str, input: Tensor) -> Tensor:
    """Column minus row."""
    _dispatch.check_tensor(operation, input)
    if input.ndim < 2:
        raise InvalidArgumentError(f"{operation}: got shape {input.shape}, expected at least two dimensions")
    rows, columns = (_creation.arange(0, size, device=input.device) for size in input.shape[-2:])
    return columns - rows.unsqueeze(1)


def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Rows and columns of the elements that `tril` keeps, two rows; int64 by default."""
    kept = tril(_creation.ones(row, col, dtype=_dtype.bool, device=device), offset)
    return _pinned.pinned(_places("tril_indices", kept, dtype), pin_memory)


def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Rows and columns of the elements that `triu` keeps, two rows; int64 by default."""
    kept = triu(_creation.ones(row, col, dtype=_dtype.bool, device=device), offset)
    return _pinned.pinned(_places("triu_indices", kept, dtype), pin_memory)


def _places(operation: str, kept: Tensor, dtype: DType | None) -> Tensor:
    kind = _dtype.int64 if dtype is None else _dtype.check(operation, dtype)
    return stack(where(kept)).to(kind)


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid, as views: of each tensor one that varies along its own dimension alone.

    Parameters
    ----------
    indexing : str
        ``"ij"``: the first tensor goes down the rows; ``"xy"``: along the columns.
    """
    axes = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    _dispatch.check_tensor("meshgrid", *axes)
    if not axes:
        raise InvalidArgumentError("meshgrid: got no tensors, expected at least one")
    if not isinstance(indexing, str) or indexing not in ("ij", "xy"):
        raise InvalidArgumentError(f"meshgrid: got indexing={indexing!r}, expected 'ij' or 'xy'")
    if any(axis.ndim > 1 for axis in axes) or len({axis.dtype for axis in axes}) != 1:
        described = ", ".join(f"{axis.dtype.name} of shape {axis.shape}" for axis in axes)
        raise DTypeError(f"meshgrid: got {described}, expected one dimension each and one dtype")
    if indexing == "xy" and len(axes) > 1:
        first, second, *rest = meshgrid(axes[1], axes[0], *axes[2:])
        return tuple(grid for grid in (second, first, *rest))
    shape = tuple(axis.numel() for axis in axes)
    return tuple(
        axis.reshape((1,) * place + (-1,) + (1,) * (len(axes) - place - 1)).expand(shape)
        for place, axis in enumerate(axes)
    )
