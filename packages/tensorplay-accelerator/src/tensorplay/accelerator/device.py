"""Which accelerator there is, how many devices it has, which one is current."""

from __future__ import annotations

import warnings
from functools import cache
from types import TracebackType
from typing import Any

from tensorplay._backend import Backend
from tensorplay._device import Device, DeviceLike
from tensorplay._dtype import DType
from tensorplay._plugins import accelerator, accelerator_type, needed
from tensorplay.errors import BackendUnavailableError, InvalidArgumentError

from ._arguments import named_index, on_device


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

    Raises
    ------
    BackendUnavailableError
        ``TENSORPLAY_ACCELERATOR`` names one that is not there.
    """
    kind = accelerator_type()
    if kind is None or (check_available and not is_available()):
        return None
    return Device(kind)


def is_available() -> bool:
    """Whether there is an accelerator and at least one device of it is visible. Never raises, starts nothing."""
    backend = _working()
    return backend is not None and backend.is_available()


def device_count() -> int:
    """Number of visible devices of the accelerator, 0 without one. Never raises, starts nothing."""
    backend = _working()
    return 0 if backend is None else backend.device_count()


def _working() -> Backend | None:
    """The accelerator's backend; None also where the one that was chosen, or its installation, is broken."""
    try:
        return accelerator()
    except (BackendUnavailableError, ImportError):
        return None


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
        A RuntimeError, without an accelerator, unless nothing is to be done.
    InvalidArgumentError
        A ValueError, for None, a device without an index or of another type, or an index out of range.
    """
    index = named_index("set_device_index", device)
    if index >= 0:
        needed("set_device_index").set_device(index)


def current_device_idx() -> int:
    """`current_device_index` by its old name, with a FutureWarning."""
    warnings.warn("current_device_idx: use current_device_index", FutureWarning, stacklevel=2)
    return current_device_index()


def set_device_idx(device: DeviceLike) -> None:
    """`set_device_index` by its old name, with a FutureWarning."""
    warnings.warn("set_device_idx: use set_device_index", FutureWarning, stacklevel=2)
    set_device_index(device)


class device_index:  # noqa: N801 (torch's name)
    """Context manager that makes a device current for this thread, and puts the former one back.

    Parameters
    ----------
    device : int, str, Device or None
        None and a negative index do nothing; a device needs an index.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator, unless nothing is to be done.
    InvalidArgumentError
        A ValueError, for a device without an index or of another type; on entering, for an index out of range.
    """

    __slots__ = ("_backend", "_former", "_index")

    def __init__(self, device: DeviceLike | None) -> None:
        self._index = -1 if device is None else named_index("device_index", device)
        self._backend = needed("device_index") if self._index >= 0 else None
        self._former: list[int] = []  # one may be entered again inside its block

    def __enter__(self) -> None:
        if self._backend is not None:
            former = self._backend.current_device()
            try:
                self._backend.set_device(self._index)
            except BaseException:  # a signal's handler may raise behind the call, and nobody would leave
                self._backend.set_device(former)
                raise
            self._former += [former]  # by no call, behind which a handler might raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._backend is not None:
            try:
                self._backend.set_device(self._former[-1])
            finally:
                del self._former[-1]


def get_device_capability(device: DeviceLike | None = None) -> dict[str, Any]:
    """What a device can do. A device is asked once.

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
        A RuntimeError, without an accelerator or a device of it.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    backend, index = on_device("get_device_capability", device)
    if index is None:
        index = backend.current_device()
    visible = backend.device_count()
    if not visible:
        raise BackendUnavailableError(f"get_device_capability: {backend.unavailable_reason()}")
    if not 0 <= index < visible:
        raise InvalidArgumentError(f"get_device_capability: device {index} asked for, {visible} visible")
    return {"supported_dtypes": set(_dtypes(backend, index))}


@cache
def _dtypes(backend: Backend, index: int) -> frozenset[DType]:
    return frozenset(backend.supported_dtypes(index))
