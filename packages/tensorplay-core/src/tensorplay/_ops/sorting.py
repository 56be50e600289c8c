"""Elements in order. nan counts as the largest; equal elements keep their order, always."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

from .. import _dispatch, _shape
from ..errors import OutOfRangeError
from .choice import where
from .extremes import Found, found

if TYPE_CHECKING:
    from .._tensor import Tensor


def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> Found:
    """The elements along a dimension in order, and their indices before.

    Parameters
    ----------
    stable : bool
        Taken for torch's sake: equal elements keep their order in any case.
    """
    dim, order = _order("sort", input, dim, descending)
    _dispatch.flag("sort", "stable", stable)
    return found("sort", input, dim, order, True, out)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that bring a dimension into order, int64."""
    _dispatch.flag("argsort", "stable", stable)
    return _order("argsort", input, dim, descending)[1]


def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> Found:
    """The `k` largest or smallest elements along a dimension, in order, and their indices.

    Parameters
    ----------
    sorted : bool
        Taken for torch's sake: they are in order in any case.

    Examples
    --------
    >>> values, indices = tp.tensor([3, 9, 5, 7]).topk(2)
    >>> values, indices
    (tensor([9, 7]), tensor([1, 3]))
    """
    _dispatch.flag("topk", "sorted", sorted)
    dim, order = _order("topk", input, dim, largest)
    count, size = _shape.integer("topk", k), input.shape[dim] if input.ndim else 1
    if not 0 <= count <= size:
        raise OutOfRangeError(f"topk: got k={count}, expected 0 to {size}, the size of dimension {dim}")
    if input.ndim:
        order = order._backend.slice(order, dim, 0, count, 1).contiguous()
    return found("topk", input, dim, order, True, out)


def kthvalue(
    input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> Found:
    """The k-th smallest element along a dimension, counted from 1, and its index."""
    _dispatch.flag("kthvalue", "keepdim", keepdim)
    dim, order = _order("kthvalue", input, dim, False)
    place, size = _shape.integer("kthvalue", k), input.shape[dim] if input.ndim else 1
    if not 1 <= place <= size:
        raise OutOfRangeError(f"kthvalue: got k={place}, expected 1 to {size}, the size of dimension {dim}")
    return found("kthvalue", input, dim, _one(order, dim, place - 1), keepdim, out)


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Found: ...
def median(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> Tensor | Found:
    """The element in the middle, the lower one of two; nan where there is one, and of no fractions at all.

    With `dim`, those along a dimension and their indices; `out` is for these.
    """
    _dispatch.check_tensor("median", input)
    if dim is None:
        if not input.numel() and input.dtype.is_floating_point:
            return input._backend.full((), math.nan, input.dtype, input.device)
        return _middle(input.reshape(input.numel()), 0, False, None).values
    _dispatch.flag("median", "keepdim", keepdim)
    return _middle(input, dim, keepdim, out)


def _middle(input: Tensor, dim: int, keepdim: bool, out: tuple[Tensor, Tensor] | None) -> Found:
    dim, order = _order("median", input, dim, False)
    size = input.shape[dim] if input.ndim else 1
    if not size:
        raise OutOfRangeError(f"median: got shape {input.shape}, expected elements in dimension {dim}")
    places = _one(order, dim, (size - 1) // 2)
    if input.dtype.is_floating_point:
        # argmax finds the first nan, where there is one.
        unordered = input.isnan().any(dim, keepdim=True)
        places = where(unordered, input._backend.arg_reduce("argmax", input, dim, True), places)
    return found("median", input, dim, places, keepdim, out)


def _order(operation: str, input: Tensor, dim: int, descending: bool) -> tuple[int, Tensor]:
    """The dimension, counted from the front, and the indices that bring it into order."""
    _dispatch.check_tensor(operation, input)
    _dispatch.flag(operation, "largest" if operation == "topk" else "descending", descending)
    dim = _shape.wrap_dim(operation, _shape.integer(operation, dim), input.ndim)
    return dim, input._backend.argsort(input, dim, descending)


def _one(order: Tensor, dim: int, place: int) -> Tensor:
    return order._backend.slice(order, dim, place, place + 1, 1) if order.ndim else order
