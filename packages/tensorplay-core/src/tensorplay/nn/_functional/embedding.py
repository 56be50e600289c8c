"""Vectors for indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _creation, _dispatch, _dtype, _shape
from ...errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from ..._tensor import Tensor


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Row i of a table for each index i.

    Parameters
    ----------
    input : Tensor
        int64 or int32, any shape (...).
    weight : Tensor
        Shape (rows, width).
    padding_idx : int, optional
        Taken for torch's sake: it only matters to gradients.

    Returns
    -------
    Tensor
        Shape (..., width).

    Raises
    ------
    OutOfRangeError
        An IndexError, for an index outside 0 to rows - 1: on the host at once, on a device at the next call
        that waits for it.
    """
    return _dispatch.common("embedding", input, weight).embedding(weight, input)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the index in a new last dimension, 0 elsewhere; int64.

    Parameters
    ----------
    tensor : Tensor
        int64 indices of any shape.
    num_classes : int
        Size of the new dimension; -1: one more than the largest index, which waits for the device.

    Raises
    ------
    OutOfRangeError
        An IndexError, for an index outside 0 to num_classes - 1: on the host at once, on a device at the next call
        that waits for it.
    """
    _dispatch.check_tensor("one_hot", tensor)
    if tensor.dtype is not _dtype.int64:
        raise DTypeError(f"one_hot: got dtype {tensor.dtype.name}, expected int64")
    classes = _shape.integer("one_hot", num_classes)
    if classes == -1 and tensor.numel():
        classes = max(int(tensor.max()) + 1, 1)
    if classes < 1:
        raise InvalidArgumentError(f"one_hot: got num_classes={num_classes}, expected 1 or more, or -1 and indices")
    result = _creation.zeros((*tensor.shape, classes), dtype=_dtype.int64, device=tensor.device)
    return result.scatter_(-1, tensor.unsqueeze(-1), 1)
