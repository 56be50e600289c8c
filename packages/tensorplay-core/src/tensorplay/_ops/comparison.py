"""Whether tensors are the same, or nearly; answers in one Python bool wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch
from ..errors import InvalidArgumentError
from . import promotion
from .wide import fractions, wide

if TYPE_CHECKING:
    from .._tensor import Tensor


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal; nan is equal to nothing."""
    _dispatch.common("equal", input, other)
    return input.shape == other.shape and bool((input == other).all())


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``, or the elements are equal; bool.

    Parameters
    ----------
    equal_nan : bool
        Whether nan is close to nan.
    """
    return _close("isclose", input, other, rtol, atol, equal_nan)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` is true everywhere."""
    return bool(_close("allclose", input, other, rtol, atol, equal_nan).all())


def _close(operation: str, input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    _dispatch.common(operation, input, other)
    relative, absolute = _dispatch.real(operation, rtol), _dispatch.real(operation, atol)
    if not (relative >= 0 and absolute >= 0):
        raise InvalidArgumentError(f"{operation}: got rtol={rtol} and atol={atol}, expected 0 or more")
    close = input == other
    dtype = fractions(promotion.together(operation, input, other))
    a, b = wide(input, dtype), wide(other, dtype)
    if _dispatch.flag(operation, "equal_nan", equal_nan):
        close = close | ((a != a) & (b != b))
    error = (a - b).abs()
    return close | (error.isfinite() & (error <= b.abs() * relative + absolute))
