"""Pinned memory of the host: arrays in it, its cache and its figures."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tensorplay import _operands, _plugins
from tensorplay._backend import Backend
from tensorplay._dtype import DType
from tensorplay._tensor import Tensor
from tensorplay.errors import HostMemoryError

from ._check import check, repeated
from ._library import native
from ._summary import nested
from ._tables import HOST_STATISTICS

_SORTED = sorted((name, key) for key, name in enumerate(HOST_STATISTICS))
_host = _plugins.get("cpu")
_new = object.__new__


class Pinned(Backend):
    """The methods of `Backend` that concern pinned memory."""

    def empty_pinned(self, shape: Sequence[int], dtype: DType) -> Tensor:
        # The array's base gives the memory back when the last array over it is gone.
        array = _array(shape, dtype.numpy, dtype.itemsize)
        if array is None:
            _operands.empty(shape, dtype, _plugins.HOST)
            again: Tensor = repeated(self.empty_pinned, (shape, dtype), (HostMemoryError,))
            return again
        tensor: Tensor = _new(Tensor)
        tensor._impl = array
        tensor._backend = _host
        return tensor

    def is_pinned(self, address: int) -> bool:
        return native.is_started and bool(native.tp_pinned_contains(native.ffi.cast("void *", address)))


def _bind(shape: Sequence[int], dtype: np.dtype[Any], itemsize: int) -> np.ndarray[Any, Any] | None:
    """An array in pinned memory; None when C has refused, or the shape is none. From the first call on a C function."""
    global _array
    functions = import_module("numpy._core._multiarray_umath")._ARRAY_API
    address = native.tp_array_maker(native.ffi.cast("void *", id(functions)))
    _array = ctypes.cast(int(native.ffi.cast("uintptr_t", address)), ctypes.py_object).value
    return _array(shape, dtype, itemsize)


_array: Callable[[Sequence[int], np.dtype[Any], int], np.ndarray[Any, Any] | None] = _bind


def host_memory_stats() -> dict[str, int]:
    """All figures of pinned memory, sorted by name: one consistent reading (`tp_pinned_stats`).

    Returns
    -------
    dict
        ``"<family>.<figure>"``, with the figures ``current``, ``peak``, ``allocated`` and ``freed`` (sums of increases
        and decreases), of ``allocations`` (pieces held from the driver) and ``allocated_bytes``, of ``active_requests``
        (blocks that tensors or copies use) and ``active_bytes``, and of ``requested_bytes`` (before rounding);
        ``host_alloc_time`` and ``host_free_time`` of the driver's calls in microseconds (``total``, ``max``, ``min``,
        ``count``, ``avg``); ``num_host_alloc`` and ``num_host_free``. The names are the same before first use, all
        with 0.

    Notes
    -----
    As torch names them, but for ``requested_bytes``. Peaks are exact.
    """
    if not native.is_started:
        return {name: 0 for name, _ in _SORTED}
    values = native.ffi.new("int64_t[]", len(HOST_STATISTICS))
    check(native.tp_pinned_stats(values, len(HOST_STATISTICS)))
    numbers: Any = native.ffi.unpack(values, len(HOST_STATISTICS))
    return {name: numbers[key] for name, key in _SORTED}


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """`host_memory_stats` with a dictionary for each family."""
    return nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Moves every peak down to the present value, and the longest and shortest times to 0."""
    if native.is_started:
        check(native.tp_pinned_reset_peak_stats())


def reset_accumulated_host_memory_stats() -> None:
    """Sets the sums, the times and the numbers of calls to 0 (`tp_pinned_reset_accumulated_stats`)."""
    if native.is_started:
        check(native.tp_pinned_reset_accumulated_stats())


def empty_host_cache() -> None:
    """Gives pinned memory that nothing uses back to the driver; waits for the devices (`tp_pinned_empty_cache`)."""
    if native.is_started:
        check(native.tp_pinned_empty_cache())
