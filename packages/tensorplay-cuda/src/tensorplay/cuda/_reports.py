"""Reports of the order checker as exceptions."""

from __future__ import annotations

from typing import Any

from tensorplay.errors import OrderError

from . import _origins
from ._library import native, text_of

_VERBS = ("reads", "writes")


def last() -> OrderError:
    """The report behind this thread's last refusal (`tp_order_last`)."""
    found = native.ffi.new("tp_order_report_t *")
    native.tp_order_last(found)
    return _error_of(found)


def take() -> list[OrderError]:
    """All that were noted, oldest first (`tp_order_take`)."""
    found = native.ffi.new("tp_order_report_t *")
    reports = []
    while native.tp_order_take(found):
        reports.append(_error_of(found))
    return reports


def _error_of(report: Any) -> OrderError:
    frames = _origins.Frames()
    operations = tuple(text_of(name) for name in report.operations)
    streams = tuple(int(native.tp_stream_handle(stream)) for stream in report.streams)
    devices = tuple(int(native.tp_stream_device(stream)) for stream in report.streams)
    places = tuple(_place(frames[origin]) for origin in report.origins)
    writes = tuple(bool(writes) for writes in report.writes)
    names = [
        f"{operation} ({_VERBS[written]}, on {name_of(stream, device)}, at {place})"
        for operation, written, stream, device, place in zip(operations, writes, streams, devices, places, strict=True)
    ]
    memory = f"{report.nbytes} bytes at {report.address:#x}" if report.nbytes else f"memory at {report.address:#x}"
    allocated = _place(frames[report.storage_origin])
    if report.is_reused:
        missing = "record_stream"
        text = (
            f"{names[1]} uses {memory} again, which {names[0]} may still use: the tensor that had it was dropped "
            f"without tensor.record_stream({name_of(streams[0], devices[0])})"
        )
    else:
        missing = "wait_stream"
        text = (
            f"{names[1]} and {names[0]} use {memory}, allocated at {allocated}, and nothing orders them: the stream of "
            f"{operations[1]} has to wait_stream() for that of {operations[0]} in between"
        )
    return OrderError(
        text,
        operations=operations,
        streams=streams,
        devices=devices,
        places=places,
        writes=writes,
        missing=missing,
        address=int(report.address),
        nbytes=int(report.nbytes),
        allocated=allocated,
    )


def name_of(handle: int, device: int) -> str:
    """A stream in words."""
    return f"stream {handle:#x} of cuda:{device}" if handle else f"the default stream of cuda:{device}"


def _place(stack: list[dict[str, Any]]) -> str:
    """The innermost line of the program, or why there is none."""
    frame = stack[0]
    return f"{frame['filename']}:{frame['line']}" if frame["filename"] else str(frame["name"])
