"""The general calls for random numbers: which generators they seed, keep and put back."""

from __future__ import annotations

from typing import Any

import pytest

import tensorplay
from tensorplay import random
from tensorplay.errors import DTypeError, InvalidArgumentError


def test_a_state_of_the_host_repeats_its_numbers() -> None:
    tensorplay.manual_seed(4)
    tensorplay.rand(3)
    kept = tensorplay.get_rng_state()
    assert kept.view(tensorplay.int64).tolist() == [4, 4]
    first = tensorplay.rand(5).tolist()
    assert tensorplay.get_rng_state().view(tensorplay.int64).tolist() == [4, 12]
    tensorplay.set_rng_state(kept)
    assert tensorplay.get_rng_state().tolist() == kept.tolist()
    assert tensorplay.rand(5).tolist() == first


def test_a_state_that_was_read_is_a_copy() -> None:
    kept = tensorplay.get_rng_state()
    kept.fill_(1)
    assert tensorplay.get_rng_state().tolist() != kept.tolist()


def test_a_seed_by_chance_is_told() -> None:
    chosen = tensorplay.seed()
    assert tensorplay.initial_seed() == chosen != tensorplay.seed()
    assert 0 <= chosen < 2**64


@pytest.mark.parametrize(("seed", "kept"), [(0, 0), (2**64 - 1, 2**64 - 1), (-1, 2**64 - 1), (-(2**63), 2**63)])
def test_seeds_have_64_bits(seed: int, kept: int) -> None:
    tensorplay.manual_seed(seed)
    assert tensorplay.initial_seed() == kept


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "x", None])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    tensorplay.manual_seed(3)
    with pytest.raises((InvalidArgumentError, DTypeError), match=r"manual_seed: got .*, expected"):
        tensorplay.manual_seed(seed)
    assert tensorplay.initial_seed() == 3


def test_a_fork_puts_the_host_back_after_an_exception_too() -> None:
    before = tensorplay.get_rng_state().tolist()
    with random.fork_rng([]):
        tensorplay.manual_seed(77)
    with pytest.raises(ZeroDivisionError), random.fork_rng(["cpu"]):
        1 // (tensorplay.rand(3).dim() - 1)
    assert tensorplay.get_rng_state().tolist() == before


def test_a_fork_that_is_off_does_nothing() -> None:
    before = tensorplay.get_rng_state().tolist()
    with random.fork_rng([], enabled=False):
        tensorplay.rand(3)
    assert tensorplay.get_rng_state().tolist() != before


@pytest.mark.parametrize("devices", [["gpu"], ["cpu:1"], [1.5], [True]])
def test_a_fork_of_no_device_is_refused_before_the_block(devices: list[Any]) -> None:
    with pytest.raises((InvalidArgumentError, DTypeError), match="device"), random.fork_rng(devices):
        raise AssertionError
