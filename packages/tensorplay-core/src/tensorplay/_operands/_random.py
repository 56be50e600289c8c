"""Fills with random numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import _dtype
from ..errors import DTypeError, InvalidArgumentError
from ._spec import check_target, floating

if TYPE_CHECKING:
    from .._tensor import Tensor


def uniform_(tensor: Tensor, low: float, high: float) -> None:
    """low <= x < high, both rounded to the tensor's dtype."""
    dtype = floating("uniform_", tensor)
    check_target("uniform_", tensor)
    wide = _dtype.float64 if dtype is _dtype.float64 else _dtype.float32
    with np.errstate(over="ignore", invalid="ignore"):
        span = wide.numpy.type(np.float64(dtype.numpy.type(high)) - np.float64(dtype.numpy.type(low)))
    if not (np.isfinite(span) and span >= 0):
        holders = " and ".join(dict.fromkeys((dtype.name, wide.name)))
        raise InvalidArgumentError(
            f"uniform_: got {low} to {high}, expected finite limits in rising order, and a distance that {holders} hold"
        )


def normal_(tensor: Tensor, mean: float, std: float) -> None:
    """Mean and standard deviation."""
    floating("normal_", tensor)
    check_target("normal_", tensor)
    if not (math.isfinite(std) and std >= 0):
        raise InvalidArgumentError(f"normal_: got a standard deviation of {std}, expected a finite one of 0 or more")


def random_bits_(tensor: Tensor) -> None:
    """64 bits in each element."""
    if tensor.dtype is not _dtype.int64:
        raise DTypeError(f"random_bits_: got dtype {tensor.dtype.name}, expected int64")
    check_target("random_bits_", tensor)
