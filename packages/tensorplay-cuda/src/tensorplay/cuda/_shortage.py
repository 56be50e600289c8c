"""Running out of device memory: what the error tells, and what is done before it is raised.

C has tried all that it can before it refuses (docs/design/allocator.md, "Order of attempts"). What only Python can do
comes after that: the callbacks of `register_oom_callback`, the garbage collector, and the call once more.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from tensorplay.errors import DTypeError, HostMemoryError, OutOfMemoryError

from . import _origins, _processes
from ._library import native, text_of

NO_LIMIT = 2**64 - 1  # TP_NO_LIMIT
_CURRENT = -1  # TP_DEVICE_CURRENT
_REASONS = ("device", "limit", "budget")  # TP_SHORTAGE_*
_SIZES = (
    "requested", "rounded", "device_free", "device_total", "others", "reserved", "allocated", "pending", "returnable",
    "private_pools", "largest_free",
)  # fmt: skip
_MOST_PLACES = 10
_MOST_NAMED = 4  # in the text

OomCallback = Callable[[OutOfMemoryError], object]


class _Progress(threading.local):
    """Whether this thread is trying to recover: what runs out of memory meanwhile is raised at once."""

    is_recovering = False


_progress = _Progress()
_callbacks: dict[CallbackHandle, OomCallback] = {}


class CallbackHandle:
    """A registered callback. `remove` ends it, and so does leaving a ``with`` of the handle."""

    def remove(self) -> None:
        """From now on the callback is not called; a second time does nothing."""
        _callbacks.pop(self, None)

    def __enter__(self) -> CallbackHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


def register_oom_callback(callback: OomCallback) -> CallbackHandle:
    """Calls a function when a device has no room for a request, before the error is raised.

    All callbacks are called in the order in which they were registered, each with the `OutOfMemoryError` that
    describes the shortage; they may free memory. Then Python's garbage collector runs and the call is repeated,
    once. A request that exceeds the device or a limit alone (``error.is_hopeless``) is repeated only when a callback
    returns a true value, since it has raised the limit for example.

    In a capture no callback is called: the error is raised at once. So it is when memory is short inside a callback.
    An exception of a callback takes the place of the error. Callbacks may be called by several threads at once.

    Parameters
    ----------
    callback : callable
        Takes the error.

    Returns
    -------
    CallbackHandle
        Its ``remove()`` takes the callback away.
    """
    if not callable(callback):
        raise DTypeError(f"register_oom_callback: got {callback!r}, expected a callable")
    handle = CallbackHandle()
    _callbacks[handle] = callback
    return handle


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
        reason=_REASONS[found.cause],
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


def is_worth_repeating(error: OutOfMemoryError | HostMemoryError) -> bool:
    """Whether the call that met the error shall be repeated: after callbacks and garbage collector have run.

    The caller repeats it inside of `repeating`. The C function that refused has changed nothing: operations take all
    memory of a device that they need before they change what exists. For the host's memory there are no callbacks.
    """
    if _progress.is_recovering:
        return False
    if isinstance(error, HostMemoryError):
        if native.tp_stream_is_capturing(native.tp_stream_current(_CURRENT)):
            return False
        with repeating():
            gc.collect()
        return True
    if error.device is None or error.is_capturing:
        return False
    with repeating():
        is_asked_for = sum(bool(callback(error)) for callback in _callbacks.copy().values())
        if error.is_hopeless and not is_asked_for:
            return False
        gc.collect()
    _count_repeat(error)
    return True


@contextmanager
def repeating() -> Iterator[None]:
    """Whatever runs out of memory in this thread inside of the block is raised at once."""
    _progress.is_recovering = True
    try:
        yield
    finally:
        _progress.is_recovering = False


def _count_repeat(error: OutOfMemoryError) -> None:
    assert error.device
    assert error.reason
    native.tp_memory_repeat(int(error.device.partition(":")[2]), _REASONS.index(error.reason))


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
    named = [f"{name} ({nbytes / 2**20:.2f} MiB)" for name, nbytes in list(sizes.items())[:_MOST_NAMED]]
    return f" {words} {', '.join(named)}."
