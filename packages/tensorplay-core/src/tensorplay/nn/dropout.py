"""Layers that drop elements while a model is trained."""

from __future__ import annotations

from .._tensor import Tensor
from . import functional
from ._functional._arguments import probability
from .module import Module


class Dropout(Module):
    """While training, sets elements to zero at random and scales the others; otherwise returns its input.

    Parameters
    ----------
    p : float
        Probability of a zero, 0 to 1. The elements that stay are divided by ``1 - p``.
    inplace : bool
        Whether the result is written into the input.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = probability(type(self).__name__, p)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """As `Dropout`, of whole channels.

    Parameters
    ----------
    p, inplace
        As in `Dropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(batch, channels, ...) to the same shape."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)
