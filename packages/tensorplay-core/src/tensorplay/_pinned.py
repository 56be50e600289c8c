"""Pinned memory of the host: page-locked, so that an accelerator copies from and to it by itself.

The accelerator's backend allocates it; the tensors are the host's, over NumPy arrays as all of them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _dispatch, _plugins
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._device import Device
    from ._dtype import DType
    from ._tensor import Tensor


def empty(shape: Sequence[int], dtype: DType, device: Device) -> Tensor:
    """`tensorplay.empty` in pinned memory.

    Raises
    ------
    InvalidArgumentError
        Another device than the host.
    BackendUnavailableError
        There is no accelerator.
    HostMemoryError
        More bytes than can be pinned.
    """
    if device.type != "cpu":
        raise InvalidArgumentError(f"pin_memory: got device {device}, expected cpu: memory of the host is pinned")
    backend = _plugins.loaded_accelerator() or _plugins.needed("pin_memory: an accelerator pins memory")
    return backend.empty_pinned(shape, dtype)


def pin_memory(self: Tensor) -> Tensor:
    """A contiguous copy of a host tensor in pinned memory; the tensor itself when it lies there already.

    Copies between pinned memory and a device are faster, and with ``non_blocking=True`` they run beside the host's
    work (see `Tensor.to`). Freed pinned memory is kept for the next request: docs/guide/memory.md.

    Raises
    ------
    InvalidArgumentError
        A tensor that is not on the host.
    BackendUnavailableError
        There is no accelerator; the text says what to install.
    HostMemoryError
        More bytes than can be pinned.
    """
    _dispatch.check_tensor("pin_memory", self)
    if is_pinned(self):
        return self
    made = empty(self.shape, self.dtype, self.device)
    _dispatch.copy_(made, self)
    return made


def is_pinned(self: Tensor) -> bool:
    """Whether the elements lie in pinned memory, also in that of another library. Starts nothing."""
    if self._backend.type != "cpu":
        return False
    backend, address = _plugins.loaded_accelerator(), self.data_ptr()
    return backend is not None and address != 0 and backend.is_pinned(address)


def pinned(made: Tensor, is_wanted: bool) -> Tensor:
    """The result of a function with `pin_memory`: the tensor itself, or its copy in pinned memory."""
    return pin_memory(made) if is_wanted else made
