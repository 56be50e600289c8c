"""The operations of ops.def in NumPy, written independently of the backends.

They get and give bool, int64, float64 or complex128. NumPy's function of the same name serves where there is one;
the tables have what it names otherwise or leaves undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_erf: Callable[[Any], Any] = np.vectorize(math.erf, otypes=[float])
_erfc: Callable[[Any], Any] = np.vectorize(math.erfc, otypes=[float])


def unary(op: str) -> Callable[[Any], Any]:
    """The formula of an operation on one array."""
    return UNARY[op] if op in UNARY else getattr(np, op)  # type: ignore[no-any-return]


def binary(op: str) -> Callable[[Any, Any], Any]:
    """The formula of an operation on two arrays."""
    return BINARY[op] if op in BINARY else getattr(np, op)  # type: ignore[no-any-return]


def _whole(rounded: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Integers are whole already."""
    return lambda x: x if x.dtype.kind == "i" else rounded(x)


def _sign(x: Array) -> Array:
    return x if x.dtype == bool else np.nan_to_num(np.sign(x), nan=0)


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": _erf,
    "erfc": _erfc,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x < 0, 0, x),
    "gelu": lambda x: 0.5 * x * _erfc(-x / math.sqrt(2)),
    "gelu_tanh": _gelu_tanh,
    "reciprocal": lambda x: 1 / x,
    "logical_not": lambda x: x == 0,
    "sign": _sign,
    "floor": _whole(np.floor),
    "ceil": _whole(np.ceil),
    "round": _whole(np.rint),
    "trunc": _whole(np.trunc),
    "frac": lambda x: x - np.trunc(x),
}


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    # Modulo 2**64, then read as signed; a negative exponent leaves a fraction, which is cut off.
    powers = [
        pow(int(x), int(y), 2**64) if y >= 0 else (int(x) ** (-int(y) % 2) if abs(int(x)) == 1 else 0)
        for x, y in zip(a.flat, b.flat, strict=True)
    ]
    wrapped = [(power + 2**63) % 2**64 - 2**63 for power in powers]
    return np.array(wrapped, np.int64).reshape(a.shape)


def _div_trunc(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    # Towards zero; by 0 it is 0.
    down = np.floor_divide(a, b)
    return np.where((b != 0) & (down < 0) & (down * b != a), down + 1, down)


def _left_shift(a: Array, b: Array) -> Array:
    return np.where((b < 0) | (b > 63), 0, np.left_shift(a, b & 63))


def _right_shift(a: Array, b: Array) -> Array:
    return np.right_shift(a, np.where((b < 0) | (b > 63), 63, b))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a | b if a.dtype == bool else a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a & b if a.dtype == bool else a * b,
    "div": lambda a, b: a / b,
    "div_trunc": _div_trunc,
    "pow": lambda a, b: _pow(*np.broadcast_arrays(a, b)),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_left_shift": _left_shift,
    "bitwise_right_shift": _right_shift,
}
