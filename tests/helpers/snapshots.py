"""The rules that a memory snapshot keeps, and what its history says when it is played from an empty device."""

from __future__ import annotations

from typing import Any

from tensorplay import Tensor, cuda

PLAIN = (dict, list, tuple, int, float, str, bool, type(None))
PAGE = 2**21
STATES = {"active_allocated", "active_pending_free", "inactive"}
SEGMENT = {
    "device": int, "address": int, "total_size": int, "allocated_size": int, "active_size": int, "requested_size": int,
    "stream": int, "segment_type": str, "segment_pool_id": tuple, "is_expandable": bool, "frames": list, "blocks": list,
}  # fmt: skip
BLOCK = {"address": int, "size": int, "requested_size": int, "state": str, "frames": list}
ENTRY = {"action": str, "size": int, "stream": int, "time_us": int, "pool_id": tuple, "frames": list}
FRAME = {"filename": str, "line": int, "name": str}


def block_of(tensor: Tensor) -> dict[str, Any]:
    """The block that a tensor begins."""
    blocks = [block for segment in cuda.memory_snapshot() for block in segment["blocks"]]
    (found,) = [block for block in blocks if block["address"] == tensor.data_ptr()]
    return found


def check_segments(segments: list[dict[str, Any]]) -> None:
    """Blocks cover their segments, sizes add up, and all of it is what the counters say."""
    for segment in segments:
        _check_segment(segment)
    for device in range(cuda.device_count()):
        own = [segment for segment in segments if segment["device"] == device]
        addresses = [segment["address"] for segment in own]
        assert addresses == sorted(addresses)
        stats = cuda.memory_stats(device)
        assert sum(segment["total_size"] for segment in own) == cuda.memory_reserved(device)
        assert sum(segment["allocated_size"] for segment in own) == cuda.memory_allocated(device)
        assert sum(segment["active_size"] for segment in own) == stats["active_bytes.all.current"]


def check_snapshot(snapshot: dict[str, Any]) -> None:
    """Everything that the public visualiser relies on."""
    assert set(snapshot) >= {"segments", "device_traces", "allocator_settings", "external_annotations"}
    _check_plain(snapshot)
    check_segments(snapshot["segments"])
    for trace in snapshot["device_traces"]:
        assert [entry["time_us"] for entry in trace] == sorted(entry["time_us"] for entry in trace)
        for entry in trace:
            _check_types(entry, ENTRY)
            assert isinstance(entry["device_free" if entry["action"] == "oom" else "addr"], int)
            _check_frames(entry["frames"])


def play(trace: list[dict[str, Any]]) -> tuple[dict[int, int], dict[int, int]]:
    """Requested sizes of blocks and sizes of segments by address, after a history from an empty device."""
    blocks: dict[int, int] = {}
    given_back: set[int] = set()
    segments: dict[int, int] = {}
    mapped: set[int] = set()  # pages of growing segments
    for entry in trace:
        action, size = entry["action"], entry["size"]
        address = entry.get("addr", 0)
        if action == "alloc":
            assert address not in blocks
            in_segment = any(start <= address < start + length for start, length in segments.items())
            assert in_segment or address // PAGE in mapped
            blocks[address] = size
        elif action == "free_requested":
            assert blocks[address] == size
            assert address not in given_back
            given_back.add(address)
        elif action == "free_completed":
            assert blocks.pop(address) == size
            given_back.remove(address)
        elif action == "segment_alloc":
            assert address not in segments
            segments[address] = size
        elif action == "segment_map":
            assert mapped.isdisjoint(_pages(address, size))
            mapped.update(_pages(address, size))
        elif action in ("segment_free", "segment_unmap"):
            assert not any(address <= block < address + size for block in blocks)
            if action == "segment_free":
                assert segments.pop(address) == size
            else:
                assert mapped.issuperset(_pages(address, size))
                mapped.difference_update(_pages(address, size))
        else:
            assert action in ("snapshot", "oom")
    for page in sorted(mapped):  # runs of pages
        start = next((start for start, length in segments.items() if start + length == page * PAGE), page * PAGE)
        segments[start] = segments.get(start, 0) + PAGE
    return blocks, segments


def _pages(address: int, nbytes: int) -> range:
    assert address % PAGE == nbytes % PAGE == 0
    return range(address // PAGE, (address + nbytes) // PAGE)


def _check_segment(segment: dict[str, Any]) -> None:
    _check_types(segment, SEGMENT)
    _check_frames(segment["frames"])
    place = segment["address"]
    sizes = dict.fromkeys(STATES, 0)
    for block in segment["blocks"]:
        _check_types(block, BLOCK)
        _check_frames(block["frames"])
        assert block["address"] == place
        assert block["size"] > 0
        assert 0 <= block["requested_size"] <= block["size"]
        assert (block["requested_size"] == 0) == (block["state"] == "inactive")
        sizes[block["state"]] += block["size"]
        place += block["size"]
    assert place == segment["address"] + segment["total_size"]
    assert segment["allocated_size"] == sizes["active_allocated"]
    assert segment["active_size"] == sizes["active_allocated"] + sizes["active_pending_free"]
    assert segment["requested_size"] == sum(block["requested_size"] for block in segment["blocks"])
    assert segment["segment_type"] in ("small", "large")


def _check_frames(frames: list[dict[str, Any]]) -> None:
    for frame in frames:
        _check_types(frame, FRAME)


def _check_types(found: dict[str, Any], expected: dict[str, type]) -> None:
    assert {name: type(found.get(name)) for name in expected} == expected


def _check_plain(value: Any) -> None:
    """No class of ours: the visualiser's reader of pickles knows none."""
    assert type(value) in PLAIN
    if isinstance(value, dict):
        for name in value:
            assert type(name) is str
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            _check_plain(one)
