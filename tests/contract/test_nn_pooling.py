"""Poolings on every device, against loops over windows in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.operands import FLOATING, Array, assert_close, operand

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional


def starts(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> list[int]:
    """Where the windows of one dimension begin."""
    places = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1
    count = math.ceil(places) if ceil_mode else math.floor(places)
    found = [place * stride - padding for place in range(count)]
    return [start for start in found if start < size + padding] if ceil_mode else found


def pooled(x: Array, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool, fold: Any) -> Array:
    """One call of `fold` for each window: with its elements, and the rows and columns where it begins."""
    rows, columns = (starts(size, kernel, stride, padding, dilation, ceil_mode) for size in x.shape[-2:])
    result = np.zeros((*x.shape[:-2], len(rows), len(columns)))
    for i, top in enumerate(rows):
        for j, left in enumerate(columns):
            inside = [
                [place for place in range(start, start + dilation * kernel, dilation) if 0 <= place < size]
                for start, size in zip((top, left), x.shape[-2:], strict=True)
            ]
            result[..., i, j] = fold(x[..., inside[0], :][..., inside[1]], top, left)
    return result


CASES = [
    # kernel, stride, padding, dilation, ceil_mode
    (2, 2, 0, 1, False),
    (3, 2, 1, 1, False),
    (3, 2, 1, 1, True),
    (2, 3, 1, 1, True),
    (2, 1, 1, 2, False),
    (3, 3, 0, 2, True),
    (1, 1, 0, 1, False),
]


@pytest.mark.parametrize("dtype", [*FLOATING, tensorplay.int32, tensorplay.uint8], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_max_pool2d(device: str, dtype: tensorplay.DType, case: tuple[int, int, int, int, bool]) -> None:
    x, a = operand(device, (2, 3, 7, 6), dtype, "contiguous", 1)
    wanted = pooled(a, *case, lambda window, top, left: window.max(axis=(-1, -2)))
    kernel, stride, padding, dilation, ceil_mode = case
    assert_close(functional.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode), wanted, dtype)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("case", [case for case in CASES if case[3] == 1], ids=str)
def test_avg_pool2d(device: str, dtype: tensorplay.DType, case: tuple[int, int, int, int, bool], include: bool) -> None:
    x, a = operand(device, (2, 3, 7, 6), dtype, "transposed", 1)
    kernel, stride, padding, _, ceil_mode = case

    def counted(start: int, size: int) -> int:
        around = padding if include else 0
        return min(start + kernel, size + around) - max(start, -around)

    def fold(window: Array, top: int, left: int) -> Array:
        return np.asarray(window.sum(axis=(-1, -2)) / (counted(top, 7) * counted(left, 6)))

    got = functional.avg_pool2d(x, kernel, stride, padding, ceil_mode, include)
    assert_close(got, pooled(a, *case, fold), dtype)


def test_avg_pool2d_by_another_divisor(device: str) -> None:
    x = tensorplay.ones(1, 4, 4, device=device)
    assert functional.avg_pool2d(x, 2, divisor_override=-8).tolist() == [[[-0.5, -0.5], [-0.5, -0.5]]]


def test_means_of_half_numbers_do_not_overflow(device: str) -> None:
    x = tensorplay.full((1, 4, 5), 60000.0, dtype=tensorplay.float16, device=device)
    for got in (
        functional.avg_pool2d(x, 2, 2),
        functional.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False),
        functional.adaptive_avg_pool2d(x, (2, 2)),
        functional.adaptive_avg_pool2d(x, (3, 4)),
    ):
        assert set(got.flatten().tolist()) == {60000.0}


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("sizes", [(1, 1), (3, 2), (5, 4), (4, 6), (9, 13), (6, None)], ids=str)
def test_adaptive_pools(device: str, dtype: tensorplay.DType, sizes: tuple[int, int | None]) -> None:
    x, a = operand(device, (2, 2, 6, 8), dtype, "contiguous", 1)
    rows, columns = sizes[0], sizes[1] or 8

    def parts(fold: Callable[[Array], Array]) -> Array:
        result = np.zeros((2, 2, rows, columns))
        for i in range(rows):
            for j in range(columns):
                top, bottom = i * 6 // rows, -(-(i + 1) * 6 // rows)
                left, right = j * 8 // columns, -(-(j + 1) * 8 // columns)
                result[..., i, j] = fold(a[..., top:bottom, left:right])
        return result

    means = parts(lambda part: np.asarray(part.mean(axis=(-1, -2))))
    assert_close(functional.adaptive_avg_pool2d(x, sizes), means, dtype)
    largest = parts(lambda part: np.asarray(part.max(axis=(-1, -2))))
    assert_close(functional.adaptive_max_pool2d(x, sizes), largest, dtype)


def test_in_one_dimension_and_without_a_batch(device: str) -> None:
    x = tensorplay.tensor([[1.0, 5.0, 2.0, 4.0, 3.0]], device=device)
    assert functional.max_pool1d(x, 2).tolist() == [[5.0, 4.0]]
    assert functional.max_pool1d(x, 2, ceil_mode=True).tolist() == [[5.0, 4.0, 3.0]]
    assert functional.avg_pool1d(x, 3, 1).tolist() == pytest.approx(np.array([[8 / 3, 11 / 3, 3.0]]))
    assert functional.adaptive_avg_pool1d(x, 2).tolist() == pytest.approx(np.array([[8 / 3, 3.0]]))
    assert functional.adaptive_max_pool1d(x, 2).tolist() == [[5.0, 4.0]]


def test_a_window_with_nan_gives_nan_and_spreads_it_no_further(device: str) -> None:
    x = tensorplay.tensor([[1.0, math.nan, 2.0, 4.0, -math.inf, 3.0]], device=device)
    np.testing.assert_equal(functional.max_pool1d(x, 2).tolist(), [[math.nan, 4.0, 3.0]])
    np.testing.assert_equal(functional.avg_pool1d(x, 2).tolist(), [[math.nan, 3.0, -math.inf]])
    np.testing.assert_equal(functional.adaptive_avg_pool1d(x, 4).tolist(), [[math.nan, math.nan, -math.inf, -math.inf]])


def test_layers(device: str) -> None:
    x, _ = operand(device, (2, 3, 8, 8), tensorplay.float32, "contiguous", 1)
    for layer, got in (
        (nn.MaxPool2d(2), functional.max_pool2d(x, 2)),
        (nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), functional.max_pool2d(x, 3, 2, 1, 1, True)),
        (
            nn.AvgPool2d((2, 3), padding=1, count_include_pad=False),
            functional.avg_pool2d(x, (2, 3), None, 1, False, False),
        ),
        (nn.AdaptiveAvgPool2d((None, 3)), functional.adaptive_avg_pool2d(x, (8, 3))),
        (nn.AdaptiveMaxPool2d(3), functional.adaptive_max_pool2d(x, 3)),
    ):
        assert layer(x).tolist() == got.tolist()
    row = x[0]
    for layer, got in (
        (nn.MaxPool1d(2), functional.max_pool1d(row[0], 2)),
        (nn.AvgPool1d(3, 2, 1), functional.avg_pool1d(row[0], 3, 2, 1)),
        (nn.AdaptiveAvgPool1d(3), functional.adaptive_avg_pool1d(row[0], 3)),
        (nn.AdaptiveMaxPool1d(3), functional.adaptive_max_pool1d(row[0], 3)),
    ):
        assert layer(row[0]).tolist() == got.tolist()


def test_refusals(device: str) -> None:
    x = tensorplay.ones(1, 4, 4, device=device)
    with pytest.raises(InvalidArgumentError, match="max_pool2d: got padding 2 for windows of 3"):
        functional.max_pool2d(x, 3, padding=2)
    with pytest.raises(InvalidArgumentError, match="max_pool2d: got windows of 5 .* expected windows that fit"):
        functional.max_pool2d(x, 5)
    with pytest.raises(InvalidArgumentError, match="avg_pool1d: got shape"):
        functional.avg_pool1d(x[0, 0], 2)
    with pytest.raises(InvalidArgumentError, match="divisor_override=0"):
        functional.avg_pool2d(x, 2, divisor_override=0)
    with pytest.raises(DTypeError, match="avg_pool2d: got dtype int64"):
        functional.avg_pool2d(x.long(), 2)
    with pytest.raises(DTypeError, match="max_pool2d: got dtype bool"):
        functional.max_pool2d(x.bool(), 2)
    with pytest.raises(InvalidArgumentError, match="expected elements in each channel"):
        functional.adaptive_avg_pool2d(x[:, :0], 2)
    with pytest.raises(InvalidArgumentError, match="return_indices=True"):
        nn.MaxPool2d(2, return_indices=True)
