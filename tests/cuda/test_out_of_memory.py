"""Running out of device memory: what the error says, what is done before it is raised, what stays afterwards."""

from __future__ import annotations

import gc
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import _shortage, memory
from tensorplay.testing import emulated as control

MiB = 2**20


def empty(nbytes: int, device: int = 0) -> tp.Tensor:
    return tp.empty(nbytes, dtype=tp.bool, device=f"cuda:{device}")


@pytest.fixture
def small(emulated: None) -> Iterator[None]:
    """Devices of 64 MiB without any memory in use."""
    gc.collect()
    cuda.empty_cache()
    with control.capacity(64 * MiB):
        yield
    cuda.empty_cache()


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets a word for each time that the allocator's Python side runs the garbage collector."""
    runs: list[str] = []
    monkeypatch.setattr(_shortage.gc, "collect", lambda: runs.append("gc"))
    return runs


# ---- the error ----


def test_the_error_has_the_facts(small: None) -> None:
    held = empty(40 * MiB)
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(30 * MiB + 1)
    error = caught.value
    assert (error.device, error.reason, error.is_capturing, error.is_hopeless) == ("cuda:0", "device", False, False)
    assert (error.requested, error.rounded) == (30 * MiB + 1, 30 * MiB + 512)
    assert (error.device_free, error.device_total, error.others) == (24 * MiB, 64 * MiB, 0)
    assert (error.allocated, error.reserved, error.returnable) == (40 * MiB, 40 * MiB, 0)
    assert (error.pending, error.private_pools, error.largest_free) == (0, 0, 0)
    assert (error.limit, error.budget, error.budget_live) == (None, None, None)
    assert error.processes == {}
    assert str(error).startswith("allocate: cuda:0 has no room for 30.00 MiB (31457792 bytes).")
    del held


def test_the_error_survives_pickling(small: None) -> None:
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(65 * MiB)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.requested, again.is_hopeless, again.device) == (65 * MiB, True, "cuda:0")


def test_facts_are_unknown_where_nobody_tells() -> None:
    error = tp.OutOfMemoryError("full")
    assert (error.requested, error.device, error.largest_free_by_stream) == (None, None, {})
    assert tp.OutOfMemoryError("full", requested=5).requested == 5
    with pytest.raises(TypeError, match="'bytes'"):
        tp.OutOfMemoryError("full", bytes=5)


def test_fragmentation_shows_in_the_figures_and_in_the_advice(small: None) -> None:
    walls, holes = [], []
    for _ in range(3):
        walls.append(empty(2 * MiB))
        holes += [empty(9 * MiB), empty(9 * MiB)]
    holes.clear()
    with pytest.raises(tp.OutOfMemoryError, match="lies in pieces") as caught:
        empty(25 * MiB)
    error = caught.value
    assert (error.allocated, error.reserved, error.largest_free) == (6 * MiB, 60 * MiB, 18 * MiB)
    assert error.largest_free_by_stream == {0: 18 * MiB}
    assert (error.returnable, error.device_free) == (0, 4 * MiB)
    assert error.device_free == cuda.mem_get_info()[0]
    walls.clear()


def test_a_refusal_that_is_not_the_allocators_has_no_facts(emulated: None, collected: list[str]) -> None:
    a = tp.ones(4, device="cuda")
    with control.fail("cudaLaunchKernel", 1, "cudaErrorMemoryAllocation"), pytest.raises(tp.OutOfMemoryError) as caught:
        a + 1
    assert caught.value.requested is None
    assert collected == []  # Nothing says that the operation has not begun.


# ---- what stays ----


def fill_and_catch() -> int:
    held = []
    try:
        while True:
            held.append(empty(3 * MiB))
    except tp.OutOfMemoryError:
        return len(held)


def test_the_same_size_is_reached_in_every_round(small: None) -> None:
    assert len({fill_and_catch() for _ in range(10)}) == 1
    assert cuda.memory_allocated() == 0


def test_nothing_stays_when_the_error_is_gone(small: None) -> None:
    errors: list[tp.OutOfMemoryError] = []

    def fill() -> None:
        held = []
        try:
            while True:
                held.append(empty(3 * MiB))
        except tp.OutOfMemoryError as error:
            errors.append(error)

    gc.collect()
    gc.disable()
    try:
        fill()
        assert cuda.memory_allocated() > 0  # The traceback has the frames, whose variables live.
        errors.clear()
        assert cuda.memory_allocated() == 0
    finally:
        gc.enable()


def test_nothing_stays_of_tensors_that_were_on_their_way(small: None) -> None:
    def move() -> None:
        arrays = [tp.from_numpy(np.ones(14 * MiB, np.uint8)) for _ in range(5)]
        with pytest.raises(tp.OutOfMemoryError):
            [array.to("cuda") for array in arrays]

    gc.collect()
    gc.disable()
    try:
        move()
        assert cuda.memory_allocated() == 0
    finally:
        gc.enable()


def test_what_was_free_is_still_free(small: None) -> None:
    kept = empty(10 * MiB)
    for nbytes in (512, 100 * 1024, 2 * MiB):
        del (block := [empty(nbytes) for _ in range(3)])[:]
    with pytest.raises(tp.OutOfMemoryError):
        empty(60 * MiB)
    assert cuda.memory_allocated() == 10 * MiB
    rest = empty(50 * MiB)
    del rest, kept, block


# ---- callbacks, garbage, once more ----


def operations() -> dict[str, Callable[[], Any]]:
    """Calls that need memory, of every kind; each gives a value that shows whether it was done once."""
    n = 5000
    a = tp.arange(n, dtype=tp.float32, device="cuda")
    square, turned = a[:4900].view(70, 70), a[:4900].view(70, 70).T
    index = tp.arange(n, device="cuda") % 7

    def accumulated(put: Callable[[tp.Tensor], None]) -> Callable[[], Any]:
        target = tp.ones(7, device="cuda")

        def call() -> Any:
            target.fill_(1)
            put(target)
            return target.tolist()

        return call

    ones = tp.ones(n, device="cuda")
    moved = tp.arange(n, dtype=tp.float32, device="cuda")

    def overlapping() -> Any:
        moved.copy_(a)
        moved[1:].copy_(moved[:-1])
        return moved.tolist()

    def added_in_place() -> Any:
        moved.copy_(a)
        moved[1:] += moved[:-1]
        return moved.tolist()

    def written_out() -> Any:
        moved.copy_(a)
        tp.addmm(moved[:4900].view(70, 70).T, square, turned, out=moved[:4900].view(70, 70))
        return moved.tolist()

    return {
        "empty": lambda: tp.empty(n, device="cuda").shape,
        "full": lambda: tp.full((n,), 3.0, device="cuda").sum().item(),
        "arange": lambda: tp.arange(n, device="cuda").sum().item(),
        "from_host": lambda: tp.tensor(np.ones(n, np.float32), device="cuda").sum().item(),
        "to_host": lambda: turned.tolist(),
        "cast": lambda: a.to(tp.float64).sum().item(),
        "contiguous": lambda: turned.contiguous().sum().item(),
        "copy_": overlapping,
        "unary": lambda: a.neg().sum().item(),
        "binary": lambda: (a + a).sum().item(),
        "in place": added_in_place,
        "where": lambda: tp.where(a > 3, a, 0.0).sum().item(),
        "reduce": lambda: a.expand(40, n).sum(1).tolist(),
        "scan": lambda: a.cumsum(0).tolist(),
        "argsort": lambda: tp.argsort(a, descending=True).tolist(),
        "softmax": lambda: square.softmax(1).sum().item(),
        "matmul": lambda: (square @ turned).sum().item(),
        "out": written_out,
        "index": lambda: a[index].sum().item(),
        "gather": lambda: tp.gather(a, 0, index).sum().item(),
        "flip": lambda: a.flip(0).tolist(),
        "cat": lambda: tp.cat([a, a]).sum().item(),
        "index_put_": accumulated(lambda target: target.index_put_((index,), ones, accumulate=True)),
        "scatter_add_": accumulated(lambda target: target.scatter_add_(0, index, ones)),
        "random": lambda: (tp.manual_seed(5), tp.rand(n, device="cuda").sum().item())[1],
    }


def test_calls_are_repeated_wherever_memory_was_short(emulated: None) -> None:
    """A budget is spent at each request of each call that needs more than those before; a callback then lifts it."""
    for name, call in operations().items():
        expected, failures = call(), cuda.memory_stats()["num_ooms"]
        needed: list[int] = []

        def lift(error: tp.OutOfMemoryError) -> bool:
            assert error.budget_live is not None
            assert error.rounded is not None
            needed.append(error.budget_live + error.rounded)  # noqa: B023 (called at once)
            cuda.memory_budget("all", 2**40)
            return True

        limit = 0
        with cuda.memory_budget("all"), memory.register_oom_callback(lift):
            while True:
                cuda.memory_budget("all", limit)
                tries = len(needed)
                assert call() == expected, (name, limit)
                if len(needed) == tries:
                    break
                assert len(needed) == tries + 1, (name, limit)
                limit = needed[-1]
        assert needed, name
        assert cuda.memory_stats()["num_ooms"] == failures


def test_callbacks_come_first_then_the_garbage_collector_then_the_call(small: None, collected: list[str]) -> None:
    before = cuda.memory_stats()
    held, order = [empty(60 * MiB)], collected

    def first(error: tp.OutOfMemoryError) -> None:
        assert error.requested == 20 * MiB
        order.append("first")

    def second(error: tp.OutOfMemoryError) -> None:
        order.append("second")
        held.clear()

    with memory.register_oom_callback(first), memory.register_oom_callback(second):
        assert empty(20 * MiB).shape == (20 * MiB,)
    assert order == ["first", "second", "gc"]
    after = cuda.memory_stats()
    assert after["num_ooms"] == before["num_ooms"]
    assert after["num_alloc_retries"] > before["num_alloc_retries"]


def test_garbage_is_collected_before_a_call_fails(small: None) -> None:
    cycle: list[Any] = [empty(60 * MiB)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        assert cuda.memory_allocated() == 60 * MiB
        assert empty(20 * MiB).shape == (20 * MiB,)
    finally:
        gc.enable()


def test_a_call_is_repeated_once(small: None, collected: list[str]) -> None:
    calls: list[tp.OutOfMemoryError] = []
    held, failures = empty(60 * MiB), cuda.memory_stats()["num_ooms"]
    with memory.register_oom_callback(calls.append), pytest.raises(tp.OutOfMemoryError):
        empty(20 * MiB)
    assert (len(calls), collected) == (1, ["gc"])
    assert cuda.memory_stats()["num_ooms"] == failures + 1
    del held


def test_a_hopeless_request_is_repeated_when_a_callback_asks_for_it(small: None, collected: list[str]) -> None:
    answers = [False, True]

    def answer(error: tp.OutOfMemoryError) -> bool:
        assert error.is_hopeless
        found = answers.pop(0)
        if found:
            memory.set_memory_limit(None)
        return found

    memory.set_memory_limit(10 * MiB)
    try:
        with memory.register_oom_callback(answer):
            with pytest.raises(tp.OutOfMemoryError, match="larger than the limit"):
                empty(30 * MiB)
            assert collected == []
            assert empty(30 * MiB).shape == (30 * MiB,)
    finally:
        memory.set_memory_limit(None)
    assert answers == []


def test_nothing_is_tried_in_a_capture(gpu: None, collected: list[str]) -> None:
    error = tp.OutOfMemoryError("full", device="cuda:0", reason="device", is_capturing=True)
    with memory.register_oom_callback(lambda error: pytest.fail("called in a capture")):
        assert not _shortage.is_worth_repeating(error)
    assert collected == []


def test_an_exception_of_a_callback_takes_the_place_of_the_error(small: None) -> None:
    def fail(error: tp.OutOfMemoryError) -> None:
        raise KeyError("no such cache")

    held = empty(60 * MiB)
    with memory.register_oom_callback(fail), pytest.raises(KeyError, match="no such cache"):
        empty(20 * MiB)
    with pytest.raises(tp.OutOfMemoryError):
        empty(20 * MiB)
    del held
    assert empty(20 * MiB).shape == (20 * MiB,)


def test_a_callback_may_allocate_and_may_run_out_of_memory_itself(small: None) -> None:
    calls = []

    def greedy(error: tp.OutOfMemoryError) -> None:
        calls.append(empty(512).shape)
        with pytest.raises(tp.OutOfMemoryError):
            empty(30 * MiB)

    held = [empty(40 * MiB)]
    with memory.register_oom_callback(greedy), memory.register_oom_callback(lambda error: held.clear()):
        assert empty(30 * MiB).shape == (30 * MiB,)
    assert calls == [(512,)]


def test_callbacks_of_several_threads(small: None) -> None:
    seen: set[int] = set()
    held = empty(60 * MiB)
    together = threading.Barrier(4)

    def note(error: tp.OutOfMemoryError) -> None:
        together.wait(60)  # All threads are here at once.
        seen.add(threading.get_ident())

    def run() -> None:
        with pytest.raises(tp.OutOfMemoryError):
            empty(20 * MiB)

    with memory.register_oom_callback(note):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == 4
    del held


def test_a_removed_callback_is_not_called(small: None) -> None:
    calls: list[tp.OutOfMemoryError] = []
    handle = memory.register_oom_callback(calls.append)
    handle.remove()
    handle.remove()
    with pytest.raises(tp.OutOfMemoryError):
        empty(65 * MiB)
    assert calls == []
    with pytest.raises(tp.errors.DTypeError, match="register_oom_callback: got 5"):
        memory.register_oom_callback(5)  # type: ignore[arg-type]


# ---- limits ----


@pytest.fixture
def unlimited(two_gpus: None) -> Iterator[None]:
    yield
    for index in (0, 1):
        memory.set_memory_limit(None, index)


def test_a_limit_is_of_one_device_and_is_removed_again(unlimited: None) -> None:
    assert memory.get_memory_limit() is None
    cuda.empty_cache()
    limit = cuda.memory_reserved() + 32 * MiB
    memory.set_memory_limit(limit)
    assert (memory.get_memory_limit(), memory.get_memory_limit("cuda:1")) == (limit, None)
    rejections = cuda.memory_stats()["num_oom_rejections"]
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(64 * MiB)
    assert (caught.value.reason, caught.value.limit) == ("limit", limit)
    assert cuda.memory_stats()["num_oom_rejections"] == rejections + 1
    there = empty(64 * MiB, 1)
    cached = [empty(16 * MiB), empty(16 * MiB)]
    cached.clear()
    here = empty(32 * MiB)  # The cache made room.
    memory.set_memory_limit(None)
    more = empty(64 * MiB)
    assert memory.get_memory_limit() is None
    del there, here, more


@pytest.mark.parametrize(
    ("value", "kind"),
    [(-1, tp.errors.InvalidArgumentError), (2**63, tp.errors.InvalidArgumentError), (True, tp.errors.DTypeError),
     (1.5, tp.errors.DTypeError), ("1GiB", tp.errors.DTypeError)],
)  # fmt: skip
def test_limits_that_are_none(gpu: None, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="set_memory_limit: got"):
        memory.set_memory_limit(value)
    with pytest.raises(tp.errors.InvalidArgumentError):
        memory.set_memory_limit(100, 99)
    assert memory.get_memory_limit() is None


def test_a_limit_may_be_set_before_first_use(emulated: None) -> None:
    printed = fresh.run("""
        import tensorplay as tp
        from tensorplay.cuda import memory
        assert memory.get_memory_limit() is None
        memory.set_memory_limit(2**22)
        print(memory.get_memory_limit(), tp._plugins.get("cuda").describe()["started"])
        try:
            tp.empty(2**21, device="cuda")
        except tp.OutOfMemoryError as error:
            print(error.reason, memory.get_memory_limit())
    """)
    assert printed == "4194304 False\nlimit 4194304\n"
