"""Layers that take the largest elements or the means of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor
from ..errors import InvalidArgumentError
from . import functional
from ._functional._arguments import sizes
from .module import Module


class _MaxPool(Module):
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        if return_indices:
            raise InvalidArgumentError(f"{type(self).__name__}: got return_indices=True, expected False")
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of the last dimension; the arguments are those of `MaxPool2d`."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., channels, length) to (..., channels, windows)."""
        return functional.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool2d(_MaxPool):
    """The largest element of each window of the last two dimensions; nan where there is one.

    Parameters
    ----------
    kernel_size : int or two ints
        Elements of a window.
    stride : int or two ints, optional
        From one window to the next; as `kernel_size` by default.
    padding : int or two ints
        How far windows begin before the elements, and end behind them; at most half a window.
    dilation : int or two ints
        From one element of a window to the next.
    return_indices : bool
        Only False is taken.
    ceil_mode : bool
        Whether there is a last window for elements that are left over.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., channels, height, width) to the same with fewer rows and columns."""
        return functional.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool1d(Module):
    """The mean of each window of the last dimension.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, count_include_pad
        As in `AvgPool2d`, one size each.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = sizes("AvgPool1d", "kernel_size", kernel_size, 1)
        self.stride = self.kernel_size if stride is None else sizes("AvgPool1d", "stride", stride, 1)
        self.padding = sizes("AvgPool1d", "padding", padding, 1, 0)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """(..., channels, length) to (..., channels, windows)."""
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of the last two dimensions.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode
        As in `MaxPool2d`; the padding consists of zeros.
    count_include_pad : bool
        Whether the zeros count.
    divisor_override : int, optional
        What the sums are divided by instead of the number of elements.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(..., channels, height, width) to the same with fewer rows and columns."""
        return functional.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _Adaptive(Module):
    """A pooling with as many results as asked for.

    Parameters
    ----------
    output_size : int or sequence of int
        How many in each dimension; of two, None keeps a size.
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of parts of the last dimension that are as equal as can be, as many as asked for."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., channels, length) to (..., channels, output_size)."""
        return functional.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """Means of parts of the last two dimensions that are as equal as can be, as many as asked for."""

    def forward(self, input: Tensor) -> Tensor:
        """``(..., channels, height, width)`` to ``(..., channels, *output_size)``."""
        return functional.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveMaxPool1d(_Adaptive):
    """As `AdaptiveAvgPool1d`, with the largest elements."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., channels, length) to (..., channels, output_size)."""
        return functional.adaptive_max_pool1d(input, self.output_size)


class AdaptiveMaxPool2d(_Adaptive):
    """As `AdaptiveAvgPool2d`, with the largest elements."""

    def forward(self, input: Tensor) -> Tensor:
        """``(..., channels, height, width)`` to ``(..., channels, *output_size)``."""
        return functional.adaptive_max_pool2d(input, self.output_size)
