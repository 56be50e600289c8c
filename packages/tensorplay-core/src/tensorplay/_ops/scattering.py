"""Elements by their indices, int32 or int64, written: methods in place, and the same into a copy.

Indices out of range are told as in `tensorplay._ops.selection`; those of slices and of `index_put_` may be negative,
and count from the end. Of several values for one place any one stays (host: the last); sums are the same from run to
run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import _dispatch, _indexing, _shape
from ..errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from .._backend import Backend, Scalar
    from .._tensor import Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _copying(method: _Function) -> _Function:
    """The function that does to a copy what a method does in place."""
    name = method.__name__.removesuffix("_")

    @wraps(method)
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        _dispatch.check_tensor(name, input)
        return method(input.clone(), *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A copy, changed as `{method.__name__}` does."
    return cast(_Function, function)


def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Tensor | Scalar | None = None, *, value: Scalar | None = None
) -> Tensor:
    """The elements at `index` along `dim` := those of `src`, or one value.

    ``input[index[i][j]][j] = src[i][j]`` for ``dim=0`` of a matrix.

    Parameters
    ----------
    index : Tensor
        No larger than `input` in the other dimensions.
    src : Tensor or number
        Of the same dtype, and of the index's shape or larger.
    value : number
        Instead of `src`.
    """
    return _scatter("scatter_", input, dim, index, src if value is None else value, False)


def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """As `scatter_`, adding up: every repeated index counts."""
    return _scatter("scatter_add_", input, dim, index, _dispatch.tensor("scatter_add_", src), True)


def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor:
    """Adds ``alpha * source`` to the slices at `index` along `dim`; every repeated index counts.

    Parameters
    ----------
    index : Tensor
        At most one dimension.
    source : Tensor
        Of the same dtype; the shape of `input` but along `dim`, where it has a slice for each index.
    """
    backend = _dispatch.common("index_add_", input, index, source)
    factor = _dispatch.number(alpha)
    if factor is None:
        raise DTypeError(f"index_add_: got {type(alpha).__name__} for alpha, expected a number")
    if factor != 1:
        source = backend.binary("mul", source, factor).to(source.dtype)
    return _put_slices("index_add_", backend, input, dim, index, source, True)


def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The slices at `index` along `dim` := those of `source`, shaped as for `index_add_`."""
    backend = _dispatch.common("index_copy_", input, index, source)
    return _put_slices("index_copy_", backend, input, dim, index, source, False)


def index_fill_(input: Tensor, dim: int, index: Tensor, value: Scalar | Tensor) -> Tensor:
    """The slices at `index` along `dim` := one value; a tensor without dimensions serves too."""
    backend = _dispatch.common("index_fill_", input, index)
    filled = _filled("index_fill_", input, value)
    where, view = _slices("index_fill_", input, dim, index)
    backend.index_put_(view, where, filled)
    return input


def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """``input[indices] = values``, or ``+=`` where every repeated index counts.

    Parameters
    ----------
    indices : sequence of Tensor
        Masks and index tensors; None takes a whole dimension.
    values : Tensor
        Of the same dtype; broadcast to what the indices pick.
    """
    if not isinstance(indices, (tuple, list)):
        raise DTypeError(f"index_put_: got indices of {type(indices).__name__}, expected a tuple of tensors")
    backend = _dispatch.common("index_put_", input, values)
    chosen = _indexing.tensors_of(input, indices)
    backend.index_put_(input, chosen, values, _dispatch.flag("index_put_", "accumulate", accumulate))
    return input


scatter = _copying(scatter_)
scatter_add = _copying(scatter_add_)
index_add = _copying(index_add_)
index_copy = _copying(index_copy_)
index_fill = _copying(index_fill_)
index_put = _copying(index_put_)


def _scatter(
    operation: str, target: Tensor, dim: int, index: Tensor, source: Tensor | Scalar | None, accumulate: bool
) -> Tensor:
    dim = _shape.integer(operation, dim)
    backend = _dispatch.common(operation, target, index)
    if _dispatch.is_tensor(source):
        _dispatch.common(operation, target, source)
    else:
        source = backend.expand(_filled(operation, target, source), index.shape)
    backend.scatter_(target, dim, index, source, accumulate)
    return target


def _put_slices(
    operation: str, backend: Backend, target: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool
) -> Tensor:
    where, view = _slices(operation, target, dim, index)
    place = len(where) - 1
    shape = (*view.shape[:place], index.numel(), *view.shape[place + 1 :])
    if not target.ndim and not source.ndim:
        source = source.reshape(1)
    if source.shape != shape:
        raise InvalidArgumentError(f"{operation}: got a source of shape {source.shape}, expected {shape}")
    backend.index_put_(view, where, source, accumulate)
    return target


def _slices(operation: str, target: Tensor, dim: int, index: Tensor) -> tuple[list[Tensor | None], Tensor]:
    """The indices of slices, and the tensor that they are in: with a dimension, where the target has none."""
    dim = _shape.wrap_dim(operation, _shape.integer(operation, dim), target.ndim)
    if index.ndim > 1:
        raise InvalidArgumentError(f"{operation}: got an index of shape {index.shape}, expected at most one dimension")
    view = target if target.ndim else target.reshape(1)
    return [*[None] * dim, index.reshape(-1)], view


def _filled(operation: str, like: Tensor, value: object) -> Tensor:
    """A value as a tensor without dimensions beside another tensor."""
    plain = _dispatch.tensor_or_number(operation, value)
    if _dispatch.is_tensor(plain):
        if plain.ndim:
            raise InvalidArgumentError(f"{operation}: got a value of shape {plain.shape}, expected no dimensions")
        if plain._backend is like._backend:
            return plain.to(like.dtype)
        plain = plain.item()
    return like._backend.full((), plain, like.dtype, like.device)  # type: ignore[arg-type]
