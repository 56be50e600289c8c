"""Mean and variance, or the mean square, taken to 0 and 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _dispatch, _dtype, _limits, _shape
from ..._operands._spec import device_of
from ..._ops.reductions import mean
from ..._ops.statistics import var_mean
from ..._ops.wide import wide
from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._tensor import Tensor


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then ``* weight + bias``.

    Parameters
    ----------
    input : Tensor
        Shape ``(..., *normalized_shape)``, a floating dtype. The arithmetic is float32 or better.
    normalized_shape : sequence of int
        Sizes of the last dimensions.
    weight, bias : Tensor, optional
        Shape `normalized_shape`.
    eps : float
        Added to the variance.
    """
    backend = _dispatch.common("layer_norm", input, optional=(weight, bias))
    shape = _shape.integers("layer_norm", (normalized_shape,))
    return backend.layer_norm(input, shape, weight, bias, _dispatch.real("layer_norm", eps))


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Mean square 1 over the last dimensions, then ``* weight``.

    Parameters
    ----------
    input : Tensor
        Shape ``(..., *normalized_shape)``, a floating dtype.
    normalized_shape : sequence of int
        Sizes of the last dimensions.
    weight : Tensor, optional
        Shape `normalized_shape`.
    eps : float, optional
        Added to the mean square; by default the smallest step from 1 of what is computed in.
    """
    _check("rms_norm", input, (weight,))
    shape = _shape.integers("rms_norm", (normalized_shape,))
    if not shape or input.shape[max(input.ndim - len(shape), 0) :] != shape:
        raise InvalidArgumentError(
            f"rms_norm: got normalized_shape {shape}, expected the last sizes of shape {input.shape}"
        )
    _check_shape("rms_norm", "weight", weight, shape)
    x = wide(input, input.dtype)
    least = _limits.finfo(x.dtype).eps if eps is None else _dispatch.real("rms_norm", eps)
    result = x * (mean(x * x, tuple(range(-len(shape), 0)), keepdim=True) + least).rsqrt()
    return (result if weight is None else result * weight).to(input.dtype)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Mean 0 and variance 1 over each group of channels, then ``* weight + bias`` for each channel.

    Parameters
    ----------
    input : Tensor
        Shape (batch, channels, ...), a floating dtype.
    num_groups : int
        How many parts of the channels there are; it divides their number.
    weight, bias : Tensor, optional
        Shape (channels,).
    eps : float
        Added to the variance.
    """
    _check("group_norm", input, (weight, bias))
    groups = _shape.integer("group_norm", num_groups)
    channels = _channels("group_norm", input)
    if groups < 1 or channels % groups:
        raise InvalidArgumentError(f"group_norm: got num_groups={groups} for {channels} channels, expected a divisor")
    _check_shape("group_norm", "weight", weight, (channels,))
    _check_shape("group_norm", "bias", bias, (channels,))
    row = channels // groups * math.prod(input.shape[2:])
    x = input if weight is None and bias is None else wide(input, input.dtype)
    rows = x.reshape(input.shape[0], groups, row)
    result = rows._backend.layer_norm(rows, (row,), None, None, _dispatch.real("group_norm", eps)).reshape(input.shape)
    if weight is not None:
        result = result * _per_channel(weight, input)
    if bias is not None:
        result = result + _per_channel(bias, input)
    return result.to(input.dtype)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel minus its mean, divided by its deviation, then ``* weight + bias``.

    Parameters
    ----------
    input : Tensor
        Shape (batch, channels, ...), a floating dtype.
    running_mean, running_var : Tensor or None
        Shape (channels,): what is taken as mean and variance.
    weight, bias : Tensor, optional
        Shape (channels,).
    training : bool
        Takes mean and variance of the input, and moves the running ones towards them.
    momentum : float
        How far they are moved, 0 to 1.
    eps : float
        Added to the variance.
    """
    _check("batch_norm", input, (running_mean, running_var, weight, bias))
    channels = _channels("batch_norm", input)
    tensors = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, tensor in tensors.items():
        _check_shape("batch_norm", name, tensor, (channels,))
    least, share = _dispatch.real("batch_norm", eps), _dispatch.real("batch_norm", momentum)
    x = wide(input, input.dtype)
    if _dispatch.flag("batch_norm", "training", training):
        centre, spread = _batch_statistics(x, running_mean, running_var, share)
    elif running_mean is None or running_var is None:
        raise InvalidArgumentError("batch_norm: got no running_mean or no running_var, expected both but in training")
    else:
        centre, spread = running_mean, wide(running_var, running_var.dtype)
    factor = (spread + least).rsqrt()
    if weight is not None:
        factor = factor * weight
    offset = -centre * factor if bias is None else bias - centre * factor
    return (x * _per_channel(factor, input) + _per_channel(offset, input)).to(input.dtype)


def _batch_statistics(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, share: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel; the running ones move towards them."""
    count = x.numel() // max(x.shape[1], 1)
    if count < 2:
        raise InvalidArgumentError(
            f"batch_norm: got shape {x.shape} in training, expected more than one element in each channel"
        )
    spread, centre = var_mean(x, [dim for dim in range(x.ndim) if dim != 1], correction=0)
    for running, found in ((running_mean, centre), (running_var, spread * (count / (count - 1)))):
        if running is not None:
            running.copy_(wide(running, running.dtype) * (1.0 - share) + found * share)
    return centre, spread


def _check(operation: str, input: Tensor, others: tuple[Tensor | None, ...]) -> None:
    """Refuses what is not floating, or not on one device."""
    _dispatch.common(operation, input, optional=others)
    device_of(operation, input, *others)
    for tensor in (input, *others):
        if tensor is not None:
            _dtype.check_floating(operation, tensor.dtype)


def _check_shape(operation: str, name: str, tensor: Tensor | None, shape: _shape.Shape) -> None:
    if tensor is not None and tensor.shape != shape:
        raise InvalidArgumentError(f"{operation}: got {name} of shape {tensor.shape}, expected {shape}")


def _channels(operation: str, input: Tensor) -> int:
    if input.ndim < 2:
        raise InvalidArgumentError(f"{operation}: got shape {input.shape}, expected a batch and channels")
    return input.shape[1]


def _per_channel(tensor: Tensor, input: Tensor) -> Tensor:
    """One number for each channel, in a shape that broadcasts with the input."""
    return tensor.reshape(-1, *(1,) * (input.ndim - 2))
