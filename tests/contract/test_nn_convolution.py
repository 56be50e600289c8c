"""Convolutions on every device, against sums written out in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import FLOATING, Array, assert_close, operand

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional

Pair = tuple[int, int]


def convolve(x: Array, weight: Array, stride: Pair, before: Pair, after: Pair, dilation: Pair, groups: int) -> Array:
    """x of shape (batch, channels, height, width)."""
    x = np.pad(x, ((0, 0), (0, 0), (before[0], after[0]), (before[1], after[1])))
    out_channels, per_group, *kernel = weight.shape
    counts = [(x.shape[2 + d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in range(2)]
    result = np.zeros((x.shape[0], out_channels, *counts))
    for channel in range(out_channels):
        first = channel // (out_channels // groups) * per_group
        for row in range(counts[0]):
            for column in range(counts[1]):
                top, left = row * stride[0], column * stride[1]
                window = x[
                    :,
                    first : first + per_group,
                    top : top + dilation[0] * (kernel[0] - 1) + 1 : dilation[0],
                    left : left + dilation[1] * (kernel[1] - 1) + 1 : dilation[1],
                ]
                result[:, channel, row, column] = (window * weight[channel]).sum(axis=(1, 2, 3))
    return result


#: Shape of the input, of the weight, and the arguments.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 6), (4, 3, 3, 3), {}),
    ((2, 3, 7, 6), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
    ((1, 4, 9, 8), (6, 2, 2, 3), {"groups": 2, "dilation": (1, 2), "padding": 2}),
    ((2, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    ((2, 5, 4, 6), (3, 5, 1, 1), {}),
    ((2, 2, 8, 8), (3, 2, 4, 4), {"stride": 4}),
    ((2, 2, 5, 6), (3, 2, 2, 3), {"padding": "same"}),
    ((1, 2, 6, 6), (3, 2, 3, 2), {"padding": "same", "dilation": 2}),
    ((0, 2, 5, 5), (3, 2, 3, 3), {"padding": "valid"}),
]


def pair(value: int | Pair) -> Pair:
    return (value, value) if isinstance(value, int) else value


def expected(x: Array, weight: Array, arguments: dict[str, Any]) -> Array:
    stride, dilation = pair(arguments.get("stride", 1)), pair(arguments.get("dilation", 1))
    padding = arguments.get("padding", 0)
    if padding == "same":
        total = [dilation[d] * (weight.shape[2 + d] - 1) for d in range(2)]
        before, after = (total[0] // 2, total[1] // 2), (total[0] - total[0] // 2, total[1] - total[1] // 2)
    else:
        before = after = (0, 0) if padding == "valid" else pair(padding)
    return convolve(x, weight, stride, before, after, dilation, arguments.get("groups", 1))


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("shape", "weight_shape", "arguments"), CASES, ids=str)
def test_conv2d(
    device: str,
    dtype: tensorplay.DType,
    shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    arguments: dict[str, Any],
) -> None:
    x, a = operand(device, shape, dtype, "contiguous", 1, scale=1.0)
    weight, w = operand(device, weight_shape, dtype, "contiguous", 2, scale=0.5)
    bias, b = operand(device, weight_shape[:1], dtype, "contiguous", 3)
    sums = expected(a, w, arguments)
    assert_close(functional.conv2d(x, weight, **arguments), sums, dtype, room=20)
    assert_close(functional.conv2d(x, weight, bias, **arguments), sums + b.reshape(-1, 1, 1), dtype, room=20)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("layout", ["transposed", "stepped", "expanded"])
def test_conv2d_of_views(device: str, layout: str, padding: int) -> None:
    x, a = operand(device, (3, 2, 6, 5), tensorplay.float32, layout, 1)
    weight, w = operand(device, (4, 2, 3, 3), tensorplay.float32, "transposed", 2)
    got = functional.conv2d(x, weight, padding=padding)
    assert_close(got, expected(a, w, {"padding": padding}), tensorplay.float32, room=20)


def test_without_a_batch_and_in_one_dimension(device: str) -> None:
    x, a = operand(device, (3, 9), tensorplay.float32, "contiguous", 1)
    weight, w = operand(device, (4, 3, 3), tensorplay.float32, "contiguous", 2)
    wanted = convolve(a[None, :, None], w[:, :, None], (1, 2), (0, 1), (0, 1), (1, 2), 1)[0, :, 0]
    got = functional.conv1d(x, weight, stride=2, padding=1, dilation=2)
    assert_close(got, wanted, tensorplay.float32, room=20)
    assert_close(functional.conv1d(x.unsqueeze(0), weight, None, 2, 1, 2)[0], wanted, tensorplay.float32, room=20)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_layer_with_padding_modes(device: str, mode: str) -> None:
    layer = nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode, bias=False, device=device)
    x, a = operand(device, (2, 2, 5, 6), tensorplay.float32, "contiguous", 1)
    continued = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (2, 2)), mode=continued)  # type: ignore[call-overload]
    w = layer.weight.cpu().numpy().astype(np.float64)
    assert_close(layer(x), expected(padded, w, {}), tensorplay.float32, room=20)


def test_layer_keeps_the_size_with_same_padding(device: str) -> None:
    layer = nn.Conv1d(3, 2, 4, padding="same", dilation=3, groups=1, device=device)
    assert layer(tensorplay.ones(5, 3, 11, device=device)).shape == (5, 2, 11)


def test_an_element_that_is_no_number_stays_in_its_windows(device: str) -> None:
    x = tensorplay.ones(1, 1, 5, device=device)
    x[0, 0, 0] = float("inf")
    got = functional.conv1d(x, tensorplay.ones(1, 1, 2, device=device))
    assert got.tolist() == [[[float("inf"), 2.0, 2.0, 2.0]]]


@pytest.mark.parametrize(
    ("shape", "weight_shape", "arguments", "words"),
    [
        ((2, 3, 4, 4), (2, 2, 1, 1), {}, "expected 2 channels"),
        ((2, 3, 4, 4), (4, 3, 1), {}, "expected 4 dimensions"),
        ((3, 4), (4, 3, 1, 1), {}, "expected 3 dimensions, or 4"),
        ((1, 3, 4, 4), (4, 3, 5, 1), {}, "windows that fit"),
        ((1, 4, 4, 4), (3, 2, 1, 1), {"groups": 2}, "expected a divisor"),
        ((1, 3, 4, 4), (4, 3, 1, 1), {"stride": 0}, "got stride 0"),
        ((1, 3, 4, 4), (4, 3, 1, 1), {"padding": -1}, "got padding -1"),
        ((1, 3, 4, 4), (4, 3, 2, 2), {"padding": "same", "stride": 2}, "a stride of 1"),
        ((1, 3, 4, 4), (4, 3, 2, 2), {"padding": "some"}, "'valid', 'same'"),
        ((1, 3, 4, 4), (4, 3, 2, 2), {"dilation": (1, 2, 3)}, "expected 2 integers"),
    ],
)
def test_what_does_not_fit_is_refused(
    device: str, shape: tuple[int, ...], weight_shape: tuple[int, ...], arguments: dict[str, Any], words: str
) -> None:
    x, weight = tensorplay.ones(shape, device=device), tensorplay.ones(weight_shape, device=device)
    with pytest.raises(InvalidArgumentError, match=f"conv2d: .*{words}"):
        functional.conv2d(x, weight, **arguments)


def test_dtypes_are_one(device: str) -> None:
    x, weight = tensorplay.ones(1, 1, 2, device=device), tensorplay.ones(1, 1, 2, device=device)
    with pytest.raises(DTypeError, match="conv1d: got float32 and float16"):
        functional.conv1d(x, weight.half())
    with pytest.raises(InvalidArgumentError, match="bias of shape"):
        functional.conv1d(x, weight, weight[0, 0])
