"""Every exception that TensorPlay raises.

All of them are `TensorPlayError`, which is a RuntimeError. An error about an argument is also the
built-in exception that Python programs expect, so that both habits catch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

__all__ = [
    "AcceleratorError",
    "BackendUnavailableError",
    "DTypeError",
    "ExchangeError",
    "HostMemoryError",
    "IndexTypeError",
    "InternalError",
    "InvalidArgumentError",
    "OrderError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "SizeOverflowError",
    "StateError",
    "TensorPlayError",
]


class TensorPlayError(RuntimeError):
    """Base of all errors of TensorPlay."""


class InvalidArgumentError(TensorPlayError, ValueError):
    """An argument has a value that the call does not take: shapes, devices, numbers, spellings."""


class DTypeError(TensorPlayError, TypeError):
    """A type or a dtype that the call does not take."""


class OutOfRangeError(TensorPlayError, IndexError):
    """An index or a dimension outside its range."""


class IndexTypeError(DTypeError, OutOfRangeError):
    """An index of a type or dtype that indexing does not take: an IndexError, as in torch, and a TypeError."""


class ExchangeError(TensorPlayError, BufferError):
    """Memory cannot be shared with another library in the way that was asked for."""


class SizeOverflowError(InvalidArgumentError, OverflowError):
    """A size whose elements or bytes cannot be counted in 63 bits."""


class OutOfMemoryError(TensorPlayError, MemoryError):
    """A device has no room for a request.

    The attributes say what its memory looked like when the request was refused, in bytes, as far as the backend
    knows: None and empty where it does not. No attribute refers to a tensor.

    Parameters
    ----------
    message : str
    **facts
        Attributes of those below.

    Attributes
    ----------
    device : str or None
        ``"cuda:0"`` for example.
    reason : str or None
        What had no room: ``"device"``, ``"limit"`` (of the process, on the device) or ``"budget"``.
    requested, rounded : int or None
        What the program asked for, and the block that this takes.
    device_free, device_total : int or None
        As the driver counts them.
    others : int or None
        What is neither free nor reserved here: other processes and libraries, and the driver itself.
    processes : dict of int to int
        What other processes hold of the device, by their number, where the system tells.
    places : dict of str to int
        The lines of the program whose blocks hold most, while the history of memory is recorded.
    limit : int or None
        What may be reserved on the device.
    reserved : int or None
        What the allocator holds of the device: all that follows are parts of it.
    allocated : int or None
        Blocks of live tensors.
    pending : int or None
        Blocks that were dropped and that other streams still use.
    returnable : int or None
        Cached memory without a live or pending block near it, which can go back to the driver.
    private_pools : int or None
        What belongs to graphs and other pools of their own.
    largest_free : int or None
        The largest cached block.
    largest_free_by_stream : dict of int to int
        The largest cached block of each stream, by the stream's handle; 0 is the default stream.
    budget : str or None
        The budget that is spent.
    budget_live, budget_limit : int or None
        What it holds and may hold.
    is_capturing : bool
        Whether the request belongs to a capture.
    is_hopeless : bool
        Whether the request alone exceeds the device or a limit, so that no freed memory could help.
    """

    device: str | None = None
    reason: str | None = None
    requested: int | None = None
    rounded: int | None = None
    device_free: int | None = None
    device_total: int | None = None
    others: int | None = None
    processes: Mapping[int, int] = MappingProxyType({})
    places: Mapping[str, int] = MappingProxyType({})
    limit: int | None = None
    reserved: int | None = None
    allocated: int | None = None
    pending: int | None = None
    returnable: int | None = None
    private_pools: int | None = None
    largest_free: int | None = None
    largest_free_by_stream: Mapping[int, int] = MappingProxyType({})
    budget: str | None = None
    budget_live: int | None = None
    budget_limit: int | None = None
    is_capturing: bool = False
    is_hopeless: bool = False

    def __init__(self, message: str = "", **facts: Any) -> None:
        super().__init__(message)
        unknown = facts.keys() - OutOfMemoryError.__annotations__
        if unknown:
            raise TypeError(f"OutOfMemoryError: got unknown facts {sorted(unknown)}")
        self.__dict__.update(facts)


class HostMemoryError(OutOfMemoryError):
    """The host has no room for a request."""


class AcceleratorError(TensorPlayError):
    """A call of the accelerator's runtime failed.

    Attributes
    ----------
    code : int
        The runtime's number for the failure, 700 for example; 0 when there is none.
    name : str
        The runtime's name for it, ``"cudaErrorIllegalAddress"`` for example.
    operation : str
        What TensorPlay was doing, ``"add"`` for example.
    """

    def __init__(self, message: str, code: int = 0, name: str = "", operation: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.operation = operation

    def __reduce__(self) -> tuple[type[AcceleratorError], tuple[str, int, str, str]]:
        return type(self), (str(self), self.code, self.name, self.operation)


class BackendUnavailableError(TensorPlayError):
    """No usable device, driver, library or package for a device type."""


class StateError(TensorPlayError):
    """The object is not in a state that allows the call."""


class OrderError(TensorPlayError):
    """Two pieces of work use the same memory, one of them to write, and no wait orders them.

    The checker of the backend raises it (``tensorplay.cuda.sanitizer``) for the one that was queued later.

    Parameters
    ----------
    message : str
    **facts
        Attributes of those below.

    Attributes
    ----------
    operations : tuple of str
        The earlier and the later one, ``("fill", "add")`` for example; so are all pairs.
    streams : tuple of int
        Handles of their streams; 0 is the default stream.
    devices : tuple of int
        Devices of those streams.
    places : tuple of str
        Their lines of the program, ``"train.py:12"`` for example.
    writes : tuple of bool
        Whether they write the memory.
    missing : str
        ``"wait_stream"`` of the later stream for the earlier one, or ``"record_stream"`` of a tensor that was dropped
        while the earlier one used it.
    address, nbytes : int
        The memory; its bytes are 0 where they are not known.
    allocated : str
        The line of the program that allocated it.
    """

    operations: tuple[str, str] = ("", "")
    streams: tuple[int, int] = (0, 0)
    devices: tuple[int, int] = (0, 0)
    places: tuple[str, str] = ("", "")
    writes: tuple[bool, bool] = (False, False)
    missing: str = ""
    address: int = 0
    nbytes: int = 0
    allocated: str = ""

    def __init__(self, message: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.__dict__.update(facts)


class InternalError(TensorPlayError):
    """A defect of TensorPlay itself; please report it."""
