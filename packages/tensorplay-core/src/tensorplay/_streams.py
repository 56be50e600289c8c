"""The part of the protocol between core and a backend (`tensorplay._backend`) that concerns streams.

A stream is a queue of one device: its work runs in order. The objects are the backend's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .errors import BackendUnavailableError

if TYPE_CHECKING:
    from ._device import Device
    from ._tensor import Tensor


class Stream(Protocol):
    """A queue of a device. Two objects are equal, and have one hash, when they mean the same queue."""

    @property
    def device(self) -> Device: ...
    def query(self) -> bool:
        """Whether all work of the stream is done."""

    def synchronize(self) -> None:
        """Waits for all work of the stream."""

    def wait_stream(self, stream: Any) -> None:
        """Later work of this stream waits for all that `stream` holds now."""


class Streams:
    """What a backend without streams inherits."""

    type: str

    def current_stream(self, index: int | None) -> Stream:
        """The thread's current stream of a device (None: of the current one): new work goes there."""
        raise BackendUnavailableError(f"current_stream: the backend of type {self.type!r} has no streams")

    def set_stream(self, stream: Any) -> None:
        """Makes a stream and its device current for this thread."""
        raise BackendUnavailableError(f"set_stream: the backend of type {self.type!r} has no streams")

    def record_stream(self, tensor: Tensor, stream: Any) -> None:
        """Marks that a stream uses the tensor's memory; nothing to do on a backend without streams."""
