"""Views: tensors over the same elements. Writing to one shows in the others.

A dimension may be negative, counted from the end. Sizes and orders come one by one or as one sequence, which has
torch's name for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _dispatch, _shape
from .._dtype import DType
from ..errors import DTypeError, InvalidArgumentError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._shape import Shape
    from .._tensor import Tensor


def listed(operation: str, given: Sequence[object], named: Sequence[int] | None) -> Shape:
    """Integers that came one by one, as one sequence, or as one sequence by name."""
    if named is None:
        return _shape.integers(operation, given)
    if given:
        raise DTypeError(f"{operation}: got {given!r} and {named!r}, expected one of them")
    return _shape.integers(operation, (named,))


def view(input: Tensor, *sizes: int | Sequence[int] | DType, size: Sequence[int] | None = None) -> Tensor:
    """The elements in another shape, where one size may be -1; or their bytes as elements of another dtype.

    Raises
    ------
    InvalidArgumentError
        The shape has another number of elements; or bytes are left over in the last dimension.
    StateError
        The strides leave no such view; `reshape` copies then.
    """
    if len(sizes) == 1 and isinstance(sizes[0], DType):
        return input._backend.view_dtype(input, sizes[0])
    return input._backend.view(input, listed("view", sizes, size))


def reshape(input: Tensor, *sizes: int | Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
    """As `view`, with a copy where there is no such view."""
    wanted = listed("reshape", sizes, shape)
    return input._backend.reshape(input, wanted)


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor."""
    _dispatch.check_tensor("view_as", other)
    return input._backend.view(input, other.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor."""
    _dispatch.check_tensor("reshape_as", other)
    return input._backend.reshape(input, other.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim`, both included, as one."""
    ndim = input.ndim
    first, last = (_shape.wrap_dim("flatten", dim, ndim) for dim in _shape.integers("flatten", (start_dim, end_dim)))
    if first > last:
        raise InvalidArgumentError(f"flatten: got dimensions {start_dim} to {end_dim}, expected rising ones")
    shape = input.shape
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """All dimensions as one."""
    return input._backend.reshape(input, (input.numel(),))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension as several; one size may be -1."""
    dim = _shape.sized_dim("unflatten", _shape.integer("unflatten", dim), input.ndim)
    shape = input.shape
    wanted = _shape.infer("unflatten", _shape.integers("unflatten", (sizes,)), shape[dim])
    return input._backend.view(input, (*shape[:dim], *wanted, *shape[dim + 1 :]))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    return input._backend.transpose(input, *_shape.integers("transpose", (dim0, dim1)))


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dimensions exchanged, by NumPy's name for it."""
    return input._backend.transpose(input, *_shape.integers("swapaxes", (axis0, axis1)))


def t(input: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is."""
    ndim = input.ndim
    if ndim > 2:
        raise InvalidArgumentError(f"t: got shape {input.shape}, expected at most two dimensions")
    return input._backend.transpose(input, 0, 1) if ndim == 2 else input._backend.alias(input)


def matrix(operation: str, input: Tensor) -> Tensor:
    """The tensor itself when it has two dimensions.

    Raises
    ------
    InvalidArgumentError
        It has not.
    """
    if input.ndim != 2:
        raise InvalidArgumentError(f"{operation}: got shape {input.shape}, expected two dimensions")
    return input


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged; of complex elements a copy with the conjugates."""
    turned = input._backend.transpose(input, -2, -1) if input.ndim else input._backend.alias(input)
    return turned._backend.unary("conj", turned) if input.dtype.is_complex else turned


def permute(input: Tensor, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """All dimensions in another order."""
    wanted = listed("permute", order, dims)
    return input._backend.permute(input, wanted)


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Some dimensions to other places; the rest keeps its order."""
    ndim = input.ndim
    places = []
    for dims in (source, destination):
        given = _shape.integers("movedim", (dims,))
        wrapped = [_shape.wrap_dim("movedim", dim, ndim) for dim in given]
        if len(set(wrapped)) != len(wrapped):
            raise InvalidArgumentError(f"movedim: got dimensions {given}, expected each of them once")
        places.append(wrapped)
    origins, targets = places
    if len(origins) != len(targets):
        raise InvalidArgumentError(f"movedim: got {source} and {destination}, expected equally many dimensions")
    if not ndim:
        return input._backend.alias(input)
    moved = dict(zip(targets, origins, strict=True))
    rest = iter(dim for dim in range(ndim) if dim not in origins)
    return input._backend.permute(input, [moved[place] if place in moved else next(rest) for place in range(ndim)])


def expand(input: Tensor, *sizes: int | Sequence[int], size: Sequence[int] | None = None) -> Tensor:
    """Sizes of 1 repeated without a copy, new dimensions in front; -1 keeps a size."""
    wanted = listed("expand", sizes, size)
    return input._backend.expand(input, wanted)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """`expand` to a shape."""
    return input._backend.expand(input, _shape.integers("broadcast_to", (size,)))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor."""
    _dispatch.check_tensor("expand_as", other)
    return input._backend.expand(input, other.shape)


def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without the dimensions of size 1: all of them, or those named that have it."""
    result = input._backend.alias(input)
    dims = range(input.ndim) if dim is None else _shape.integers("squeeze", (dim,))
    # From the last to the first, so that the numbers of those to come stay right.
    for place in reversed(_shape.wrap_dims("squeeze", dims, input.ndim) if dims else ()):
        result = result._backend.squeeze(result, place)
    return result


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 before `dim`."""
    return input._backend.unsqueeze(input, _shape.integer("unsqueeze", dim))


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One index of a dimension, which is dropped."""
    return input._backend.select(input, *_shape.integers("select", (dim, index)))


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` indices of a dimension from `start` on.

    Raises
    ------
    OutOfRangeError
        The dimension has fewer.
    """
    dim, start, length = _shape.integers("narrow", (dim, start, length))
    dim = _shape.sized_dim("narrow", dim, input.ndim)
    size = input.shape[dim]
    begin = start + size if start < 0 else start
    if length < 0 or not 0 <= begin <= size - length:
        raise OutOfRangeError(f"narrow: got {length} from {start} in dimension {dim} of size {size}")
    return input._backend.slice(input, dim, begin, begin + length, 1)


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements where the index in `dim2` is that in `dim1` plus `offset`, as a new last dimension."""
    offset, dim1, dim2 = _shape.integers("diagonal", (offset, dim1, dim2))
    ndim = input.ndim
    first, second = (_shape.sized_dim("diagonal", dim, ndim) for dim in (dim1, dim2))
    if first == second:
        raise InvalidArgumentError(f"diagonal: got dimensions {dim1} and {dim2}, expected two different ones")
    shape, strides = input.shape, input.stride()
    start = input.storage_offset()
    length = max(0, min(shape[first] + min(offset, 0), shape[second] - max(offset, 0)))
    if length and input.numel():
        start += offset * strides[second] if offset > 0 else -offset * strides[first]
    rest = [dim for dim in range(ndim) if dim not in (first, second)]
    sizes = (*(shape[dim] for dim in rest), length)
    steps = (*(strides[dim] for dim in rest), strides[first] + strides[second])
    return input._backend.as_strided(input, sizes, steps, start)


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` along a dimension, each `step` after the one before, as a new last dimension."""
    dimension, size, step = _shape.integers("unfold", (dimension, size, step))
    dim = _shape.wrap_dim("unfold", dimension, input.ndim)
    # A tensor without dimensions is one window of its element.
    shape, strides = list(input.shape or (1,)), list(input.stride() or (1,))
    if not 0 <= size <= shape[dim] or step <= 0:
        raise InvalidArgumentError(
            f"unfold: got windows of {size} and step {step} in a dimension of size {shape[dim]}, "
            "expected windows that fit and a step of 1 or more"
        )
    inner = strides[dim]
    shape[dim], strides[dim] = (shape[dim] - size) // step + 1, inner * step
    if not input.ndim:
        shape, strides = [], []
    return input._backend.as_strided(input, (*shape, size), (*strides, inner), input.storage_offset())


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Any view inside the storage; strides and offset in elements."""
    offset = input.storage_offset() if storage_offset is None else _shape.integer("as_strided", storage_offset)
    shape, strides = _shape.integers("as_strided", (size,)), _shape.integers("as_strided", (stride,))
    return input._backend.as_strided(input, shape, strides, offset)
