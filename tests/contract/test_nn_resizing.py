"""Interpolation on every device, against formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import FLOATING, Array, assert_close, operand

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional


def cubic(x: float) -> float:
    """Weight of an element at a distance."""
    x = abs(x)
    if x <= 1:
        return 1.25 * x**3 - 2.25 * x**2 + 1
    return -0.75 * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def matrix(size: int, places: int, mode: str, align_corners: bool) -> Array:
    """What each new element takes of each old one."""
    result = np.zeros((places, size))
    for place in range(places):
        if mode == "nearest":
            result[place, place * size // places] = 1
            continue
        if align_corners:
            source = place * (size - 1) / (places - 1) if places > 1 else 0.0
        else:
            source = (place + 0.5) * size / places - 0.5
        if mode == "nearest-exact":
            result[place, int(source + 0.5)] = 1
            continue
        taps, weight = (range(-1, 3), cubic) if mode == "bicubic" else (range(2), lambda x: 1 - abs(x))
        source = source if mode == "bicubic" else max(source, 0.0)
        first = int(np.floor(source))
        for tap in taps:
            result[place, np.clip(first + tap, 0, size - 1)] += weight(source - first - tap)
    return result


SIZES = [(8, 12), (4, 6), (5, 9), (2, 3), (11, 4), (1, 1), (4, 13)]


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    ("mode", "align_corners"),
    [("nearest", None), ("nearest-exact", None), *((m, c) for m in ("bilinear", "bicubic") for c in (False, True))],
)
def test_images(
    device: str, dtype: tensorplay.DType, sizes: tuple[int, int], mode: str, align_corners: bool | None
) -> None:
    x, a = operand(device, (2, 3, 4, 6), dtype, "transposed", 1)
    rows, columns = (
        matrix(size, places, mode, bool(align_corners)) for size, places in zip((4, 6), sizes, strict=True)
    )
    got = functional.interpolate(x, sizes, mode=mode, align_corners=align_corners)
    # float32 places the new elements, so that weights have its precision.
    assert_close(got, rows @ a @ columns.T, dtype, room=10 if dtype is not tensorplay.float64 else 100)
    assert got.is_contiguous()
    assert got._backend.storage_id(got._impl) != x._backend.storage_id(x._impl)


def test_signals_and_volumes(device: str) -> None:
    x, a = operand(device, (2, 3, 5), tensorplay.float32, "contiguous", 1)
    linear = functional.interpolate(x, 9, mode="linear")
    assert_close(linear, a @ matrix(5, 9, "linear", False).T, tensorplay.float32, room=4)
    y, b = operand(device, (1, 2, 3, 2, 4), tensorplay.float32, "contiguous", 2)
    wanted = np.einsum("ncdhw,ad,bh,ew->ncabe", b, *(matrix(size, 5, "linear", True) for size in (3, 2, 4)))
    got = functional.interpolate(y, 5, mode="trilinear", align_corners=True)
    assert_close(got, wanted, tensorplay.float32, room=4)
    assert functional.interpolate(y, 6).shape == (1, 2, 6, 6, 6)


def test_a_whole_factor_repeats_elements_of_any_dtype(device: str) -> None:
    x = tensorplay.tensor([[[1, 2]]], dtype=tensorplay.int32, device=device)
    assert functional.interpolate(x, scale_factor=3).tolist() == [[[1, 1, 1, 2, 2, 2]]]
    assert nn.Upsample(scale_factor=2)(x.bool()).tolist() == [[[True] * 4]]


@pytest.mark.parametrize(("recompute", "wanted"), [(None, [0, 0, 1, 1, 2]), (True, [0, 0, 1, 1, 2])])
def test_a_factor_between_whole_numbers(device: str, recompute: bool | None, wanted: list[int]) -> None:
    x = tensorplay.arange(3.0, device=device).reshape(1, 1, 3)
    got = functional.interpolate(x, scale_factor=1.8, recompute_scale_factor=recompute)
    assert got.flatten().tolist() == wanted


def test_the_given_factor_counts_and_not_that_of_the_sizes(device: str) -> None:
    x = tensorplay.arange(4.0, device=device).reshape(1, 1, 4)
    by_factor = functional.interpolate(x, scale_factor=1.4, mode="linear")
    by_sizes = functional.interpolate(x, scale_factor=1.4, mode="linear", recompute_scale_factor=True)
    # int(4 * 1.4) == 5 elements: apart by 1 / 1.4, or by 4 / 5.
    places = np.arange(5) + 0.5
    np.testing.assert_allclose(by_factor.cpu().numpy()[0, 0], np.clip(places / 1.4 - 0.5, 0, 3), rtol=1e-6)
    np.testing.assert_allclose(by_sizes.cpu().numpy()[0, 0], np.clip(places * 0.8 - 0.5, 0, 3), rtol=1e-6)


def test_area_is_the_adaptive_mean(device: str) -> None:
    x, _ = operand(device, (1, 2, 5, 7), tensorplay.float32, "contiguous", 1)
    assert functional.interpolate(x, (2, 3), mode="area").tolist() == functional.adaptive_avg_pool2d(x, (2, 3)).tolist()


def test_layer(device: str) -> None:
    x, _ = operand(device, (1, 2, 5, 7), tensorplay.float32, "contiguous", 1)
    layer = nn.Upsample(size=(7, 3), mode="bilinear", align_corners=True)
    assert layer(x).tolist() == functional.interpolate(x, (7, 3), mode="bilinear", align_corners=True).tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "expected one of them"),
        ({"size": 2, "scale_factor": 2}, "expected one of them"),
        ({"size": (2, 3, 4)}, "expected 2 integers"),
        ({"size": 0}, "expected 1 or more"),
        ({"scale_factor": -1}, "numbers above 0"),
        ({"scale_factor": (1, 2, 3)}, "expected 2 numbers"),
        ({"size": 2, "mode": "cubic"}, "got mode 'cubic'"),
        ({"size": 2, "mode": "linear"}, "expected 3 dimensions"),
        ({"size": 2, "align_corners": False}, "align_corners"),
    ],
)
def test_refusals(device: str, arguments: dict[str, Any], words: str) -> None:
    x = tensorplay.ones(1, 1, 2, 2, device=device)
    with pytest.raises(InvalidArgumentError, match=f"interpolate: .*{words}"):
        functional.interpolate(x, **arguments)
    with pytest.raises(InvalidArgumentError, match=r"interpolate: got shape \(2,\) .*expected 3 or 4 or 5 dimensions"):
        functional.interpolate(x[0, 0, 0], 3)


def test_integers_are_not_mixed(device: str) -> None:
    with pytest.raises(DTypeError, match="interpolate: got dtype int64"):
        functional.interpolate(tensorplay.ones(1, 1, 2, dtype=tensorplay.int64, device=device), 3, mode="linear")
