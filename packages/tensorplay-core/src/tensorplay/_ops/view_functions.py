"""Views as functions. A method knows that it has a tensor; a function is told, and looks first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from .. import _dispatch
from . import views

if TYPE_CHECKING:
    from .._tensor import Tensor

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _function(method: Callable[Concatenate[Tensor, _P], _R]) -> Callable[Concatenate[Tensor, _P], _R]:
    @wraps(method)
    def function(input: Tensor, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        _dispatch.check_tensor(method.__name__, input)
        return method(input, *args, **kwargs)

    return function


chunk = _function(views.chunk)
flatten = _function(views.flatten)
narrow = _function(views.narrow)
permute = _function(views.permute)
reshape = _function(views.reshape)
select = _function(views.select)
split = _function(views.split)
squeeze = _function(views.squeeze)
transpose = _function(views.transpose)
unsqueeze = _function(views.unsqueeze)
