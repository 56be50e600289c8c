"""Arrays that the host backend's families share: working dtypes, storages, scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._dtype import DType

if TYPE_CHECKING:
    from .._backend import Scalar

Array = np.ndarray[Any, Any]


def working(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype that is computed in: float32 for the half types."""
    return np.dtype(np.float32) if dtype.is_floating_point else dtype.numpy


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in another dtype; itself when it has it already."""
    # A cast of nan or of a number too large to an integer has no right result, so no warning either.
    with np.errstate(all="ignore"):
        return array.astype(dtype, copy=False)


def widened(array: Array, dtype: DType) -> Array:
    """The elements as `dtype` holds them, in its working dtype."""
    return cast(cast(array, dtype.numpy), working(dtype))


def scalar(value: Scalar, dtype: np.dtype[Any]) -> Array:
    """A number as an array without dimensions; integers that are too large for the dtype wrap."""
    if isinstance(value, int) and dtype.kind == "i":
        return np.asarray(value, np.int64).astype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)


def storage(array: Array) -> Array:
    """The array that owns the memory, as far as NumPy knows."""
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        # np.lib.stride_tricks puts an object of its own between a view and its base.
        base = getattr(base, "base", None)
    return array


def extent(array: Array) -> int:
    """Bytes from the first element to the end of the last one; strides are 0 or more."""
    if not array.size:
        return 0
    gaps = zip(array.shape, array.strides, strict=True)
    last: int = sum((size - 1) * stride for size, stride in gaps)
    return last + array.itemsize


def strided(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view from the first element on, with strides in elements."""
    nbytes = [stride * array.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(array, shape, nbytes)


def from_storage(array: Array, shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
    """As `strided`, from an element of the array's storage on."""
    owner = storage(array)
    # The owner may have another dtype and shape; its bytes are the same.
    flat = strided(owner, (extent(owner) // owner.itemsize,), (1,)).view(np.uint8)
    whole = flat[: len(flat) // array.itemsize * array.itemsize].view(array.dtype)
    return strided(whole[offset:], shape, strides)


def address(array: Array) -> int:
    """Address of the first element."""
    found: int = array.__array_interface__["data"][0]
    return found
