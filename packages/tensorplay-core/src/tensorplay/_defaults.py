"""The dtype of numbers that come without one."""

from __future__ import annotations

from . import _dtype, _plugins
from ._dtype import DType
from .errors import DTypeError


def get_default_dtype() -> DType:
    """The dtype of Python's fractions, and of functions that make tensors without being told a dtype."""
    return _dtype.DEFAULTS[_dtype.FLOAT]


def set_default_dtype(d: DType) -> None:
    """Changes the default dtype, on every device; complex numbers follow with the complex counterpart.

    Raises
    ------
    DTypeError
        The dtype is not floating.
    """
    if not _dtype.check("set_default_dtype", d).is_floating_point:
        raise DTypeError(f"set_default_dtype: got dtype {d.name}, expected a floating dtype")
    _plugins.set_default_dtype(d)
