"""Views of CUDA tensors: they share the storage and launch nothing, but for the reshape that must copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplay._backend import Backend
from tensorplay._dtype import DType
from tensorplay._shape import wrap_dims
from tensorplay._tensor import Tensor

from ._check import refused
from ._library import native


class Views(Backend):
    """What makes a tensor from a handle, and the view methods of `Backend`."""

    def wrap(self, impl: Any, new: Any = object.__new__) -> Tensor:
        """A tensor that owns a handle: `release` is called with it when the tensor goes."""
        tensor: Tensor = new(Tensor)
        tensor._impl = impl
        tensor._backend = self
        return tensor

    def made(self, method: str, arguments: tuple[Any, ...], function: Any, *converted: Any) -> Tensor:
        """The result of a C function that makes a tensor.

        Parameters
        ----------
        method, arguments
            The method of `Backend` and what it was given, for the explanation of a refusal.
        function, *converted
            The C function and its arguments.
        """
        try:
            impl = function(*converted)
        except (OverflowError, TypeError):
            impl = None
        return self.wrap(impl) if impl else refused(impl, method, arguments)

    def alias(self, tensor: Tensor) -> Tensor:
        return self.made("alias", (tensor,), native.tp_tensor_alias, tensor._impl)

    def view(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return self.made("view", (tensor, shape), native.tp_tensor_view, tensor._impl, len(shape), shape)

    def reshape(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return self.made("reshape", (tensor, shape), native.tp_tensor_reshape, tensor._impl, len(shape), shape)

    def transpose(self, tensor: Tensor, dim0: int, dim1: int) -> Tensor:
        return self.made("transpose", (tensor, dim0, dim1), native.tp_tensor_transpose, tensor._impl, dim0, dim1)

    def permute(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        return self.made("permute", (tensor, dims), native.tp_tensor_permute, tensor._impl, len(dims), dims)

    def expand(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return self.made("expand", (tensor, shape), native.tp_tensor_expand, tensor._impl, len(shape), shape)

    def slice(self, tensor: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
        arguments = (tensor, dim, start, stop, step)
        return self.made("slice", arguments, native.tp_tensor_slice, tensor._impl, dim, start, stop, step)

    def select(self, tensor: Tensor, dim: int, index: int) -> Tensor:
        return self.made("select", (tensor, dim, index), native.tp_tensor_select, tensor._impl, dim, index)

    def unsqueeze(self, tensor: Tensor, dim: int) -> Tensor:
        return self.made("unsqueeze", (tensor, dim), native.tp_tensor_unsqueeze, tensor._impl, dim)

    def squeeze(self, tensor: Tensor, dim: int) -> Tensor:
        return self.made("squeeze", (tensor, dim), native.tp_tensor_squeeze, tensor._impl, dim)

    def as_strided(self, tensor: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        arguments = (tensor, shape, strides, offset)
        if len(strides) != len(shape):
            refused(None, "as_strided", arguments)
        return self.made(
            "as_strided", arguments, native.tp_tensor_as_strided, tensor._impl, len(shape), shape, strides, offset
        )

    def view_dtype(self, tensor: Tensor, dtype: DType) -> Tensor:
        code = getattr(dtype, "code", None)  # C refuses none, and core then says what it got
        return self.made("view_dtype", (tensor, dtype), native.tp_tensor_view_dtype, tensor._impl, code)

    def flip(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        bits = bits_of("flip", dims, native.tp_tensor_ndim(tensor._impl))
        return self.made("flip", (tensor, dims), native.tp_tensor_flip, tensor._impl, bits)


def bits_of(op: str, dims: Sequence[int], ndim: int) -> int:
    """The dimensions as bits, which cannot tell that one is named twice: so core refuses that here."""
    bits = 0
    for dim in dims:
        place = dim + ndim if dim < 0 else dim
        if not 0 <= place < ndim or bits >> place & 1:
            return sum(1 << wrapped for wrapped in wrap_dims(op, dims, ndim))
        bits |= 1 << place
    return bits


def or_null(tensor: Tensor | None) -> Any:
    """What C takes for a tensor that may be left out."""
    return native.NULL if tensor is None else tensor._impl


def given(out: Tensor | None, made: Tensor) -> Tensor:
    """What the caller gets: `out` itself when C has written into it (`made` is another handle to it)."""
    return made if out is None else out
