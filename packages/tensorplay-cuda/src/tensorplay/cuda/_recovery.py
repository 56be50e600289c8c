"""What is done before it is raised that a device, or pinned memory, has no room.

C has tried all that it can before it refuses (docs/design/allocator.md, "Order of attempts"). What only Python can do
comes after that: the callbacks of `register_oom_callback`, the garbage collector, and the call once more.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from tensorplay.errors import DTypeError, HostMemoryError, OutOfMemoryError

from ._library import native
from ._shortage import REASONS

_CURRENT = -1  # TP_DEVICE_CURRENT

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
    returns True, since it has raised the limit for example; other results mean nothing.

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
        # Asked for nothing but True: what a callback returns may be the very tensor that it lets go.
        is_asked_for = sum(callback(error) is True for callback in _callbacks.copy().values())
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
    native.tp_memory_repeat(int(error.device.partition(":")[2]), REASONS.index(error.reason))
