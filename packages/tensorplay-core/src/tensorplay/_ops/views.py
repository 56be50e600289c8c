"""Views: tensors over the same elements. Writing to one shows in the others.

A dimension may be negative, counted from the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _dispatch, _shape
from ..errors import DTypeError, InvalidArgumentError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._tensor import Tensor


def view(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """The elements in another shape; one size may be -1.

    Raises
    ------
    InvalidArgumentError
        The shape has another number of elements.
    StateError
        The strides leave no view of that shape; `reshape` copies then.
    """
    return self._backend.view(self, _shape.integers("view", shape))


def reshape(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """As `view`, with a copy where there is no such view."""
    return self._backend.reshape(self, _shape.integers("reshape", shape))


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim`, both included, as one."""
    ndim = self.ndim
    first, last = (_shape.wrap_dim("flatten", dim, ndim) for dim in _shape.integers("flatten", (start_dim, end_dim)))
    if first > last:
        raise InvalidArgumentError(f"flatten: got dimensions {start_dim} to {end_dim}, expected rising ones")
    shape = self.shape
    return reshape(self, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    return self._backend.transpose(self, *_shape.integers("transpose", (dim0, dim1)))


def t(self: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is."""
    ndim = self.ndim
    if ndim > 2:
        raise InvalidArgumentError(f"t: got shape {self.shape}, expected at most two dimensions")
    return self._backend.transpose(self, 0, 1) if ndim == 2 else self._backend.alias(self)


def permute(self: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """All dimensions in another order."""
    return self._backend.permute(self, _shape.integers("permute", dims))


def expand(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Sizes of 1 repeated without a copy, new dimensions in front; -1 keeps a size."""
    return self._backend.expand(self, _shape.integers("expand", shape))


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor."""
    _dispatch.check_tensor("expand_as", other)
    return self._backend.expand(self, other.shape)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor."""
    _dispatch.check_tensor("view_as", other)
    return self._backend.view(self, other.shape)


def squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without the dimensions of size 1: all of them, or those named that have it."""
    dims = None if dim is None else _shape.integers("squeeze", (dim,)) or None
    result = self._backend.alias(self)
    # From the last to the first, so that the numbers of those to come stay right.
    for place in reversed(_shape.wrap_dims("squeeze", dims, self.ndim)):
        result = result._backend.squeeze(result, place)
    return result


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 before `dim`."""
    return self._backend.unsqueeze(self, _shape.integer("unsqueeze", dim))


def select(self: Tensor, dim: int, index: int) -> Tensor:
    """One index of a dimension, which is dropped."""
    return self._backend.select(self, *_shape.integers("select", (dim, index)))


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` indices of a dimension from `start` on.

    Raises
    ------
    OutOfRangeError
        The dimension has fewer.
    """
    dim, start, length = _shape.integers("narrow", (dim, start, length))
    dim = _shape.sized_dim("narrow", dim, self.ndim)
    size = self.shape[dim]
    begin = start + size if start < 0 else start
    if length < 0 or not 0 <= begin <= size - length:
        raise OutOfRangeError(f"narrow: got {length} from {start} in dimension {dim} of size {size}")
    return self._backend.slice(self, dim, begin, begin + length, 1)


def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Any view inside the storage; strides and offset in elements."""
    offset = self.storage_offset() if storage_offset is None else _shape.integer("as_strided", storage_offset)
    shape, strides = _shape.integers("as_strided", (size,)), _shape.integers("as_strided", (stride,))
    return self._backend.as_strided(self, shape, strides, offset)


def split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of `split_size` along a dimension, the last one smaller where it must be; or pieces of the given sizes."""
    dim = _shape.sized_dim("split", _shape.integer("split", dim), self.ndim)
    size = self.shape[dim]
    if isinstance(split_size, int):
        if split_size <= 0:
            raise InvalidArgumentError(f"split: got split_size {split_size}, expected 1 or more")
        sizes = [min(split_size, size - start) for start in range(0, size, split_size)] or [0]
    else:
        sizes = list(_shape.integers("split", (split_size,)))
        if sum(sizes) != size:
            raise InvalidArgumentError(f"split: got sizes {sizes}, expected their sum to be {size}")
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return tuple(narrow(self, dim, start, length) for start, length in zip(starts, sizes, strict=True))


def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size along a dimension, the last one smaller where it must be."""
    if not isinstance(chunks, int) or chunks <= 0:
        raise DTypeError(f"chunk: got {chunks!r} chunks, expected an integer of 1 or more")
    size = self.shape[_shape.sized_dim("chunk", _shape.integer("chunk", dim), self.ndim)]
    return split(self, max(1, -(-size // chunks)), dim)
