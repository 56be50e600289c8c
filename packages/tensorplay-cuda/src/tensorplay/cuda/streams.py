"""Streams and events: queues of device work, and points in them.

Work goes to the thread's current stream of the device; at first that is the device's default stream. There
is no order between streams unless one waits for the other.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from tensorplay._device import Device
from tensorplay.errors import DTypeError, InvalidArgumentError

from ._check import check, failure, not_null
from ._exchange import check_export
from ._library import native
from ._owner import Owner
from .device import CURRENT, DeviceArgument, device_index

_TIMING, _BLOCKING = 1, 2  # TP_EVENT_TIMING, TP_EVENT_BLOCKING
_EXTERNAL, _INTERPROCESS = 4, 8  # TP_EVENT_EXTERNAL, TP_EVENT_INTERPROCESS
_HANDLE_NBYTES = 64  # TP_EVENT_HANDLE_NBYTES


class _Entered(threading.local):
    """What was current before each ``with stream:`` that the thread is in; one stream may be entered several times."""

    def __init__(self) -> None:
        self.places: list[Any] = []


_entered = _Entered()


class Stream:
    """One of the 32 streams that each device has for each priority, handed out in turn.

    Two objects are equal when they mean the same stream. Streams live as long as the process. ``with stream:`` is
    ``with tensorplay.cuda.stream(stream):``.

    Parameters
    ----------
    device : device, str or int, optional
        The current device when left out.
    priority : int
        0 is the least urgent, smaller is more urgent; clamped to the device's range, and `priority` tells
        what came of it.
    """

    __slots__ = ("_pointer",)

    _pointer: Any

    def __init__(self, device: DeviceArgument = None, priority: int = 0) -> None:
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise DTypeError(f"Stream: got priority {priority!r}, expected an integer")
        index = device_index(device)
        self._pointer = native.tp_stream_from_pool(index, max(-(2**31), min(priority, 2**31 - 1)))
        if not self._pointer:
            raise failure()

    @property
    def device(self) -> Device:
        """The stream's device."""
        return Device("cuda", native.tp_stream_device(self._pointer))

    @property
    def device_index(self) -> int:
        """Index of the stream's device."""
        return int(native.tp_stream_device(self._pointer))

    @property
    def priority(self) -> int:
        """The priority that the stream really has."""
        return int(native.tp_stream_priority(self._pointer))

    @property
    def cuda_stream(self) -> int:
        """``cudaStream_t`` as a number, 0 for the default stream (`tp_stream_handle`)."""
        return int(native.tp_stream_handle(self._pointer))

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version and the handle, for other libraries.

        Raises
        ------
        ExchangeError
            The stream is an emulated device's, and CUDA's driver is loaded.
        """
        check_export()
        return 0, self.cuda_stream

    def query(self) -> bool:
        """Whether all work of the stream is done (`tp_stream_query`)."""
        done = native.tp_stream_query(self._pointer)
        check(done)
        return bool(done)

    def synchronize(self) -> None:
        """Waits for the stream's work and reports its faults (`tp_stream_synchronize`)."""
        check(native.tp_stream_synchronize(self._pointer))

    def wait_event(self, event: Event) -> None:
        """Later work of this stream waits for the event's last record (`tp_stream_wait_event`)."""
        check(native.tp_stream_wait_event(self._pointer, pointer_of("wait_event", event, Event)))

    def wait_stream(self, stream: Stream) -> None:
        """Later work of this stream waits for all that `stream` holds now (`tp_stream_wait_stream`)."""
        check(native.tp_stream_wait_stream(self._pointer, pointer_of("wait_stream", stream)))

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event in this stream, a new one when none is given, and returns it."""
        found = Event() if event is None else event
        check(native.tp_event_record(pointer_of("record_event", found, Event), self._pointer))
        return found

    def __enter__(self) -> Stream:
        places, former = _entered.places, native.tp_stream_place(self._pointer)
        try:
            native.tp_stream_enter(self._pointer)
        except BaseException:  # a signal's handler raises behind the call, and nobody would leave
            native.tp_stream_leave(former)
            raise
        places += [former]  # by no call, behind which a handler might raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        places = _entered.places
        try:
            native.tp_stream_leave(places[-1])
        finally:
            del places[-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and bool(self._pointer == other._pointer)

    def __hash__(self) -> int:
        return hash(self._pointer)

    def __repr__(self) -> str:
        return f"<tensorplay.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library, by its handle. Its owner keeps it as long as memory is used on it.

    Wherever a stream is taken, an object of another library with ``__cuda_stream__`` or ``cuda_stream`` is taken too.

    Parameters
    ----------
    stream_ptr : int
        ``cudaStream_t`` as a number; 0 and 1 are the default stream.
    device : device, str or int, optional
        The stream's device, the current one when left out.

    Raises
    ------
    AcceleratorError
        CUDA does not know the handle.
    """

    __slots__ = ()

    def __init__(self, stream_ptr: int, device: DeviceArgument = None) -> None:
        if isinstance(stream_ptr, bool) or not isinstance(stream_ptr, int):
            raise DTypeError(f"ExternalStream: got handle {stream_ptr!r}, expected an integer")
        self._pointer = _external("ExternalStream", device_index(device), stream_ptr)


class Event(Owner):
    """A point in a stream, which other streams and the host can wait for.

    CUDA's event is made by the first `record`, on the stream's device.

    Parameters
    ----------
    enable_timing : bool
        Whether `elapsed_time` may be asked.
    blocking : bool
        Whether `synchronize` gives the processor away while it waits.
    interprocess : bool
        Whether other processes may use it, by its `ipc_handle`; such an event has no timing.
    external : bool
        Whether `record` and `wait` in a capture become nodes of the graph, which happen in each replay, in place of
        order inside the graph. Elsewhere the same as any event.

    Raises
    ------
    InvalidArgumentError
        Timing is asked for together with `interprocess`.
    """

    __slots__ = ("_pointer",)

    _pointer: Any

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        flags = 0
        if enable_timing or blocking or interprocess or external:
            flags = (_TIMING if enable_timing else 0) + (_BLOCKING if blocking else 0)
            flags += (_EXTERNAL if external else 0) + (_INTERPROCESS if interprocess else 0)
        self._pointer = native.tp_event_create(flags)
        if not self._pointer:
            raise failure()

    def __del__(self) -> None:
        try:
            native.tp_event_release(self._pointer)
        except Exception:
            # The slot is unset when __init__ raised; at exit, `native` may be gone already.
            pass

    @classmethod
    def from_ipc_handle(cls, device: DeviceArgument, handle: bytes) -> Event:
        """An event of another process (`tp_event_from_ipc_handle`).

        Parameters
        ----------
        device : device, str or int
            Where it is recorded.
        handle : bytes
            From `ipc_handle` of an event that lives as long as this one is used.

        Raises
        ------
        AcceleratorError
            There is no such event, or it is this process's own.
        """
        index = device_index(device)
        if not isinstance(handle, bytes):
            raise DTypeError(f"from_ipc_handle: got {type(handle).__name__}, expected bytes")
        if len(handle) != _HANDLE_NBYTES:
            raise InvalidArgumentError(f"from_ipc_handle: got {len(handle)} bytes, expected {_HANDLE_NBYTES}")
        made = object.__new__(cls)
        made._pointer = not_null(native.tp_event_from_ipc_handle(index, handle))
        return made

    def ipc_handle(self) -> bytes:
        """What other processes open the event by (`tp_event_ipc_handle`); for events with `interprocess` only.

        Before the first record, it makes the event one of the current device.
        """
        handle = native.ffi.new("uint8_t[]", _HANDLE_NBYTES)
        check(native.tp_event_ipc_handle(self._pointer, handle))
        return bytes(handle)

    @property
    def device(self) -> Device | None:
        """The device of the first record, None before."""
        index = native.tp_event_device(self._pointer)
        return None if index < 0 else Device("cuda", index)

    @property
    def cuda_event(self) -> int:
        """``cudaEvent_t`` as a number, 0 before the first record (`tp_event_handle`)."""
        return int(native.tp_event_handle(self._pointer))

    def record(self, stream: Stream | None = None) -> None:
        """Records the work that a stream holds now, the current one when none is given (`tp_event_record`)."""
        if stream is None:
            status = native.tp_event_record_current(self._pointer)
        else:
            status = native.tp_event_record(self._pointer, pointer_of("record", stream))
        if status:
            raise failure()

    def wait(self, stream: Stream | None = None) -> None:
        """Later work of a stream, the current one when none is given, waits for this event."""
        pointer = native.tp_stream_current(CURRENT) if stream is None else pointer_of("wait", stream)
        check(native.tp_stream_wait_event(pointer, self._pointer))

    def query(self) -> bool:
        """Whether the recorded work is done; True when nothing was ever recorded (`tp_event_query`)."""
        done = native.tp_event_query(self._pointer)
        check(done)
        return bool(done)

    def synchronize(self) -> None:
        """Waits for the recorded work; returns at once when there is none (`tp_event_synchronize`)."""
        check(native.tp_event_synchronize(self._pointer))

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`, negative when `end` came first. Never waits.

        Raises
        ------
        StateError
            An event has no timing, was never recorded or is not complete, or the two are of different
            devices; the text says which (`tp_event_elapsed_time_ms`).
        """
        found = native.ffi.new("double *")
        check(native.tp_event_elapsed_time_ms(self._pointer, pointer_of("elapsed_time", end, Event), found))
        return float(found[0])

    def __repr__(self) -> str:
        return f"<tensorplay.cuda.Event device={self.device} cuda_event={self.cuda_event:#x}>"


def pointer_of(operation: str, given: object, kind: type[Stream] | type[Event] = Stream) -> Any:
    """The C object of a stream or an event.

    Raises
    ------
    DTypeError
        It is something else; the text names the operation.
    """
    if isinstance(given, kind):
        return given._pointer
    handle = _handle_of(given) if kind is Stream else None
    if handle is None:
        raise DTypeError(f"{operation}: got {type(given).__name__}, expected a tensorplay.cuda.{kind.__name__}")
    index = getattr(given, "device_index", CURRENT)  # torch's streams tell
    return _external(operation, index if isinstance(index, int) else CURRENT, handle)


def _handle_of(given: object) -> int | None:
    """The handle of another library's stream; None of anything else."""
    protocol = getattr(given, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
    else:
        handle = getattr(given, "cuda_stream", None)
    return handle if isinstance(handle, int) else None


def _external(operation: str, index: int, handle: int) -> Any:
    if not 0 <= handle < 2**64:
        raise InvalidArgumentError(f"{operation}: got handle {handle}, expected 0 or more, and at most 64 bits")
    return not_null(native.tp_stream_external(index, handle))


def get_stream_from_external(data_ptr: int, device: DeviceArgument = None) -> ExternalStream:
    """`ExternalStream` by its other name."""
    return ExternalStream(data_ptr, device)


def stream_of(pointer: Any) -> Stream:
    """The stream of a C object; raises the thread's last failure where that is NULL."""
    if not pointer:
        raise failure()
    found = object.__new__(Stream)
    found._pointer = pointer
    return found
