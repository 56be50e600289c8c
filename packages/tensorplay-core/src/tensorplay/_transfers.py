"""The part of the protocol between core and a backend (`tensorplay._backend`) that concerns the host's memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import BackendUnavailableError

if TYPE_CHECKING:
    import numpy as np

    from ._device import Device
    from ._dtype import DType
    from ._tensor import Tensor


class Transfers(ABC):
    """Elements to and from the host, and pinned memory there.

    With `non_blocking` a copy may run after the call, in the order of the device's current stream, when the array is
    contiguous and lies in memory of `empty_pinned`, which is kept until then. Everything else is done on return.
    """

    type: str

    @abstractmethod
    def from_host(self, array: np.ndarray[Any, Any], device: Device, non_blocking: bool = False) -> Tensor:
        """A new tensor with the array's elements and dtype (host backend: shares a writable array)."""

    @abstractmethod
    def to_host(self, tensor: Tensor, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        """The elements as an array, with `non_blocking` in pinned memory (host backend: shares memory)."""

    @abstractmethod
    def copy_from_host_(self, target: Tensor, array: np.ndarray[Any, Any], non_blocking: bool = False) -> None:
        """target := array, cast and broadcast."""

    def copy_to_host_(self, array: np.ndarray[Any, Any], source: Tensor, non_blocking: bool = False) -> None:
        """array := source, of the same dtype and shape; the array lies in C order."""
        array[...] = self.to_host(source)

    def empty_pinned(self, shape: Sequence[int], dtype: DType) -> Tensor:
        """A tensor on the host, in memory that the backend's devices copy from and to by themselves."""
        raise BackendUnavailableError(f"pin_memory: the backend of type {self.type!r} pins no memory")

    def is_pinned(self, address: int) -> bool:
        """Whether the host's memory there is pinned. Never raises, starts nothing."""
        return False
