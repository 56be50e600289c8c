"""A module to try things on."""

from __future__ import annotations

import tensorplay
from tensorplay import nn


class Block(nn.Module):
    """A module with everything: a parameter, two buffers, children, one of them shared."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(tensorplay.ones(3))
        self.again = self.first
        self.register_buffer("steps", tensorplay.zeros(1, dtype=tensorplay.int64))
        self.register_buffer("scratch", tensorplay.zeros(2), persistent=False)
        self.missing = None

    def forward(self, input: tensorplay.Tensor) -> tensorplay.Tensor:
        return self.first(input) * self.scale
