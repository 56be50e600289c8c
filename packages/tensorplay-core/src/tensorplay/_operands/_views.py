"""Views: nothing is copied, so all that can be wrong is a shape or a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dtype, _shape
from .._dtype import DType
from .._shape import Shape
from ..errors import InvalidArgumentError, OutOfRangeError, StateError

if TYPE_CHECKING:
    from .._tensor import Tensor


def view(tensor: Tensor, shape: Sequence[int]) -> tuple[Shape, Shape]:
    """Shape and strides of the view.

    Raises
    ------
    StateError
        Only a copy has that shape.
    """
    wanted = _shape.infer("view", shape, tensor.numel())
    strides = _shape.view_strides(tensor.shape, tensor.stride(), wanted)
    if strides is None:
        raise StateError(
            f"view: got shape {wanted}, which no view of shape {tensor.shape} and strides {tensor.stride()} has; "
            "reshape() copies where it must"
        )
    return wanted, strides


def reshape(tensor: Tensor, shape: Sequence[int]) -> Shape:
    """The shape, without -1."""
    wanted = _shape.infer("reshape", shape, tensor.numel())
    # A view may have so many elements, a copy may not.
    is_large = tensor.numel() * tensor.dtype.itemsize >= 2**63
    if is_large and _shape.view_strides(tensor.shape, tensor.stride(), wanted) is None:
        _shape.check_sizes("reshape", wanted, tensor.dtype.itemsize)
    return wanted


def transpose(tensor: Tensor, dim0: int, dim1: int) -> tuple[int, int]:
    """Both dimensions, counted from the front."""
    ndim = tensor.ndim
    return _shape.wrap_dim("transpose", dim0, ndim), _shape.wrap_dim("transpose", dim1, ndim)


def permute(tensor: Tensor, dims: Sequence[int]) -> Shape:
    """The dimensions, counted from the front."""
    ndim = tensor.ndim
    wrapped = tuple(_shape.wrap_dim("permute", dim, ndim) for dim in dims)
    if sorted(wrapped) != list(range(ndim)):
        raise InvalidArgumentError(
            f"permute: got dimensions {tuple(dims)}, expected each of the {ndim} dimensions once"
        )
    return wrapped


def expand(tensor: Tensor, shape: Sequence[int]) -> Shape:
    """The shape, without -1."""
    return _shape.expanded("expand", tensor.shape, shape)


def slice(tensor: Tensor, dim: int, start: int, stop: int, step: int) -> tuple[int, int]:
    """The dimension counted from the front, and the size of the result there."""
    dim = _shape.sized_dim("slice", dim, tensor.ndim)
    size = tensor.shape[dim]
    if step <= 0:
        raise InvalidArgumentError(f"slice: got step {step}, expected a positive one")
    if not 0 <= start <= size or not 0 <= stop <= size:
        raise OutOfRangeError(f"slice: got {start} to {stop} in dimension {dim} of size {size}")
    return dim, max(0, -(-(stop - start) // step))


def select(tensor: Tensor, dim: int, index: int) -> tuple[int, int]:
    """Dimension and index, counted from the front."""
    dim = _shape.sized_dim("select", dim, tensor.ndim)
    size = tensor.shape[dim]
    if not -size <= index < size:
        raise OutOfRangeError(f"select: got index {index} in dimension {dim} of size {size}")
    return dim, index % size


def unsqueeze(tensor: Tensor, dim: int) -> int:
    """Where the new dimension goes."""
    ndim = tensor.ndim
    if ndim == _shape.MAX_NDIM:
        raise InvalidArgumentError(f"unsqueeze: got {ndim} dimensions, expected fewer than {_shape.MAX_NDIM}")
    return _shape.wrap_dim("unsqueeze", dim, ndim + 1)


def squeeze(tensor: Tensor, dim: int) -> int:
    """The dimension, counted from the front."""
    return _shape.wrap_dim("squeeze", dim, tensor.ndim)


def as_strided(tensor: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> None:
    """Nothing but the check: a view inside the storage."""
    shape = _shape.check_numel("as_strided", shape)
    strides = tuple(strides)
    if len(strides) != len(shape):
        raise InvalidArgumentError(f"as_strided: got {len(strides)} strides, expected {len(shape)} for shape {shape}")
    if offset < 0 or any(stride < 0 for stride in strides):
        raise InvalidArgumentError(f"as_strided: got strides {strides} and offset {offset}, expected 0 or more")
    # Without elements a view may begin anywhere, as that of a slice may.
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    room = tensor._storage_numel()
    if 0 not in shape and last >= room:
        raise OutOfRangeError(
            f"as_strided: shape {shape}, strides {strides} and offset {offset} reach element {last}, "
            f"expected a view inside the {room} elements of the storage"
        )


def view_dtype(tensor: Tensor, dtype: DType) -> None:
    """Nothing but the check: whole elements of the other size.

    Raises
    ------
    StateError
        The bytes of one new element are not adjacent, or do not begin at a multiple of its size.
    """
    _dtype.check("view", dtype)
    if dtype.itemsize == tensor.dtype.itemsize:
        return
    what = f"{dtype.itemsize} bytes for each of {tensor.dtype.itemsize}"
    if not tensor.ndim:
        raise InvalidArgumentError(f"view: got a tensor without dimensions, expected one to make {what}")
    grown = max(1, dtype.itemsize // tensor.dtype.itemsize)
    shape, strides, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    if shape[-1] % grown:
        raise InvalidArgumentError(f"view: got shape {shape}, expected a last size that {grown} divides to make {what}")
    adjacent = shape[-1] == 1 or strides[-1] == 1
    fits = tensor.is_contiguous() or (adjacent and not any(stride % grown for stride in strides[:-1]))
    if not fits or offset % grown:
        raise StateError(
            f"view: got strides {strides} and offset {offset}, expected 1 as the last stride and multiples of {grown} "
            f"otherwise to make {what}; contiguous() copies"
        )
    _shape.check_sizes("view", (*shape[:-1], shape[-1] // grown * max(1, tensor.dtype.itemsize // dtype.itemsize)), 1)


def contiguous(tensor: Tensor) -> Shape:
    """The shape."""
    return _shape.check_sizes("contiguous", tensor.shape, tensor.dtype.itemsize)


def flip(tensor: Tensor, dims: Sequence[int]) -> Shape:
    """The dimensions, counted from the front."""
    _shape.check_sizes("flip", tensor.shape, tensor.dtype.itemsize)
    return _shape.wrap_dims("flip", dims, tensor.ndim) if dims else ()
