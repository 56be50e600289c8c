"""What the program sets for all devices: the dtype of numbers that come without one, and how exact products are."""

from __future__ import annotations

from . import _dtype, _plugins
from ._dtype import DType
from .errors import InvalidArgumentError

_PRECISIONS = ("highest", "high", "medium")
_precision = "highest"


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
    _plugins.set_default_dtype(_dtype.check_floating("set_default_dtype", _dtype.check("set_default_dtype", d)))


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` set; ``"highest"`` at first."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 matrices are, on every device.

    Parameters
    ----------
    precision : str
        ``"highest"``: all digits. ``"high"`` or ``"medium"``: a GPU may multiply numbers rounded to TF32, which has
        10 bits behind the point, and adds in float32. The host and GPUs without cuBLAS keep all digits.

    Raises
    ------
    InvalidArgumentError
        There is no such precision.
    """
    global _precision
    if precision not in _PRECISIONS:
        raise InvalidArgumentError(
            f"set_float32_matmul_precision: got {precision!r}, expected one of {', '.join(map(repr, _PRECISIONS))}"
        )
    _plugins.allow_tf32(precision != "highest")
    _precision = precision
