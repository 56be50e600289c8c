"""Largest elements and means of windows: one reduction of a view, behind a padded copy where there is padding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ... import _creation, _dispatch, _dtype, _limits, _shape
from ..._ops.padding import pad
from ..._ops.reductions import amax, mean, sum
from ...errors import DTypeError, InvalidArgumentError
from ._arguments import check_spatial, sizes
from .windows import reach, windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._tensor import Tensor


class _Pool(NamedTuple):
    """Where the windows of a pooling lie, for each dimension."""

    kernel: _shape.Shape
    stride: _shape.Shape
    padding: _shape.Shape
    dilation: _shape.Shape
    counts: list[int]
    #: Elements behind the last one that windows reach; `ceil_mode` may want more than the padding, or less.
    behind: list[int]

    def windows(self, input: Tensor, value: float) -> Tensor:
        """The windows of a tensor that is continued by a value."""
        if any(self.padding) or any(self.behind):
            sides = [n for pair in zip(reversed(self.padding), reversed(self.behind), strict=True) for n in pair]
            input = pad(input, sides, value=value)
        return windows(input, self.counts, self.kernel, self.stride, self.dilation)

    @property
    def dims(self) -> list[int]:
        """The dimensions of `windows` that one window has."""
        return list(range(-2 * len(self.kernel), -len(self.kernel)))


def _pool(
    operation: str,
    count: int,
    input: Tensor,
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
    ceil_mode: bool,
) -> _Pool:
    check_spatial(operation, input, count)
    _dispatch.flag(operation, "ceil_mode", ceil_mode)
    kernel = sizes(operation, "kernel_size", kernel_size, count)
    steps = kernel if stride is None else sizes(operation, "stride", stride, count)
    sides = sizes(operation, "padding", padding, count, 0)
    apart = sizes(operation, "dilation", dilation, count)
    counts, behind = [], []
    for size, window, step, side, gap in zip(input.shape[-count:], kernel, steps, sides, apart, strict=True):
        length = reach(window, gap)
        if side > window // 2:
            raise InvalidArgumentError(
                f"{operation}: got padding {side} for windows of {window}, expected at most half of it"
            )
        last = size + 2 * side - length
        places = last // step + 1
        if ceil_mode and last % step and places * step < size + side:
            places += 1  # A window that ends behind the padding, but begins before it.
        if places < 1:
            raise InvalidArgumentError(
                f"{operation}: got windows of {length} in a dimension of size {size} with padding {side}, "
                "expected windows that fit"
            )
        counts.append(places)
        behind.append(max(0, (places - 1) * step + length - size - side))
    return _Pool(kernel, steps, sides, apart, counts, behind)


def max_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window of the last dimension; see `max_pool2d`."""
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window of the last two dimensions; nan where there is one.

    Parameters
    ----------
    input : Tensor
        Shape (channels, height, width), or (batch, channels, height, width); floating dtypes and integers.
    kernel_size : int or two ints
        Elements of a window.
    stride : int or two ints, optional
        From one window to the next; as `kernel_size` by default.
    padding : int or two ints
        How far windows begin before the elements, and end behind them; at most half a window.
    dilation : int or two ints
        From one element of a window to the next.
    ceil_mode : bool
        Whether there is a last window for elements that are left over.
    """
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool(
    operation: str,
    count: int,
    input: Tensor,
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
    ceil_mode: bool,
) -> Tensor:
    pool = _pool(operation, count, input, kernel_size, stride, padding, dilation, ceil_mode)
    return amax(pool.windows(input, lowest(operation, input.dtype)), pool.dims)


def avg_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of the last dimension; see `avg_pool2d`."""
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of the last two dimensions; floating dtypes.

    Parameters
    ----------
    input, kernel_size, stride, padding, ceil_mode
        As in `max_pool2d`; the padding consists of zeros.
    count_include_pad : bool
        Whether the zeros count.
    divisor_override : int, optional
        What the sums are divided by instead of the number of elements.
    """
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _avg_pool(
    operation: str,
    count: int,
    input: Tensor,
    kernel_size: object,
    stride: object,
    padding: object,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    pool = _pool(operation, count, input, kernel_size, stride, padding, 1, ceil_mode)
    _dtype.check_floating(operation, input.dtype)
    _dispatch.flag(operation, "count_include_pad", count_include_pad)
    view = pool.windows(input, 0.0)
    if divisor_override is not None:
        divisor = _shape.integer(operation, divisor_override)
        if not divisor:
            raise InvalidArgumentError(f"{operation}: got divisor_override=0, expected another number")
        return (_total(view, pool.dims) / divisor).to(input.dtype)
    sides = pool.padding if count_include_pad else (0,) * count
    # As many elements in each window, unless the first ones or the last ones reach further than what counts.
    if sides == pool.padding and all(end <= side for end, side in zip(pool.behind, sides, strict=True)):
        return mean(view, pool.dims)
    total = _total(view, pool.dims)
    for dim in range(count):
        total = total / _lengths(pool, input, dim, side=sides[dim])
    return total.to(input.dtype)


def _lengths(pool: _Pool, input: Tensor, dim: int, side: int) -> Tensor:
    """How many elements of one dimension each window has, with so many of the padding on each side."""
    behind = len(pool.kernel) - dim - 1
    size = input.shape[input.ndim - 1 - behind]
    start = _creation.arange(pool.counts[dim], device=input.device) * pool.stride[dim] - pool.padding[dim]
    lengths = (start + pool.kernel[dim]).clamp_max(size + side) - start.clamp_min(-side)
    return lengths.reshape(-1, *(1,) * behind)


def lowest(operation: str, dtype: _dtype.DType) -> float | int:
    """A number that no other is lower than."""
    if dtype.is_floating_point:
        return -math.inf
    if dtype.category != _dtype.INT:
        raise DTypeError(f"{operation}: got dtype {dtype.name}, expected a floating dtype or integers")
    return _limits.iinfo(dtype).min


def _total(view: Tensor, dims: Sequence[int]) -> Tensor:
    """Sums that half types do not round yet."""
    return sum(view, dims, dtype=_dtype.float64 if view.dtype is _dtype.float64 else _dtype.float32)
