"""Basic indexing, for reading and writing: integers, slices, None and Ellipsis.

Everything is a view, built from select, slice and unsqueeze. A tensor without dimensions and of an
integer dtype counts as an integer, which waits for its value. Masks and index tensors with dimensions
are refused with a sentence.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from . import _dispatch, _shape
from .errors import DTypeError, InvalidArgumentError, OutOfRangeError

if TYPE_CHECKING:
    from ._tensor import Tensor

_TAKEN = "integers, slices, None and Ellipsis"


def get(tensor: Tensor, key: Any) -> Tensor:
    """tensor[key]: a view.

    Raises
    ------
    OutOfRangeError
        An index outside its dimension, or more of them than dimensions.
    InvalidArgumentError
        A slice whose step is not positive.
    DTypeError
        A key of another kind.
    """
    if tensor.shape:
        # What programs write most, without the detour.
        if type(key) is slice:
            return _sliced(tensor, 0, key)
        if type(key) is int:
            return _selected(tensor, 0, key, tensor.shape)
    keys = _expanded(tensor, key if isinstance(key, tuple) else (key,))
    result = tensor._backend.alias(tensor) if all(part == slice(None) for part in keys) else tensor
    dim = 0
    for part in keys:
        if part is None:
            result = result._backend.unsqueeze(result, dim)
            dim += 1
        elif isinstance(part, slice):
            if part != slice(None):
                result = _sliced(result, dim, part)
            dim += 1
        else:
            result = _selected(result, dim, part, tensor.shape)
    return result


def put(tensor: Tensor, key: Any, value: Any) -> None:
    """tensor[key] = value: cast, and broadcast to the view; raises as `get` and `copy_` do."""
    view = get(tensor, key)
    plain = _dispatch.number(value)
    if plain is not None:
        view._backend.fill_(view, plain)
        return
    _dispatch.check_tensor("tensor[...] = value", value)
    source = value
    # As in torch, leading sizes of 1 that the view does not have are dropped.
    while source.ndim > view.ndim and source.shape[0] == 1:
        source = source.select(0, 0)
    _dispatch.copy_(view, source)


def _expanded(tensor: Tensor, keys: tuple[Any, ...]) -> list[Any]:
    """The keys, checked, with the Ellipsis written out: one for each dimension that the tensor has or gets."""
    parts = [_checked(part) for part in keys]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > tensor.ndim:
        raise OutOfRangeError(
            f"tensor[...]: got {used} indices, expected at most {tensor.ndim} for shape {tensor.shape}"
        )
    ellipses = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise OutOfRangeError(f"tensor[...]: got {len(ellipses)} Ellipsis, expected at most one")
    place = ellipses[0] if ellipses else len(parts)
    parts[place : place + 1] = [slice(None)] * (tensor.ndim - used)
    return parts


def _checked(part: Any) -> Any:
    """An integer, a slice, None or Ellipsis, as it is."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, bool) or getattr(part, "shape", ()) != ():
        raise DTypeError(f"tensor[...]: got {_kind(part)} as an index, expected {_TAKEN}")
    try:
        return index(part)
    except TypeError:
        raise DTypeError(f"tensor[...]: got {_kind(part)} as an index, expected {_TAKEN}") from None


def _kind(part: Any) -> str:
    shape = getattr(part, "shape", None)
    return type(part).__name__ if shape is None else f"a {part.dtype} {type(part).__name__} of shape {tuple(shape)}"


def _sliced(tensor: Tensor, dim: int, part: slice) -> Tensor:
    try:
        start, stop, step = part.indices(tensor.shape[dim])
    except TypeError:
        raise DTypeError(f"tensor[...]: got {part}, expected integers in a slice") from None
    except ValueError:
        step = 0
    if step <= 0:
        raise InvalidArgumentError(f"tensor[...]: got {part}, expected a step of 1 or more")
    return tensor._backend.slice(tensor, dim, start, max(start, stop), step)


def _selected(tensor: Tensor, dim: int, part: int, shape: _shape.Shape) -> Tensor:
    size = tensor.shape[dim]
    if not -size <= part < size:
        raise OutOfRangeError(f"tensor[...]: got index {part}, expected {-size} to {size - 1} (shape {shape})")
    return tensor._backend.select(tensor, dim, part)
