"""One dimension to numbers that add up to 1."""

from __future__ import annotations

from .._tensor import Tensor
from . import functional
from .module import Module


class _AlongDim(Module):
    """A function that treats one dimension as a whole."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(x)`` divided by its sum over one dimension.

    Parameters
    ----------
    dim : int
        The dimension. It must be given, where torch guesses it with a warning.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """The logarithm of `Softmax`.

    Parameters
    ----------
    dim : int
        As in `Softmax`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """`Softmax` of ``-x``.

    Parameters
    ----------
    dim : int
        As in `Softmax`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.softmin(input, self.dim)
