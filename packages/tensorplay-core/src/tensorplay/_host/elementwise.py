"""Operations that work element by element, and their formulas.

A formula gets arrays (or NumPy's scalars) of bool, integers, float32, float64 or complex numbers: half types were
widened before and are rounded after. It returns new elements, never its argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _dtype, _operands
from .._backend import Scalar
from .._tensor import Tensor
from . import arrays
from .erf import erf, erfc
from .views import Views

# Any: NumPy's functions on arrays without dimensions give scalars.
Array = Any

_SQRT_HALF = 0.7071067811865476
_SQRT_2_OVER_PI = 0.7978845608028654


class Elementwise(Views):
    """The methods of `Backend` that work element by element."""

    def unary(self, op: str, a: Tensor, out: Tensor | None = None) -> Tensor:
        spec = _operands.unary(op, a, out)
        with np.errstate(all="ignore"):
            return self.finish(UNARY[op](arrays.widened(a._impl, spec.compute)), spec, out)

    def binary(self, op: str, a: Tensor | Scalar, b: Tensor | Scalar, out: Tensor | None = None) -> Tensor:
        spec = _operands.binary(op, a, b, out)
        working = arrays.working(spec.compute)
        # Half types keep the digits of a number until the result is rounded; if that is bool, it is an element.
        first = spec.compute.numpy if spec.dtype is _dtype.bool else working
        left, right = (
            arrays.widened(x._impl, spec.compute)
            if isinstance(x, Tensor)
            else arrays.cast(arrays.scalar(x, first), working)
            for x in (a, b)
        )
        with np.errstate(all="ignore"):
            return self.finish(BINARY[op](left, right), spec, out)

    def where(self, condition: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        spec = _operands.where(condition, a, b, out)
        left, right = (arrays.cast(x._impl, spec.dtype.numpy) for x in (a, b))
        return self.finish(np.where(condition._impl, left, right), spec, out)


def _exactly(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function in float64, rounded once: for those whose float32 form NumPy leaves to the C library."""

    def rounded(*operands: Array) -> Array:
        wide = function(*(operand.astype(np.float64) for operand in operands))
        return wide.astype(operands[0].dtype)

    return rounded


def _of_fractions(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The function; integers stay what they are."""
    return lambda x: function(x) if x.dtype.kind == "f" else np.positive(x)


def _gelu_tanh(x: Array) -> Array:
    # (1 + tanh(z)) / 2 without its cancellation.
    return x / (1 + np.exp(-2 * _SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))


def _sign(x: Array) -> Array:
    """0 for nan, as in torch."""
    return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(x.dtype)


def _pow(a: Array, b: Array) -> Array:
    """Integers wrap; a negative power of an integer is 0 unless the base is 1 or -1, as in torch."""
    if a.dtype.kind == "f":
        # The sign apart: NumPy is slow at negative bases, and some versions take a square root of -0 and -inf.
        power = np.power(np.abs(a), b)
        is_odd, is_root = np.abs(np.fmod(b, 2)) == 1, np.floor(b) != b
        if is_odd.any():
            power = np.where(is_odd, np.copysign(power, a), power)
        if is_root.any():
            power = np.where(is_root & (a < 0) & np.isfinite(a), a.dtype.type("nan"), power)
        return power
    inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b % 2), 0))
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


def _floor_divide(a: Array, b: Array) -> Array:
    """By 0: integers give 0, as NumPy has it."""
    if a.dtype.kind != "f":
        return np.floor_divide(a, b)
    # torch's steps: the quotient without the remainder is whole but for rounding, which is mended.
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    return np.where(b == 0, a / b, np.where(quotient == 0, np.copysign(0, a / b), whole)).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    """Of the sign of b, but for the sign of 0; by 0: integers give 0."""
    if a.dtype.kind != "f":
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _div_trunc(a: Array, b: Array) -> Array:
    return np.trunc(a / b) if a.dtype.kind == "f" else np.floor_divide(a - np.fmod(a, b), b)


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": _exactly(erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x <= 0, 0, x),
    "gelu": _exactly(lambda x: 0.5 * x * erfc(-x * _SQRT_HALF)),
    "gelu_tanh": _exactly(_gelu_tanh),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "logical_not": np.logical_not,
    "sign": _sign,
    "exp2": _exactly(np.exp2),
    "expm1": _exactly(np.expm1),
    "log2": _exactly(np.log2),
    "log10": _exactly(np.log10),
    "log1p": _exactly(np.log1p),
    "tan": _exactly(np.tan),
    "asin": _exactly(np.arcsin),
    "acos": _exactly(np.arccos),
    "atan": _exactly(np.arctan),
    "sinh": _exactly(np.sinh),
    "cosh": _exactly(np.cosh),
    "asinh": _exactly(np.arcsinh),
    "acosh": _exactly(np.arccosh),
    "atanh": _exactly(np.arctanh),
    "erfc": _exactly(erfc),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "floor": _of_fractions(np.floor),
    "ceil": _of_fractions(np.ceil),
    "round": _of_fractions(np.rint),
    "trunc": _of_fractions(np.trunc),
    "frac": lambda x: x - np.trunc(x),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "bitwise_not": np.invert,
    "conj": np.conjugate,
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
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": np.fmod,
    "div_trunc": _div_trunc,
    "atan2": _exactly(np.arctan2),
    "hypot": _exactly(np.hypot),
    "copysign": np.copysign,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    # NumPy takes a count that is negative or too large as torch does: all bits leave.
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "fmax": np.fmax,
    "fmin": np.fmin,
}
