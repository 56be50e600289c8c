"""The host backend. An impl is a NumPy array with strides of 0 or more, and its base is the storage."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _dtype, _operands, _plugins, _shape
from .._backend import Backend, Scalar
from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from ..errors import HostMemoryError, InvalidArgumentError
from . import arrays, elementwise, philox, products, reductions
from .arrays import Array

_DEFAULT_SEED = 67280421310721


def wrap(array: Array) -> Tensor:
    """A tensor over the elements of an array."""
    tensor = object.__new__(Tensor)
    tensor._backend = backend
    tensor._impl = array
    return tensor


def _finish(values: Array, spec: _operands.Spec, out: Tensor | None) -> Tensor:
    """The result with its dtype, or written into `out`."""
    if out is None:
        return wrap(arrays.cast(np.asarray(values), spec.dtype.numpy))
    # Through the result's own dtype, as a device rounds: float32 to half, then to the dtype of out.
    out._impl[...] = arrays.cast(arrays.cast(np.asarray(values), spec.dtype.numpy), out._impl.dtype)
    return out


class HostBackend(Backend):
    """Keeper of the tensors on the host."""

    type = "cpu"

    def __init__(self) -> None:
        self._generator = (_DEFAULT_SEED, 0)
        self._generator_lock = threading.Lock()

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
        return wrap(_allocated("empty", _operands.empty(shape, dtype, device)))

    def full(self, shape: Sequence[int], value: Scalar, dtype: DType, device: Device) -> Tensor:
        array = _allocated("full", _operands.full(shape, value, dtype, device))
        array[...] = arrays.scalar(value, dtype.numpy)
        return wrap(array)

    def arange(self, start: Scalar, step: Scalar, numel: int, dtype: DType, device: Device) -> Tensor:
        array = _allocated("arange", _operands.arange(start, step, numel, dtype, device))
        exact = np.float64 if isinstance(start, float) or isinstance(step, float) else np.int64
        array[...] = arrays.cast(np.arange(numel, dtype=exact) * exact(step) + exact(start), dtype.numpy)
        return wrap(array)

    # -- to and from the host ------------------------------------------------------------------------

    def from_host(self, array: Array, device: Device) -> Tensor:
        _operands.from_host(array, device)
        # What no tensor can describe is copied: elements that may not be written, or strides that are not
        # whole elements forwards.
        steps = (*array.strides, *arrays.storage(array).strides)
        shared = array.flags.writeable and all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
        return wrap(array if shared and min(steps, default=0) >= 0 else np.array(array, order="C"))

    def to_host(self, tensor: Tensor) -> Array:
        array: Array = tensor._impl
        return array

    def copy_from_host_(self, target: Tensor, array: Array) -> None:
        _operands.copy_from_host_(target, array)
        _assign(target._impl, array)

    # -- copies on the backend -----------------------------------------------------------------------

    def to(self, tensor: Tensor, dtype: DType, device: Device) -> Tensor:
        _operands.to(tensor, dtype, device)
        with np.errstate(all="ignore"):
            return wrap(tensor._impl.astype(dtype.numpy, order="C", copy=True))

    def copy_(self, target: Tensor, source: Tensor) -> None:
        _operands.copy_(target, source)
        _assign(target._impl, source._impl)

    def fill_(self, target: Tensor, value: Scalar) -> None:
        _operands.fill_(target, value)
        target._impl[...] = arrays.scalar(value, target._impl.dtype)

    def contiguous(self, tensor: Tensor) -> Tensor:
        # np.ascontiguousarray would give an array without dimensions one dimension.
        return wrap(tensor._impl if tensor._impl.flags.c_contiguous else tensor._impl.copy(order="C"))

    # -- views ---------------------------------------------------------------------------------------

    def alias(self, tensor: Tensor) -> Tensor:
        return wrap(tensor._impl)

    def view(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return wrap(arrays.strided(tensor._impl, *_operands.view(tensor, shape)))

    def reshape(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return wrap(tensor._impl.reshape(_operands.reshape(tensor, shape)))

    def transpose(self, tensor: Tensor, dim0: int, dim1: int) -> Tensor:
        dim0, dim1 = _operands.transpose(tensor, dim0, dim1)
        return wrap(tensor._impl.swapaxes(dim0, dim1) if tensor._impl.ndim else tensor._impl)

    def permute(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        return wrap(tensor._impl.transpose(_operands.permute(tensor, dims)))

    def expand(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        array = tensor._impl
        shape = _operands.expand(tensor, shape)
        lead = len(shape) - array.ndim
        old = zip(array.shape, self.strides(array), strict=True)
        strides = [0] * lead + [
            0 if here == 1 and size != 1 else stride for (here, stride), size in zip(old, shape[lead:], strict=True)
        ]
        return wrap(arrays.strided(array, shape, strides))

    def slice(self, tensor: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
        dim, _ = _operands.slice(tensor, dim, start, stop, step)
        return wrap(tensor._impl[(slice(None),) * dim + (slice(start, stop, step),)])

    def select(self, tensor: Tensor, dim: int, index: int) -> Tensor:
        dim, index = _operands.select(tensor, dim, index)
        # The Ellipsis makes NumPy return a view where it would return a scalar.
        return wrap(tensor._impl[(slice(None),) * dim + (index, ...)])

    def unsqueeze(self, tensor: Tensor, dim: int) -> Tensor:
        return wrap(np.expand_dims(tensor._impl, _operands.unsqueeze(tensor, dim)))

    def squeeze(self, tensor: Tensor, dim: int) -> Tensor:
        array = tensor._impl
        dim = _operands.squeeze(tensor, dim)
        return wrap(array.squeeze(dim) if array.ndim and array.shape[dim] == 1 else array)

    def as_strided(self, tensor: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        _operands.as_strided(tensor, shape, strides, offset)
        return wrap(arrays.from_storage(tensor._impl, shape, strides, offset))

    # -- operations ----------------------------------------------------------------------------------

    def unary(self, op: str, a: Tensor, out: Tensor | None = None) -> Tensor:
        spec = _operands.unary(op, a, out)
        with np.errstate(all="ignore"):
            return _finish(elementwise.UNARY[op](arrays.widened(a._impl, spec.compute)), spec, out)

    def binary(self, op: str, a: Tensor | Scalar, b: Tensor | Scalar, out: Tensor | None = None) -> Tensor:
        spec = _operands.binary(op, a, b, out)
        working = arrays.working(spec.compute)
        left, right = (
            arrays.widened(x._impl, spec.compute) if isinstance(x, Tensor) else arrays.scalar(x, working)
            for x in (a, b)
        )
        if spec.dtype is _dtype.bool:
            # Where the result is bool, a number counts as an element of the tensor's dtype.
            left, right = arrays.widened(left, spec.compute), arrays.widened(right, spec.compute)
        with np.errstate(all="ignore"):
            return _finish(elementwise.BINARY[op](left, right), spec, out)

    def where(self, condition: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        spec = _operands.where(condition, a, b, out)
        left, right = (arrays.cast(x._impl, spec.dtype.numpy) for x in (a, b))
        return _finish(np.where(condition._impl, left, right), spec, out)

    def reduce(
        self,
        op: str,
        a: Tensor,
        dims: Sequence[int] | None,
        keepdim: bool = False,
        dtype: DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        spec = _operands.reduce(op, a, dims, keepdim, dtype, out)
        axes = _shape.wrap_dims(op, dims, a.ndim)
        return _finish(reductions.reduce(op, a._impl, axes, keepdim, spec.dtype), spec, out)

    def softmax(self, a: Tensor, dim: int, log: bool = False) -> Tensor:
        spec = _operands.softmax(a, dim, log)
        return _finish(reductions.softmax(arrays.widened(a._impl, spec.compute), dim, log), spec, None)

    def layer_norm(
        self, a: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        spec = _operands.layer_norm(a, normalized_shape, weight, bias, eps)
        x, w, b = (None if t is None else arrays.widened(t._impl, spec.compute) for t in (a, weight, bias))
        assert x is not None
        return _finish(reductions.layer_norm(x, len(normalized_shape), w, b, eps), spec, None)

    def index_select(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        spec = _operands.index_select(a, dim, index)
        array = a._impl if a.ndim else a._impl.reshape(1)
        size = array.shape[dim]
        what = f"a dimension of size {size}"
        rows = products.checked_index("index_select", index._impl.reshape(-1), size, what)
        return _finish(np.take(array, rows, axis=dim).reshape(spec.shape), spec, None)

    def embedding(self, weight: Tensor, index: Tensor) -> Tensor:
        spec = _operands.embedding(weight, index)
        size = weight.shape[0]
        rows = products.checked_index("embedding", index._impl, size, f"{size} rows")
        return _finish(np.take(weight._impl, rows, axis=0), spec, None)

    def matmul(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        spec = _operands.matmul(a, b, out)
        return _finish(products.matmul(a._impl, b._impl, spec.compute), spec, out)

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        spec = _operands.linear(a, weight, bias)
        terms = None if bias is None else bias._impl
        return _finish(products.linear(a._impl, weight._impl, terms, spec.compute), spec, None)

    # -- random numbers ------------------------------------------------------------------------------

    def uniform_(self, tensor: Tensor, low: float, high: float) -> None:
        _operands.uniform_(tensor, low, high)
        numel = tensor.numel()
        bits = philox.words(*self._draw(numel), numel)
        tensor._impl[...] = philox.uniform(bits, low, high, tensor._impl.dtype).reshape(tensor.shape)

    def normal_(self, tensor: Tensor, mean: float, std: float) -> None:
        _operands.normal_(tensor, mean, std)
        numel = tensor.numel()
        # Elements come in pairs; an odd tensor drops the second of its last pair.
        bits = philox.words(*self._draw(numel), numel + numel % 2)
        tensor._impl[...] = philox.normal(bits, mean, std, tensor._impl.dtype)[:numel].reshape(tensor.shape)

    def seed(self, index: int, seed: int) -> None:
        self.set_rng_state(index, seed, 0)

    def get_rng_state(self, index: int) -> tuple[int, int]:
        return self._generator

    def set_rng_state(self, index: int, seed: int, offset: int) -> None:
        if offset % 4:
            raise InvalidArgumentError(f"set_rng_state: got offset {offset}, expected a multiple of 4")
        self._generator = (seed % 2**64, offset)

    def _draw(self, numel: int) -> tuple[int, int]:
        """The state for a fill; the offset moves on."""
        with self._generator_lock:
            seed, offset = self._generator
            self._generator = (seed, (offset + -(-numel // 4) * 4) % 2**64)
        return seed, offset


def _allocated(operation: str, spec: _operands.Spec) -> Array:
    try:
        return np.empty(spec.shape, spec.dtype.numpy)
    except (MemoryError, ValueError) as error:
        # NumPy refuses sizes near 2**63 as ValueError.
        nbytes = int(np.prod(spec.shape, dtype=object)) * spec.dtype.itemsize
        raise HostMemoryError(f"{operation}: the host has no room for {nbytes} bytes (shape {spec.shape})") from error


def _assign(target: Array, source: Array) -> None:
    # NumPy copies an overlapping source first, but casts between ml_dtypes and bool only by astype.
    target[...] = arrays.cast(source, target.dtype)


backend = HostBackend()
