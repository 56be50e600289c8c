"""Elements without their repetitions. How many those are has to be known on the host: it waits for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from ..errors import InvalidArgumentError
from .joining import cat
from .masks import true_places
from .views import movedim

if TYPE_CHECKING:
    from .._tensor import Tensor


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements in order; every nan is different from all others.

    Parameters
    ----------
    sorted : bool
        Taken for torch's sake: they are in order in any case.
    return_inverse : bool
        Also where each element of `input` is in the result.
    return_counts : bool
        Also how often each of them occurs.
    dim : int, optional
        The different slices along a dimension, as words are in a dictionary.

    Examples
    --------
    >>> tp.unique(tp.tensor([3, 1, 3, 2]), return_counts=True)
    (tensor([1, 2, 3]), tensor([1, 1, 2]))
    """
    rows, place = _rows("unique", input, dim)
    _check_flags("unique", return_inverse, return_counts)
    backend = rows._backend
    order = backend.arange(0, 1, rows.shape[0], _dtype.int64, rows.device)
    # By the last element first: sorting is stable, so that what is sorted later counts more.
    for column in reversed(range(rows.shape[1])):
        keys = backend.index_select(backend.select(rows, 1, column), 0, order)
        order = backend.index_select(order, 0, backend.argsort(keys, 0))
    return _parted(input, rows, order, place, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The elements without those that equal the one before; otherwise as `unique`."""
    rows, place = _rows("unique_consecutive", input, dim)
    _check_flags("unique_consecutive", return_inverse, return_counts)
    order = rows._backend.arange(0, 1, rows.shape[0], _dtype.int64, rows.device)
    return _parted(input, rows, order, place, return_inverse, return_counts)


def _check_flags(operation: str, return_inverse: bool, return_counts: bool) -> None:
    _dispatch.flag(operation, "return_inverse", return_inverse)
    _dispatch.flag(operation, "return_counts", return_counts)


def _rows(operation: str, input: Tensor, dim: int | None) -> tuple[Tensor, int | None]:
    """What is compared as a row each, and the dimension that the rows are slices of."""
    _dispatch.check_tensor(operation, input)
    if dim is None:
        return input._backend.reshape(input, (input.numel(), 1)), None
    place = _shape.sized_dim(operation, _shape.integer(operation, dim), input.ndim)
    count = input.shape[place]
    if count and not input.numel():
        raise InvalidArgumentError(
            f"{operation}: got shape {input.shape}, expected elements in each slice of dimension {place}"
        )
    turned = movedim(input, place, 0)
    return turned.reshape(count, input.numel() // max(count, 1)), place


def _parted(
    input: Tensor, rows: Tensor, order: Tensor, place: int | None, return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    """The first row of each run of equal ones in an order, and what else is asked for."""
    backend, device, count = rows._backend, rows.device, rows.shape[0]
    ordered = backend.index_select(rows, 0, order)
    begins = backend.full((min(count, 1),), True, _dtype.bool, device)
    if count > 1:
        left, right = backend.slice(ordered, 0, 0, count - 1, 1), backend.slice(ordered, 0, 1, count, 1)
        begins = cat([begins, (left != right).any(1)])
    starts = true_places(begins)
    chosen = backend.index_select(order, 0, starts)
    if place is None:
        values = backend.index_select(backend.reshape(input, (count,)), 0, chosen)
    else:
        values = backend.index_select(input, place, chosen)
    results = [values]
    if return_inverse:
        inverse = backend.empty((count,), _dtype.int64, device)
        backend.scatter_(inverse, 0, order, backend.scan("cumsum", begins, 0) - 1)
        results.append(inverse.reshape(input.shape) if place is None else inverse)
    if return_counts:
        end = backend.full((min(count, 1),), count, _dtype.int64, device)
        results.append(cat([backend.slice(starts, 0, min(count, 1), starts.shape[0], 1), end]) - starts)
    return results[0] if len(results) == 1 else tuple(results)
