"""Exploring orders finds races, and nothing in programs without one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from helpers.races import RACES

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda._library import native
from tensorplay.errors import BackendUnavailableError, DTypeError
from tensorplay.testing import SeedError, emulated, explore_orders

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.mark.parametrize("race", RACES)
def test_race_is_found_and_its_seed_shows_it_again(race: Callable[..., None]) -> None:
    with pytest.raises(SeedError, match=r"seed \d+: AssertionError") as found:
        explore_orders(lambda: race(mended=False))
    assert isinstance(found.value.__cause__, AssertionError)
    with pytest.raises(SeedError) as again:
        explore_orders(lambda: race(mended=False), seeds=[found.value.seed])
    assert again.value.seed == found.value.seed


@pytest.mark.parametrize("race", RACES)
def test_mended_twin_passes_all_seeds(race: Callable[..., None]) -> None:
    explore_orders(lambda: race(mended=True))


def test_work_that_is_left_behind_is_part_of_the_run() -> None:
    def leaves_a_fault() -> None:
        tp.zeros(3, device="cuda")[tp.tensor([5], device="cuda")]

    with pytest.raises(SeedError, match="leaves_a_fault failed with seed 7: OutOfRangeError"):
        explore_orders(leaves_a_fault, seeds=[7])


def test_runs_begin_alike_and_leave_the_seed_as_it_was() -> None:
    begun = []

    def looks_around() -> None:
        assert emulated.queued() == cuda.memory_reserved() == 0
        assert cuda.current_stream() == cuda.default_stream()
        begun.append(cuda.Stream())
        cuda.set_stream(begun[-1])
        tp.zeros(3, device="cuda")

    before = emulated._control().tp_emulated_seed()
    explore_orders(looks_around, seeds=range(3))
    assert len(begun) == 3
    assert len(set(begun)) == 1
    assert emulated._control().tp_emulated_seed() == before


def test_what_is_no_seed_is_no_failing_order() -> None:
    with pytest.raises(ValueError, match="seed: got -1"):
        explore_orders(lambda: None, seeds=[-1])


def test_a_coroutine_does_not_pass_without_running() -> None:
    async def fails() -> None:
        raise AssertionError

    with pytest.raises(DTypeError, match="fails, whose calls only make coroutines, expected a plain function"):
        explore_orders(fails)


def test_on_a_gpu_the_emulated_device_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "choice", lambda: SimpleNamespace(variant="cuda13"))
    with pytest.raises(BackendUnavailableError, match="got cuda13; set TENSORPLAY_CUDA_RUNTIME=emulated"):
        explore_orders(lambda: None)
