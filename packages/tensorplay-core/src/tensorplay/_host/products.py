"""Products of matrices, and rows by index, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OutOfRangeError
from . import arrays

if TYPE_CHECKING:
    from .._dtype import DType

Array = np.ndarray[Any, Any]


def matmul(a: Array, b: Array, dtype: DType) -> Array:
    """a @ b, added up in float32."""
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(arrays.widened(a, dtype), arrays.widened(b, dtype)))


def linear(a: Array, weight: Array, bias: Array | None, dtype: DType) -> Array:
    """a @ weight.T + bias, added up in float32 and rounded once."""
    rows = a.reshape(-1, a.shape[-1]) if a.size else a.reshape(int(np.prod(a.shape[:-1])), a.shape[-1])
    product = matmul(rows, weight.T, dtype).reshape(*a.shape[:-1], weight.shape[0])
    return product if bias is None else product + arrays.widened(bias, dtype)


def checked_index(operation: str, index: Array, size: int, what: str) -> Array:
    """The index, once all of it lies in 0 .. size - 1; worded as the fault of a device is (device.c).

    Raises
    ------
    OutOfRangeError
        An element is outside; the text has the first such one.
    """
    outside = index[(index < 0) | (index >= size)]
    if outside.size:
        raise OutOfRangeError(f"{operation}: index {outside.flat[0]} is out of range for {what} on cpu")
    return index
