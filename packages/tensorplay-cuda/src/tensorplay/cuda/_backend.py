"""The CUDA backend: what core calls for tensors on CUDA devices.

It checks nothing that C checks. A method is one call of C; a refusal becomes an exception in `_check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np

from tensorplay import _dtype, _operands
from tensorplay._backend import Scalar
from tensorplay._device import Device
from tensorplay._dtype import DType
from tensorplay._fault import Fault
from tensorplay._tensor import Tensor

from . import _blas, _current, graphs, memory
from ._check import check, failed, refused
from ._exchange import Exchange
from ._generators import Generators
from ._library import native
from ._operations import Operations
from ._pinned import Pinned
from .device import (
    CURRENT,
    current_device,
    device_count,
    is_available,
    set_device,
    synchronize,
    unavailable_reason,
)
from .streams import Stream, pointer_of

_new = object.__new__


class CudaBackend(Operations, Exchange, Generators, Pinned):
    """Keeper of the tensors on CUDA devices. An impl is a ``tp_tensor_t *``."""

    type = "cuda"

    # -- devices ------------------------------------------------------------------------------------

    def is_available(self) -> bool:
        return is_available()

    def unavailable_reason(self) -> str | None:
        return unavailable_reason()

    def device_count(self) -> int:
        return device_count()

    def current_device(self) -> int:
        return current_device()

    def set_device(self, index: int) -> None:
        set_device(index)

    def synchronize(self, index: int | None) -> None:
        synchronize(index)

    def describe(self) -> dict[str, Any]:
        choice = native.choice()
        facts: dict[str, Any] = {"variant": choice.variant, "why": choice.why or None, "started": native.is_started}
        if native.is_started:
            facts["CUDA of the library"] = native.tp_cuda_version()
            facts["matrix products"] = "cuBLASLt" if native.tp_blas_is_loaded() else "TensorPlay's own kernel"
        else:
            facts["matrix products"] = _blas.expected(choice.variant)
        return facts

    def diagnose(self) -> tuple[dict[str, Any], list[Fault]]:
        from . import _diagnosis  # for the doctor only

        return _diagnosis.diagnose()

    # -- description of an impl ----------------------------------------------------------------------

    def release(self, impl: Any) -> None:
        native.tp_tensor_release(impl)

    def shape(self, impl: Any) -> tuple[int, ...]:
        return tuple(native.ffi.unpack(native.tp_tensor_shape(impl), native.tp_tensor_ndim(impl)))

    def strides(self, impl: Any) -> tuple[int, ...]:
        return tuple(native.ffi.unpack(native.tp_tensor_strides(impl), native.tp_tensor_ndim(impl)))

    def storage_offset(self, impl: Any) -> int:
        return int(native.tp_tensor_storage_offset(impl))

    def dtype(self, impl: Any) -> DType:
        return _dtype.BY_CODE[int(native.tp_tensor_dtype(impl))]

    def device(self, impl: Any) -> Device:
        return _device(native.tp_tensor_device(impl))

    def data_ptr(self, impl: Any) -> int:
        return int(native.tp_tensor_data(impl))

    def storage_id(self, impl: Any) -> int:
        return int(native.tp_tensor_storage(impl))

    def storage_nbytes(self, impl: Any) -> int:
        return int(native.tp_tensor_storage_nbytes(impl))

    def is_contiguous(self, impl: Any) -> bool:
        return bool(native.tp_tensor_is_contiguous(impl))

    # -- creation ------------------------------------------------------------------------------------

    def empty(self, shape: Sequence[int], dtype: DType, device: Device) -> Tensor:
        # Written out, as `binary` is, where the others share `made`.
        index = device.index
        if index is None:
            index = CURRENT
        try:
            if len(shape) == 1:
                impl = native.tp_tensor_empty_1d(dtype.code, index, shape[0])
            else:
                impl = native.tp_tensor_empty(dtype.code, index, len(shape), shape)
        except (OverflowError, TypeError):
            impl = None
        if not impl:
            again: Tensor = refused(impl, "empty", (shape, dtype, device))
            return again
        tensor: Tensor = _new(Tensor)
        tensor._impl = impl
        tensor._backend = self
        return tensor

    def full(self, shape: Sequence[int], value: Scalar, dtype: DType, device: Device) -> Tensor:
        arguments = (shape, value, dtype, device)
        made = self.made("full", arguments, native.tp_tensor_empty, dtype.code, _index(device), len(shape), shape)
        status = _fill(made, value)
        return made if status == 0 else refused(status, "full", arguments)

    def arange(self, start: Scalar, step: Scalar, numel: int, dtype: DType, device: Device) -> Tensor:
        is_float = isinstance(start, float) or isinstance(step, float)
        if is_float and not isinstance(start, type(step)):
            _operands.arange(start, step, numel, dtype, device)  # C takes an integer of any size as a fraction
        return self.made(
            "arange", (start, step, numel, dtype, device),
            native.tp_tensor_arange_float if is_float else native.tp_tensor_arange_int,
            start, step, numel, dtype.code, _index(device),
        )  # fmt: skip

    # -- to and from the host ------------------------------------------------------------------------

    def from_host(self, array: np.ndarray[Any, Any], device: Device, non_blocking: bool = False) -> Tensor:
        made = self.empty(array.shape, _dtype.from_numpy("from_host", array.dtype), device)
        check(_send(made, array, non_blocking))
        return made

    def to_host(self, tensor: Tensor, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        shape, dtype = tensor.shape, tensor.dtype
        array: np.ndarray[Any, Any] = (
            self.empty_pinned(shape, dtype)._impl if non_blocking else np.empty(shape, dtype.numpy)
        )
        self.copy_to_host_(array, tensor, non_blocking)
        return array

    def copy_from_host_(self, target: Tensor, array: np.ndarray[Any, Any], non_blocking: bool = False) -> None:
        if array.shape != target.shape or array.dtype != target.dtype.numpy:
            self.copy_(target, self.from_host(array, target.device, non_blocking))
            return
        status = _send(target, array, non_blocking)
        if status:
            refused(status, "copy_from_host_", (target, array, non_blocking))

    def copy_to_host_(self, array: np.ndarray[Any, Any], source: Tensor, non_blocking: bool = False) -> None:
        target = _flat(array)
        fetch = native.tp_tensor_queue_to_host if non_blocking else native.tp_tensor_copy_to_host
        if fetch(source._impl, native.ffi.from_buffer(target), target.nbytes):
            failed("copy_to_host_", (array, source, non_blocking))

    # -- copies on the backend -----------------------------------------------------------------------

    def to(self, tensor: Tensor, dtype: DType, device: Device) -> Tensor:
        arguments = (tensor, dtype, device)
        return self.made("to", arguments, native.tp_tensor_to, tensor._impl, dtype.code, _index(device))

    def copy_(self, target: Tensor, source: Tensor) -> None:
        status = native.tp_tensor_copy(target._impl, source._impl)
        if status:
            refused(status, "copy_", (target, source))

    def fill_(self, target: Tensor, value: Scalar) -> None:
        status = _fill(target, value)
        if status != 0:
            refused(status, "fill_", (target, value))

    def contiguous(self, tensor: Tensor) -> Tensor:
        return self.made("contiguous", (tensor,), native.tp_tensor_contiguous, tensor._impl)

    # -- streams -------------------------------------------------------------------------------------

    def current_stream(self, index: int | None) -> Stream:
        return _current.current_stream(index)

    def set_stream(self, stream: Stream) -> None:
        _current.set_stream(stream)

    def record_stream(self, tensor: Tensor, stream: Stream) -> None:
        """Keeps the tensor's memory from reuse until the stream's work so far is done, once it is dropped."""
        check(native.tp_tensor_record_stream(tensor._impl, pointer_of("record_stream", stream)))

    # -- memory --------------------------------------------------------------------------------------

    def memory_stats(self, index: int | None) -> dict[str, int]:
        return memory.memory_stats(index)

    def memory_stat(self, index: int | None, name: str) -> int:
        return memory.memory_stat(name, index)

    def memory_info(self, index: int | None) -> tuple[int, int]:
        return memory.mem_get_info(index)

    def reset_peak_memory_stats(self, index: int | None) -> None:
        memory.reset_peak_memory_stats(index)

    def reset_accumulated_memory_stats(self, index: int | None) -> None:
        memory.reset_accumulated_memory_stats(index)

    def empty_cache(self) -> None:
        memory.empty_cache()

    def empty_host_cache(self) -> None:
        memory.empty_host_cache()

    # -- graphs --------------------------------------------------------------------------------------

    def graph(self, keep_graph: bool) -> graphs.CUDAGraph:
        return graphs.CUDAGraph(keep_graph)

    def capture(self, graph: Any, pool: Any, capture_error_mode: str) -> AbstractContextManager[None]:
        return graphs.graph(graph, pool, _current.current_stream(), capture_error_mode)

    def graph_pool_handle(self) -> Any:
        return graphs.graph_pool_handle()


def _fill(target: Tensor, value: Scalar) -> int | None:
    """C's status; None where C cannot be asked."""
    try:
        if isinstance(value, complex):
            return int(native.tp_tensor_fill_complex(target._impl, value.real, value.imag))
        fill = native.tp_tensor_fill_float if isinstance(value, float) else native.tp_tensor_fill_int
        return int(fill(target._impl, value))
    except (OverflowError, TypeError):
        return None


@cache
def _device(index: int) -> Device:
    return Device("cuda", index)


def _index(place: Device) -> int:
    return CURRENT if place.index is None else place.index


def _send(target: Tensor, array: np.ndarray[Any, Any], non_blocking: bool) -> int:
    """C's status."""
    source = _flat(np.ascontiguousarray(array))
    send = native.tp_tensor_queue_from_host if non_blocking else native.tp_tensor_copy_from_host
    status: int = send(target._impl, native.ffi.from_buffer(source), source.nbytes)
    return status


def _flat(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of a contiguous array, as cffi takes them: bfloat16 has no buffer of its own."""
    return array.reshape(-1).view(np.uint8)


backend = CudaBackend()


def _bind_release() -> None:
    """Every tensor calls `release` once: the C function itself costs half of a method around it."""
    backend.__dict__["release"] = native.tp_tensor_release


native.at_start.append(_bind_release)
native.at_start.append(_blas.load)
