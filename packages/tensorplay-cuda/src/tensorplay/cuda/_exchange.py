"""Memory of CUDA devices that is shared with other libraries: DLPack and ``__cuda_array_interface__``."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tensorplay import _capsule, _dtype
from tensorplay._tensor import Tensor
from tensorplay.errors import DTypeError, ExchangeError, InvalidArgumentError, StateError

from . import _driver
from ._check import check, not_null
from ._library import native
from ._views import Views
from .device import CURRENT

LEGACY = 1  # the default stream, as both protocols name it
_NO_ORDER = -1
_READ_ONLY = 1


def check_export() -> None:
    """Refuses to hand addresses and streams of the emulated device to a process in which real CUDA may be at work.

    Raises
    ------
    ExchangeError
        The driver's library is loaded beside the emulated device.
    """
    if native.tp_table_has_emulated() and _driver.is_loaded():
        raise ExchangeError(
            "the emulated device shares nothing where libcuda.so.1 is loaded: real CUDA would follow its addresses"
        )


class Exchange(Views):
    """The exchange methods of `Backend`."""

    def dlpack_stream(self, index: int) -> int | None:
        return int(native.tp_stream_handle(not_null(native.tp_stream_current(index)))) or LEGACY

    def export_dlpack(self, tensor: Tensor, stream: int | None, is_versioned: bool, flags: int) -> object:
        check_export()
        consumer = native.NULL
        if stream != _NO_ORDER:
            consumer = _stream(native.tp_tensor_device(tensor._impl), LEGACY if stream is None else stream)
        managed = native.tp_dlpack_export(tensor._impl, consumer, is_versioned, flags)
        return _capsule.new(int(native.ffi.cast("uintptr_t", not_null(managed))), is_versioned, native.tp_capsule_end())

    def import_dlpack(self, managed: int, is_versioned: bool) -> tuple[Tensor, int]:
        flags = native.ffi.new("uint64_t *")
        impl = native.tp_dlpack_import(native.ffi.cast("void *", managed), is_versioned, flags)
        return self.wrap(not_null(impl)), int(flags[0])

    def cuda_array_interface(self, tensor: Tensor) -> dict[str, Any]:
        if tensor.dtype is _dtype.bfloat16:
            raise AttributeError("__cuda_array_interface__: bfloat16 has no name in it, use __dlpack__")
        check_export()
        size = tensor.dtype.itemsize
        return {
            "shape": tensor.shape,
            "typestr": tensor.dtype.numpy.str,
            "data": (tensor.data_ptr(), False),
            "strides": None if tensor.is_contiguous() else tuple(step * size for step in tensor.stride()),
            "version": 3,
            "stream": self.dlpack_stream(native.tp_tensor_device(tensor._impl)),
        }

    def from_cuda_array_interface(self, producer: Any, interface: dict[str, Any]) -> tuple[Tensor, int]:
        if interface.get("mask") is not None:
            raise ExchangeError("__cuda_array_interface__: got a mask, expected none")
        dtype = _dtype.from_numpy("__cuda_array_interface__", np.dtype(interface["typestr"]))
        shape, strides = tuple(interface["shape"]), interface.get("strides")
        # Before version 3 no stream was named: most producers work on the default one.
        stream = interface.get("stream", None if interface.get("version", 0) >= 3 else LEGACY)
        address, is_read_only = interface["data"]
        if strides is not None and any(step % dtype.itemsize for step in strides):
            raise ExchangeError(
                f"__cuda_array_interface__: got strides of {strides} bytes, expected whole elements of {dtype.name}"
            )
        steps = native.NULL if strides is None else [step // dtype.itemsize for step in strides]
        # The tensor holds the producer as C does: one reference more, which `tp_object_release` drops.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(producer))
        impl = None
        try:
            impl = native.tp_tensor_from_memory(
                address or 0, dtype.code, CURRENT, len(shape), shape, steps,
                native.tp_object_release(), native.ffi.cast("void *", id(producer)),
            )  # fmt: skip
        except (OverflowError, TypeError) as error:
            raise InvalidArgumentError(f"__cuda_array_interface__: got {interface}: {error}") from None
        finally:
            if not impl:
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(producer))
        made = self.wrap(not_null(impl))
        if stream is not None and made.numel():
            index = native.tp_tensor_device(impl)
            _wait(not_null(native.tp_stream_current(index)), _stream(index, stream))
        return made, _READ_ONLY if is_read_only else 0


def _wait(current: Any, other: Any) -> None:
    """The current stream comes behind the producer's."""
    if current != other and native.tp_stream_is_capturing(current) and not native.tp_stream_is_capturing(other):
        raise StateError(
            "__cuda_array_interface__: the current stream is being captured, and cannot wait for the array's stream, "
            "which takes no part in the capture: take the array before the capture begins"
        )
    check(native.tp_stream_wait_stream(current, other))


def _stream(index: int, number: int) -> Any:
    """The stream that a number of DLPack or of ``__cuda_array_interface__`` means."""
    if type(number) is not int:
        raise DTypeError(f"got stream {number!r}, expected an integer")
    if not 0 < number < 2**64:
        raise InvalidArgumentError(f"got stream {number}, expected 1, 2 or a stream's handle")
    return not_null(native.tp_stream_external(index, number))
