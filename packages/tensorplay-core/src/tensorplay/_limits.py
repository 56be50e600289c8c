"""The range and precision of dtypes."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from . import _dtype
from ._dtype import DType
from .errors import DTypeError


class FloatLimits(NamedTuple):
    """What `finfo` tells.

    Attributes
    ----------
    bits : int
        Of one number.
    eps : float
        From 1 to the next number.
    max, min : float
        The largest and the lowest number.
    tiny, smallest_normal : float
        The smallest positive number of full precision.
    resolution : float
        10 to the power of minus the decimal digits that are exact.
    dtype : str
        The name of the dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str


class IntegerLimits(NamedTuple):
    """What `iinfo` tells.

    Attributes
    ----------
    bits : int
        Of one number.
    max, min : int
        The largest and the lowest number.
    dtype : str
        The name of the dtype.
    """

    bits: int
    max: int
    min: int
    dtype: str


def finfo(type: DType | None = None) -> FloatLimits:
    """Range and precision of a floating dtype, of the default one without an argument; of complex ones their parts'.

    Raises
    ------
    DTypeError
        Any other dtype.
    """
    dtype = _dtype.DEFAULTS[_dtype.FLOAT] if type is None else _dtype.check("finfo", type).to_real()
    if not dtype.is_floating_point:
        raise DTypeError(f"finfo: got dtype {dtype.name}, expected a floating or complex one; iinfo tells of integers")
    found: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    eps, high, low, tiny = (float(value) for value in (found.eps, found.max, found.min, found.tiny))
    return FloatLimits(found.bits, eps, high, low, tiny, tiny, 10.0**-found.precision, dtype.name)


def iinfo(type: DType) -> IntegerLimits:
    """Range of an integer dtype.

    Raises
    ------
    DTypeError
        Any other dtype.
    """
    dtype = _dtype.check("iinfo", type)
    if dtype.category != _dtype.INT:
        raise DTypeError(f"iinfo: got dtype {dtype.name}, expected an integer one; finfo tells of floating dtypes")
    found = np.iinfo(dtype.numpy)
    return IntegerLimits(found.bits, int(found.max), int(found.min), dtype.name)
