"""The thread's current stream of a device, and waiting for all of a device's streams.

Streams are the backend's own objects: ``tensorplay.cuda.Stream`` where the accelerator is CUDA.
"""

from __future__ import annotations

from typing import Any

from tensorplay._device import DeviceLike
from tensorplay._plugins import needed
from tensorplay._streams import Stream

from ._arguments import on_device


def current_stream(device: DeviceLike | None = None) -> Stream:
    """The thread's current stream of a device.

    Parameters
    ----------
    device : int, str or Device, optional
        The current device by default.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator, or where it has no streams.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    backend, index = on_device("current_stream", device)
    return backend.current_stream(index)


def set_stream(stream: Any) -> None:
    """Makes a stream and its device current for this thread.

    Parameters
    ----------
    stream : Stream
        One of the accelerator's.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator, or where it has no streams.
    DTypeError
        A TypeError, for anything else.
    """
    needed("set_stream").set_stream(stream)


def synchronize(device: DeviceLike | None = None) -> None:
    """Waits for all work of a device.

    Parameters
    ----------
    device : int, str or Device, optional
        The current device by default. A device that was not used yet has no work, and is not started.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    backend, index = on_device("synchronize", device)
    backend.synchronize(index)
