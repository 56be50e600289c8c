"""What the page of `memory_viz` shows, made from a snapshot of ours or of torch: small enough for 100,000 entries.

Frames and stacks stand in two tables and are referred to by their place. An event is an entry's place in the history of
its device; a life is a block from the event that allocated it (-1: before the history) to the one that freed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

STATES = ("active_allocated", "active_pending_free", "inactive")
_GROWTH = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_BEFORE = [{"name": "(allocated before the history begins)", "filename": "", "line": 0}]
_UNKNOWN = [{"name": "(no stack recorded)", "filename": "", "line": 0}]


class _Stacks:
    """The two tables."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, str, int], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._known: dict[int, int] = {}  # by identity: lists are shared by many entries

    def place(self, frames: list[dict[str, Any]] | None) -> int:
        frames = frames or _UNKNOWN
        known = self._known.get(id(frames))
        if known is None:
            stack = tuple(self._frame(frame) for frame in frames)
            known = self._known[id(frames)] = self._stacks.setdefault(stack, len(self._stacks))
        return known

    def _frame(self, frame: dict[str, Any]) -> int:
        key = str(frame["name"]), str(frame["filename"]), int(frame["line"])
        return self._frames.setdefault(key, len(self._frames))

    def tables(self) -> dict[str, Any]:
        return {"frames": [list(frame) for frame in self._frames], "stacks": [list(stack) for stack in self._stacks]}


class _Lives:
    """Blocks of one device, by the event of their allocation."""

    def __init__(self, trace: list[dict[str, Any]], blocks: Iterable[dict[str, Any]], stacks: _Stacks) -> None:
        self.rows: list[list[int]] = []  # start, end, size, address, stack
        held: dict[int, list[int]] = {}
        for event, entry in enumerate(trace):
            if entry["action"] == "alloc":
                row = [event, len(trace), entry["size"], entry["addr"], stacks.place(entry.get("frames"))]
                held[entry["addr"]] = row
                self.rows.append(row)
            elif entry["action"] == "free_completed":
                if entry["addr"] not in held:
                    held[entry["addr"]] = [-1, 0, entry["size"], entry["addr"], stacks.place(_BEFORE)]
                    self.rows.append(held[entry["addr"]])
                held.pop(entry["addr"])[1] = event
        for block in blocks:
            if block["address"] not in held:
                stack = stacks.place(block.get("frames"))
                self.rows.append([-1, len(trace), block["requested_size"], block["address"], stack])
        self.rows.sort(key=lambda row: row[0])

    def columns(self) -> dict[str, list[int]]:
        names = ("start", "end", "size", "address", "stack")
        return {name: [row[i] for row in self.rows] for i, name in enumerate(names)}

    def sites(self, stacks: list[list[int]], end: int) -> list[list[int]]:
        """By innermost frame: frame, bytes and blocks at the end, most bytes at one time, blocks in all."""
        changes = sorted(
            (event, sign, row) for row in self.rows for event, sign in ((row[0], 1), (row[1], -1)) if event < end
        )
        found: dict[int, list[int]] = {}
        for _, sign, row in changes:
            frame = stacks[row[4]][0]
            site = found.setdefault(frame, [frame, 0, 0, 0, 0])
            site[1] += sign * row[2]
            site[2] += sign
            site[3] = max(site[3], site[1])
            site[4] += sign > 0
        return sorted(found.values(), key=lambda site: (-site[1], -site[3]))


def picture(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The page's data.

    Parameters
    ----------
    snapshot : dict
        As `tensorplay.cuda.memory._snapshot` or torch's function of that name gives it.

    Returns
    -------
    dict
        ``frames``: name, file and line; ``stacks``: places in it, innermost first; ``devices``: for each with
        anything to show its ``events`` (how many), ``time_us`` of each since the first, ``marks`` (event, action, size,
        free bytes, stack), ``reserved`` (event, bytes from then on), ``lives`` by column, ``segments`` and ``sites``.
    """
    stacks = _Stacks()
    traces = list(snapshot.get("device_traces") or [])
    traces += [[]] * (1 + max((segment["device"] for segment in snapshot["segments"]), default=-1) - len(traces))
    own: list[list[dict[str, Any]]] = [[] for _ in traces]
    for segment in snapshot["segments"]:
        own[segment["device"]].append(segment)
    devices = [_device(index, traces[index], own[index], stacks) for index in range(len(traces))]
    shown = [device for device in devices if device["segments"] or device["lives"]["start"] or device["marks"]]
    return {**stacks.tables(), "states": STATES, "devices": shown}


def _device(index: int, trace: list[dict[str, Any]], segments: list[dict[str, Any]], stacks: _Stacks) -> dict[str, Any]:
    for segment in segments:
        place = segment["address"]
        for block in segment["blocks"]:
            block["address"] = place  # old snapshots of torch have sizes only
            place += block["size"]
    live = [block for segment in segments for block in segment["blocks"] if block["state"] != "inactive"]
    lives = _Lives(trace, live, stacks)
    first = trace[0]["time_us"] if trace else 0
    return {
        "device": index,
        "events": len(trace),
        "time_us": [entry["time_us"] - first for entry in trace],
        "marks": [
            [event, entry["action"], entry["size"], entry.get("device_free", 0), stacks.place(entry.get("frames"))]
            for event, entry in enumerate(trace)
            if entry["action"] == "oom"
        ],
        "reserved": _reserved(trace, sum(segment["total_size"] for segment in segments)),
        "lives": lives.columns(),
        "segments": [_segment(segment, stacks) for segment in segments],
        "sites": lives.sites(stacks.tables()["stacks"], len(trace)),
    }


def _reserved(trace: list[dict[str, Any]], last: int) -> list[tuple[int, int]]:
    """Counted back from what is reserved at the end, for the history may begin late."""
    changes = [
        (event, _GROWTH[entry["action"]] * entry["size"])
        for event, entry in enumerate(trace)
        if entry["action"] in _GROWTH
    ]
    nbytes = last - sum(change for _, change in changes)
    steps = [(0, nbytes)]
    for event, change in changes:
        nbytes += change
        steps.append((event, nbytes))
    return steps


def _segment(segment: dict[str, Any], stacks: _Stacks) -> dict[str, Any]:
    return {
        "address": segment["address"],
        "size": segment["total_size"],
        "stream": segment["stream"],
        "pool": list(segment.get("segment_pool_id") or (0, 0)),
        "kind": segment.get("segment_type", ""),
        "expandable": bool(segment.get("is_expandable")),
        "blocks": [
            [
                block["size"],
                block.get("requested_size", 0),
                STATES.index(_state(block)),
                stacks.place(block.get("frames")),
            ]
            for block in segment["blocks"]
        ],
    }


def _state(block: dict[str, Any]) -> str:
    """torch writes one of the states with another ending in some versions."""
    state = str(block["state"])
    return "active_pending_free" if state == "active_awaiting_free" else state
