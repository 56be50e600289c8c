"""Before a call fails for want of memory: callbacks, the garbage collector, the call once more."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import fresh
from helpers.blocks import MiB, empty

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import _recovery, graphs, memory
from tensorplay.testing import emulated as control


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets a word for each time that the allocator's Python side runs the garbage collector."""
    runs: list[str] = []
    monkeypatch.setattr(_recovery.gc, "collect", lambda: runs.append("gc"))
    return runs


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


def test_callbacks_come_first_then_the_garbage_collector_then_the_call(small: int, collected: list[str]) -> None:
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


def test_a_callback_may_return_what_it_lets_go(small: int) -> None:
    held = [empty(60 * MiB)]
    with memory.register_oom_callback(lambda error: held.pop()):
        assert empty(20 * MiB).shape == (20 * MiB,)
    assert held == []


def test_blocks_by_address_are_asked_for_again(small: int, collected: list[str]) -> None:
    held = [empty(60 * MiB)]
    with memory.register_oom_callback(lambda error: held.clear()):
        address = cuda.caching_allocator_alloc(20 * MiB, "cuda:0", cuda.Stream(0))
    assert (held, collected) == ([], ["gc"])
    assert cuda.memory_allocated() == 20 * MiB
    cuda.caching_allocator_delete(address)


def test_pinned_memory_is_asked_for_once_more(emulated: None, collected: list[str]) -> None:
    with pytest.raises(tp.errors.HostMemoryError, match="the host has no room"):
        tp.empty(2**57, pin_memory=True)
    assert collected == ["gc"]
    x = tp.zeros(3, device="cuda")
    with graphs.graph(cuda.CUDAGraph()):
        x.add_(1)
        collected.clear()
        with pytest.raises(tp.errors.HostMemoryError, match="the host has no room"):
            tp.empty(2**57, pin_memory=True)
        assert collected == []


def test_garbage_is_collected_before_the_host_is_short_of_memory(emulated: None) -> None:
    fresh.run(
        """
        import gc
        import resource
        import tensorplay as tp
        cycle = [tp.empty(2**26, pin_memory=True)]
        cycle.append(cycle)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, -1))
        gc.disable()
        del cycle
        assert tp.empty(2**26, pin_memory=True).numel() == 2**26
        """
    )


def test_garbage_is_collected_before_a_call_fails(small: int) -> None:
    cycle: list[Any] = [empty(60 * MiB)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        assert cuda.memory_allocated() == 60 * MiB
        assert empty(20 * MiB).shape == (20 * MiB,)
    finally:
        gc.enable()


def test_a_call_is_repeated_once(small: int, collected: list[str]) -> None:
    calls: list[tp.OutOfMemoryError] = []
    held, failures = empty(60 * MiB), cuda.memory_stats()["num_ooms"]
    with memory.register_oom_callback(calls.append), pytest.raises(tp.OutOfMemoryError):
        empty(20 * MiB)
    assert (len(calls), collected) == (1, ["gc"])
    assert cuda.memory_stats()["num_ooms"] == failures + 1
    del held


def test_a_hopeless_request_is_repeated_when_a_callback_asks_for_it(small: int, collected: list[str]) -> None:
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


def test_nothing_is_tried_in_a_capture(small: int, collected: list[str]) -> None:
    held, calls = [empty(60 * MiB)], list[tp.OutOfMemoryError]()
    # As CUDA answers for the default stream while another stream, which waits for it, is captured.
    captured = control.fail("cudaStreamIsCapturing", 1, "cudaErrorStreamCaptureUnsupported")
    with memory.register_oom_callback(calls.append), captured, pytest.raises(tp.OutOfMemoryError) as caught:
        empty(20 * MiB)
    assert caught.value.is_capturing
    assert calls == collected == []
    held.clear()


def test_an_exception_of_a_callback_takes_the_place_of_the_error(small: int) -> None:
    def fail(error: tp.OutOfMemoryError) -> None:
        raise KeyError("no such cache")

    held = empty(60 * MiB)
    with memory.register_oom_callback(fail), pytest.raises(KeyError, match="no such cache"):
        empty(20 * MiB)
    with pytest.raises(tp.OutOfMemoryError):
        empty(20 * MiB)
    del held
    assert empty(20 * MiB).shape == (20 * MiB,)


def test_a_callback_may_allocate_and_may_run_out_of_memory_itself(small: int) -> None:
    calls = []

    def greedy(error: tp.OutOfMemoryError) -> None:
        calls.append(empty(512).shape)
        with pytest.raises(tp.OutOfMemoryError):
            empty(30 * MiB)

    held = [empty(40 * MiB)]
    with memory.register_oom_callback(greedy), memory.register_oom_callback(lambda error: held.clear()):
        assert empty(30 * MiB).shape == (30 * MiB,)
    assert calls == [(512,)]


def test_callbacks_of_several_threads(small: int) -> None:
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


def test_a_removed_callback_is_not_called(small: int) -> None:
    calls: list[tp.OutOfMemoryError] = []
    handle = memory.register_oom_callback(calls.append)
    handle.remove()
    handle.remove()
    with pytest.raises(tp.OutOfMemoryError):
        empty(65 * MiB)
    assert calls == []
    with pytest.raises(tp.errors.DTypeError, match="register_oom_callback: got 5"):
        memory.register_oom_callback(5)  # type: ignore[arg-type]


def test_a_refusal_that_is_not_the_allocators_is_not_repeated(emulated: None, collected: list[str]) -> None:
    a = tp.ones(4, device="cuda")
    with control.fail("cudaLaunchKernel", 1, "cudaErrorMemoryAllocation"), pytest.raises(tp.OutOfMemoryError) as caught:
        a + 1
    assert caught.value.requested is None
    assert collected == []  # Nothing says that the operation has not begun.
