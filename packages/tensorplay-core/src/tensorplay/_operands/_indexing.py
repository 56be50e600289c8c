"""Elements by their indices. The values of the indices are the device's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dtype, _shape
from .._shape import Shape
from ..errors import DTypeError, InvalidArgumentError, OutOfRangeError
from ._spec import Spec, check_target, device_of, sized

if TYPE_CHECKING:
    from .._tensor import Tensor


def check_index(operation: str, index: Tensor) -> None:
    """Refuses what is no tensor of indices.

    Raises
    ------
    DTypeError
        Its dtype is another one than int32 and int64.
    """
    if index.dtype not in (_dtype.int32, _dtype.int64):
        raise DTypeError(f"{operation}: got an index of dtype {index.dtype.name}, expected int32 or int64")


def check_room(operation: str, a: Tensor, dim: int, index: Tensor) -> None:
    """Refuses indices into a dimension that has no elements.

    Raises
    ------
    OutOfRangeError
        There are any.
    """
    if index.numel() and a.ndim and not a.shape[dim]:
        raise _no_room(operation, a)


def gather(a: Tensor, dim: int, index: Tensor) -> Spec:
    """Elements along a dimension."""
    device = device_of("gather", a, index)
    _check_along("gather", a, dim, index)
    return sized("gather", Spec(index.shape, a.dtype, device, a.dtype))


def scatter_(target: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
    """Elements along a dimension, written."""
    device_of("scatter_", target, index, source)
    _check_along("scatter_", target, dim, index)
    _check_values("scatter_", target, source)
    if index.numel() and not _holds(source, index):
        raise InvalidArgumentError(
            f"scatter_: got an index of shape {index.shape} and a source of shape {source.shape}, "
            "expected a source of the index's shape or more"
        )
    check_target("scatter_", target)


def index(a: Tensor, indices: Sequence[Tensor | None]) -> Spec:
    """Elements by indices of several dimensions."""
    device = device_of("index", a, *indices)
    return Spec(_indexed("index", a, indices), a.dtype, device, a.dtype)


def index_put_(target: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Shape:
    """Elements by indices of several dimensions, written: the shape of all of them."""
    device_of("index_put_", target, values, *indices)
    shape = _indexed("index_put_", target, indices)
    _check_values("index_put_", target, values)
    if not _shape.broadcasts_to(values.shape, shape):
        raise InvalidArgumentError(
            f"index_put_: got values of shape {values.shape}, expected ones that broadcast to {shape}"
        )
    check_target("index_put_", target)
    return shape


def _check_along(operation: str, a: Tensor, dim: int, index: Tensor) -> None:
    """Refuses an index that does not lie inside the other dimensions; one without elements does, as in torch."""
    dim = _shape.wrap_dim(operation, dim, a.ndim)
    check_index(operation, index)
    if not index.numel():
        return
    if max(index.ndim, 1) != max(a.ndim, 1):
        raise InvalidArgumentError(
            f"{operation}: got an index of shape {index.shape}, expected as many dimensions as shape {a.shape} has"
        )
    sizes = zip(index.shape, a.shape, strict=False)
    if any(place != dim and size > room for place, (size, room) in enumerate(sizes)):
        raise InvalidArgumentError(
            f"{operation}: got an index of shape {index.shape} along dimension {dim} of shape {a.shape}, "
            "expected no larger size in any other dimension"
        )
    check_room(operation, a, dim, index)


def _no_room(operation: str, a: Tensor) -> OutOfRangeError:
    return OutOfRangeError(f"{operation}: got an index into shape {a.shape} where a dimension has size 0")


def _holds(source: Tensor, index: Tensor) -> bool:
    """Whether a source has a place for each of the index; no dimensions count as one of size 1."""
    if max(source.ndim, 1) != max(index.ndim, 1):
        return False
    return all(size <= room for size, room in zip(index.shape or (1,), source.shape or (1,), strict=True))


def _check_values(operation: str, target: Tensor, values: Tensor) -> None:
    if values.dtype is not target.dtype:
        raise DTypeError(f"{operation}: got values of dtype {values.dtype.name}, expected {target.dtype.name}")


def _indexed(operation: str, a: Tensor, indices: Sequence[Tensor | None]) -> Shape:
    """The shape of ``a[indices]``."""
    given = [place for place, index in enumerate(indices) if index is not None]
    if not given or len(indices) > a.ndim:
        raise InvalidArgumentError(
            f"{operation}: got {len(indices)} indices, {len(given)} of them tensors, into shape {a.shape}, "
            f"expected at least one tensor and at most {a.ndim} indices"
        )
    shapes = []
    for index in indices:
        if index is not None:
            check_index(operation, index)
            shapes.append(index.shape)
    shared = _shape.broadcast(operation, *shapes)
    if 0 not in shared and 0 in [a.shape[place] for place in given]:
        raise _no_room(operation, a)
    kept = tuple(size for place, size in enumerate(a.shape) if place not in given)
    # Before the first indexed dimension, when the indexed ones are neighbours.
    lead = given[0] if given[-1] - given[0] == len(given) - 1 else 0
    return _shape.check_sizes(operation, kept[:lead] + shared + kept[lead:], a.dtype.itemsize)
