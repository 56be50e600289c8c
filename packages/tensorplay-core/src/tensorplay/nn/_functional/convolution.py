"""Convolutions: one product with patches, which are copied from a view, or are a view where the kernel has size 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _dispatch, _shape
from ..._operands._spec import device_of, floating
from ..._ops.padding import pad
from ...errors import InvalidArgumentError
from ._arguments import check_spatial, choice, sizes
from .windows import reach, windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._tensor import Tensor


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over the last dimension; the arguments are those of `conv2d`, with one size for two.

    Parameters
    ----------
    input : Tensor
        Shape (channels, length), or (batch, channels, length).
    weight : Tensor
        Shape (out_channels, channels / groups, size).
    """
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over the last two dimensions.

    Parameters
    ----------
    input : Tensor
        Shape (channels, height, width), or (batch, channels, height, width); one floating dtype for all tensors.
    weight : Tensor
        Shape (out_channels, channels / groups, height, width).
    bias : Tensor, optional
        Shape (out_channels,).
    stride : int or two ints
        From one window to the next.
    padding : int, two ints or str
        Zeros on each side; ``"valid"``: none, ``"same"``: as many as keep the size, with stride 1.
    dilation : int or two ints
        From one element of a window to the next.
    groups : int
        Parts of the channels that are convolved each for itself.

    Returns
    -------
    Tensor
        Shape (out_channels, height, width), with a batch before it where the input has one.
    """
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def _convolution(
    operation: str,
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    dilation: int | Sequence[int],
    groups: int,
) -> Tensor:
    _dispatch.common(operation, input, weight, optional=(bias,))
    check_spatial(operation, input, count)
    device_of(operation, input, weight, bias)
    floating(operation, input, weight, bias)
    steps = sizes(operation, "stride", stride, count)
    apart = sizes(operation, "dilation", dilation, count)
    groups = _shape.integer(operation, groups)
    _check_weight(operation, count, input, weight, bias, groups)
    out_channels, per_group, *kernel = weight.shape

    sides = around(operation, padding, kernel, steps, apart)
    if any(sides):
        input = pad(input, sides)
    lengths = [reach(size, gap) for size, gap in zip(kernel, apart, strict=True)]
    room = input.shape[-count:]
    if any(length > size for length, size in zip(lengths, room, strict=True)):
        raise InvalidArgumentError(
            f"{operation}: got windows of {tuple(lengths)} in {tuple(room)} elements with padding, "
            "expected windows that fit"
        )
    counts = [(size - length) // step + 1 for size, length, step in zip(room, lengths, steps, strict=True)]

    lead, rows = input.shape[: -count - 1], per_group * math.prod(kernel)
    # Groups are a batch dimension more, where there are several.
    parts = () if groups == 1 else (groups,)
    filters = weight.reshape(*parts, out_channels // groups, rows)
    patches = windows(input, counts, kernel, steps, apart).reshape(*lead, *parts, rows, math.prod(counts))
    if bias is None:
        product = filters @ patches
    else:
        product = input._backend.addmm(bias.reshape(*parts, out_channels // groups, 1), filters, patches, 1, 1)
    return product.reshape(*lead, out_channels, *counts)


def _check_weight(operation: str, count: int, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> None:
    if weight.ndim != count + 2 or 0 in weight.shape[2:]:
        raise InvalidArgumentError(
            f"{operation}: got a weight of shape {weight.shape}, expected {count + 2} dimensions, none of them empty"
        )
    out_channels, per_group = weight.shape[:2]
    if groups < 1 or out_channels % groups:
        raise InvalidArgumentError(
            f"{operation}: got groups={groups} for {out_channels} output channels, expected a divisor"
        )
    if input.shape[-count - 1] != per_group * groups:
        raise InvalidArgumentError(
            f"{operation}: got an input of shape {input.shape}, expected {per_group * groups} channels: "
            f"{groups} groups of {per_group}, as weight has them"
        )
    if bias is not None and bias.shape != (out_channels,):
        raise InvalidArgumentError(f"{operation}: got a bias of shape {bias.shape}, expected {(out_channels,)}")


def around(
    operation: str, padding: object, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[int]:
    """How many elements come on each side, as `pad` takes them."""
    if not isinstance(padding, str):
        zeros = sizes(operation, "padding", padding, len(kernel), 0)
        return [size for size in reversed(zeros) for _ in range(2)]
    if choice(operation, "padding", padding, ("valid", "same")) == "valid":
        return [0] * 2 * len(kernel)
    if any(step != 1 for step in stride):
        raise InvalidArgumentError(
            f"{operation}: got padding 'same' and stride {tuple(stride)}, expected a stride of 1"
        )
    totals = [reach(size, gap) - 1 for size, gap in zip(kernel, dilation, strict=True)]
    return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
