"""Rows of a tensor by their indices. The values of the indices are the device's business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _shape
from ..errors import InvalidArgumentError
from ._indexing import check_index, check_room
from ._spec import Spec, device_of, sized

if TYPE_CHECKING:
    from .._tensor import Tensor


def index_select(a: Tensor, dim: int, index: Tensor) -> Spec:
    """Slices of one dimension."""
    dim = _shape.wrap_dim("index_select", dim, a.ndim)
    device = device_of("index_select", a, index)
    check_index("index_select", index)
    if index.ndim > 1:
        raise InvalidArgumentError(f"index_select: got an index of shape {index.shape}, expected at most one dimension")
    check_room("index_select", a, dim, index)
    shape = (*a.shape[:dim], index.numel(), *a.shape[dim + 1 :]) if a.ndim else ()
    if not a.ndim and index.numel() != 1:
        raise InvalidArgumentError(
            f"index_select: got {index.numel()} indices into a tensor without dimensions, expected 1"
        )
    return sized("index_select", Spec(shape, a.dtype, device, a.dtype))


def embedding(weight: Tensor, index: Tensor) -> Spec:
    """Rows of a matrix, in the shape of the index."""
    device = device_of("embedding", weight, index)
    check_index("embedding", index)
    if weight.ndim != 2:
        raise InvalidArgumentError(f"embedding: got a weight of shape {weight.shape}, expected two dimensions")
    check_room("embedding", weight, 0, index)
    return sized("embedding", Spec(index.shape + weight.shape[1:], weight.dtype, device, weight.dtype))
