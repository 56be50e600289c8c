"""Layers that convolve."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _shape
from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from ..errors import InvalidArgumentError
from . import functional
from ._functional._arguments import choice, sizes
from ._functional.convolution import around
from ._parameters import draw, parameter
from .module import Module
from .parameter import Parameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What convolutions of all dimensions share; `_dimensions` says how many the windows have."""

    weight: Parameter
    bias: Parameter | None

    _dimensions: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        name, count = type(self).__name__, self._dimensions
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise InvalidArgumentError(
                f"{name}: got groups={groups} for {in_channels} to {out_channels} channels, expected a divisor of both"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes(name, "kernel_size", kernel_size, count)
        self.stride = sizes(name, "stride", stride, count)
        self.padding = padding if isinstance(padding, str) else sizes(name, "padding", padding, count, 0)
        self.dilation = sizes(name, "dilation", dilation, count)
        self.groups = groups
        self.padding_mode = choice(name, "padding_mode", padding_mode, _PADDING_MODES)
        # Checks the padding, too.
        self._sides = around(name, padding, self.kernel_size, self.stride, self.dilation)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = parameter(shape, device, dtype)
        self.bias = parameter((out_channels,), device, dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        draw(math.prod(self.weight.shape[1:]), self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(batch, in_channels, ...) to (batch, out_channels, ...); the batch may be missing."""
        padding: int | _shape.Shape | str = self.padding
        if self.padding_mode != "zeros" and any(self._sides):
            input, padding = functional.pad(input, self._sides, self.padding_mode), 0
        convolve = functional.conv1d if self._dimensions == 1 else functional.conv2d
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """The arguments that are not the defaults, for `repr`."""
        ones = (1,) * self._dimensions
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * self._dimensions:
            parts.append(f"padding={self.padding}")
        if self.dilation != ones:
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_Convolution):
    """Convolution over the last dimension; the arguments are those of `Conv2d`, with one size for two.

    Attributes
    ----------
    weight : Parameter
        Shape (out_channels, in_channels / groups, size).
    bias : Parameter or None
        Shape (out_channels,).
    """

    _dimensions = 1


class Conv2d(_Convolution):
    """Convolution over the last two dimensions.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels before and after.
    kernel_size : int or two ints
        Elements of a window.
    stride : int or two ints
        From one window to the next.
    padding : int, two ints or str
        Elements on each side; ``"valid"``: none, ``"same"``: as many as keep the size, with stride 1.
    dilation : int or two ints
        From one element of a window to the next.
    groups : int
        Parts of the channels that are convolved each for itself.
    bias : bool
        Whether there is a bias.
    padding_mode : str
        What stands on the sides: ``"zeros"``; or as `functional.pad` has it, ``"reflect"``, ``"replicate"``,
        ``"circular"``.
    device, dtype
        Of the parameters; the host and float32 by default.

    Attributes
    ----------
    weight : Parameter
        Shape (out_channels, in_channels / groups, height, width), uniform within ±1/√fan_in at the start.
    bias : Parameter or None
        Shape (out_channels,), from the same distribution.
    """

    _dimensions = 2
