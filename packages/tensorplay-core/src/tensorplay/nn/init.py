"""How parameters begin: functions that fill a tensor in place and return it.

Names, arguments and distributions are torch's. The numbers come from the generator of the tensor's device.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .. import _creation, _dtype
from .._data import from_numpy
from .._tensor import Tensor
from ..errors import InvalidArgumentError

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "fans",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "skipped",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_thread = threading.local()

_WINITZKI = 0.147

_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
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
    return tensor if _is_skipped() else tensor.uniform_(a, b)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fills with normal numbers."""
    return tensor if _is_skipped() else tensor.normal_(mean, std)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Fills with normal numbers of which those outside [a, b] are left out."""
    if not (std > 0 and a < b):
        raise InvalidArgumentError(f"trunc_normal_: got std={std}, a={a} and b={b}, expected std above 0 and a < b")
    if _is_skipped():
        return tensor
    low, high = (math.erf((limit - mean) / (std * math.sqrt(2.0))) for limit in (a, b))
    share = _creation.empty(tensor.shape, dtype=_dtype.float64, device=tensor.device).uniform_(low, high)
    return tensor.copy_((_inverse_erf(share) * (std * math.sqrt(2.0)) + mean).clamp(a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    return tensor if _is_skipped() else tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix with ones on the diagonal, zeros elsewhere."""
    if tensor.ndim != 2:
        raise InvalidArgumentError(f"eye_: got shape {tensor.shape}, expected two dimensions")
    dirac_(tensor.unsqueeze(-1))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a convolution's weight that keeps as many channels as it can, in each group; zeros elsewhere."""
    if tensor.ndim < 3 or groups < 1 or tensor.shape[0] % groups:
        raise InvalidArgumentError(
            f"dirac_: got shape {tensor.shape} and groups={groups}, expected 3 dimensions or more, and a divisor"
        )
    if _is_skipped():
        return tensor
    middle = tensor.zero_().unflatten(0, (groups, tensor.shape[0] // groups))
    for size in tensor.shape[2:]:
        middle = middle.select(3, size // 2)
    middle.diagonal(0, 1, 2).fill_(1.0)
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Makes rows, or columns where these are fewer, orthogonal and of length `gain`; all such matrices are as likely.

    The dimensions behind the first count as one. The numbers go to the host and back.
    """
    if tensor.ndim < 2:
        raise InvalidArgumentError(f"orthogonal_: got shape {tensor.shape}, expected at least 2 dimensions")
    if _is_skipped() or not tensor.numel():
        return tensor
    shape = (tensor.shape[0], tensor.numel() // tensor.shape[0])
    draws = _creation.empty((max(shape), min(shape)), dtype=_dtype.float64, device=tensor.device).normal_()
    q, r = np.linalg.qr(draws.cpu().numpy())
    q *= np.sign(np.diagonal(r)) * gain
    matrix = q if shape[0] >= shape[1] else q.T
    return tensor.copy_(from_numpy(np.ascontiguousarray(matrix.reshape(tensor.shape))))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    """Fills a matrix with normal numbers of which a share, in each column, are zeros at random places."""
    if tensor.ndim != 2 or not 0.0 <= sparsity <= 1.0:
        raise InvalidArgumentError(
            f"sparse_: got shape {tensor.shape} and sparsity={sparsity}, expected two dimensions and 0 to 1"
        )
    if _is_skipped():
        return tensor
    zeros = math.ceil(sparsity * tensor.shape[0])
    order = _creation.empty(tensor.shape, dtype=_dtype.float64, device=tensor.device).uniform_().argsort(0)
    return tensor.normal_(0.0, std).scatter_(0, order[:zeros], 0.0)


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
        ``"linear"``, ``"conv1d"`` to ``"conv3d"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"`` or
        ``"selu"``.
    param : float, optional
        The negative slope of ``"leaky_relu"``, 0.01 by default.
    """
    known = sorted([*_GAINS, "leaky_relu"])
    if not isinstance(nonlinearity, str) or nonlinearity not in known:
        raise InvalidArgumentError(f"calculate_gain: got {nonlinearity!r}, expected one of {', '.join(known)}")
    if nonlinearity != "leaky_relu":
        return _GAINS[nonlinearity]
    slope = 0.01 if param is None else param
    return math.sqrt(2.0 / (1.0 + slope * slope))


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


def _is_skipped() -> bool:
    return getattr(_thread, "skipped", False)


def _inverse_erf(y: Tensor) -> Tensor:
    """Where the error function is y, of float64: an estimate of Winitzki's, and two of Halley's steps."""
    y = y.clamp(-1.0 + 2.0**-53, 1.0 - 2.0**-53)
    logs = (1.0 - y * y).log()
    half = logs * 0.5 + 2.0 / (math.pi * _WINITZKI)
    x = ((half * half - logs / _WINITZKI).sqrt() - half).sqrt().copysign(y)
    for _ in range(2):
        step = (x.erf() - y) * (x * x).exp() * (math.sqrt(math.pi) / 2.0)
        x = x - step / (x * step + 1.0)
    return x
