"""Elementwise functions that are composed of others, here and so for every backend. Half types are rounded once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from .._operands._spec import floating
from ..errors import DTypeError, InvalidArgumentError
from . import promotion
from .choice import where
from .wide import fractions, wide

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest whole number, of two equally near ones the even one.

    Parameters
    ----------
    decimals : int
        Digits after the point that stay, of floating dtypes; negative: zeros in front of it.
    """
    _dispatch.check_tensor("round", input)
    places = _shape.integer("round", decimals)
    if not places:
        result = _dispatch.common("round", input, optional=(out,)).unary("round", input, out)
        return result if out is None else out
    if not input.dtype.is_floating_point:
        raise DTypeError(f"round: got decimals={places} for dtype {input.dtype.name}, expected a floating dtype")
    x, scale = wide(input, input.dtype), 10.0 ** min(abs(places), 308)
    result = (x * scale).round() / scale if places > 0 else (x / scale).round() * scale
    return _dispatch.into("round", result.to(input.dtype), out)


def positive(input: Tensor) -> Tensor:
    """The tensor itself; bool is refused."""
    _dispatch.check_tensor("positive", input)
    if input.dtype is _dtype.bool:
        raise DTypeError("positive: got dtype bool, expected a dtype of numbers")
    return input


def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a copy of complex numbers, the tensor itself of others."""
    backend = _dispatch.common("conj", input)
    return backend.unary("conj", input) if input.dtype.is_complex else input


def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input * input; of bools int64."""
    _dispatch.check_tensor("square", input)
    x = input.to(_dtype.int64) if input.dtype is _dtype.bool else input
    return _dispatch.binary("mul", x, x, out)


def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(input / (1 - input)), the inverse of sigmoid.

    Parameters
    ----------
    eps : float, optional
        Elements outside eps and 1 - eps are taken to these first; by default they give nan, and 0 and 1 infinities.
    """
    _dispatch.check_tensor("logit", input)
    dtype = fractions(input.dtype)
    x = wide(input, dtype)
    if eps is not None:
        low = _dispatch.real("logit", eps)
        x = where(x < low, low, where(x > 1 - low, 1 - low, x))
    return _dispatch.into("logit", (x / (1 - x)).log().to(dtype), out)


def lerp(input: Tensor, end: Tensor, weight: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """input + weight * (end - input), which is just `end` where the weight is 1; one floating dtype."""
    _dispatch.check_tensor("lerp", input, end)
    dtype = floating("lerp", input, end)
    a, b = wide(input, dtype), wide(end, dtype)
    difference = b - a
    # From the nearer end, so that both ends are met exactly.
    if _dispatch.is_tensor(weight):
        w = wide(weight, dtype)
        result = where(w.abs() < 0.5, a + difference * w, b - difference * (1 - w))
    else:
        share = _dispatch.real("lerp", weight)
        result = a + difference * share if abs(share) < 0.5 else b - difference * (1 - share)
    return _dispatch.into("lerp", result.to(dtype), out)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 * tensor2; bool is refused."""
    dtype = _of_three("addcmul", input, tensor1, tensor2)
    if dtype is _dtype.bool:
        raise DTypeError("addcmul: got dtype bool, expected a dtype of numbers")
    a, b, c = (wide(operand, dtype) for operand in (input, tensor1, tensor2))
    return _dispatch.into("addcmul", (a + _times("addcmul", b, value) * c).to(dtype), out)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 / tensor2; not of integers alone."""
    dtype = _of_three("addcdiv", input, tensor1, tensor2)
    if promotion.together("addcdiv", tensor1, tensor2).category < _dtype.FLOAT:
        raise DTypeError(
            f"addcdiv: got a division of {tensor1.dtype.name} by {tensor2.dtype.name}, expected a floating dtype"
        )
    a, b, c = (wide(operand, dtype) for operand in (input, tensor1, tensor2))
    return _dispatch.into("addcdiv", (a + _times("addcdiv", b, value) / c).to(dtype), out)


def _of_three(operation: str, *operands: Tensor) -> _dtype.DType:
    _dispatch.check_tensor(operation, *operands)
    return promotion.together(operation, *operands)


def _times(operation: str, operand: Tensor, value: Scalar) -> Tensor:
    """The multiple of an operand in its own dtype."""
    factor = _dispatch.number(value)
    if factor is None or (isinstance(factor, complex) and not operand.dtype.is_complex):
        raise DTypeError(f"{operation}: got {value!r} as value, expected a number that {operand.dtype.name} holds")
    if operand.dtype.category == _dtype.INT and isinstance(factor, float):
        if not math.isfinite(factor):
            raise InvalidArgumentError(f"{operation}: got {value!r} as value, expected a number that int64 holds")
        factor = int(factor)
    return operand if factor == 1 else operand * factor
