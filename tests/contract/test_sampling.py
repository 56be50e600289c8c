"""Distributions that core composes of random bits: right, and the same on every device."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from helpers.operands import FLOATING, INTEGERS, PRECISION, read

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError

Sampler = Callable[[str], tensorplay.Tensor]

SAMPLERS: dict[str, Sampler] = {
    "rand": lambda d: tensorplay.rand(3, 5, dtype=_dtype.float64, device=d),
    "rand_like": lambda d: tensorplay.rand_like(tensorplay.ones(7, device=d)),
    "randint": lambda d: tensorplay.randint(-5, 1000, (3, 7), device=d),
    "randint_like": lambda d: tensorplay.randint_like(tensorplay.ones(7, device=d), 9),
    "random_": lambda d: tensorplay.empty(9, dtype=_dtype.int16, device=d).random_(),
    "randperm": lambda d: tensorplay.randperm(100, device=d),
    "bernoulli": lambda d: tensorplay.bernoulli(tensorplay.full((50,), 0.3, device=d)),
    "bernoulli_": lambda d: tensorplay.zeros(50, dtype=_dtype.bool, device=d).bernoulli_(0.7),
    "multinomial": lambda d: tensorplay.multinomial(tensorplay.arange(9.0, device=d), 5),
    "multinomial again": lambda d: tensorplay.multinomial(tensorplay.ones(2, 9, device=d), 30, replacement=True),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_equal_seeds_give_the_numbers_of_the_host(device: str, name: str) -> None:
    drawn = []
    for place in (device, "cpu", device):
        tensorplay.manual_seed(11)
        drawn.append(SAMPLERS[name](place))
    assert drawn[0].device.type == device
    assert drawn[0].tolist() == drawn[1].tolist() == drawn[2].tolist()
    assert SAMPLERS[name](device).tolist() != drawn[0].tolist()


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATING, _dtype.bool], ids=lambda dtype: dtype.name)
def test_integers_fill_their_range(device: str, dtype: tensorplay.DType) -> None:
    low, high = (0, 2) if dtype is _dtype.bool else (3, 13)
    drawn = tensorplay.randint(low, high, (20_000,), dtype=dtype, device=device)
    assert drawn.dtype is dtype
    found, counts = np.unique(read(drawn).astype(np.int64), return_counts=True)
    assert found.tolist() == list(range(low, high))
    share = 20_000 / (high - low)
    assert np.abs(counts - share).max() < 6 * math.sqrt(share)


def test_the_widest_ranges(device: str) -> None:
    drawn = read(tensorplay.empty(1000, dtype=_dtype.int64, device=device).random_())
    assert drawn.min() >= 0
    assert drawn.max() > 2**62
    drawn = read(tensorplay.randint(-(2**63), 0, (1000,), device=device))
    assert drawn.max() < 0
    assert drawn.min() < -(2**62)
    bytes_ = read(tensorplay.empty(10_000, dtype=_dtype.uint8, device=device).random_())
    assert (bytes_.min(), bytes_.max()) == (0, 255)
    fractions = read(tensorplay.empty(10_000, dtype=_dtype.bfloat16, device=device).random_())
    assert (fractions.min(), fractions.max()) == (0, 256)


def test_permutations(device: str) -> None:
    drawn = tensorplay.randperm(500, device=device)
    assert drawn.dtype is tensorplay.int64
    assert sorted(drawn.tolist()) == list(range(500))
    assert drawn.tolist() != list(range(500))
    assert tensorplay.randperm(0, device=device).tolist() == []
    assert sorted(tensorplay.randperm(256, dtype=_dtype.uint8, device=device).tolist()) == list(range(256))
    # Every order of three is as likely as the others.
    orders = [tuple(tensorplay.randperm(3, device=device).tolist()) for _ in range(1200)]
    assert all(abs(orders.count(order) - 200) < 80 for order in set(orders))
    assert len(set(orders)) == 6


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_coins(device: str, dtype: tensorplay.DType) -> None:
    shares = tensorplay.tensor([0.0, 0.25, 0.75, 1.0], dtype=dtype, device=device)
    drawn = tensorplay.bernoulli(shares.expand(10_000, 4))
    assert drawn.dtype is dtype
    means = read(drawn.float()).mean(axis=0)
    assert means[0] == 0
    assert means[3] == 1
    assert np.abs(means[1:3] - [0.25, 0.75]).max() < 0.03
    whole = tensorplay.zeros(10_000, 4, dtype=_dtype.int64, device=device).bernoulli_(shares)
    assert np.abs(read(whole).mean(axis=0) - [0, 0.25, 0.75, 1]).max() < 0.03


@pytest.mark.parametrize("replacement", [False, True])
def test_draws_by_weights(device: str, replacement: bool) -> None:
    weights = tensorplay.tensor([[0.0, 1.0, 3.0, 0.0], [2.0, 2.0, 0.0, 4.0]], device=device)
    shares = np.array([[0, 0.25, 0.75, 0], [0.25, 0.25, 0, 0.5]])
    if replacement:
        drawn = read(tensorplay.multinomial(weights, 8000, replacement=True))
    else:
        rows = weights.unsqueeze(1).expand(2, 8000, 4).reshape(-1, 4)
        drawn = read(tensorplay.multinomial(rows, 1)).reshape(2, 8000)
    for row, expected in zip(drawn, shares, strict=True):
        assert np.abs(np.bincount(row, minlength=4) / 8000 - expected).max() < 0.03
    assert tensorplay.multinomial(weights[0], 1, replacement).shape == (1,)


def test_draws_without_replacement_differ(device: str) -> None:
    drawn = tensorplay.multinomial(tensorplay.ones(50, 6, dtype=_dtype.float16, device=device), 6)
    assert drawn.dtype is tensorplay.int64
    assert [sorted(row) for row in drawn.tolist()] == [[0, 1, 2, 3, 4, 5]] * 50
    # The second of two draws is what is left.
    second = read(tensorplay.multinomial(tensorplay.tensor([[1.0, 0.0, 9.0]] * 2000, device=device), 2))
    assert set(second.reshape(-1).tolist()) == {0, 2}
    assert abs((second[:, 0] == 2).mean() - 0.9) < 0.03


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_normal_numbers_by_element(device: str, dtype: tensorplay.DType) -> None:
    mean = tensorplay.tensor([0.0, 5.0, -5.0], dtype=dtype, device=device)
    std = tensorplay.tensor([1.0, 0.0, 2.0], dtype=dtype, device=device)
    drawn = tensorplay.normal(mean.expand(20_000, 3), std)
    assert drawn.dtype is dtype
    numbers = read(drawn)
    assert np.abs(numbers.mean(axis=0) - [0, 5, -5]).max() < 0.08
    assert np.abs(numbers.std(axis=0) - [1, 0, 2]).max() < 0.08
    assert set(numbers[:, 1]) == {5.0}
    assert tensorplay.normal(3.0, std * 0).tolist() == [3.0] * 3
    assert tensorplay.normal(mean, 0).tolist() == mean.tolist()
    assert tensorplay.normal(2.0, 0.0, (2, 2), dtype=dtype, device=device).tolist() == [[2.0] * 2] * 2


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_waiting_times(device: str, dtype: tensorplay.DType) -> None:
    drawn = tensorplay.empty(20_000, dtype=dtype, device=device).exponential_(2.0)
    numbers = read(drawn)
    assert numbers.min() >= 0
    assert np.isfinite(numbers).all()
    assert abs(numbers.mean() - 0.5) < 0.02
    assert abs((numbers > 0.5).mean() - math.exp(-1)) < 0.02
    tensorplay.manual_seed(0)
    again = tensorplay.empty(50, dtype=dtype, device="cpu").exponential_()
    tensorplay.manual_seed(0)
    other = tensorplay.empty(50, dtype=dtype, device=device).exponential_()
    np.testing.assert_allclose(read(other), read(again), rtol=4 * PRECISION[dtype])


def test_views_are_filled_in_the_order_of_c(device: str) -> None:
    tensorplay.manual_seed(3)
    flat = tensorplay.randint(100, (3, 4), device=device)
    tensorplay.manual_seed(3)
    turned = tensorplay.empty(4, 3, dtype=_dtype.int64, device=device).T.random_(100)
    assert turned.tolist() == flat.tolist()


def test_what_is_refused(device: str) -> None:
    x = tensorplay.ones(3, device=device)
    for call, error, words in [
        (lambda: tensorplay.randint(3, 3, (2,), device=device), InvalidArgumentError, "randint: got 3 to 3"),
        (lambda: x.random_(5, 2), InvalidArgumentError, "random_: got 5 to 2"),
        (lambda: tensorplay.randint(300, (2,), dtype=_dtype.uint8, device=device), InvalidArgumentError, "uint8 holds"),
        (lambda: tensorplay.randint(-1, 2, (2,), dtype=_dtype.bool, device=device), InvalidArgumentError, "bool holds"),
        (lambda: tensorplay.randint(-(2**63), 1, (2,), device=device), InvalidArgumentError, "at most 2"),
        (lambda: tensorplay.randperm(257, dtype=_dtype.uint8, device=device), InvalidArgumentError, "uint8 holds"),
        (lambda: x.bernoulli_(1.5), InvalidArgumentError, "bernoulli_: got probability 1.5, expected 0 to 1"),
        (lambda: x.long().bernoulli(), DTypeError, "bernoulli: got probabilities of dtype int64"),
        (lambda: x.multinomial(4), InvalidArgumentError, "multinomial: got 4 samples of 3 elements"),
        (lambda: x.multinomial(0, replacement=True), InvalidArgumentError, "multinomial: got 0 samples"),
        (lambda: x.long().multinomial(1), DTypeError, "multinomial: got dtype int64"),
        (lambda: x.reshape(1, 1, 3).multinomial(1), InvalidArgumentError, "multinomial: got shape"),
        (lambda: tensorplay.normal(x, -1.0), InvalidArgumentError, "normal: got a standard deviation of -1.0"),
        (lambda: tensorplay.normal(0.0, 1.0), InvalidArgumentError, "normal: got two numbers and no size"),
        (lambda: x.exponential_(0), InvalidArgumentError, "exponential_: got a rate of 0"),
        (lambda: x.long().exponential_(), DTypeError, "exponential_: got dtype int64"),
        (lambda: x.to(_dtype.complex64).random_(5), DTypeError, "random_: got dtype complex64"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert x.tolist() == [1.0] * 3
