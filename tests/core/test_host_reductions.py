"""Totals, places and orders on the host."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplay
from tensorplay import _dtype, _plugins
from tensorplay.errors import DTypeError, OutOfRangeError

HOST = _plugins.get("cpu")
nan, inf = float("nan"), float("inf")
REAL = [dtype for dtype in _dtype.DTYPES.values() if not dtype.is_complex]
FLOATING = [dtype for dtype in REAL if dtype.is_floating_point]


def by_name(dtype: _dtype.DType) -> str:
    """For ids."""
    return dtype.name


@pytest.mark.parametrize("dtype", FLOATING, ids=by_name)
def test_places_of_extremes(dtype: _dtype.DType) -> None:
    x = tensorplay.tensor([[1.0, nan, 3.0, nan], [2.0, 5.0, 5.0, -1.0], [-0.0, 0.0, 0.0, -0.0]], dtype=dtype)
    assert HOST.arg_reduce("argmax", x, 1).tolist() == [1, 1, 0]
    assert HOST.arg_reduce("argmin", x, -1, True).tolist() == [[1], [3], [0]]
    assert HOST.arg_reduce("argmax", x[1:], None).item() == 1
    assert HOST.arg_reduce("argmin", x.T, None, True).tolist() == [[3]]


def test_places_of_nothing_are_refused() -> None:
    x = tensorplay.empty(0, 3)
    assert HOST.arg_reduce("argmax", x, 1).shape == (0,)
    for dim in (0, None):
        with pytest.raises(OutOfRangeError, match=r"argmax: got shape \(0, 3\), expected elements in dimension 0"):
            HOST.arg_reduce("argmax", x, dim)
    with pytest.raises(OutOfRangeError, match="argmin: got dimension 2"):
        HOST.arg_reduce("argmin", x, 2)
    with pytest.raises(DTypeError, match="argmax: got dtype complex64"):
        HOST.arg_reduce("argmax", tensorplay.ones(2, dtype=tensorplay.complex64), 0)


@pytest.mark.parametrize("dtype", REAL, ids=by_name)
@pytest.mark.parametrize("descending", [False, True])
def test_order_is_stable(dtype: _dtype.DType, descending: bool, own_seed: int) -> None:
    numbers = np.random.default_rng(own_seed).integers(0, 4, (3, 50, 2)).astype(dtype.numpy)
    found = HOST.argsort(tensorplay.from_numpy(numbers), 1, descending)
    assert (found.dtype, found.shape, found.is_contiguous()) == (tensorplay.int64, (3, 50, 2), True)
    for row, column in itertools.product(range(3), range(2)):
        keys = numbers[row, :, column].tolist()
        expected = sorted(range(50), key=lambda place: -keys[place] if descending else keys[place])
        assert found[row, :, column].tolist() == expected


@pytest.mark.parametrize("dtype", FLOATING, ids=by_name)
def test_order_of_nan_and_zeros(dtype: _dtype.DType) -> None:
    x = tensorplay.tensor([nan, 0.0, inf, -0.0, nan, -inf, 0.0], dtype=dtype)
    assert HOST.argsort(x, 0).tolist() == [5, 1, 3, 6, 2, 0, 4]
    assert HOST.argsort(x, 0, True).tolist() == [0, 4, 2, 1, 3, 6, 5]
    assert HOST.argsort(x[0], 0).item() == 0


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", _dtype.DTYPES.values(), ids=by_name)
def test_running_totals(op: str, dtype: _dtype.DType, own_seed: int) -> None:
    numbers = np.random.default_rng(own_seed).integers(0, 3, (2, 5, 3)).astype(dtype.numpy)
    totals = {"cumsum": np.cumsum, "cumprod": np.cumprod}[op]
    x = tensorplay.from_numpy(numbers).transpose(0, 1)
    result = dtype if dtype.category >= _dtype.FLOAT else tensorplay.int64
    for dim in (0, 1, -1):
        found = HOST.scan(op, x, dim)
        assert (found.dtype, found.is_contiguous()) == (result, True)
        exact = numbers.astype(np.complex128).swapaxes(0, 1)
        np.testing.assert_array_equal(found.to(tensorplay.complex128).numpy(), totals(exact, axis=dim))
    point = HOST.scan(op, x[0, 0, 0], 0)
    assert point.shape == ()
    assert point.item() == x[0, 0, 0].item()


def test_totals_are_exact_in_float64_and_rounded_once() -> None:
    x = tensorplay.full((1000,), 1e-4, dtype=tensorplay.float32)
    x[0] = 1e4
    exact = x.to(tensorplay.float64).numpy()
    np.testing.assert_array_equal(HOST.scan("cumsum", x, 0).numpy(), np.cumsum(exact).astype(np.float32))
    assert x.sum().item() == np.float32(exact.sum())
    assert str(HOST.scan("cumsum", tensorplay.tensor([-0.0]), 0).tolist()) == "[0.0]"
    halves = tensorplay.full((5000,), 1.0, dtype=tensorplay.float16)
    assert HOST.scan("cumsum", halves, 0)[-1].item() == 5000


def test_means_keep_their_places_and_parts(own_seed: int) -> None:
    x = np.random.default_rng(own_seed).random((2, 3, 4)).astype(np.float32)
    for layout in itertools.permutations(range(3)):
        turned = tensorplay.from_numpy(x).permute(layout)
        for dims in ([0], [1], [0, 2], []):
            exact = x.transpose(layout).mean(tuple(dims) or None, np.float64)
            np.testing.assert_array_equal(HOST.reduce("mean", turned, dims).numpy(), exact.astype(np.float32))
    assert result_of("mean", [complex(inf, 1), 1j], tensorplay.complex64) == complex(inf, 1)


def result_of(op: str, values: list[Any], dtype: _dtype.DType, wanted: _dtype.DType | None = None) -> Any:
    """A reduction of everything, as a number."""
    return HOST.reduce(op, tensorplay.tensor(values, dtype=dtype), None, dtype=wanted).item()


def test_products() -> None:
    assert result_of("prod", [3, 5], tensorplay.uint8) == 15
    assert result_of("prod", [2**40, 2**24, 3], tensorplay.int64) == 0
    assert result_of("prod", [2, 1 + 1j], tensorplay.complex64) == 2 + 2j
    assert result_of("prod", [], tensorplay.float32) == 1
    assert result_of("prod", [300.0, 300.0, 0.001], tensorplay.float16) == pytest.approx(90, rel=2e-3)
    assert result_of("prod", [True, False], tensorplay.bool) == 0


def test_dtype_converts_the_elements_first() -> None:
    assert result_of("sum", [2.5, 2.5], tensorplay.float32, tensorplay.int64) == 4
    assert result_of("sum", [200, 100], tensorplay.int64, tensorplay.uint8) == 44
    # From one dtype of fractions to another nothing is rounded on the way in.
    assert result_of("sum", [6e4, 6e4], tensorplay.float16, tensorplay.float32) == 120_000
    assert result_of("sum", [6e4, 6e4, -6e4], tensorplay.float32, tensorplay.float16) == 60_000
