"""A nonlinearity that has parameters."""

from __future__ import annotations

from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from . import functional, init
from ._parameters import parameter
from .module import Module
from .parameter import Parameter


class PReLU(Module):
    """``x`` above 0, else ``x * weight``.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels.
    init : float
        What the factors begin as.
    device, dtype
        Of the factors; the host and float32 by default.

    Attributes
    ----------
    weight : Parameter
        Shape (num_parameters,).
    """

    weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all factors to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
