"""Layers around a matrix product."""

from __future__ import annotations

from typing import Any

from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from . import functional
from ._parameters import draw, parameter
from .module import Module
from .parameter import Parameter


class Linear(Module):
    """``input @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension before and after.
    bias : bool
        Whether there is a bias.
    device, dtype
        Of the parameters; the host and float32 by default.

    Attributes
    ----------
    weight : Parameter
        Shape (out_features, in_features), uniform within ±1/√in_features at the start.
    bias : Parameter or None
        Shape (out_features,), from the same distribution.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = parameter((out_features, in_features), device, dtype)
        self.bias = parameter((out_features,), device, dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        draw(self.in_features, self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``input1 @ weight[k] @ input2`` for each k, plus ``bias[k]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Sizes of the last dimensions of both inputs and of the result.
    bias : bool
        Whether there is a bias.
    device, dtype
        Of the parameters; the host and float32 by default.

    Attributes
    ----------
    weight : Parameter
        Shape (out_features, in1_features, in2_features), uniform within ±1/√in1_features at the start.
    bias : Parameter or None
        Shape (out_features,), from the same distribution.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = parameter((out_features, in1_features, in2_features), device, dtype)
        self.bias = parameter((out_features,), device, dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        draw(self.in1_features, self.weight, self.bias)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """(..., in1_features) and (..., in2_features) to (..., out_features)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"


class Identity(Module):
    """Returns its input; takes and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input
