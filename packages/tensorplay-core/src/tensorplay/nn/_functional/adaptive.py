"""Poolings with as many results as asked for.

Where parts are equal, they are windows of a view; else their elements are copied next to one another first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _creation, _dtype
from ..._ops.reductions import amax, mean, sum
from ...errors import InvalidArgumentError
from ._arguments import check_spatial, sizes
from .pooling import lowest
from .windows import windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._tensor import Tensor


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """As many means as asked for, of parts of the last dimension that are as equal as can be."""
    return _adaptive("adaptive_avg_pool1d", 1, input, output_size, largest=False)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """As many means as asked for, of parts of the last two dimensions that are as equal as can be.

    Parameters
    ----------
    input : Tensor
        Shape (channels, height, width), or (batch, channels, height, width); floating dtypes.
    output_size : int or two ints
        Sizes of the result; None keeps a size.
    """
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size, largest=False)


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """As `adaptive_avg_pool1d`, with the largest elements."""
    return _adaptive("adaptive_max_pool1d", 1, input, output_size, largest=True)


def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """As `adaptive_avg_pool2d`, with the largest elements."""
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, largest=True)


def _adaptive(operation: str, count: int, input: Tensor, output_size: object, largest: bool) -> Tensor:
    check_spatial(operation, input, count)
    room = input.shape[-count:]
    if isinstance(output_size, (tuple, list)) and len(output_size) == count:
        output_size = [size if given is None else given for given, size in zip(output_size, room, strict=True)]
    wanted = sizes(operation, "output_size", room if output_size is None else output_size, count, 0)
    if 0 in room:
        raise InvalidArgumentError(f"{operation}: got shape {input.shape}, expected elements in each channel")
    if largest:
        lowest(operation, input.dtype)
    else:
        _dtype.check_floating(operation, input.dtype)
    if all(places and size % places == 0 for size, places in zip(room, wanted, strict=True)):
        kernel = [size // places for size, places in zip(room, wanted, strict=True)]
        view = windows(input, wanted, kernel, kernel, (1,) * count)
        dims = list(range(-2 * count, -count))
        return amax(view, dims) if largest else mean(view, dims)
    result = input if largest or input.dtype.itemsize > 2 else input.to(_dtype.float32)
    for dim, places in enumerate(wanted, -count):
        result = _parts(result, dim + input.ndim, places, largest)
    return result.to(input.dtype)


def _parts(input: Tensor, dim: int, places: int, largest: bool) -> Tensor:
    """One dimension to as many parts: from place * size / places, rounded down, to the next one's, rounded up."""
    size = input.shape[dim]
    longest = min(size, size // max(places, 1) + 2)
    place = _creation.arange(places, device=input.device).unsqueeze(1)
    start, stop = place * size // max(places, 1), ((place + 1) * size + (places - 1)) // max(places, 1)
    index = start + _creation.arange(longest, device=input.device)
    inside = index < stop
    # Behind its end a part goes on with its last element.
    picked = input._backend.index_select(input, dim, index.minimum(stop - 1).reshape(-1))
    picked = picked.reshape(*input.shape[:dim], places, longest, *input.shape[dim + 1 :])
    if largest:
        return amax(picked, dim + 1)
    tail = (1,) * (input.ndim - dim - 1)
    kept = picked.masked_fill(~inside.reshape(places, longest, *tail), 0.0)
    return sum(kept, dim + 1) / (stop - start).reshape(places, *tail)
