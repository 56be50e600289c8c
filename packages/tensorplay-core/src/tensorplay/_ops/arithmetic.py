"""Sums, quotients and powers: the functions of two operands that take more than the operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _operands
from ..errors import DTypeError, InvalidArgumentError
from . import promotion
from .wide import wide

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor

_SCALARS = _dispatch.SCALARS

#: The operation behind each way of `div` to round.
_DIVISIONS = {"trunc": "div_trunc", "floor": "floor_divide"}


def add(input: Tensor | Scalar, other: Tensor | Scalar, *, alpha: Scalar = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha * other; of bools: or."""
    if type(alpha) is int and alpha == 1:
        return _dispatch.binary("add", input, other, out)
    return _scaled("add", input, other, alpha, out)


def add_(self: Tensor, other: Tensor | Scalar, *, alpha: Scalar = 1) -> Tensor:
    """As `add`, in place."""
    is_plain = type(alpha) is int and alpha == 1
    if is_plain and (type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend):
        self._backend.binary("add", self, other, self)
        return self
    return add(self, other, alpha=alpha, out=self)


def sub(input: Tensor | Scalar, other: Tensor | Scalar, *, alpha: Scalar = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha * other; bool is refused."""
    if type(alpha) is int and alpha == 1:
        return _dispatch.binary("sub", input, other, out)
    return _scaled("sub", input, other, alpha, out)


def sub_(self: Tensor, other: Tensor | Scalar, *, alpha: Scalar = 1) -> Tensor:
    """As `sub`, in place."""
    is_plain = type(alpha) is int and alpha == 1
    if is_plain and (type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend):
        self._backend.binary("sub", self, other, self)
        return self
    return sub(self, other, alpha=alpha, out=self)


def _scaled(op: str, input: Tensor | Scalar, other: Tensor | Scalar, alpha: Scalar, out: Tensor | None) -> Tensor:
    """The sum or difference of an operand and a multiple of another; half types are rounded once."""
    dtype = promotion.together(op, input, other)
    factor = _dispatch.number(alpha)
    if factor is None:
        raise DTypeError(f"{op}: got {type(alpha).__name__} for alpha, expected a number")
    if dtype is _dtype.bool:
        factor = bool(factor)
    elif isinstance(factor, bool) or _operands.scalar_dtype(op, factor).category > dtype.category:
        raise DTypeError(f"{op}: got alpha={alpha} for operands of dtype {dtype.name}, expected a number that it holds")
    left, right = wide(input, dtype), wide(other, dtype)
    multiple = _dispatch.binary("mul", right, factor) if _dispatch.is_tensor(right) else right * factor
    result = _dispatch.binary(op, left, multiple)
    return _dispatch.into(op, result.to(dtype), out)


def div(
    input: Tensor | Scalar, other: Tensor | Scalar, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """input / other, with fractions: integers give the default dtype.

    Parameters
    ----------
    rounding_mode : str, optional
        ``"trunc"`` rounds towards 0, ``"floor"`` downwards; integers then stay integers, and 0 where `other` is 0.
    """
    if rounding_mode is None:
        return _dispatch.binary("div", input, other, out)
    return _dispatch.binary(_division(rounding_mode), input, other, out)


def div_(self: Tensor, other: Tensor | Scalar, *, rounding_mode: str | None = None) -> Tensor:
    """As `div`, in place."""
    op = "div" if rounding_mode is None else _division(rounding_mode)
    if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
        self._backend.binary(op, self, other, self)
        return self
    return _dispatch.binary(op, self, other, self)


def _division(rounding_mode: object) -> str:
    """The operation behind a way to round."""
    op = _DIVISIONS.get(rounding_mode) if isinstance(rounding_mode, str) else None
    if op is None:
        raise InvalidArgumentError(f"div: got rounding_mode={rounding_mode!r}, expected None, 'trunc' or 'floor'")
    return op


def pow(input: Tensor | Scalar, exponent: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input to the power of exponent; bool and complex are refused. A negative power of an integer is 0, 1 or -1."""
    return _dispatch.binary("pow", input, exponent, out)


def pow_(self: Tensor, exponent: Tensor | Scalar) -> Tensor:
    """As `pow`, in place."""
    return pow(self, exponent, out=self)


def float_power(input: Tensor | Scalar, exponent: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """`pow` in float64."""
    base, power = (wide(operand, _dtype.float64) for operand in (input, exponent))
    result = _dispatch.binary("pow", base, power)
    return _dispatch.into("float_power", result, out)
