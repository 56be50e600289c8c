"""Parameters of layers: how they are made, and what they begin as."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _creation
from . import init
from .parameter import Parameter

if TYPE_CHECKING:
    from .._device import DeviceLike
    from .._dtype import DType
    from .._tensor import Tensor


def parameter(shape: tuple[int, ...], device: DeviceLike | None, dtype: DType | None) -> Parameter:
    """One without defined values."""
    return Parameter(_creation.empty(shape, device=device, dtype=dtype))


def draw(fan_in: int, weight: Tensor, bias: Tensor | None) -> None:
    """Both uniform within ±1/√fan_in, which is how many inputs a result has."""
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    init.uniform_(weight, -bound, bound)
    if bias is not None:
        init.uniform_(bias, -bound, bound)


def keep_as_is(scale: Tensor | None, shift: Tensor | None = None) -> None:
    """A scale and a shift that change nothing: ones and zeros."""
    if scale is not None:
        init.ones_(scale)
    if shift is not None:
        init.zeros_(shift)
