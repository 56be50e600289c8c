"""The host backend. An impl is a NumPy array with strides of 0 or more, and its base is the storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _dtype, _operands, _plugins, _shape
from .._backend import Scalar
from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from ..errors import HostMemoryError
from . import arrays
from .arrays import Array
from .elementwise import Elementwise
from .exchange import Exchange
from .indexing import Indexing
from .products import Products
from .random import Random
from .reductions import Reductions
from .room import telling


# All methods that make arrays, and the views that may have more elements than the memory that they see.
@telling(
    "arange", "arg_reduce", "argsort", "as_strided", "binary", "contiguous", "copy_", "copy_from_host_", "embedding",
    "empty", "expand", "flip", "from_host", "full", "gather", "index", "index_put_", "index_select", "layer_norm",
    "linear", "matmul", "normal_", "random_bits_", "reduce", "reshape", "scan", "scatter_", "softmax", "to", "unary",
    "uniform_", "where",
)  # fmt: skip
class HostBackend(Elementwise, Reductions, Indexing, Products, Random, Exchange):
    """Keeper of the tensors on the host."""

    type = "cpu"

    # -- devices ------------------------------------------------------------------------------------

    def is_available(self) -> bool:
        return True

    def unavailable_reason(self) -> str | None:
        return None

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def set_device(self, index: int) -> None:
        if index > 0:
            _operands.check_device("set_device", Device("cpu", index))

    def synchronize(self, index: int | None) -> None:
        """Nothing: host work is done when its call returns."""

    # -- description of an impl ----------------------------------------------------------------------

    def release(self, impl: Any) -> None:
        """Nothing: the array goes with its last reference."""

    def shape(self, impl: Any) -> tuple[int, ...]:
        shape: tuple[int, ...] = impl.shape
        return shape

    def strides(self, impl: Any) -> tuple[int, ...]:
        # NumPy keeps arbitrary strides where no element is reached by them.
        if not impl.size:
            return _shape.contiguous_strides(impl.shape)
        return tuple(stride // impl.itemsize for stride in impl.strides)

    def storage_offset(self, impl: Any) -> int:
        return (arrays.address(impl) - arrays.address(arrays.storage(impl))) // int(impl.itemsize)

    def dtype(self, impl: Any) -> DType:
        return _dtype.from_numpy("dtype", impl.dtype)

    def device(self, impl: Any) -> Device:
        return _plugins.HOST

    def data_ptr(self, impl: Any) -> int:
        return arrays.address(impl) if impl.size else 0

    def storage_id(self, impl: Any) -> int:
        return arrays.address(arrays.storage(impl))

    def storage_nbytes(self, impl: Any) -> int:
        return arrays.extent(arrays.storage(impl))

    def is_contiguous(self, impl: Any) -> bool:
        return bool(impl.flags.c_contiguous)

    # -- creation ------------------------------------------------------------------------------------

    def empty(self, shape: Sequence[int], dtype: DType, device: Device) -> Tensor:
        return self.wrap(_allocated("empty", _operands.empty(shape, dtype, device)))

    def full(self, shape: Sequence[int], value: Scalar, dtype: DType, device: Device) -> Tensor:
        array = _allocated("full", _operands.full(shape, value, dtype, device))
        array[...] = arrays.scalar(value, dtype.numpy)
        return self.wrap(array)

    def arange(self, start: Scalar, step: Scalar, numel: int, dtype: DType, device: Device) -> Tensor:
        array = _allocated("arange", _operands.arange(start, step, numel, dtype, device))
        exact = np.dtype(np.float64 if isinstance(start, float) or isinstance(step, float) else np.int64)
        steps = np.arange(numel, dtype=exact) * arrays.scalar(step, exact)
        array[...] = arrays.cast(steps + arrays.scalar(start, exact), dtype.numpy)
        return self.wrap(array)

    # -- to and from the host ------------------------------------------------------------------------

    def from_host(self, array: Array, device: Device, non_blocking: bool = False) -> Tensor:
        _operands.from_host(array, device)
        # What no tensor can describe is copied: elements that may not be written, or strides that are not
        # whole elements forwards.
        steps = (*array.strides, *arrays.storage(array).strides)
        shared = array.flags.writeable and all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
        return self.wrap(array if shared and min(steps, default=0) >= 0 else np.array(array, order="C"))

    def to_host(self, tensor: Tensor, non_blocking: bool = False) -> Array:
        array: Array = tensor._impl
        return array

    def copy_from_host_(self, target: Tensor, array: Array, non_blocking: bool = False) -> None:
        _operands.copy_from_host_(target, array)
        _assign(target._impl, array)

    # -- copies on the backend -----------------------------------------------------------------------

    def to(self, tensor: Tensor, dtype: DType, device: Device) -> Tensor:
        _operands.to(tensor, dtype, device)
        array = arrays.contiguous(arrays.cast(tensor._impl, dtype.numpy))
        return self.wrap(array.copy() if np.may_share_memory(array, tensor._impl) else array)

    def copy_(self, target: Tensor, source: Tensor) -> None:
        _operands.copy_(target, source)
        _assign(target._impl, source._impl)

    def fill_(self, target: Tensor, value: Scalar) -> None:
        _operands.fill_(target, value)
        target._impl[...] = arrays.scalar(value, target._impl.dtype)

    def contiguous(self, tensor: Tensor) -> Tensor:
        _operands.contiguous(tensor)
        return self.wrap(arrays.contiguous(tensor._impl))


def _allocated(operation: str, spec: _operands.Spec) -> Array:
    try:
        return np.empty(spec.shape, spec.dtype.numpy)
    except (MemoryError, ValueError) as error:
        nbytes = int(np.prod(spec.shape, dtype=object)) * spec.dtype.itemsize
        raise HostMemoryError(f"{operation}: the host has no room for {nbytes} bytes (shape {spec.shape})") from error


def _assign(target: Array, source: Array) -> None:
    # NumPy copies an overlapping source first.
    target[...] = arrays.cast(source, target.dtype)


backend = HostBackend()
