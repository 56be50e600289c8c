"""Elements by their indices, reading and writing. All indices are checked before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _operands
from .._tensor import Tensor
from ..errors import OutOfRangeError
from . import arrays
from .arrays import Array
from .views import Views


class Indexing(Views):
    """The methods of `Backend` that take tensors of indices."""

    def index_select(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        spec = _operands.index_select(a, dim, index)
        if 0 in spec.shape:
            return self.finish(np.empty(spec.shape, a._impl.dtype), spec)
        array = a._impl if a.ndim else a._impl.reshape(1)
        size = array.shape[dim]
        places = _checked("index_select", index._impl.reshape(-1), size, f"a dimension of size {size}")
        return self.finish(np.take(array, places, axis=dim).reshape(spec.shape), spec)

    def embedding(self, weight: Tensor, index: Tensor) -> Tensor:
        spec = _operands.embedding(weight, index)
        if 0 in spec.shape:
            return self.finish(np.empty(spec.shape, weight._impl.dtype), spec)
        size = weight.shape[0]
        rows = _checked("embedding", index._impl, size, f"{size} rows")
        return self.finish(np.take(weight._impl, rows, axis=0), spec)

    def gather(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        spec = _operands.gather(a, dim, index)
        if 0 in spec.shape:
            return self.finish(np.empty(spec.shape, a._impl.dtype), spec)
        key = _along("gather", a._impl, dim, index._impl)
        return self.finish(np.atleast_1d(a._impl)[key].reshape(spec.shape), spec)

    def scatter_(self, target: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
        _operands.scatter_(target, dim, index, source, accumulate)
        if 0 in index.shape:
            return
        key = _along("scatter_", target._impl, dim, index._impl)
        # An index without dimensions is one place.
        used = source._impl[tuple(map(slice, index.shape or (1,)))] if source.ndim else source._impl
        # A reshape of an array without dimensions is a view, which is written into.
        whole = target._impl if target.ndim else target._impl.reshape(1)
        _put(whole, key, used if used.ndim else used.reshape(1), accumulate)

    def index(self, a: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
        spec = _operands.index(a, indices)
        if 0 in spec.shape:
            # Nothing is read, so no index is wrong.
            return self.finish(np.empty(spec.shape, a._impl.dtype), spec)
        found = a._impl[_key("index", a, indices)]
        # Indices without dimensions give a view, or a scalar.
        return self.finish(np.array(found, order="C"), spec)

    def index_put_(
        self, target: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
    ) -> None:
        shape = _operands.index_put_(target, indices, values, accumulate)
        if 0 not in shape:
            # NumPy's `add.at` reads beyond values that it has to broadcast itself.
            spread = np.broadcast_to(values._impl, shape)
            _put(target._impl, _key("index_put_", target, indices), spread, accumulate)


def _checked(operation: str, index: Array, size: int, what: str, first: int = 0) -> Array:
    """The index, once all of it lies in `first` .. size - 1; worded as the fault of a device is (device.c).

    Raises
    ------
    OutOfRangeError
        An element is outside; the text has the first such one.
    """
    outside = index[(index < first) | (index >= size)]
    if outside.size:
        raise OutOfRangeError(f"{operation}: index {outside.flat[0]} is out of range for {what} on cpu")
    return index


def _along(operation: str, array: Array, dim: int, index: Array) -> tuple[Array, ...]:
    """A key that takes the index along a dimension, and each place of its own along the others."""
    size = array.shape[dim] if array.ndim else 1
    index = _checked(operation, index, size, f"a dimension of size {size}")
    if not index.ndim:
        return (index.reshape(1),)
    key = list(np.ogrid[tuple(map(slice, index.shape))])
    key[dim] = index
    return tuple(key)


def _key(operation: str, a: Tensor, indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """NumPy's key for the indices, whose rule for the place of their dimensions is that of `Backend.index`."""
    key: list[Any] = []
    for index, size in zip(indices, a.shape, strict=False):
        if index is None:
            key.append(slice(None))
        else:
            key.append(_checked(operation, index._impl, size, f"a dimension of size {size}", -size))
    return tuple(key)


def _apart(part: Any, target: Array) -> Any:
    """What can be read while the target is written: a copy where they share memory."""
    is_shared = isinstance(part, np.ndarray) and np.may_share_memory(part, target)
    return part.copy() if is_shared else part


def _put(target: Array, key: tuple[Any, ...], values: Array, accumulate: bool) -> None:
    """target[key] = values, of equal places the last; or the sum of all of them, rounded once."""
    if not accumulate:
        # NumPy before 2.3 reads the places while it writes.
        target[tuple(_apart(part, target) for part in key)] = _apart(values, target)
        return
    exact = {"b": np.int64, "i": np.int64, "u": np.int64, "c": np.complex128}.get(target.dtype.kind, np.float64)
    total = arrays.cast(target, np.dtype(exact))
    total = total.copy() if total is target else total
    with np.errstate(all="ignore"):
        np.add.at(total, key, arrays.cast(values, np.dtype(exact)))
    target[...] = arrays.cast(total, target.dtype)
