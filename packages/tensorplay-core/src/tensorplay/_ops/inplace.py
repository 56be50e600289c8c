"""Methods that write into the tensor and return it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch
from ..errors import DTypeError

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


def fill_(self: Tensor, value: Scalar | Tensor) -> Tensor:
    """Every element := value, cast to the tensor's dtype; a tensor of one element serves too."""
    plain = _dispatch.number(value)
    if plain is not None:
        self._backend.fill_(self, plain)
        return self
    _dispatch.check_tensor("fill_", value)
    shape = value.shape  # type: ignore[union-attr]
    if shape:
        raise DTypeError(f"fill_: got a value of shape {shape}, expected no dimensions")
    return copy_(self, value)  # type: ignore[arg-type]


def zero_(self: Tensor) -> Tensor:
    """Every element := 0."""
    self._backend.fill_(self, 0)
    return self


def copy_(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """The elements of another tensor, cast and broadcast; from any device.

    Parameters
    ----------
    non_blocking : bool
        Whether a copy between a device and pinned memory of the host may run after the call, as in `Tensor.to`. Into
        memory that is not pinned, or has gaps, the copy is complete on return.
    """
    _dispatch.check_tensor("copy_", source)
    _dispatch.copy_(self, source, _dispatch.flag("copy_", "non_blocking", non_blocking))
    return self


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Refuses True: there is no autograd."""
    self.requires_grad = requires_grad
    return self
