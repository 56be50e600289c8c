"""Device memory: what the caching allocator holds, and giving it back.

Freed blocks stay with the process for the next request, so ``memory_reserved() >= memory_allocated()``
always. The numbers of a device that was never used are 0; asking for them starts nothing. docs/guide/memory.md
explains the terms.
"""

from __future__ import annotations

from typing import Any

from . import _free
from ._budgets import BudgetFigures, memory_budget, memory_budgets
from ._check import check
from ._fraction import get_per_process_memory_fraction, set_per_process_memory_fraction
from ._history import _dump_snapshot as _dump_snapshot
from ._history import _record_memory_history as _record_memory_history
from ._history import _snapshot as _snapshot
from ._history import memory_snapshot
from ._library import native
from ._limit import get_memory_limit, set_memory_limit
from ._mempool import MemPool, PoolId, graph_pool_handle, reserved_by_pool, use_mem_pool
from ._pinned import (
    empty_host_cache,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    reset_accumulated_host_memory_stats,
    reset_peak_host_memory_stats,
)
from ._pluggable import CUDAPluggableAllocator
from ._raw import caching_allocator_alloc, caching_allocator_delete
from ._recovery import CallbackHandle, register_oom_callback
from ._settings import get_allocator_backend, get_allocator_settings, set_allocator_settings
from ._summary import nested, summary
from ._tables import STATISTICS
from .device import CURRENT, DeviceArgument, device_index

__all__ = [
    "BudgetFigures",
    "CUDAPluggableAllocator",
    "CallbackHandle",
    "MemPool",
    "PoolId",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "empty_host_cache",
    "get_allocator_backend",
    "get_allocator_settings",
    "get_memory_limit",
    "get_per_process_memory_fraction",
    "graph_pool_handle",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_budget",
    "memory_budgets",
    "memory_reserved",
    "memory_snapshot",
    "memory_stat",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "register_oom_callback",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_allocator_settings",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

_KEYS = {name: key for key, name in enumerate(STATISTICS)}

_set_allocator_settings = set_allocator_settings  # torch's name

_SORTED = sorted(_KEYS.items())


def memory_allocated(device: DeviceArgument = None) -> int:
    """Bytes of the blocks that live tensors occupy: requests rounded up to 512 bytes."""
    return memory_stat("allocated_bytes.all.current", device)


def memory_reserved(device: DeviceArgument = None) -> int:
    """Bytes that the allocator holds from the driver, used or cached."""
    return memory_stat("reserved_bytes.all.current", device)


def max_memory_allocated(device: DeviceArgument = None) -> int:
    """Peak of `memory_allocated` since the start or the last `reset_peak_memory_stats`.

    With several threads off by at most 1 MiB for each of them (see `memory_stats`).
    """
    return memory_stat("allocated_bytes.all.peak", device)


def max_memory_reserved(device: DeviceArgument = None) -> int:
    """Peak of `memory_reserved` since the start or the last `reset_peak_memory_stats`."""
    return memory_stat("reserved_bytes.all.peak", device)


def memory_stats(device: DeviceArgument = None) -> dict[str, int]:
    """All statistics of a device's allocator, sorted by name: one consistent reading (`tp_memory_stats`).

    Returns
    -------
    dict
        ``"<family>.<pool>.<figure>"`` and some single numbers. Families: ``allocation`` (blocks that
        the program holds), ``segment`` (regions from the driver), ``active`` (blocks held, or waited for by
        another stream), ``inactive_split`` (free pieces of a split segment), each also as ``_bytes``
        (``allocated_bytes``, ``reserved_bytes``, ``active_bytes``, ``inactive_split_bytes``), and
        ``requested_bytes`` (before rounding). Pools: ``all``, ``large_pool`` (more than 1 MiB),
        ``small_pool``. Figures: ``current``, ``peak``, ``allocated`` and ``freed`` (sums of increases and
        decreases). The names are the same before first use, all with 0. Each private pool that holds memory adds
        ``"reserved_bytes_by_private_pools.<a>_<b>"``, (a, b) being its id.

    Notes
    -----
    Current values and sums are exact whenever no other thread is in a call. So are peaks in programs that use memory
    from one thread; with several threads they are off by at most 1 MiB for each, which is what the small blocks in a
    thread's cache may come to. Cached blocks count as free.
    """
    index = device_index(device)
    if not native.is_started:
        return {name: 0 for name, _ in _SORTED}
    values = native.ffi.new("int64_t[]", len(STATISTICS))
    check(native.tp_memory_stats(index, values, len(STATISTICS)))
    numbers: Any = native.ffi.unpack(values, len(STATISTICS))
    found: dict[str, int] = {name: numbers[key] for name, key in _SORTED}
    pools = reserved_by_pool(index)
    if pools:
        found |= {f"reserved_bytes_by_private_pools.{a}_{b}": nbytes for (a, b), nbytes in pools.items()}
        found = dict(sorted(found.items()))
    return found


def memory_stats_as_nested_dict(device: DeviceArgument = None) -> dict[str, Any]:
    """The statistics of `memory_stats` by family, pool and figure: ``["segment"]["all"]["peak"]``."""
    return nested(memory_stats(device))


def memory_summary(device: DeviceArgument = None, abbreviated: bool = False) -> str:
    """The statistics of `memory_stats` as a table, 75 columns wide, and the bytes of pinned memory, of all devices.

    Parameters
    ----------
    device : device, str or int, optional
    abbreviated : bool
        Whether to leave out the lines of the large and the small pool.
    """
    index = device_index(device)
    return summary(index, memory_stats(index), host_memory_stats(), abbreviated)


def reset_peak_memory_stats(device: DeviceArgument = None) -> None:
    """Moves every peak down to the present value (`tp_memory_reset_peak_stats`)."""
    index = device_index(device)
    if native.is_started:
        check(native.tp_memory_reset_peak_stats(index))


def reset_accumulated_memory_stats(device: DeviceArgument = None) -> None:
    """Sets the sums, the retries and the failures to 0 (`tp_memory_reset_accumulated_stats`)."""
    index = device_index(device)
    if native.is_started:
        check(native.tp_memory_reset_accumulated_stats(index))


def empty_cache() -> None:
    """Gives all cached memory without live blocks back to the driver, on every device that was used.

    Live tensors keep theirs, so it rarely helps against an OutOfMemoryError (`tp_memory_empty_cache`).
    """
    if native.is_started:
        for index in range(native.tp_device_count()):
            check(native.tp_memory_empty_cache(index))


def mem_get_info(device: DeviceArgument = None) -> tuple[int, int]:
    """Free and total bytes of a device as the driver counts them (`tp_memory_get_info`).

    Starts nothing: of a device that this process has not used another process is asked, which takes a second, and
    whose own context is no longer free either. The device is started only where there can be no such process.
    """
    return _free.info(device_index(device))


def memory_stat(name: str, device: DeviceArgument = None) -> int:
    """One statistic of `memory_stats`, at a fraction of the time (`tp_memory_stat`)."""
    index = CURRENT if device is None else device_index(device)
    if not native.is_started:
        return 0
    value: int = native.tp_memory_stat(index, _KEYS[name])
    check(value)
    return value
