"""Layers that fix mean and variance."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _creation
from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from . import functional, init
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

        def parameter(wanted: bool) -> Parameter | None:
            return Parameter(_creation.empty(shape, device=device, dtype=dtype)) if wanted else None

        self.weight = parameter(elementwise_affine)
        self.bias = parameter(elementwise_affine and bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(..., *normalized_shape) to the same shape."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments, for `repr`."""
        affine = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}"
