"""Layers that fix mean and variance, or the mean square."""

from __future__ import annotations

from collections.abc import Sequence

from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from ..errors import InvalidArgumentError
from . import functional
from ._parameters import keep_as_is, parameter
from .module import Module
from .parameter import Parameter


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions, then a scale and a shift for each element of them.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dimensions.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there is a scale, `weight`.
    bias : bool
        Whether there is a shift, `bias`; only with `elementwise_affine`.
    device, dtype
        Of the parameters; the host and float32 by default.

    Attributes
    ----------
    weight, bias : Parameter or None
        Shape `normalized_shape`, ones and zeros at the start.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = parameter(shape, device, dtype) if elementwise_affine else None
        self.bias = parameter(shape, device, dtype) if elementwise_affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros."""
        keep_as_is(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """``(..., *normalized_shape)`` to the same shape."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}"


class RMSNorm(Module):
    """Mean square 1 over the last dimensions, then a scale for each element of them.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dimensions.
    eps : float, optional
        Added to the mean square; by default the smallest step from 1 of what is computed in.
    elementwise_affine : bool
        Whether there is a scale, `weight`.
    device, dtype
        Of the parameter; the host and float32 by default.

    Attributes
    ----------
    weight : Parameter or None
        Shape `normalized_shape`, ones at the start.
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = parameter(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones."""
        keep_as_is(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """``(..., *normalized_shape)`` to the same shape."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Mean 0 and variance 1 over each group of channels, then a scale and a shift for each channel.

    Parameters
    ----------
    num_groups : int
        How many parts of the channels there are; it divides their number.
    num_channels : int
        Channels.
    eps : float
        Added to the variance.
    affine : bool
        Whether there is a scale, `weight`.
    bias : bool
        Whether there is a shift, `bias`; only with `affine`.
    device, dtype
        Of the parameters; the host and float32 by default.

    Attributes
    ----------
    weight, bias : Parameter or None
        Shape (num_channels,), ones and zeros at the start.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise InvalidArgumentError(
                f"GroupNorm: got num_groups={num_groups} for {num_channels} channels, expected a divisor"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = parameter((num_channels,), device, dtype) if affine else None
        self.bias = parameter((num_channels,), device, dtype) if affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros."""
        keep_as_is(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(batch, num_channels, ...) to the same shape."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {affine}"
