"""Random numbers: the same on every device, and right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.operands import FLOATING, PRECISION, read
from hypothesis import given
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError

floats = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)


@floats
@given(seed=st.integers(0, 2**64 - 1), numel=st.integers(0, 300), low=st.floats(-4, 4), span=st.floats(0, 8))
def test_uniform_numbers_are_those_of_the_host(
    device: str, dtype: tensorplay.DType, seed: int, numel: int, low: float, span: float
) -> None:
    drawn = []
    for place in ("cpu", device):
        tensorplay.manual_seed(seed)
        first = tensorplay.empty(5, dtype=dtype, device=place).uniform_()
        drawn.append((read(first), read(tensorplay.empty(numel, dtype=dtype, device=place).uniform_(low, low + span))))
    for host, other in zip(*drawn, strict=True):
        np.testing.assert_array_equal(host, other)


@floats
@given(seed=st.integers(0, 2**64 - 1), numel=st.integers(0, 300))
def test_normal_numbers_are_those_of_the_host(device: str, dtype: tensorplay.DType, seed: int, numel: int) -> None:
    drawn = []
    for place in ("cpu", device):
        tensorplay.manual_seed(seed)
        drawn.append(read(tensorplay.empty(numel, dtype=dtype, device=place).normal_(1.0, 3.0)))
    np.testing.assert_allclose(*drawn, rtol=PRECISION[dtype], atol=4 * PRECISION[dtype])


@floats
def test_uniform_numbers_are_uniform(device: str, dtype: tensorplay.DType) -> None:
    numbers = read(tensorplay.rand(100_000, dtype=dtype, device=device))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.005
    counts, _ = np.histogram(numbers, 10, (0, 1))
    assert np.abs(counts - 10_000).max() < 500


@floats
def test_normal_numbers_are_normal(device: str, dtype: tensorplay.DType) -> None:
    numbers = read(tensorplay.randn(100_000, dtype=dtype, device=device))
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.std() - 1) < 0.02
    for limit in (1.0, 2.0, 3.0):
        assert abs((np.abs(numbers) < limit).mean() - math.erf(limit / math.sqrt(2))) < 0.01
    # Neighbours come from one pair of words and must not know of each other.
    assert abs((numbers[0::2] * numbers[1::2]).mean()) < 0.02


def test_the_order_of_elements_is_that_of_c_whatever_the_strides(device: str) -> None:
    tensorplay.manual_seed(3)
    flat = tensorplay.rand(3, 4, device=device)
    tensorplay.manual_seed(3)
    turned = tensorplay.empty(4, 3, device=device).T.uniform_()
    assert turned.tolist() == flat.tolist()


def test_seeds_start_anew(device: str) -> None:
    tensorplay.manual_seed(5)
    first = tensorplay.rand(7, device=device).tolist()
    second = tensorplay.rand(7, device=device).tolist()
    tensorplay.manual_seed(5)
    assert tensorplay.initial_seed() == 5
    assert tensorplay.rand(7, device=device).tolist() == first
    assert first != second
    # A negative seed counts from the end of 64 bits.
    tensorplay.manual_seed(-1)
    assert tensorplay.initial_seed() == 2**64 - 1


def test_equal_limits_and_no_spread(device: str) -> None:
    x = tensorplay.empty(5, device=device)
    assert x.uniform_(2, 2).tolist() == [2.0] * 5
    assert x.normal_(3, 0).tolist() == [3.0] * 5


def test_refused(device: str) -> None:
    x = tensorplay.zeros(3, device=device)
    inf, nan = float("inf"), float("nan")
    for low, high in [(1, 0), (0, inf), (-inf, 0), (nan, 1), (-3e38, 3e38)]:
        with pytest.raises(InvalidArgumentError, match="uniform_: got"):
            x.uniform_(low, high)
    for std in (-1.0, inf, nan):
        with pytest.raises(InvalidArgumentError, match="normal_: got a standard deviation"):
            x.normal_(0, std)
    with pytest.raises(DTypeError, match="uniform_: got int64, expected one floating dtype"):
        x.long().uniform_()
    with pytest.raises(DTypeError, match="manual_seed: got '1', expected an integer"):
        tensorplay.manual_seed("1")  # type: ignore[arg-type]
    assert not x.any()
