"""Where a mask is true. How many places that are has to be known on the host, so these functions wait for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from .. import _dispatch, _dtype, _shape
from ..errors import DTypeError, InvalidArgumentError
from .joining import stack

if TYPE_CHECKING:
    from .._tensor import Tensor


def true_places(mask: Tensor) -> Tensor:
    """The places in C order at which a bool mask is true, as a vector of int64."""
    backend, device, numel = mask._backend, mask.device, mask.numel()
    if not numel:
        return backend.empty((0,), _dtype.int64, device)
    flat = backend.reshape(mask, (numel,))
    counts = backend.scan("cumsum", flat, 0)
    total = int(backend.select(counts, 0, -1))
    # The n-th true place goes to n, and all the others to 0.
    result = backend.empty((total + 1,), _dtype.int64, device)
    backend.scatter_(result, 0, backend.binary("mul", counts, flat), backend.arange(0, 1, numel, _dtype.int64, device))
    return backend.slice(result, 0, 1, total + 1, 1)


def true_indices(mask: Tensor) -> list[Tensor]:
    """The same places as one vector of indices for each dimension."""
    places, shape = true_places(mask), mask.shape
    steps = _shape.contiguous_strides(shape)
    indices = []
    for dim, (size, step) in enumerate(zip(shape, steps, strict=True)):
        index = places if step == 1 else places._backend.binary("floor_divide", places, step)
        indices.append(index if dim == 0 else index._backend.binary("remainder", index, max(size, 1)))
    return indices


@overload
def nonzero(input: Tensor) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False]) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of the elements that are not 0, in C order, int64.

    Parameters
    ----------
    as_tuple : bool
        True: a vector for each dimension, which serve as an index together; False: a matrix with a row for each
        element.
    """
    _dispatch.check_tensor("nonzero", input)
    mask = input.bool()
    if _dispatch.flag("nonzero", "as_tuple", as_tuple):
        return tuple(true_indices(mask if mask.ndim else mask.reshape(1)))
    return _rows(mask)


def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not 0, a row for each, int64."""
    _dispatch.check_tensor("argwhere", input)
    return _rows(input.bool())


def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at which a bool mask is true, as a vector; both are broadcast together."""
    backend = _dispatch.common("masked_select", input, mask)
    shape = _check_mask("masked_select", input, mask)
    places = true_places(backend.expand(mask, shape))
    flat = backend.expand(input, shape).reshape(-1)
    return _dispatch.into("masked_select", backend.index_select(flat, 0, places), out)


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Elements at which a bool mask is true := the first elements of `source`, in C order."""
    backend = _dispatch.common("masked_scatter_", self, mask, source)
    if source.dtype is not self.dtype:
        raise DTypeError(f"masked_scatter_: got a source of {source.dtype.name}, expected {self.dtype.name}")
    if _check_mask("masked_scatter_", self, mask) != self.shape:
        raise InvalidArgumentError(
            f"masked_scatter_: got a mask of shape {mask.shape}, expected one that broadcasts to {self.shape}"
        )
    indices = true_indices(backend.expand(mask, self.shape))
    if not indices:
        return _scatter_one(self, mask, source)
    count = indices[0].shape[0]
    if source.numel() < count:
        raise InvalidArgumentError(f"masked_scatter_: got {source.numel()} elements in source, expected {count}")
    values = backend.reshape(source, (-1,) if source.numel() else (0,))
    backend.index_put_(self, indices, backend.slice(values, 0, 0, count, 1))
    return self


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """As `masked_scatter_`, into a copy that has the shape of both together."""
    backend = _dispatch.common("masked_scatter", input, mask, source)
    shape = _shape.broadcast("masked_scatter", input.shape, mask.shape)
    return masked_scatter_(backend.expand(input, shape).clone(), mask, source)


def _scatter_one(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The same for a tensor without dimensions, which has no indices."""
    masked_scatter_(self.reshape(1), mask.reshape(1), source)
    return self


def _rows(mask: Tensor) -> Tensor:
    if mask.ndim:
        return stack(true_indices(mask), 1)
    return mask._backend.empty((true_places(mask).shape[0], 0), _dtype.int64, mask.device)


def _check_mask(operation: str, input: Tensor, mask: Tensor) -> _shape.Shape:
    if mask.dtype is not _dtype.bool:
        raise DTypeError(f"{operation}: got a mask of {mask.dtype.name}, expected bool")
    return _shape.broadcast(operation, input.shape, mask.shape)
