"""Arrays that the host backend's families share: working dtypes, casts, scalars, storages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dtype
from .._dtype import DType

if TYPE_CHECKING:
    from .._backend import Scalar

Array = np.ndarray[Any, Any]


def working(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype that is computed in: float32 for the half types."""
    return _dtype.float32.numpy if dtype in (_dtype.float16, _dtype.bfloat16) else dtype.numpy


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in another dtype by the rules of kernels/element.h; itself when it has it already.

    Complex numbers lose their imaginary part, fractions are cut off, integers wrap, and what is too large for
    int32 or int64 becomes the number next to it. float16 and bfloat16 are made of float32.
    """
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        if dtype.kind in "iu" and array.dtype.kind in "fV":
            return _truncated(array, dtype)
        # ml_dtypes' types are of kind V.
        if (dtype.itemsize == 2 and dtype.kind in "fV") or (array.dtype.kind == "V" and dtype.kind == "c"):
            array = array.astype(np.float32)
        return array.astype(dtype, copy=False)


def _truncated(array: Array, dtype: np.dtype[Any]) -> Array:
    """Fractions to integers; narrow ones are cut from int64."""
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    limits = np.iinfo(dtype if dtype == np.int32 else np.int64)
    # What NumPy makes of numbers beyond the range depends on the processor.
    result = np.asarray(array.astype(np.int64))
    np.copyto(result, limits.max, where=array >= limits.max)
    np.copyto(result, limits.min, where=array <= limits.min)
    # As a GPU's instructions have it.
    np.copyto(result, 0 if dtype == np.int32 else limits.min, where=np.isnan(array))
    return result.astype(dtype, copy=False)


def widened(array: Array, dtype: DType) -> Array:
    """The elements as `dtype` holds them, in its working dtype."""
    return cast(cast(array, dtype.numpy), working(dtype))


def scalar(value: Scalar, dtype: np.dtype[Any]) -> Array:
    """A number as an array without dimensions, cast as an element is."""
    return cast(np.asarray(value, np.int64 if type(value) is int else None), dtype)


def contiguous(array: Array) -> Array:
    """The array itself when its elements lie in C order, else a copy."""
    # np.ascontiguousarray would give an array without dimensions one dimension.
    return array if array.flags.c_contiguous else array.copy(order="C")


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
