"""Python's operators on tensors.

The hot path is short: a tensor of the same backend, or a Python number, goes to the backend as it is.
Everything else is sorted out by `tensorplay._dispatch`; what is no number and no tensor gives
NotImplemented, so that Python asks the other operand and then raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _dispatch, _dtype
from ..errors import DTypeError
from . import products
from .elementwise import logical_not

if TYPE_CHECKING:
    from .._tensor import Tensor

_SCALARS = _dispatch.SCALARS

Operator = Callable[["Tensor", Any], "Tensor"]
Method = TypeVar("Method", bound=Callable[..., "Tensor"])


def _is_operand(other: object) -> bool:
    return _dispatch.is_tensor(other) or _dispatch.number(other) is not None


def forward(op: str) -> Operator:
    """``tensor op other``."""

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
            return self._backend.binary(op, self, other)
        return _dispatch.binary(op, self, other) if _is_operand(other) else NotImplemented

    return operator


def reflected(op: str) -> Operator:
    """``other op tensor``, where `other` is no tensor."""

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS:
            return self._backend.binary(op, other, self)
        return _dispatch.binary(op, other, self) if _is_operand(other) else NotImplemented

    return operator


def in_place(op: str) -> Operator:
    """``tensor op= other``."""

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
            self._backend.binary(op, self, other, self)
            return self
        return _dispatch.binary(op, self, other, self) if _is_operand(other) else NotImplemented

    return operator


def binary_method(op: str) -> Operator:
    """The method ``op_``. It raises where the operators ask the other operand."""

    def method(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
            self._backend.binary(op, self, other, self)
            return self
        return _dispatch.binary(op, self, other, self)

    return _named(op, method)


def unary_method(op: str) -> Callable[[Tensor], Tensor]:
    """The method ``op_`` without another operand."""

    def method(self: Tensor) -> Tensor:
        self._backend.unary(op, self, self)
        return self

    return _named(op, method)


def _named(op: str, method: Method) -> Method:
    method.__name__ = f"{op}_"
    method.__qualname__ = f"Tensor.{op}_"
    method.__doc__ = f"As `{op}`, in place."
    return method


def _of_bools(symbol: str, operator: Operator) -> Operator:
    """An operator on bits, which are those of bools only."""

    def checked(self: Tensor, other: Any) -> Tensor:
        dtype = getattr(other, "dtype", None)
        if self.dtype is not _dtype.bool or not (isinstance(other, bool) or dtype in (_dtype.bool, _dtype.bool.numpy)):
            got = type(other).__name__ if dtype is None else dtype
            raise DTypeError(f"{symbol}: got dtype {self.dtype.name} and {got}, expected bool on both sides")
        return operator(self, other)

    return checked


and_ = _of_bools("&", forward("logical_and"))
or_ = _of_bools("|", forward("logical_or"))
xor = _of_bools("^", forward("ne"))


def invert(self: Tensor) -> Tensor:
    """~tensor, of bools."""
    if self.dtype is not _dtype.bool:
        raise DTypeError(f"~: got dtype {self.dtype.name}, expected bool")
    return logical_not(self)


def matmul(self: Tensor, other: Any) -> Tensor:
    """tensor @ other."""
    return products.matmul(self, other)
