"""Views of arrays: they share the storage; a reshape that must copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _operands
from .._backend import Backend
from .._dtype import DType
from .._tensor import Tensor
from . import arrays
from .arrays import Array


class Views(Backend):
    """What makes a tensor from an array, and the view methods of `Backend`."""

    def wrap(self, array: Array) -> Tensor:
        """A tensor over the elements of an array."""
        tensor: Tensor = object.__new__(Tensor)
        tensor._backend = self
        tensor._impl = array
        return tensor

    def finish(self, values: Array, spec: _operands.Spec, out: Tensor | None = None) -> Tensor:
        """A contiguous tensor with the result's dtype, or `out` with the result written into it."""
        # Through the result's own dtype, as a device rounds: float32 to half, then to the dtype of out.
        result = arrays.cast(np.asarray(values), spec.dtype.numpy)
        if out is None:
            return self.wrap(arrays.contiguous(result))
        out._impl[...] = arrays.cast(result, out._impl.dtype)
        return out

    def alias(self, tensor: Tensor) -> Tensor:
        return self.wrap(tensor._impl)

    def view(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return self.wrap(arrays.strided(tensor._impl, *_operands.view(tensor, shape)))

    def reshape(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return self.wrap(tensor._impl.reshape(_operands.reshape(tensor, shape)))

    def transpose(self, tensor: Tensor, dim0: int, dim1: int) -> Tensor:
        dim0, dim1 = _operands.transpose(tensor, dim0, dim1)
        return self.wrap(tensor._impl.swapaxes(dim0, dim1) if tensor._impl.ndim else tensor._impl)

    def permute(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        return self.wrap(tensor._impl.transpose(_operands.permute(tensor, dims)))

    def expand(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        array = tensor._impl
        shape = _operands.expand(tensor, shape)
        lead = len(shape) - array.ndim
        old = zip(array.shape, self.strides(array), strict=True)
        strides = [0] * lead + [
            0 if here == 1 and size != 1 else stride for (here, stride), size in zip(old, shape[lead:], strict=True)
        ]
        return self.wrap(arrays.strided(array, shape, strides))

    def slice(self, tensor: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
        dim, _ = _operands.slice(tensor, dim, start, stop, step)
        return self.wrap(tensor._impl[(slice(None),) * dim + (slice(start, stop, step),)])

    def select(self, tensor: Tensor, dim: int, index: int) -> Tensor:
        dim, index = _operands.select(tensor, dim, index)
        # The Ellipsis makes NumPy return a view where it would return a scalar.
        return self.wrap(tensor._impl[(slice(None),) * dim + (index, ...)])

    def unsqueeze(self, tensor: Tensor, dim: int) -> Tensor:
        return self.wrap(np.expand_dims(tensor._impl, _operands.unsqueeze(tensor, dim)))

    def squeeze(self, tensor: Tensor, dim: int) -> Tensor:
        array = tensor._impl
        dim = _operands.squeeze(tensor, dim)
        return self.wrap(array.squeeze(dim) if array.ndim and array.shape[dim] == 1 else array)

    def as_strided(self, tensor: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        _operands.as_strided(tensor, shape, strides, offset)
        return self.wrap(arrays.from_storage(tensor._impl, shape, strides, offset))

    def view_dtype(self, tensor: Tensor, dtype: DType) -> Tensor:
        _operands.view_dtype(tensor, dtype)
        return self.wrap(tensor._impl.view(dtype.numpy))

    def flip(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        wrapped = _operands.flip(tensor, dims)
        # np.flip makes a number of an array without dimensions.
        return self.wrap((np.flip(tensor._impl, wrapped) if wrapped else tensor._impl).copy(order="C"))
