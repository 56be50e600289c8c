"""Fills with random numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidArgumentError
from ._spec import check_target, floating

if TYPE_CHECKING:
    from .._tensor import Tensor


def uniform_(tensor: Tensor, low: float, high: float) -> None:
    """low <= x < high, both rounded to the tensor's dtype."""
    numpy = floating("uniform_", tensor).numpy
    check_target("uniform_", tensor)
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.float32(np.float64(numpy.type(high)) - np.float64(numpy.type(low)))
    if not (np.isfinite(span) and span >= 0):
        raise InvalidArgumentError(
            f"uniform_: got {low} to {high}, expected finite limits in rising order, "
            f"and a distance that {tensor.dtype.name} and float32 hold"
        )


def normal_(tensor: Tensor, mean: float, std: float) -> None:
    """Mean and standard deviation."""
    floating("normal_", tensor)
    check_target("normal_", tensor)
    if not (math.isfinite(std) and std >= 0):
        raise InvalidArgumentError(f"normal_: got a standard deviation of {std}, expected a finite one of 0 or more")
