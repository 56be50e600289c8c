"""What a capture has missed: work that its block queued elsewhere, or all of it."""

from __future__ import annotations

from typing import Any

from ._library import native, text_of
from ._origins import warn_program
from ._reports import name_of


def describe(graph: Any) -> str:
    """The work of the capturing thread that did not become part of the graph, in words; empty where there is none."""
    streams, operation = native.ffi.new("tp_stream_t *[2]"), native.ffi.new("char const **")
    count = native.tp_graph_work_beside(graph, streams, operation)
    if count == 0:
        return ""
    captured, other = (name_of(int(native.tp_stream_handle(s)), native.tp_stream_device(s)) for s in streams)
    name = text_of(operation[0])
    pieces = "1 piece" if count == 1 else f"{count} pieces"
    return (
        f"{pieces} of work ran at once, and no replay repeats it: {name} was queued on {other}, which took no part in "
        f"the capture of {captured}"
    )


def warn(graph: Any) -> None:
    """Warns at the program's line that ended the capture, if that may not have captured what was meant."""
    text, is_empty = describe(graph), native.tp_graph_node_count(graph) == 0
    if text:
        warn_program(f"capture_end: {text}{'; the graph is empty' if is_empty else ''}")
    elif is_empty:
        warn_program("capture_end: the graph is empty: nothing was queued on the stream that was captured")
