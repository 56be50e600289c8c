"""The operations of ops.def in NumPy, written independently of the backends, for float64, int64 and bool."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_erf: Callable[[Any], Any] = np.vectorize(math.erf, otypes=[float])


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x < 0, 0, x),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": _gelu_tanh,
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "logical_not": lambda x: x == 0,
}


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a**b
    # Exact, then wrapped to 64 bits; fractions are cut off.
    powers = [
        (int(x) ** int(y) if y >= 0 else int(float(x) ** float(y)) if x else 0)
        for x, y in zip(a.flat, b.flat, strict=True)
    ]
    wrapped = [(power + 2**63) % 2**64 - 2**63 for power in powers]
    return np.array(wrapped, np.int64).reshape(a.shape)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a | b if a.dtype == bool else a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a & b if a.dtype == bool else a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: _pow(*np.broadcast_arrays(a, b)),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
}
