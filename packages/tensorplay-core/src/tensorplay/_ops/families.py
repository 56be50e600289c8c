"""What makes the elementwise functions and methods that are one call of a backend: a name and a sentence each.

A function broadcasts, promotes dtypes by torch's rules and has ``out=``. The method that ends in ``_`` writes into its
tensor, which keeps its shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from .. import _dispatch

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor

_SCALARS = _dispatch.SCALARS

Function = TypeVar("Function", bound=Callable[..., Any])
Method = TypeVar("Method", bound=Callable[..., Any])
Rest = ParamSpec("Rest")


def _typed(
    function: Function, method: Method
) -> Callable[[Callable[[str], tuple[Any, Any]]], Callable[[str, str], tuple[Function, Method]]]:
    """Gives what a maker makes its documentation, and to type checkers the signatures of two samples."""

    def decorate(maker: Callable[[str], tuple[Any, Any]]) -> Callable[[str, str], tuple[Function, Method]]:
        def make(op: str, doc: str) -> tuple[Function, Method]:
            pair = maker(op)
            for made, name, text in zip(pair, (op, f"{op}_"), (doc, f"As `{op}`, in place."), strict=True):
                made.__name__, made.__qualname__, made.__doc__ = name, name, text
            return pair

        return make

    return decorate


# Samples of signatures, for type checkers alone: nobody calls them.


def _of_one(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    raise NotImplementedError


def _in_place_of_one(self: Tensor) -> Tensor:
    raise NotImplementedError


def _of_two(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    raise NotImplementedError


def _in_place_of_two(self: Tensor, other: Tensor | Scalar) -> Tensor:
    raise NotImplementedError


@_typed(_of_one, _in_place_of_one)
def unary(op: str) -> tuple[Any, Any]:
    """Of one tensor: the function, and the method in place."""

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        result = _dispatch.common(op, input, optional=(out,)).unary(op, input, out)
        return result if out is None else out

    def method(self: Tensor) -> Tensor:
        self._backend.unary(op, self, self)
        return self

    return function, method


@_typed(_of_two, _in_place_of_two)
def binary(op: str) -> tuple[Any, Any]:
    """Of two operands, one of which may be a number: the function, and the method in place."""

    def function(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
        return _dispatch.binary(op, input, other, out)

    def method(self: Tensor, other: Any) -> Tensor:
        if type(other) in _SCALARS or getattr(other, "_backend", None) is self._backend:
            self._backend.binary(op, self, other, self)
            return self
        return _dispatch.binary(op, self, other, self)

    return function, method


def in_place(function: Callable[Concatenate[Tensor, Rest], Tensor]) -> Callable[Concatenate[Tensor, Rest], Tensor]:
    """The method ``function_`` of a function that has ``out=``."""

    @wraps(function)
    def method(self: Tensor, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Tensor:
        kwargs["out"] = self
        return function(self, *args, **kwargs)

    method.__doc__ = f"As `{function.__name__}`, in place."
    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    return method
