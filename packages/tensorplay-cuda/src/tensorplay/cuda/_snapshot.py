"""What the allocator holds, segment by segment, in the form that torch's public visualiser reads."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from ._check import failure
from ._library import native

_INACTIVE, _ALLOCATED, _PENDING_FREE = 0, 1, 2  # TP_MEMORY_INACTIVE, TP_MEMORY_ALLOCATED, TP_MEMORY_PENDING_FREE
_STATES = {_INACTIVE: "inactive", _ALLOCATED: "active_allocated", _PENDING_FREE: "active_pending_free"}


def segments(device: int) -> list[dict[str, Any]]:
    """Segments of a device by address, each with its blocks: one consistent reading."""
    taken = native.tp_memory_snapshot_take(device)
    if not taken:
        raise failure()
    try:
        blocks = map(_block, _rows(taken.blocks, taken.block_count, 5))
        found = [_segment(device, row, blocks) for row in _rows(taken.segments, taken.segment_count, 9)]
    finally:
        native.tp_memory_snapshot_release(taken)
    return sorted(found, key=itemgetter("address"))


def _rows(pointer: Any, count: int, width: int) -> Iterator[tuple[Any, ...]]:
    """Structures of `width` int64 each."""
    return struct.iter_unpack(f"={width}q", bytes(native.ffi.buffer(pointer, 8 * width * count)))


def _block(row: tuple[Any, ...]) -> dict[str, Any]:
    nbytes, requested, stream, state, _ = row
    return {"size": nbytes, "requested_size": requested, "state": _STATES[state], "stream": stream, "frames": []}


def _segment(device: int, row: tuple[Any, ...], blocks: Iterator[dict[str, Any]]) -> dict[str, Any]:
    address, nbytes, stream, capture, handle, is_large, is_expandable, block_count, _ = row
    own = [next(blocks) for _ in range(block_count)]
    place = address
    for block in own:
        block["address"] = place
        place += block["size"]
    return {
        "device": device,
        "address": address,
        "total_size": nbytes,
        "allocated_size": sum(block["size"] for block in own if block["state"] == "active_allocated"),
        "active_size": sum(block["size"] for block in own if block["state"] != "inactive"),
        "requested_size": sum(block["requested_size"] for block in own),
        "stream": stream,
        "segment_type": "large" if is_large else "small",
        "segment_pool_id": (capture, handle),
        "is_expandable": bool(is_expandable),
        "frames": [],
        "blocks": own,
    }
