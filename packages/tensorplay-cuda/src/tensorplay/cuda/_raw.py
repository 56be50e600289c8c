"""Blocks of device memory by their address, without a tensor."""

from __future__ import annotations

from typing import SupportsIndex

from tensorplay._device import bare_index
from tensorplay.errors import InvalidArgumentError, SizeOverflowError

from ._check import repeated
from ._current import current_stream
from ._library import native
from .device import DeviceArgument, device_index
from .streams import Stream, pointer_of

_MOST = 2**64 - 1


def caching_allocator_alloc(size: SupportsIndex, device: DeviceArgument = None, stream: object = None) -> int:
    """The address of a block that lives until `caching_allocator_delete` (`tp_memory_alloc`).

    Parameters
    ----------
    size : int
        Bytes. 0 takes no memory, and the address is 0.
    device : device, str or int, optional
        The current device when left out.
    stream : Stream or int, optional
        The stream that will use the block, or the handle of one of another library; the device's current stream when
        left out.

    Returns
    -------
    int
        A multiple of 512.

    Raises
    ------
    InvalidArgumentError
        A negative size, or a stream of another device.
    SizeOverflowError
        A size that 63 bits do not count.
    OutOfMemoryError
    DTypeError
        A size that is no integer, or a stream that is none.
    """
    nbytes = _checked("caching_allocator_alloc", size)
    index = device_index(device)
    address = native.tp_memory_alloc(nbytes, _pointer("caching_allocator_alloc", stream, index))
    if address == native.NULL and nbytes:
        again: int = repeated(caching_allocator_alloc, (size, device, stream))
        return again
    return int(native.ffi.cast("uintptr_t", address))


def caching_allocator_delete(mem_ptr: SupportsIndex) -> None:
    """Gives a block of `caching_allocator_alloc` back (`tp_memory_free`); other addresses are ignored."""
    address = _checked("caching_allocator_delete", mem_ptr)
    native.tp_memory_free(native.ffi.cast("void *", address))


def _checked(name: str, number: SupportsIndex) -> int:
    found = bare_index(name, number, "an integer")
    if found < 0:
        raise InvalidArgumentError(f"{name}: got {found}, expected 0 or more")
    if found > _MOST:
        raise SizeOverflowError(f"{name}: got {found}, expected at most {_MOST}")
    return found


def _pointer(name: str, stream: object, index: int) -> object:
    if stream is None:
        stream = current_stream(index)
    elif isinstance(stream, int) and not isinstance(stream, bool):
        stream = _Handle(stream, index)
    pointer = pointer_of(name, stream, Stream)
    if native.tp_stream_device(pointer) != index:
        found = native.tp_stream_device(pointer)
        raise InvalidArgumentError(f"{name}: got a stream of cuda:{found}, expected one of cuda:{index}")
    return pointer


class _Handle:
    """What `pointer_of` takes for a stream of another library."""

    def __init__(self, cuda_stream: int, device_index: int) -> None:
        self.cuda_stream = cuda_stream
        self.device_index = device_index
