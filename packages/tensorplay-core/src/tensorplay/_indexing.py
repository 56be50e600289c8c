"""Indexing, for reading and writing: integers, slices, None, Ellipsis, bools, masks and index tensors.

Integers, slices, None and Ellipsis give views, built from select, slice and unsqueeze. Then bools, masks and index
tensors pick elements of that view: unlike NumPy's, an integer beside them is no index tensor, as in torch.

An integer or bool tensor without dimensions counts as its value, which is waited for; a mask becomes index tensors,
and how many elements they have is waited for, too. Nothing else waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dispatch, _dtype, _shape
from ._ops import masks
from .errors import DTypeError, IndexTypeError, InvalidArgumentError, OutOfRangeError

if TYPE_CHECKING:
    from ._tensor import Tensor

_TAKEN = "integers, slices, None, Ellipsis, bools, and masks or int32 or int64 indices as tensors, arrays or lists"

_INDEX_DTYPES = (_dtype.int64, _dtype.int32)

# Dimensions of a view, and the mask or index tensor that picks there: a mask lies over as many as it has.
_Picks = list[tuple[int, "Tensor"]]


def get(tensor: Tensor, key: Any) -> Tensor:
    """tensor[key]: a view where nothing is picked by tensors, else a copy.

    Raises
    ------
    OutOfRangeError
        An index outside its dimension, more of them than dimensions, a mask of another shape, or index tensors that do
        not broadcast together.
    InvalidArgumentError
        A slice whose step is not positive.
    IndexTypeError
        A key of another kind.
    """
    if tensor.shape:
        # What programs write most, without the detour.
        if type(key) is slice:
            return _sliced(tensor, 0, key)
        if type(key) is int:
            return _selected(tensor, 0, key, tensor.shape)
        if _picks_rows(tensor, key):
            return tensor._backend.index(tensor, (key,))
    view, picks = _parted(tensor, key)
    if picks:
        return view._backend.index(view, _indices(view, picks))
    return view._backend.alias(view) if view is tensor else view


def put(tensor: Tensor, key: Any, value: Any) -> None:
    """tensor[key] = value: cast, and broadcast to what is picked; raises as `get` and `copy_` do."""
    if _picks_rows(tensor, key) and _is_like(tensor, value):
        tensor._backend.index_put_(tensor, (key,), value)
        return
    view, picks = _parted(tensor, key)
    plain = _dispatch.number(value)
    if plain is None:
        _dispatch.check_tensor("tensor[...] = value", value)
    elif not picks:
        view._backend.fill_(view, plain)
        return
    if not picks:
        # As in torch, leading sizes of 1 that the view does not have are dropped.
        while value.ndim > view.ndim and value.shape[0] == 1:
            value = value.select(0, 0)
        _dispatch.copy_(view, value)
        return
    backend, device = view._backend, view.device
    if plain is None and value.ndim == 0 and value.device != device and value.device.type == "cpu":
        plain = value.item()
    values = value.to(view.dtype) if plain is None else backend.full((), plain, view.dtype, device)
    _dispatch.common("tensor[...] = value", view, values)
    if len(picks) == 1 and picks[0][1].dtype is _dtype.bool and not values.ndim:
        dim, mask = picks[0]
        _check_mask(mask, view.shape, dim)
        mask = mask.reshape(*mask.shape, *(1,) * (view.ndim - dim - mask.ndim))
        backend.where(mask, values, view, view)
        return
    while values.ndim and values.shape[0] == 1:
        values = values.select(0, 0)
    backend.index_put_(view, _indices(view, picks), values)


def _picks_rows(tensor: Tensor, key: Any) -> bool:
    """Whether the key is an index tensor that the backend takes as it is."""
    if not _dispatch.is_tensor(key) or key._backend is not tensor._backend:
        return False
    return key.dtype in _INDEX_DTYPES and bool(key.shape) and bool(tensor.shape) and tensor.shape[0] > 0


def _is_like(tensor: Tensor, value: Any) -> bool:
    """Whether the value is a tensor that the backend writes as it is."""
    if not _dispatch.is_tensor(value) or value._backend is not tensor._backend:
        return False
    return value.dtype is tensor.dtype and bool(value.shape) and value.shape[0] != 1


def tensors_of(tensor: Tensor, keys: Sequence[Any]) -> list[Tensor | None]:
    """Masks, index tensors and None for whole dimensions, as the protocol has them; raises as `get` does."""
    picks: _Picks = []
    dim = 0
    for key in keys:
        if key is not None:
            part = _dispatch.tensor("index_put_", key)
            if part.dtype is not _dtype.bool and part.dtype not in _INDEX_DTYPES:
                raise IndexTypeError(f"tensor[...]: got {_kind(part)} as an index, expected {_TAKEN}")
            picks.append((dim, _beside(tensor, part)))
        dim += 1 if key is None else _width(key)
    if dim > tensor.ndim:
        raise OutOfRangeError(
            f"tensor[...]: got {dim} indices, expected at most {tensor.ndim} for shape {tensor.shape}"
        )
    if not picks:
        raise InvalidArgumentError("tensor[...]: got no indices, expected at least one tensor")
    return _indices(tensor, picks)


def _parted(tensor: Tensor, key: Any) -> tuple[Tensor, _Picks]:
    """The view that integers, slices, None and Ellipsis give, and what picks from it."""
    picks: _Picks = []
    result, dim = tensor, 0
    for part in _expanded(tensor, key if isinstance(key, tuple) else (key,)):
        if part is None:
            result = result._backend.unsqueeze(result, dim)
            dim += 1
        elif isinstance(part, slice):
            if part != slice(None):
                result = _sliced(result, dim, part)
            dim += 1
        elif type(part) is int:
            result = _selected(result, dim, part, tensor.shape)
        elif type(part) is bool:
            # A new dimension, with its one element or none.
            result = result._backend.unsqueeze(result, dim)
            picks.append((dim, result._backend.full((int(part),), 0, _dtype.int64, tensor.device)))
            dim += 1
        else:
            picks.append((dim, part))
            dim += _width(part)
    return result, picks


def _indices(view: Tensor, picks: _Picks) -> list[Tensor | None]:
    """One index tensor or None for each dimension of the view, as the protocol has them."""
    result: list[Tensor | None] = []
    for dim, tensor in picks:
        if tensor.dtype is _dtype.bool:
            _check_mask(tensor, view.shape, dim)
        result += [None] * (dim - len(result))
        result += masks.true_indices(tensor) if tensor.dtype is _dtype.bool else [tensor]
    try:
        shape = _shape.broadcast("tensor[...]", *(tensor.shape for tensor in result if tensor is not None))
    except InvalidArgumentError as error:
        # As in torch and NumPy, wrong indices of any kind are an IndexError.
        raise OutOfRangeError(str(error)) from None
    if 0 not in shape:
        for dim, index_tensor in enumerate(result):
            if index_tensor is not None and not view.shape[dim]:
                raise OutOfRangeError(f"tensor[...]: got indices into dimension {dim} of size 0 (shape {view.shape})")
    return result


def _expanded(tensor: Tensor, keys: tuple[Any, ...]) -> list[Any]:
    """The keys, checked, with the Ellipsis written out: for every dimension that the tensor has or gets."""
    parts = [_checked(tensor, part) for part in keys]
    used = sum(map(_width, parts))
    if used > tensor.ndim:
        raise OutOfRangeError(
            f"tensor[...]: got {used} indices, expected at most {tensor.ndim} for shape {tensor.shape}"
        )
    ellipses = [place for place, part in enumerate(parts) if part is Ellipsis]
    # As in torch, a second Ellipsis stands for nothing.
    for place in reversed(ellipses[1:]):
        del parts[place]
    place = ellipses[0] if ellipses else len(parts)
    parts[place : place + 1] = [slice(None)] * (tensor.ndim - used)
    return parts


def _width(part: Any) -> int:
    """How many dimensions of the tensor a key takes."""
    if part is None or part is Ellipsis or type(part) is bool:
        return 0
    return part.ndim if getattr(part, "dtype", None) is _dtype.bool else 1


def _checked(tensor: Tensor, part: Any) -> Any:
    """An integer, a bool, a slice, None or Ellipsis as it is; anything else as a tensor on the device."""
    if part is None or part is Ellipsis or type(part) is int or isinstance(part, (slice, bool)):
        return part
    if not _dispatch.is_tensor(part):
        array = _array(part)
        if array is None:
            return _integer(part)
        return tensor._backend.from_host(array, tensor.device) if array.ndim else array.item()
    if part.dtype is not _dtype.bool and part.dtype not in _INDEX_DTYPES:
        raise _no_index(part)
    if not part.ndim:
        return part.item()
    return _beside(tensor, part)


def _beside(tensor: Tensor, part: Tensor) -> Tensor:
    """An index tensor on the device of the tensor, where it may come to from the host."""
    if part._backend is not tensor._backend and part._backend.type == "cpu":
        return _dispatch.move(part, tensor._backend, tensor.device, part.dtype)
    _dispatch.common("tensor[...]", tensor, part)
    return part


def _array(part: object) -> np.ndarray[Any, Any] | None:
    """A list, a tuple, a range or an array as an array of bool or int64; None for anything else."""
    if isinstance(part, (str, bytes)) or not isinstance(part, (Sequence, np.ndarray, np.bool_)):
        return None
    try:
        array = np.asarray(part)
    except (TypeError, ValueError):
        return None  # Rows of different lengths, or what NumPy does not know.
    if array.dtype == bool:
        return array
    if array.dtype in (np.int32, np.int64) or (not array.size and isinstance(part, Sequence)):
        return array.astype(np.int64)
    return None


def _integer(part: Any) -> int:
    try:
        return index(part)
    except TypeError:
        raise _no_index(part) from None


def _no_index(part: Any) -> IndexTypeError:
    return IndexTypeError(f"tensor[...]: got {_kind(part)} as an index, expected {_TAKEN}")


def _kind(part: Any) -> str:
    shape = getattr(part, "shape", None)
    return type(part).__name__ if shape is None else f"a {part.dtype} {type(part).__name__} of shape {tuple(shape)}"


def _check_mask(mask: Tensor, shape: _shape.Shape, dim: int) -> None:
    if mask.shape != shape[dim : dim + mask.ndim]:
        raise OutOfRangeError(
            f"tensor[...]: got a mask of shape {mask.shape}, expected {shape[dim : dim + mask.ndim]}, "
            f"as dimensions {dim} to {dim + mask.ndim - 1} have"
        )


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
