"""A limit for the memory that this process reserves on a device."""

from __future__ import annotations

from typing import SupportsIndex

from tensorplay._device import bare_index
from tensorplay.errors import InvalidArgumentError

from ._check import check
from ._library import native, starter
from ._shortage import NO_LIMIT
from .device import DeviceArgument, device_index

_MOST = 2**63 - 1

_waiting: dict[int, int] = {}  # by device: what is set before the library starts


def set_memory_limit(nbytes: SupportsIndex | None, device: DeviceArgument = None) -> None:
    """Limits what the allocator reserves on a device (`tp_memory_set_limit`): enforced, unlike a memory fraction.

    A request that would exceed the limit meets the same attempts as one for which the driver has no room: the cache is
    given back before it is refused with an OutOfMemoryError, whose ``reason`` is ``"limit"``. What is reserved
    already stays. Memory that CUDA itself or other libraries take is not counted. Starts nothing.

    Parameters
    ----------
    nbytes : int or None
        None takes the limit away.
    device : device, str or int, optional
        The current device when left out.

    Raises
    ------
    InvalidArgumentError
        A negative limit, or one that 63 bits do not count.
    DTypeError
        A limit that is no integer.
    """
    index = device_index(device)
    number = NO_LIMIT if nbytes is None else checked("set_memory_limit", nbytes)
    with starter.lock:  # another thread may be starting
        if not native.is_started:
            _waiting[index] = number
            return
    check(native.tp_memory_set_limit(index, number))


def get_memory_limit(device: DeviceArgument = None) -> int | None:
    """What `set_memory_limit` set, in bytes; None where there is no limit (`tp_memory_get_limit`)."""
    index = device_index(device)
    number = _waiting.get(index, NO_LIMIT)
    if native.is_started:
        found = native.ffi.new("size_t *")
        check(native.tp_memory_get_limit(index, found))
        number = int(found[0])
    return None if number == NO_LIMIT else number


def checked(operation: str, nbytes: SupportsIndex) -> int:
    """A limit as an integer that C takes."""
    number = bare_index(operation, nbytes, "bytes as an integer, or None")
    if not 0 <= number <= _MOST:
        raise InvalidArgumentError(f"{operation}: got a limit of {nbytes} bytes, expected 0 to {_MOST}")
    return number


def _set_waiting() -> None:
    for index, number in _waiting.items():
        if index < native.tp_device_count():  # else it was hidden since
            check(native.tp_memory_set_limit(index, number))
    _waiting.clear()


native.at_start.append(_set_waiting)
