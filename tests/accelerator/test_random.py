"""Seeds and states of generators through the facade."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import fresh

import tensorplay
from tensorplay import accelerator
from tensorplay.accelerator import random
from tensorplay.errors import BackendUnavailableError, DTypeError, InvalidArgumentError

from .conftest import Place


def draw(place: Place, index: int = 0) -> list[Any]:
    found: list[Any] = tensorplay.rand(5, device=place.spellings(index)[0]).tolist()
    return found


def state(*numbers: int) -> tensorplay.Tensor:
    return tensorplay.tensor(numbers, dtype=tensorplay.int64).view(tensorplay.uint8)


def test_equal_seeds_give_the_numbers_of_the_host_whatever_the_grid(here: Place) -> None:
    for shape in ((7,), (3, 5), (100_003,)):
        random.manual_seed(11)
        found = tensorplay.rand(shape, device=here.type)
        tensorplay.manual_seed(11)
        assert tensorplay.equal(found.cpu(), tensorplay.rand(shape))
    random.manual_seed(11)
    whole = tensorplay.rand(4000, device=here.type)
    random.manual_seed(11)
    parts = [tensorplay.rand(1000, device=here.type) for _ in range(4)]
    assert tensorplay.equal(whole, tensorplay.cat(parts))


def test_a_seed_is_the_current_devices(two: Place) -> None:
    random.manual_seed_all(1)
    with accelerator.device_index(1):
        random.manual_seed(2)
        assert random.initial_seed() == 2
    assert random.initial_seed() == 1
    random.manual_seed_all(-1)
    assert draw(two, 0) == draw(two, 1)
    assert random.initial_seed() == 2**64 - 1


def test_seeds_by_chance_are_told(here: Place) -> None:
    chosen = random.seed()
    assert random.initial_seed() == chosen != random.seed()
    chosen = random.seed_all()
    with accelerator.device_index(here.last):
        assert random.initial_seed() == chosen


@pytest.mark.parametrize("seed", [None, 1.5, "x", 2**64, -(2**63) - 1])
def test_what_is_no_seed_is_refused(place: Place, seed: Any) -> None:
    for call in (random.manual_seed, random.manual_seed_all):
        with pytest.raises((DTypeError, InvalidArgumentError), match="manual_seed: got .*, expected"):
            call(seed)


def test_a_state_repeats_the_numbers_and_reads_back(here: Place) -> None:
    host = tensorplay.get_rng_state().tolist()
    random.manual_seed(5)
    draw(here, here.last)
    for device in (here.last, *here.spellings(here.last)):
        kept = random.get_rng_state(device)
        assert (kept.dtype, kept.shape, kept.device.type) == (tensorplay.uint8, (16,), "cpu")
        first = draw(here, here.last)
        assert random.get_rng_state(device=device).tolist() != kept.tolist()
        random.set_rng_state(kept, device=device)
        assert random.get_rng_state(device).tolist() == kept.tolist()
        assert draw(here, here.last) == first
    assert tensorplay.get_rng_state().tolist() == host


def test_a_state_is_a_seed_and_an_offset_or_a_seed(here: Place) -> None:
    random.set_rng_state(state(9, 40))
    assert random.initial_seed() == 9
    assert random.get_rng_state().view(tensorplay.int64).tolist() == [9, 40]
    draw(here)
    assert random.get_rng_state().view(tensorplay.int64).tolist() == [9, 48]
    random.set_rng_state(state(3))
    assert random.get_rng_state().view(tensorplay.int64).tolist() == [3, 0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"0123456789abcdef", "got bytes, expected a tensor"),
        (tensorplay.zeros(16), "got a tensor of float32, expected uint8"),
        (tensorplay.zeros(5, dtype=tensorplay.uint8), r"got a tensor of shape \(5,\) on cpu, expected 16 bytes"),
        (tensorplay.zeros((2, 8), dtype=tensorplay.uint8), r"got a tensor of shape \(2, 8\) on cpu"),
        (state(1, 2), "got offset 2, expected a multiple of 4"),
    ],
)
def test_what_is_no_state_is_refused_and_changes_nothing(here: Place, given: Any, says: str) -> None:
    before = random.get_rng_state_all()
    states = [random.get_rng_state() for _ in range(here.count)]
    states[-1] = given
    for call in (lambda: random.set_rng_state(given), lambda: random.set_rng_state_all(states)):
        with pytest.raises((InvalidArgumentError, DTypeError), match=f"^set_rng_state: {says}"):
            call()
    assert [kept.tolist() for kept in random.get_rng_state_all()] == [kept.tolist() for kept in before]


def test_what_are_no_states_is_refused(place: Place) -> None:
    with pytest.raises(DTypeError, match="^set_rng_state_all: got int, expected a sequence of states"):
        random.set_rng_state_all(5)  # type: ignore[arg-type]


def test_a_state_on_a_device_is_refused(here: Place) -> None:
    with pytest.raises(InvalidArgumentError, match="expected 16 bytes on the host"):
        random.set_rng_state(random.get_rng_state().to(here.type))


def test_a_state_may_lie_with_strides(here: Place) -> None:
    spread = tensorplay.zeros((16, 2), dtype=tensorplay.uint8)[:, 0]
    spread.copy_(state(7, 8))
    random.set_rng_state(spread)
    assert random.get_rng_state().view(tensorplay.int64).tolist() == [7, 8]


def test_all_states_are_those_of_the_devices_and_not_the_hosts(place: Place) -> None:
    kept = random.get_rng_state_all()
    assert len(kept) == place.count
    first = [draw(place, index) for index in range(place.count)]
    random.set_rng_state_all(kept)
    assert [draw(place, index) for index in range(place.count)] == first


def test_another_number_of_states_is_refused(place: Place) -> None:
    one = tensorplay.zeros(16, dtype=tensorplay.uint8)
    before = [kept.tolist() for kept in random.get_rng_state_all()]
    with pytest.raises(
        InvalidArgumentError, match=f"got {place.count + 1} states, expected one for each of {place.count}"
    ):
        random.set_rng_state_all([one] * (place.count + 1))
    assert [kept.tolist() for kept in random.get_rng_state_all()] == before


def test_seeding_without_an_accelerator_does_nothing(nothing: None) -> None:
    host = tensorplay.initial_seed()
    random.manual_seed(3)
    random.manual_seed_all(3)
    assert isinstance(random.seed(), int)
    assert isinstance(random.seed_all(), int)
    assert tensorplay.initial_seed() == host
    one = tensorplay.zeros(16, dtype=tensorplay.uint8)
    for call in (random.initial_seed, random.get_rng_state, lambda: random.set_rng_state(one)):
        with pytest.raises(BackendUnavailableError, match="no accelerator"):
            call()


def test_a_state_goes_to_another_process(here: Place) -> None:
    if here.type == "fake":
        pytest.skip("the other process has only what is installed")
    random.manual_seed(21)
    draw(here)
    kept = random.get_rng_state().tolist()
    program = f"""
        import tensorplay
        from tensorplay import accelerator
        kept = tensorplay.tensor({kept}, dtype=tensorplay.uint8)
        accelerator.random.set_rng_state(kept)
        assert accelerator.random.get_rng_state().tolist() == {kept}
        print(tensorplay.rand(5, device={here.type!r}).tolist())
    """
    assert fresh.run(program, TENSORPLAY_ACCELERATOR=None) == f"{draw(here)}\n"


# -- fork_rng ------------------------------------------------------------------------------------------------


def numbers(place: Place) -> list[Any]:
    return [tensorplay.rand(3).tolist(), *(draw(place, index) for index in range(place.count))]


def test_a_fork_puts_back_the_host_and_all_devices(place: Place) -> None:
    tensorplay.manual_seed(6)
    random.manual_seed_all(6)
    expected = numbers(place)
    tensorplay.manual_seed(6)
    random.manual_seed_all(6)
    with random.fork_rng():
        inside = numbers(place)
    with pytest.raises(ZeroDivisionError), random.fork_rng():
        1 // (len(numbers(place)) - 1 - place.count)
    assert numbers(place) == expected == inside


def test_a_fork_touches_named_devices_only(two: Place) -> None:
    for devices, restored in (
        (["cpu"], set()),
        ([], set()),
        ([1], {1}),
        ([*two.spellings(1), 1], {1}),
        ([two.type, "cpu"], {0}),
        (iter([0, 1]), {0, 1}),
    ):
        before = [kept.tolist() for kept in random.get_rng_state_all()]
        host = tensorplay.get_rng_state().tolist()
        with random.fork_rng(devices):
            numbers(two)
        after = [kept.tolist() for kept in random.get_rng_state_all()]
        assert {index for index in (0, 1) if after[index] == before[index]} == restored
        assert tensorplay.get_rng_state().tolist() == host


def test_a_fork_of_a_device_that_is_not_there_is_refused_before_the_block(here: Place) -> None:
    for device in (99, *here.spellings(99), "cpu:1"):
        with pytest.raises(InvalidArgumentError, match="(device 99|device 1) asked for"), random.fork_rng([device]):
            raise AssertionError


def test_a_fork_takes_its_kind_from_the_devices(here: Place) -> None:
    before = [kept.tolist() for kept in random.get_rng_state_all()]
    for index in (here.last, np.int64(here.last)):
        with random.fork_rng([index], device_type=here.type), random.fork_rng([index]):
            draw(here, here.last)
    assert [kept.tolist() for kept in random.get_rng_state_all()] == before
    with random.fork_rng(device_type="cpu"):
        draw(here)
    assert random.get_rng_state(0).tolist() != before[0]
    with random.fork_rng(enabled=False):
        draw(here, here.last)
    assert random.get_rng_state(here.last).tolist() != before[here.last]


def test_a_fork_without_an_accelerator_is_the_hosts(nothing: None) -> None:
    for devices in (None, ["cpu"], []):
        before = tensorplay.get_rng_state().tolist()
        with random.fork_rng(devices):
            tensorplay.rand(3)
        assert tensorplay.get_rng_state().tolist() == before
    with pytest.raises(InvalidArgumentError, match="bare index, expected a text: no accelerator"), random.fork_rng([0]):
        raise AssertionError
