"""Device-agnostic memory queries for the current accelerator.

A device is a device object, a text such as ``"cuda:1"``, an integer index, or None for the current device. None of the
functions starts one, but for `get_memory_info`. Without an accelerator nothing is allocated: what counts gives 0, what
gives back or resets does nothing, and a device that is named by its type is refused, as everywhere.
"""

from __future__ import annotations

from collections import OrderedDict

from tensorplay._device import DeviceLike
from tensorplay._plugins import accelerator

from ._arguments import index_or_none, on_device

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def empty_cache() -> None:
    """Gives all cached memory without live tensors back, on every device that was used."""
    backend = accelerator()
    if backend is not None:
        backend.empty_cache()


def empty_host_cache() -> None:
    """Gives pinned memory of the host that no tensor uses back to the system."""
    backend = accelerator()
    if backend is not None:
        backend.empty_host_cache()


def get_memory_info(device: DeviceLike | None = None) -> tuple[int, int]:
    """Free and total bytes of a device, over all processes.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator or a device of it.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    backend, index = on_device("get_memory_info", device)
    return backend.memory_info(index)


def memory_stats(device: DeviceLike | None = None) -> OrderedDict[str, int]:
    """All counters of a device's allocator, sorted by name; empty without an accelerator.

    Returns
    -------
    OrderedDict
        ``"<family>.<pool>.<figure>"``, ``"allocated_bytes.all.peak"`` for example; `tensorplay.cuda.memory_stats`
        explains those of CUDA. The names are the same before first use, with 0.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, for a text or a device without an accelerator; so do all functions below.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range; so do all functions below.
    """
    index, backend = index_or_none("memory_stats", device), accelerator()
    return OrderedDict() if backend is None else OrderedDict(sorted(backend.memory_stats(index).items()))


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes that live tensors occupy on a device."""
    return _statistic("memory_allocated", "allocated_bytes.all.current", device)


def max_memory_allocated(device: DeviceLike | None = None) -> int:
    """Peak of `memory_allocated` since the start or the last `reset_peak_memory_stats`."""
    return _statistic("max_memory_allocated", "allocated_bytes.all.peak", device)


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes that the allocator holds of a device, used or cached."""
    return _statistic("memory_reserved", "reserved_bytes.all.current", device)


def max_memory_reserved(device: DeviceLike | None = None) -> int:
    """Peak of `memory_reserved` since the start or the last `reset_peak_memory_stats`."""
    return _statistic("max_memory_reserved", "reserved_bytes.all.peak", device)


def reset_accumulated_memory_stats(device: DeviceLike | None = None) -> None:
    """Sets the sums of `memory_stats` and its counts of events to 0."""
    index, backend = index_or_none("reset_accumulated_memory_stats", device), accelerator()
    if backend is not None:
        backend.reset_accumulated_memory_stats(index)


def reset_peak_memory_stats(device: DeviceLike | None = None) -> None:
    """Moves every peak of `memory_stats` down to the present value."""
    index, backend = index_or_none("reset_peak_memory_stats", device), accelerator()
    if backend is not None:
        backend.reset_peak_memory_stats(index)


def _statistic(operation: str, name: str, device: DeviceLike | None) -> int:
    index, backend = index_or_none(operation, device), accelerator()
    return 0 if backend is None else backend.memory_stat(index, name)
