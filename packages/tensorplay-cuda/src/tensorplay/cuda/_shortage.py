"""The error for a device that has no room: what it tells."""

from __future__ import annotations

from typing import Any

from tensorplay.errors import OutOfMemoryError

from . import _origins, _processes
from ._library import native, text_of

NO_LIMIT = 2**64 - 1  # TP_NO_LIMIT
REASONS = ("device", "limit", "budget")  # by TP_SHORTAGE_*
_SIZES = (
    "requested", "rounded", "device_free", "device_total", "others", "reserved", "allocated", "pending", "returnable",
    "private_pools", "largest_free",
)  # fmt: skip
_MOST_PLACES = 10
_MOST_NAMED = 4  # in the text


def error_of(text: str) -> OutOfMemoryError:
    """The exception for the thread's last failure, which was OUT_OF_MEMORY with that text."""
    found = native.ffi.new("tp_memory_shortage_t *")
    if native.tp_memory_shortage(found):
        return OutOfMemoryError(text)  # The driver had no room for something of its own.
    facts: dict[str, Any] = {name: int(getattr(found, name)) for name in _SIZES}
    places = _places(found.device)
    processes = {} if native.tp_table_has_emulated() else _processes.others(found.device)
    if found.budget.name[0] != b"\0":
        facts["budget"] = text_of(found.budget.name)
        facts["budget_live"], facts["budget_limit"] = int(found.budget.live), int(found.budget.limit)
    return OutOfMemoryError(
        text
        + _named("Most is held by blocks from", places)
        + _named("Other processes on the device:", {f"{number}": nbytes for number, nbytes in processes.items()}),
        device=f"cuda:{found.device}",
        reason=REASONS[found.cause],
        limit=None if found.limit == NO_LIMIT else int(found.limit),
        largest_free_by_stream={
            int(found.streams[i]): int(found.stream_largest_free[i]) for i in range(found.stream_count)
        },
        processes=processes,
        places=places,
        is_capturing=bool(found.is_capturing),
        is_hopeless=bool(found.is_hopeless),
        **facts,
    )


def _places(device: int) -> dict[str, int]:
    """Where in the program the largest part of what lives was asked for; empty while no history is recorded."""
    if not _origins.are_recorded():
        return {}
    from . import _reading  # which needs `_check`, as `_check` needs this module

    frames, found = _origins.Frames(), dict[str, int]()
    for origin, nbytes in _reading.live_bytes(device).items():
        frame = frames[origin][0]
        place = f"{frame['filename']}:{frame['line']} {frame['name']}" if frame["filename"] else frame["name"]
        found[place] = found.get(place, 0) + nbytes
    return dict(sorted(found.items(), key=lambda item: -item[1])[:_MOST_PLACES])


def _named(words: str, sizes: dict[str, int]) -> str:
    """A sentence about the largest of them."""
    if not sizes:
        return ""
    named = [f"{name} ({_size(nbytes)})" for name, nbytes in list(sizes.items())[:_MOST_NAMED]]
    return f" {words} {', '.join(named)}."


def _size(nbytes: int) -> str:
    """As C words it in the text before."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 2**power:
            return f"{nbytes / 2**power:.2f} {unit}"
    return f"{nbytes} bytes"
