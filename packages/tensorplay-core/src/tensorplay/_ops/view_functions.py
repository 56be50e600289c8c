"""Views as functions. A method knows that it has a tensor; a function is told, and looks first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import _dispatch, _shape
from . import splitting, views

if TYPE_CHECKING:
    from .._tensor import Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _function(method: _Function) -> _Function:
    @wraps(method)
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        _dispatch.check_tensor(method.__name__, input)
        return method(input, *args, **kwargs)

    return cast(_Function, function)


adjoint = _function(views.adjoint)
as_strided = _function(views.as_strided)
broadcast_to = _function(views.broadcast_to)
chunk = _function(splitting.chunk)
diagonal = _function(views.diagonal)
flatten = _function(views.flatten)
movedim = moveaxis = _function(views.movedim)
narrow = _function(views.narrow)
permute = _function(views.permute)
ravel = _function(views.ravel)
reshape = _function(views.reshape)
select = _function(views.select)
squeeze = _function(views.squeeze)
swapaxes = _function(views.swapaxes)
t = _function(views.t)
tensor_split = _function(splitting.tensor_split)
transpose = swapdims = _function(views.transpose)
unbind = _function(splitting.unbind)
unflatten = _function(views.unflatten)
unsqueeze = _function(views.unsqueeze)


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size along a dimension, the last one smaller where it must be; or pieces of the given sizes."""
    _dispatch.check_tensor("split", tensor)
    return splitting.split(tensor, split_size_or_sections, dim)


def numel(input: Tensor) -> int:
    """Number of elements."""
    _dispatch.check_tensor("numel", input)
    return input.numel()


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of one shape, the one that all shapes broadcast to."""
    _dispatch.check_tensor("broadcast_tensors", *tensors)
    shape = _shape.broadcast("broadcast_tensors", *(tensor.shape for tensor in tensors))
    return tuple(tensor._backend.expand(tensor, shape) for tensor in tensors)


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Views with at least one dimension: of one tensor, or a tuple for several."""
    return _each("atleast_1d", lambda x: x if x.ndim else x.unsqueeze(0), tensors)


def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Views with at least two dimensions, new ones in front: of one tensor, or a tuple for several."""
    return _each("atleast_2d", lambda x: x if x.ndim > 1 else x.reshape(1, -1), tensors)


def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Views with at least three dimensions: (n) as (1, n, 1), (n, m) as (n, m, 1). As the others, of one or several."""

    def three(x: Tensor) -> Tensor:
        return x if x.ndim > 2 else x.unsqueeze(-1) if x.ndim == 2 else x.reshape(1, -1, 1)

    return _each("atleast_3d", three, tensors)


def _each(
    operation: str, change: Callable[[Tensor], Tensor], given: tuple[Tensor | Sequence[Tensor], ...]
) -> Tensor | tuple[Tensor, ...]:
    if len(given) == 1 and not isinstance(given[0], (tuple, list)):
        return change(_dispatch.tensor(operation, given[0]))
    several = given[0] if len(given) == 1 else given
    return tuple(change(_dispatch.tensor(operation, one)) for one in several)
