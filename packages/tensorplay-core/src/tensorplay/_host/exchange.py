"""Memory of the host that is shared with other libraries."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .. import _capsule, _dtype, _plugins
from .._backend import Backend
from .._dtype import DType
from .._tensor import Tensor
from ..errors import DTypeError, ExchangeError
from .arrays import Array

_READ_ONLY, _COPIED = 1, 2
_PLACES = 1, 3  # DLPack's device types of the host: plain memory, and memory that CUDA has pinned
_CODES = {_dtype.BOOL: 6, _dtype.INT: 0, _dtype.FLOAT: 2, _dtype.COMPLEX: 5}


def _dlpack_type(dtype: DType) -> tuple[int, int]:
    """DLPack's code and bits."""
    code = {_dtype.uint8: 1, _dtype.bfloat16: 4}.get(dtype, _CODES[dtype.category])
    return code, 8 * dtype.itemsize


# Called without the interpreter lock: a deleter takes it where it needs it.
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_DTYPES = {_dlpack_type(dtype): dtype for dtype in _dtype.BY_CODE}


class _Lent:
    """Memory of a producer, as NumPy takes it; the deleter is called when the last array over it is gone."""

    __slots__ = ("__array_interface__", "_deleter", "_managed")

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
        self._deleter: Any = None

    def own(self, managed: int, deleter: int) -> None:
        """From now on the memory is ours to give back."""
        self._managed = managed
        self._deleter = _DELETER(deleter)

    def __del__(self) -> None:
        if self._deleter is not None:
            self._deleter(self._managed)


class Exchange(Backend):
    """The exchange methods of `Backend`."""

    def dlpack_stream(self, index: int) -> int | None:
        """None: the host has no streams."""
        return None

    def export_dlpack(self, tensor: Tensor, stream: int | None, is_versioned: bool, flags: int) -> object:
        """NumPy's own capsule, whose deleter keeps the array and works from any thread."""
        array: Array = tensor._impl
        is_bfloat16 = tensor.dtype is _dtype.bfloat16
        if is_bfloat16:
            array = array.view(np.uint16)  # of the same size: NumPy knows no bfloat16
        try:
            capsule = array.__dlpack__(max_version=_capsule.VERSION if is_versioned else None)
        except TypeError:
            capsule = array.__dlpack__()  # before NumPy 2.1 there is nothing newer
        found, _ = _capsule.read(*_capsule.content(capsule))
        if is_bfloat16:
            found.tensor.code, found.tensor.bits = _dlpack_type(_dtype.bfloat16)
        if isinstance(found, _capsule.Versioned):
            found.flags |= flags
        return capsule

    def import_dlpack(self, managed: int, is_versioned: bool) -> tuple[Tensor, int]:
        found, flags = _capsule.read(managed, is_versioned)
        if found.tensor.device_type not in _PLACES:  # whatever the producer says of itself
            place, expected = found.tensor.device_type, " or ".join(map(str, _PLACES))
            raise ExchangeError(f"from_dlpack: got memory of DLPack's device type {place}, expected {expected} (host)")
        dtype, interface = _interface(found.tensor, bool(flags & _READ_ONLY))
        lent = _Lent(interface)
        array = np.asarray(lent).view(dtype.numpy)
        made = _plugins.get("cpu").from_host(array, _plugins.HOST)
        if found.deleter:
            lent.own(managed, found.deleter)
        return made, flags if made._impl is array else flags | _COPIED


def _interface(source: _capsule.DLTensor, is_read_only: bool) -> tuple[DType, dict[str, Any]]:
    """The dtype, and NumPy's description of the memory, with integers where NumPy has no such type.

    Raises
    ------
    DTypeError
        A dtype that no tensor has.
    """
    dtype = _DTYPES.get((source.code, source.bits)) if source.lanes == 1 else None
    if dtype is None:
        raise DTypeError(
            f"from_dlpack: got a dtype of code {source.code}, {source.bits} bits and {source.lanes} lanes, expected "
            f"one of {', '.join(_dtype.DTYPES)}"
        )
    shape = tuple(source.shape[: source.ndim]) if source.ndim else ()
    strides = None
    if source.ndim and source.strides:
        strides = tuple(stride * dtype.itemsize for stride in source.strides[: source.ndim])
    address = (source.data or 0) + source.byte_offset
    kind = np.dtype(np.uint16) if dtype is _dtype.bfloat16 else dtype.numpy
    return dtype, {
        "version": 3, "shape": shape, "typestr": kind.str, "strides": strides, "data": (address, is_read_only),
    }  # fmt: skip
