"""Python's operators on tensors.

The hot path is short: a tensor of the same backend, or a Python number, goes to the backend as it is.
Everything else is sorted out by `tensorplay._dispatch`; what is no number and no tensor gives
NotImplemented, so that Python asks the other operand and then raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _dispatch
from .._handle import Handle
from . import composed, products
from .unary import Unary

if TYPE_CHECKING:
    from .._tensor import Tensor

_SCALARS = _dispatch.SCALARS

Operator = Callable[["Tensor", Any], "Tensor"]


def _is_operand(other: object) -> bool:
    return _dispatch.is_tensor(other) or _dispatch.number(other) is not None


def _forward(op: str) -> Operator:
    """``tensor op other``."""

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
            return self._backend.binary(op, self, other)
        return _dispatch.binary(op, self, other) if _is_operand(other) else NotImplemented

    return operator


def _reflected(op: str) -> Operator:
    """``other op tensor``, where `other` is no tensor."""

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS:
            return self._backend.binary(op, other, self)
        return _dispatch.binary(op, other, self) if _is_operand(other) else NotImplemented

    return operator


def _in_place(op: str) -> Operator:
    """``tensor op= other``."""

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
            self._backend.binary(op, self, other, self)
            return self
        return _dispatch.binary(op, self, other, self) if _is_operand(other) else NotImplemented

    return operator


def _three(op: str) -> tuple[Operator, Operator, Operator]:
    return _forward(op), _reflected(op), _in_place(op)


def _matmul(self: Tensor, other: Any) -> Tensor:
    return products.matmul(self, other)


def _divmod(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    return self // other, self % other


def _rdivmod(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    return other // self, other % self


def _round(self: Tensor, decimals: int = 0) -> Tensor:
    return composed.round(self, decimals=decimals)


class Operators(Handle):
    """What Python calls for its operators."""

    __slots__ = ()

    __add__, __radd__, __iadd__ = _three("add")
    __sub__, __rsub__, __isub__ = _three("sub")
    __mul__, __rmul__, __imul__ = _three("mul")
    __truediv__, __rtruediv__, __itruediv__ = _three("div")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _three("floor_divide")
    __mod__, __rmod__, __imod__ = _three("remainder")
    __pow__, __rpow__, __ipow__ = _three("pow")
    __and__, __rand__, __iand__ = _three("bitwise_and")
    __or__, __ror__, __ior__ = _three("bitwise_or")
    __xor__, __rxor__, __ixor__ = _three("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _three("bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _three("bitwise_right_shift")
    __eq__ = _forward("eq")  # type: ignore[assignment]
    __ne__ = _forward("ne")  # type: ignore[assignment]
    __lt__ = _forward("lt")
    __le__ = _forward("le")
    __gt__ = _forward("gt")
    __ge__ = _forward("ge")
    __neg__ = Unary.neg
    __abs__ = Unary.abs
    __invert__ = Unary.bitwise_not
    __pos__ = Unary.positive
    __matmul__ = _matmul

    # Tensors are equal element by element, so they are told apart by identity.
    __hash__ = object.__hash__

    __divmod__ = _divmod
    __rdivmod__ = _rdivmod
    __round__ = _round
