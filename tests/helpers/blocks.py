"""Device memory by its bytes."""

from __future__ import annotations

import tensorplay as tp

MiB = 2**20


def empty(nbytes: int, device: int = 0) -> tp.Tensor:
    """A tensor of so many bytes."""
    return tp.empty(nbytes, dtype=tp.uint8, device=f"cuda:{device}")
