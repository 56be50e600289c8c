"""Copies whose elements lie elsewhere: turned, rolled, repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from ..errors import DTypeError, InvalidArgumentError
from . import views
from .joining import cat

if TYPE_CHECKING:
    from .._tensor import Tensor


def flip(input: Tensor, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """A copy in which the given dimensions run backwards."""
    _dispatch.check_tensor("flip", input)
    return input._backend.flip(input, views.listed("flip", order, dims))


def fliplr(input: Tensor) -> Tensor:
    """A copy in which the second dimension runs backwards."""
    _dispatch.check_tensor("fliplr", input)
    if input.ndim < 2:
        raise InvalidArgumentError(f"fliplr: got shape {input.shape}, expected at least two dimensions")
    return input._backend.flip(input, (1,))


def flipud(input: Tensor) -> Tensor:
    """A copy in which the first dimension runs backwards."""
    _dispatch.check_tensor("flipud", input)
    if not input.ndim:
        raise InvalidArgumentError("flipud: got a tensor without dimensions, expected at least one")
    return input._backend.flip(input, (0,))


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned `k` times by 90 degrees, from the first of two dimensions towards the second."""
    _dispatch.check_tensor("rot90", input)
    wrapped = [_shape.wrap_dim("rot90", dim, input.ndim) for dim in _shape.integers("rot90", (dims,))]
    if len(wrapped) != 2 or wrapped[0] == wrapped[1] or input.ndim < 2:
        raise InvalidArgumentError(
            f"rot90: got dimensions {dims} of shape {input.shape}, expected two different dimensions"
        )
    first, second = wrapped
    turns = _shape.integer("rot90", k) % 4
    backwards = {0: (), 1: (second,), 2: (first, second), 3: (first,)}[turns]
    turned = input._backend.flip(input, backwards)
    return views.transpose(turned, first, second) if turns % 2 else turned


def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy whose elements moved on by `shifts`; those past the end come in at the start.

    Parameters
    ----------
    dims : int or sequence of int, optional
        A dimension for each shift; without it, the elements move in C order.
    """
    _dispatch.check_tensor("roll", input)
    steps = _shape.integers("roll", (shifts,))
    if dims is None or (isinstance(dims, tuple) and not dims):
        if len(steps) != 1:
            raise InvalidArgumentError(f"roll: got shifts {steps} without dimensions, expected one shift")
        return roll(views.ravel(input), steps, 0).reshape(input.shape)
    places = _shape.integers("roll", (dims,))
    if len(places) != len(steps):
        raise InvalidArgumentError(f"roll: got shifts {steps} and dimensions {places}, expected equally many")
    result = input
    for step, place in zip(steps, places, strict=True):
        dim = _shape.sized_dim("roll", place, input.ndim)
        size = input.shape[dim]
        if size and step % size:
            cut = size - step % size
            backend = result._backend
            result = cat([backend.slice(result, dim, cut, size, 1), backend.slice(result, dim, 0, cut, 1)], dim)
    return result.clone() if result is input else result


def repeat(input: Tensor, *counts: int | Sequence[int], repeats: Sequence[int] | None = None) -> Tensor:
    """A copy with every dimension repeated as a whole: a count for each, those in front for new dimensions."""
    _dispatch.check_tensor("repeat", input)
    return _repeated("repeat", input, views.listed("repeat", counts, repeats))


def tile(input: Tensor, *counts: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """As `repeat`; counts that are missing are those of the first dimensions, and 1."""
    _dispatch.check_tensor("tile", input)
    given = views.listed("tile", counts, dims)
    return _repeated("tile", input, (1,) * (input.ndim - len(given)) + given)


def repeat_interleave(
    input: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """A copy with every element of a dimension repeated in place.

    Parameters
    ----------
    repeats : int or Tensor
        How often; an integer tensor has a count for each element, or one for all.
    dim : int, optional
        Without it, the elements are taken in C order.
    output_size : int, optional
        The sum of the counts: knowing it saves waiting for a device.
    """
    _dispatch.check_tensor("repeat_interleave", input)
    if dim is None:
        input, dim = views.ravel(input), 0
    dim = _shape.sized_dim("repeat_interleave", _shape.integer("repeat_interleave", dim), input.ndim)
    if _dispatch.is_tensor(repeats):
        places = _repeated_places(repeats, input.shape[dim], output_size)
        return input._backend.index_select(input, dim, places)
    count = _shape.integer("repeat_interleave", repeats)
    if count < 0:
        raise InvalidArgumentError(f"repeat_interleave: got {count} repeats, expected 0 or more")
    lead, size, trail = input.shape[:dim], input.shape[dim], input.shape[dim + 1 :]
    wide = (*lead, size, count, *trail)
    return _spread("repeat_interleave", views.unsqueeze(input, dim + 1), wide, (*lead, size * count, *trail))


def _repeated_places(repeats: Tensor, size: int, total: int | None) -> Tensor:
    """0 .. size - 1, each as often as its count says."""
    if repeats.dtype not in (_dtype.int32, _dtype.int64):
        raise DTypeError(f"repeat_interleave: got repeats of {repeats.dtype.name}, expected int32 or int64")
    if repeats.ndim > 1 or repeats.numel() not in (1, size):
        raise InvalidArgumentError(
            f"repeat_interleave: got repeats of shape {repeats.shape}, expected one for each of {size} elements"
        )
    backend, device = repeats._backend, repeats.device
    counts = backend.expand(repeats.reshape(-1), (size,)).long()
    ends = backend.scan("cumsum", counts, 0)
    if total is None:
        if bool((counts < 0).any()):
            raise InvalidArgumentError("repeat_interleave: got a negative count, expected counts of 0 or more")
        total = int(ends[-1]) if size else 0
    # One more at each place where a next element begins; the last of them lies behind all.
    begins = backend.full((_shape.integer("repeat_interleave", total) + 1,), 0, _dtype.int64, device)
    backend.scatter_(begins, 0, ends, backend.full((size,), 1, _dtype.int64, device), True)
    return backend.slice(backend.scan("cumsum", begins, 0), 0, 0, total, 1)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector in its diagonal and zeros elsewhere; or a copy of the diagonal of a matrix."""
    _dispatch.check_tensor("diag", input)
    offset = _shape.integer("diag", diagonal)
    if input.ndim == 2:
        return views.diagonal(input, offset).clone()
    if input.ndim != 1:
        raise InvalidArgumentError(f"diag: got shape {input.shape}, expected one or two dimensions")
    size = input.shape[0] + abs(offset)
    shape = _shape.check_sizes("diag", (size, size), input.dtype.itemsize)
    result = input._backend.full(shape, 0, input.dtype, input.device)
    result._backend.copy_(views.diagonal(result, offset), input)
    return result


def _repeated(operation: str, input: Tensor, counts: _shape.Shape) -> Tensor:
    lead = len(counts) - input.ndim
    if lead < 0:
        raise InvalidArgumentError(
            f"{operation}: got counts {counts} for shape {input.shape}, expected one for each dimension"
        )
    shape = (1,) * lead + input.shape
    _shape.check_signs(operation, counts)
    # Each repeated dimension with one of size 1 before it, which expand repeats.
    apart, wide = [], []
    for size, count in zip(shape, counts, strict=True):
        apart += [size] if count == 1 else [1, size]
        wide += [size] if count == 1 else [count, size]
    whole = [size * count for size, count in zip(shape, counts, strict=True)]
    return _spread(operation, views.reshape(input, apart), wide, whole)


def _spread(operation: str, source: Tensor, wide: Sequence[int], whole: Sequence[int]) -> Tensor:
    """A new tensor of the shape `whole`, into which, seen in the shape `wide`, the source is broadcast."""
    shape = _shape.check_sizes(operation, whole, source.dtype.itemsize)
    backend = source._backend
    result = backend.empty(shape, source.dtype, source.device)
    backend.copy_(backend.view(result, wide), source)
    return result
