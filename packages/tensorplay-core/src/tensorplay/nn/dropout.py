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
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = probability("Dropout", p)

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        """The arguments, for `repr`."""
        return f"p={self.p}"
