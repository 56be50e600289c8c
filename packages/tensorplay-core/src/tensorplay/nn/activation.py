"""Elementwise nonlinearities, and softmax."""

from __future__ import annotations

from .._tensor import Tensor
from . import functional
from .module import Module


class GELU(Module):
    """``x Φ(x)`` with the normal distribution Φ.

    Parameters
    ----------
    approximate : str
        ``"none"``: exact; ``"tanh"``: torch's approximation by tanh.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The arguments, for `repr`."""
        return f"approximate={self.approximate!r}"


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.relu(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.sigmoid(input)


class Softmax(Module):
    """``exp(x)`` divided by its sum over one dimension.

    Parameters
    ----------
    dim : int
        The dimension. It must be given, where torch guesses it with a warning.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The arguments, for `repr`."""
        return f"dim={self.dim}"
