"""How parameters begin: functions that fill a tensor in place and return it.

Names, arguments and distributions are torch's. The numbers come from the generator of the tensor's device.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .._tensor import Tensor
from ..errors import InvalidArgumentError

__all__ = [
    "calculate_gain",
    "constant_",
    "fans",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "skipped",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_thread = threading.local()

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4.0,
}


@contextmanager
def skipped() -> Iterator[None]:
    """While it is open, this thread's calls of the functions of this module leave tensors as they are."""
    former = getattr(_thread, "skipped", False)
    _thread.skipped = True
    try:
        yield
    finally:
        _thread.skipped = former


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fills with uniform numbers from [a, b)."""
    if not getattr(_thread, "skipped", False):
        tensor.uniform_(a, b)
    return tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fills with normal numbers."""
    if not getattr(_thread, "skipped", False):
        tensor.normal_(mean, std)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    if not getattr(_thread, "skipped", False):
        tensor.fill_(val)
    return tensor


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fills with uniform numbers of variance 2 gain² / (fan_in + fan_out)."""
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fills with normal numbers of variance 2 gain² / (fan_in + fan_out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))))


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Fills with uniform numbers of variance gain² / fan; `a` is the slope of leaky_relu."""
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Fills with normal numbers of variance gain² / fan; `a` is the slope of leaky_relu."""
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights make up for what a nonlinearity takes from the variance.

    Parameters
    ----------
    nonlinearity : str
        ``"linear"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"`` or ``"selu"``.
    param : float, optional
        The negative slope of ``"leaky_relu"``, 0.01 by default.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in _GAINS:
        known = ", ".join(sorted([*_GAINS, "leaky_relu"]))
        raise InvalidArgumentError(f"calculate_gain: got {nonlinearity!r}, expected one of {known}")
    return _GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight of shape (out, in, ...): how many inputs one output has, and the reverse."""
    if tensor.ndim < 2:
        raise InvalidArgumentError(f"init: got shape {tensor.shape}, expected at least 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise InvalidArgumentError(f"init: got mode {mode!r}, expected 'fan_in' or 'fan_out'")
    return fans(tensor)[mode == "fan_out"]
