"""Products of matrices, and rows by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _shape

if TYPE_CHECKING:
    from .._tensor import Tensor


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product, torch's rules: (n, k) @ (k, m), vectors on either side, and batches that broadcast.

    Both operands have one floating dtype; half types are added up in float32. Integers are refused on
    every device, as torch does on CUDA.
    """
    result = _dispatch.common("matmul", input, other, optional=(out,)).matmul(input, other, out)
    return result if out is None else out


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` at `index` (int32 or int64, at most one dimension).

    An index outside the dimension is an OutOfRangeError: at once on the host, at the next call that
    waits for the device elsewhere. Negative indices are refused.
    """
    dim = _shape.integer("index_select", dim)
    return _dispatch.common("index_select", input, index).index_select(input, dim, index)
