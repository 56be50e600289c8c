"""One reading of a device's memory, from C's arrays to the form that torch's public visualiser opens."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from ._check import not_null
from ._library import native
from ._origins import Frames
from ._tables import TRACE_ACTIONS

_INACTIVE, _ALLOCATED, _PENDING_FREE = 0, 1, 2  # TP_MEMORY_INACTIVE, TP_MEMORY_ALLOCATED, TP_MEMORY_PENDING_FREE
_STATES = {_INACTIVE: "inactive", _ALLOCATED: "active_allocated", _PENDING_FREE: "active_pending_free"}


def take(device: int, frames: Frames, with_entries: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Segments of a device by address, each with its blocks, and the entries of its history, oldest first."""
    blocks, segments, entries = _read(device, with_entries)
    described = (_block(row, frames) for row in blocks)
    found = [_segment(device, row, described, frames) for row in segments]
    return sorted(found, key=itemgetter("address")), [_entry(row, frames) for row in entries]


def live_bytes(device: int) -> Counter[int]:
    """Bytes of the blocks that the program holds, by their origin."""
    blocks, _, _ = _read(device, False)
    found: Counter[int] = Counter()
    for nbytes, _, _, state, origin in blocks:
        if state == _ALLOCATED:
            found[origin] += nbytes
    return found


def origins(device: int) -> set[int]:
    """Of what the device holds now."""
    blocks, segments, _ = _read(device, False)
    return {row[-1] for rows in (blocks, segments) for row in rows}


def _read(device: int, with_entries: bool) -> list[Iterator[tuple[Any, ...]]]:
    """Rows of the blocks, the segments and the entries; the last number of each is its origin."""
    taken = not_null(native.tp_memory_snapshot_take(device, with_entries))
    try:
        return [
            _rows(taken.blocks, taken.block_count, 5),
            _rows(taken.segments, taken.segment_count, 9),
            _rows(taken.entries, taken.entry_count, 8),
        ]
    finally:
        native.tp_memory_snapshot_release(taken)


def _rows(pointer: Any, count: int, width: int) -> Iterator[tuple[Any, ...]]:
    """Structures of `width` int64 each, copied."""
    return struct.iter_unpack(f"={width}q", bytes(native.ffi.buffer(pointer, 8 * width * count)))


def _block(row: Iterable[Any], frames: Frames) -> dict[str, Any]:
    nbytes, requested, stream, state, origin = row
    return {
        "size": nbytes,
        "requested_size": requested,
        "state": _STATES[state],
        "stream": stream,
        "frames": [] if state == _INACTIVE else frames[origin],
    }


def _segment(device: int, row: Iterable[Any], blocks: Iterator[dict[str, Any]], frames: Frames) -> dict[str, Any]:
    address, nbytes, stream, capture, handle, is_large, is_expandable, block_count, origin = row
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
        "frames": frames[origin],
        "blocks": own,
    }


def _entry(row: Iterable[Any], frames: Frames) -> dict[str, Any]:
    time_us, action, address, nbytes, stream, capture, handle, origin = row
    name = TRACE_ACTIONS[action]
    return {
        "action": name,
        "device_free" if name == "oom" else "addr": address,
        "size": nbytes,
        "stream": stream,
        "time_us": time_us,
        "pool_id": (capture, handle),
        "frames": frames[origin],
    }
