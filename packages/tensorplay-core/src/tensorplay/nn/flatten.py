"""Layers that change a shape."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _shape
from .._tensor import Tensor
from .module import Module


class Flatten(Module):
    """Some dimensions as one, by default all but the first.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of them.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """A view where strides allow it."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several.

    Parameters
    ----------
    dim : int
        The dimension.
    unflattened_size : sequence of int
        Its new sizes, of which one may be -1.
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = _shape.integers("Unflatten", (unflattened_size,))

    def forward(self, input: Tensor) -> Tensor:
        """A view."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
