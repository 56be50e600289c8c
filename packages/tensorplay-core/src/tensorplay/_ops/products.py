"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch

if TYPE_CHECKING:
    from .._tensor import Tensor


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product, torch's rules: (n, k) @ (k, m), vectors on either side, and batches that broadcast.

    Both operands have one floating dtype; half types are added up in float32. Integers are refused on
    every device, as torch does on CUDA.
    """
    result = _dispatch.common("matmul", input, other, optional=(out,)).matmul(input, other, out)
    return result if out is None else out
