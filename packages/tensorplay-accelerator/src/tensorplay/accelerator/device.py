"""Which accelerator there is, how many devices it has, which one is current."""

from __future__ import annotations

from typing import Any

from tensorplay._device import Device, DeviceLike
from tensorplay._dtype import DTYPES
from tensorplay._plugins import accelerator_type
from tensorplay.errors import InvalidArgumentError

from ._current import accelerator, index_or_none, needed


def current_accelerator(check_available: bool = False) -> Device | None:
    """The accelerator of this installation, as a device without an index.

    Parameters
    ----------
    check_available : bool
        Also give None when no device of it works now.

    Returns
    -------
    Device or None
        None when no distribution that brings an accelerator is installed.
    """
    kind = accelerator_type()
    if kind is None or (check_available and not is_available()):
        return None
    return Device(kind)


def is_available() -> bool:
    """Whether there is an accelerator and at least one device of it is visible. Never raises."""
    backend = accelerator()
    return backend is not None and backend.is_available()


def device_count() -> int:
    """Number of visible devices of the accelerator, 0 without one. Never raises."""
    backend = accelerator()
    return 0 if backend is None else backend.device_count()


def current_device_index() -> int:
    """Index of this thread's current device.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    """
    return needed("current_device_index").current_device()


def set_device_index(device: DeviceLike) -> None:
    """Makes a device current for this thread; a negative index does nothing.

    Parameters
    ----------
    device : int, str or Device
        It must have an index: ``1``, ``"cuda:1"``.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    InvalidArgumentError
        A ValueError, for None, a device without an index or of another type, or an index out of range.
    """
    index = index_or_none("set_device_index", device)
    if index is None:
        raise InvalidArgumentError(f"set_device_index: got {device!r}, expected a device with an index")
    needed("set_device_index").set_device(index)


def synchronize(device: DeviceLike | None = None) -> None:
    """Waits for all work of a device.

    Parameters
    ----------
    device : int, str or Device, optional
        The current device by default. Nothing happens when the accelerator was not used yet.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    needed("synchronize").synchronize(index_or_none("synchronize", device))


def get_device_capability(device: DeviceLike | None = None) -> dict[str, Any]:
    """What a device can do.

    Parameters
    ----------
    device : int, str or Device, optional
        The current device by default.

    Returns
    -------
    dict
        ``supported_dtypes``: the set of dtypes that tensors on the device can have.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    backend = needed("get_device_capability")
    index = index_or_none("get_device_capability", device)
    visible = backend.device_count()
    if index is not None and not 0 <= index < visible:
        raise InvalidArgumentError(f"get_device_capability: device {index} asked for, {visible} visible")
    return {"supported_dtypes": set(DTYPES.values())}
