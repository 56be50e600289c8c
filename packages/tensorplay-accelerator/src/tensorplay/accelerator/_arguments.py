"""What a device argument means to the accelerator."""

from __future__ import annotations

from tensorplay._backend import Backend
from tensorplay._device import Device, DeviceLike, bare_index
from tensorplay._plugins import needed
from tensorplay.errors import InvalidArgumentError


def index_or_none(operation: str, device: DeviceLike | None) -> int | None:
    """The index that a device argument names; None where it means the current device.

    An int is the index itself; whether there is such a device, the backend sees. A text or a device must be of the
    accelerator's type.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError: a text or a device, and there is no accelerator.
    InvalidArgumentError
        A ValueError, for a bad spelling or a device of another type.
    DTypeError
        A TypeError, for an object of another type.
    """
    if device is None:
        return None
    if not isinstance(device, (str, Device)):
        return bare_index(operation, device, "a device, a text such as 'cuda:0', an int or None")
    parsed = Device(device)
    kind = needed(operation).type
    if parsed.type != kind:
        raise InvalidArgumentError(f"{operation}: got a device of type {parsed.type!r}, expected {kind!r}")
    return parsed.index


def on_device(operation: str, device: DeviceLike | None) -> tuple[Backend, int | None]:
    """The accelerator's backend, and `index_or_none` of a device argument, which is looked at first.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, if there is no accelerator.
    InvalidArgumentError, DTypeError
        As `index_or_none`.
    """
    found = index_or_none(operation, device)
    return needed(operation), found


def named_index(operation: str, device: DeviceLike) -> int:
    """The index that a device argument names, which must have one.

    Raises
    ------
    InvalidArgumentError
        A ValueError, for None and a device without an index too.
    BackendUnavailableError, DTypeError
        As `index_or_none`.
    """
    found = index_or_none(operation, device)
    if found is None:
        raise InvalidArgumentError(f"{operation}: got {device!r}, expected a device with an index")
    return found
