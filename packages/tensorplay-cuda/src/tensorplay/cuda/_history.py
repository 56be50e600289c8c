"""Snapshots: what the allocator holds now."""

from __future__ import annotations

from typing import Any

from . import _snapshot
from ._library import native


def memory_snapshot(mempool_id: tuple[int, int] | None = None) -> list[dict[str, Any]]:
    """Every segment that the allocator holds on any device, with its blocks (`tp_memory_snapshot_take`).

    Works before first use and starts nothing.

    Parameters
    ----------
    mempool_id : pair of int, optional
        Only segments of this pool.

    Returns
    -------
    list of dict
        Segments by device and address: ``device``, ``address``, ``total_size``, ``allocated_size``, ``active_size``,
        ``requested_size``, ``stream``, ``segment_type`` (``"small"`` or ``"large"``), ``segment_pool_id``,
        ``is_expandable``, ``frames`` and ``blocks``. Blocks by address, which cover the segment exactly:
        ``address``, ``size``, ``requested_size``, ``stream``, ``frames`` and ``state``: ``"active_allocated"``,
        ``"active_pending_free"`` (given back, but other streams still use it) or ``"inactive"``. Of one device it is one
        consistent reading.
    """
    if not native.is_started:
        return []
    found = [segment for index in range(native.tp_device_count()) for segment in _snapshot.segments(index)]
    if mempool_id is None:
        return found
    return [segment for segment in found if segment["segment_pool_id"] == tuple(mempool_id)]
