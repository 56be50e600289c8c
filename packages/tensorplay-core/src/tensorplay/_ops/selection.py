"""Elements by their indices, int32 or int64, into a new tensor.

An index outside the dimension is an OutOfRangeError: at once on the host, at the next call that waits for the device
elsewhere. Negative indices are refused, but by `take`, and by `take_along_dim` with a dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _operands, _shape
from ..errors import InvalidArgumentError
from .choice import where

if TYPE_CHECKING:
    from .._backend import Backend
    from .._tensor import Tensor


def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of `input` along `dim` at `index`, which has at most one dimension."""
    dim = _shape.integer("index_select", dim)
    backend = _dispatch.common("index_select", input, index, optional=(out,))
    if out is not None:
        # Now, and not when an index may have been found to be wrong: a device tells that later.
        _operands.into("index_select", _operands.index_select(input, dim, index), out)
    return _dispatch.into("index_select", backend.index_select(input, dim, index), out)


def gather(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at `index` along `dim`, at the index's own place in all other dimensions: its shape.

    ``result[i][j] = input[index[i][j]][j]`` for ``dim=0`` of a matrix. In the other dimensions the index may be
    smaller than `input`.

    Examples
    --------
    >>> x = tp.tensor([[1, 2, 3], [4, 5, 6]])
    >>> tp.gather(x, 1, tp.tensor([[2, 0], [1, 1]]))
    tensor([[3, 1],
            [5, 5]])
    """
    dim = _shape.integer("gather", dim)
    return _gathered("gather", _dispatch.common("gather", input, index, optional=(out,)), input, dim, index, out)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `gather`, where both are broadcast together in the other dimensions; without `dim`, both as vectors.

    As in torch, negative indices along a dimension count from its end.
    """
    backend = _dispatch.common("take_along_dim", input, indices, optional=(out,))
    if dim is None:
        flat, places = (backend.reshape(operand, (operand.numel(),)) for operand in (input, indices))
        return _gathered("take_along_dim", backend, flat, 0, places, out)
    if input.ndim != indices.ndim:
        raise InvalidArgumentError(
            f"take_along_dim: got shapes {input.shape} and {indices.shape}, expected equally many dimensions"
        )
    dim = _shape.sized_dim("take_along_dim", _shape.integer("take_along_dim", dim), input.ndim)
    around = [(*shape[:dim], 1, *shape[dim + 1 :]) for shape in (input.shape, indices.shape)]
    shared = _shape.broadcast("take_along_dim", *around)
    whole, index = (
        backend.expand(operand, shared[:dim] + operand.shape[dim : dim + 1] + shared[dim + 1 :])
        for operand in (input, indices)
    )
    index = where(index < 0, index + input.shape[dim], index)
    return _gathered("take_along_dim", backend, whole, dim, index, out)


def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at places in C order, in the shape of the index; negative ones count from the end."""
    backend = _dispatch.common("take", input, index)
    flat = backend.reshape(input, (input.numel(),))
    return backend.index(flat, [index])


def _gathered(operation: str, backend: Backend, a: Tensor, dim: int, index: Tensor, out: Tensor | None) -> Tensor:
    if out is not None:
        # As in `index_select`.
        _operands.into(operation, _operands.gather(a, dim, index), out)
    return _dispatch.into(operation, backend.gather(a, dim, index), out)
