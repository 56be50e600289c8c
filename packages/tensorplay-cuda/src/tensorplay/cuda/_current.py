"""The thread's current stream of each device."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ._library import native
from .device import CURRENT, DeviceArgument, device_index
from .streams import Stream, pointer_of, stream_of


class StreamContext:
    """Context manager that makes a stream and its device current, and puts back what was.

    Parameters
    ----------
    stream : Stream or None
        None does nothing.
    """

    __slots__ = ("_former", "_pointer")

    def __init__(self, stream: Stream | None) -> None:
        if isinstance(stream, Stream):  # nearly always: a call less
            self._pointer = stream._pointer
        else:
            self._pointer = None if stream is None else pointer_of("stream", stream)
        self._former: Any = None  # a place, and the same of the block around: it may be entered again in its block

    def __enter__(self) -> None:
        if self._pointer is not None:
            place = native.tp_stream_place(self._pointer)
            try:
                native.tp_stream_enter(self._pointer)
            except BaseException:  # a signal's handler raises behind the call, and nobody would leave
                native.tp_stream_leave(place)
                raise
            self._former = place, self._former

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._former is not None:
            place, around = self._former
            try:
                native.tp_stream_leave(place)
            finally:
                self._former = around

    def is_current(self) -> bool:
        """Whether its stream is the current one of its device."""
        return bool(native.tp_stream_place(self._pointer).stream == self._pointer)


def stream(stream: Stream | None) -> StreamContext:
    """The context in which `stream` is current: ``with tensorplay.cuda.stream(s): ...``"""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream and its device current for this thread; None does nothing."""
    if stream is not None:
        native.tp_stream_enter(pointer_of("set_stream", stream))


def current_stream(device: DeviceArgument = None) -> Stream:
    """The thread's current stream of a device (`tp_stream_current`)."""
    return stream_of(native.tp_stream_current(CURRENT if device is None else device_index(device)))


def default_stream(device: DeviceArgument = None) -> Stream:
    """The legacy default stream of a device (`tp_stream_default`)."""
    return stream_of(native.tp_stream_default(CURRENT if device is None else device_index(device)))
