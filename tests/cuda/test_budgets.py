"""Budgets: what a part of the program holds."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import fresh
from helpers.blocks import MiB, empty

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory
from tensorplay.testing import emulated as control


def live(name: str) -> int:
    return cuda.memory_budgets()[name].live


@pytest.fixture(autouse=True)
def _no_budget_stays(gpu: None) -> Iterator[None]:
    yield
    if cuda.memory_budgets():
        gc.collect()  # A test that failed has frames.
    assert cuda.memory_budgets() == {}


def test_a_budget_counts_what_is_made_inside() -> None:
    before = empty(1000)
    with cuda.memory_budget("weights") as weights:
        one = empty(1000)
        two = empty(3 * MiB)
        assert cuda.memory_budgets() == {"weights": (1024 + 3 * MiB, 1024 + 3 * MiB, 1000 + 3 * MiB, None)}
        del two
    after = empty(5000)
    assert cuda.memory_budgets()["weights"] == memory.BudgetFigures(1024, 1024 + 3 * MiB, 1000, None)
    del one
    figures = cuda.memory_budgets()["weights"]
    assert (figures.live, figures.peak) == (0, 1024 + 3 * MiB)
    assert repr(weights) == "memory_budget('weights')"
    del before, after


def test_results_of_operations_count_and_views_do_not() -> None:
    a = tp.ones(1000, device="cuda")
    with cuda.memory_budget("results"):
        b = a + a
        c = b.view(10, 100).T
    assert live("results") == 4096
    del b
    assert live("results") == 4096  # The view holds the storage.
    del c
    assert "results" not in cuda.memory_budgets()


def test_nested_budgets_add_up() -> None:
    with cuda.memory_budget("model"):
        outer = empty(512)
        with cuda.memory_budget("cache"), cuda.memory_budget("model"):
            inner = empty(1024)
        assert (live("model"), live("cache")) == (1536, 1024)
        del outer
    assert (live("model"), live("cache")) == (1024, 1024)
    del inner


def test_a_spent_budget_refuses_before_the_driver_is_asked(emulated: None) -> None:
    cuda.empty_cache()
    with cuda.memory_budget("all", 64 * MiB) as everything, cuda.memory_budget("cache", limit=32 * MiB):
        held = empty(20 * MiB)
        with control.calls() as calls, pytest.raises(tp.OutOfMemoryError, match="the budget 'cache'") as caught:
            empty(13 * MiB)
        assert calls["cudaMalloc"] == 0
        error = caught.value
        assert (error.reason, error.budget, error.budget_live, error.budget_limit) == (
            "budget", "cache", 20 * MiB, 32 * MiB,
        )  # fmt: skip
        assert error.requested == 13 * MiB
        assert live("cache") == live("all") == 20 * MiB
        with pytest.raises(tp.OutOfMemoryError, match="larger than the limit"):
            empty(33 * MiB)
        exact = empty(12 * MiB)
    with everything, pytest.raises(tp.OutOfMemoryError, match="the budget 'all'"):
        empty(33 * MiB)
    with everything:
        more = empty(32 * MiB)
    outside = empty(64 * MiB)
    del held, exact, more, outside


def test_garbage_of_a_budget_is_collected_before_it_refuses() -> None:
    with cuda.memory_budget("cache", limit=4 * MiB):
        cycle: list[Any] = [empty(4 * MiB)]
        cycle.append(cycle)
        gc.disable()
        try:
            del cycle
            again = empty(4 * MiB)
        finally:
            gc.enable()
        assert live("cache") == 4 * MiB
    del again


def test_the_limit_is_the_budgets(two_gpus: None) -> None:
    named = cuda.memory_budget("both", limit=4 * MiB)
    with named:
        there = empty(3 * MiB, 1)
    with cuda.memory_budget("both"):
        assert cuda.memory_budgets()["both"].limit == 4 * MiB
        with pytest.raises(tp.OutOfMemoryError, match="It holds 3.00 MiB of its limit of 4.00 MiB"):
            empty(2 * MiB, 0)
        cuda.memory_budget("both", 5 * MiB)
        here = empty(2 * MiB, 0)
    assert cuda.memory_budgets()["both"] == (5 * MiB, 5 * MiB, 5 * MiB, 5 * MiB)
    del here, there


def test_other_threads_inherit_nothing_and_may_free() -> None:
    found: list[Any] = []

    def run() -> None:
        found.append(empty(512))
        with cuda.memory_budget("own"):
            found.append(empty(1024))

    with cuda.memory_budget("mine"):
        held = [empty(2048)]
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert (live("mine"), live("own")) == (2048, 1024)
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        assert live("mine") == 0
    found.clear()


def test_a_generator_may_leave_late() -> None:
    def generate() -> Iterator[tp.Tensor]:
        with cuda.memory_budget("generator"):
            yield empty(512)
            yield empty(512)

    with cuda.memory_budget("outer"):
        tensors = generate()
        held = [next(tensors)]
    held.append(next(tensors))
    assert (live("generator"), live("outer")) == (1024, 1024)
    tensors.close()
    held.append(empty(512))
    assert (live("generator"), live("outer")) == (1024, 1024)
    del held, tensors


def test_a_budget_is_left_when_its_block_raises() -> None:
    with pytest.raises(KeyError), cuda.memory_budget("short"):
        raise KeyError
    outside = empty(512)
    assert cuda.memory_budgets() == {}
    del outside


def test_a_budget_is_left_when_its_object_is_gone() -> None:
    tp.cuda.memory_budget("gone").__enter__()
    x = empty(600)
    assert "gone" not in tp.cuda.memory_budgets()
    del x


def test_an_object_is_entered_once_at_a_time() -> None:
    budget = cuda.memory_budget("one")
    with budget, pytest.raises(tp.errors.StateError, match="'one' is entered already"), budget:
        pass
    with budget:
        pass
    budget.__exit__(None, None, None)  # a second time


@pytest.mark.parametrize(
    ("name", "limit", "kind"),
    [("", None, tp.errors.InvalidArgumentError), ("ä" * 32, None, tp.errors.InvalidArgumentError),
     (5, None, tp.errors.DTypeError), ("a", -1, tp.errors.InvalidArgumentError), ("a", 1.5, tp.errors.DTypeError),
     ("a\0b", None, tp.errors.InvalidArgumentError)],
)  # fmt: skip
def test_names_and_limits_that_are_none(name: Any, limit: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="memory_budget: got"):
        cuda.memory_budget(name, limit)


def test_a_budget_without_a_name_leaves_nothing_to_release() -> None:
    with pytest.raises(TypeError, match="name"):
        cuda.memory_budget()  # type: ignore[call-arg]


def test_many_budgets() -> None:
    budgets = [cuda.memory_budget(f"budget {i}", i) for i in range(40)]
    assert {name: figures.limit for name, figures in cuda.memory_budgets().items()} == {
        f"budget {i}": i for i in range(40)
    }
    del budgets


def test_nothing_is_started_to_ask(emulated: None) -> None:
    assert (
        fresh.run("""
        import tensorplay as tp
        from tensorplay import cuda
        print(cuda.memory_budgets(), tp._plugins.get("cuda").describe()["started"])
    """)
        == "{} False\n"
    )
