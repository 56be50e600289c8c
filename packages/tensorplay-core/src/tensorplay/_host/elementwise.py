"""The formulas of the elementwise operations on arrays.

They get arrays (or arrays without dimensions) of bool, integers or float32: half types were widened
before and are rounded after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .erf import erf

# Any: NumPy's functions on arrays without dimensions give scalars.
Array = Any

_SQRT_HALF = 0.7071067811865476
_SQRT_2_OVER_PI = np.float32(0.7978845608028654)


def _erf(x: Array) -> Array:
    return erf(x).astype(x.dtype)


def _gelu(x: Array) -> Array:
    wide = x.astype(np.float64)
    return (0.5 * wide * (1.0 + erf(wide * _SQRT_HALF))).astype(x.dtype)


def _gelu_tanh(x: Array) -> Array:
    inner = _SQRT_2_OVER_PI * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))


def _sigmoid(x: Array) -> Array:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def _rsqrt(x: Array) -> Array:
    return np.float32(1) / np.sqrt(x)


def _reciprocal(x: Array) -> Array:
    return np.float32(1) / x


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def _pow(a: Array, b: Array) -> Array:
    """Integers wrap; a negative power of an integer is 0 unless the base is 1 or -1, as in torch."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    result = np.power(a, np.maximum(b, 0))
    odd = np.where(b % 2 == 0, 1, a)
    return np.where(b >= 0, result, np.where(np.abs(a) == 1, odd, 0)).astype(a.dtype)


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "relu": _relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "reciprocal": _reciprocal,
    "sin": np.sin,
    "cos": np.cos,
    "logical_not": np.logical_not,
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": _pow,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
}
