"""Every exception that TensorPlay raises.

All of them are `TensorPlayError`, which is a RuntimeError. An error about an argument is also the
built-in exception that Python programs expect, so that both habits catch it.
"""

from __future__ import annotations

__all__ = [
    "AcceleratorError",
    "BackendUnavailableError",
    "DTypeError",
    "ExchangeError",
    "HostMemoryError",
    "IndexTypeError",
    "InternalError",
    "InvalidArgumentError",
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
    """A device has no room for a request."""


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


class InternalError(TensorPlayError):
    """A defect of TensorPlay itself; please report it."""
