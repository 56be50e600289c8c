"""What the tests of compiled functions share."""

from __future__ import annotations

import tensorplay as tp
from tensorplay.compiler.backends.cudagraphs import CudaGraphManager


def vector(*values: float) -> tp.Tensor:
    """A CUDA tensor of one dimension."""
    return tp.tensor(values, device="cuda")


def counts(manager: CudaGraphManager) -> dict[str, int]:
    """The statistics that are not 0."""
    return {name: count for name, count in manager.statistics().items() if count}
