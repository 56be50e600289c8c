"""Streams, threads and devices that call one function of the compiler backend."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from helpers.managers import counts

import tensorplay as tp
from tensorplay import cuda
from tensorplay.compiler.backends.cudagraphs import CudaGraphManager
from tensorplay.testing import explore_orders

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")
needs_emulation = pytest.mark.usefixtures("emulated")


def test_two_devices(two_devices: tuple[str, str]) -> None:
    manager = CudaGraphManager(lambda x: x * 2)
    for value in (1.0, 2.0, 3.0):
        for device in two_devices:
            result = manager(tp.full((2,), value, device=device))
            assert str(result.device) == device
            assert result.tolist() == [2 * value] * 2
    assert cuda.current_device() == 0
    assert manager.statistics()["captures"] == 2
    assert manager(tp.ones(1, device="cuda:1")).tolist() == [2]
    # The function has the device that is current for its caller.
    made = CudaGraphManager(lambda x: tp.ones(1, device="cuda").device.index + x, warmup=0)
    for device in (0, 1):
        with cuda.device(device):
            assert made(tp.zeros(1, device="cuda:1")).tolist() == [device]
    assert made.statistics()["captures"] == 1
    assert "which took no part in the capture" in made.refusals()[0]
    moved = CudaGraphManager(lambda x: x.to("cuda:1"))
    assert [str(moved(tp.ones(1, device="cuda:0")).device) for _ in range(2)] == ["cuda:1"] * 2
    g = cuda.CUDAGraph()
    with cuda.graph(g, stream=cuda.Stream("cuda:1")), cuda.device(0):
        inside = manager(tp.ones(1, device="cuda:1"))
    g.replay()
    assert inside.tolist() == [2]
    assert manager.statistics()["eager"] == 1
    mixed = CudaGraphManager(lambda x, y: x.cpu() + y.cpu(), warmup=0)
    assert mixed(tp.ones(1, device="cuda:0"), tp.ones(1, device="cuda:1")).tolist() == [2]
    assert "cuda:0, cuda:1, expected one CUDA device" in mixed.refusals()[0]


@needs_emulation
def test_calls_on_other_streams_wait_for_each_other() -> None:
    def run() -> None:
        manager = CudaGraphManager(lambda x: x + 1 + 1)
        results = []
        for number in range(5):
            with cuda.stream(cuda.Stream()):
                results.append(manager(tp.full((64,), float(number), device="cuda")))
        cuda.synchronize()
        assert [result.tolist() for result in results] == [[number + 2] * 64 for number in range(5)]

    explore_orders(run, range(16))


def test_a_warm_up_runs_on_a_side_stream() -> None:
    seen: list[tuple[cuda.Stream, bool]] = []

    def function(x: tp.Tensor) -> tp.Tensor:
        seen.append((cuda.current_stream(), cuda.is_current_stream_capturing()))
        return x + 1

    manager, caller = CudaGraphManager(function, warmup=2), cuda.current_stream()
    for value in (1.0, 2.0, 3.0):
        assert manager(tp.full((64,), value, device="cuda")).tolist() == [value + 1] * 64
        assert cuda.current_stream() == caller
    assert [capturing for _, capturing in seen] == [False, False, True]
    assert caller not in [stream for stream, _ in seen]
    assert seen[0] == seen[1]


@needs_emulation
def test_the_memory_of_a_result_of_a_warm_up_waits_for_the_stream_that_called() -> None:
    def run() -> None:
        manager = CudaGraphManager(lambda x: x + 1)
        result = manager(tp.ones(64, device="cuda"))
        (side,) = manager._sides.values()
        doubled = result * 2
        del result
        with cuda.stream(side):
            tp.full((64,), 9.0, device="cuda")
        assert doubled.tolist() == [4] * 64

    explore_orders(run, range(16))


@needs_emulation
@pytest.mark.parametrize("end", [lambda managers: managers[0].clear(), lambda managers: managers.clear()])
def test_the_memory_of_a_graph_waits_for_its_last_replay(end: Callable[[list[CudaGraphManager]], None]) -> None:
    def run() -> None:
        managers = [CudaGraphManager(lambda x: x + 1, warmup=0)]
        managers[0](tp.zeros(64, device="cuda"))
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            result = managers[0](tp.ones(64, device="cuda"))
        end(managers)
        kept = [tp.full((64,), 9.0, device="cuda") for _ in range(4)]
        cuda.synchronize()
        assert result.tolist() == [2] * 64
        assert kept[0].tolist() == [9] * 64

    explore_orders(run, range(16))


def test_threads_share_a_manager() -> None:
    manager = CudaGraphManager(lambda x: (x + 1) * 2)
    wrong: list[float] = []

    def work(number: int) -> None:
        with cuda.stream(cuda.Stream()):
            for step in range(20):
                result = manager(tp.full((10,), float(number * step), device="cuda")).sum().item()
                if result != 20 * (number * step + 1):
                    wrong.append(result)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert manager.statistics()["calls"] == 80


def test_while_another_manager_captures_calls_are_warm_ups() -> None:
    inside, goes_on, results = threading.Event(), threading.Event(), []

    def slow(x: tp.Tensor) -> tp.Tensor:
        inside.set()
        goes_on.wait()
        return x * 2

    first, second = CudaGraphManager(slow, warmup=0), CudaGraphManager(lambda x: x + 1, warmup=0)
    x = tp.ones(2, device="cuda")
    thread = threading.Thread(target=lambda: results.append(first(x).tolist()))
    thread.start()
    inside.wait()
    results.append(second(x).tolist())
    goes_on.set()
    thread.join()
    results.append(second(x).tolist())
    assert results == [[2, 2]] * 3
    assert [manager.statistics()["captures"] for manager in (first, second)] == [1, 1]
    assert [manager.statistics()["warmups"] for manager in (first, second)] == [0, 1]


def test_a_captured_function_may_call_a_manager_that_another_thread_uses() -> None:
    inner = CudaGraphManager(lambda x: x + 1, warmup=0)
    x, results = tp.ones(2, device="cuda"), []

    def call_inner() -> None:
        results.append(inner(x).tolist())

    def outer(x: tp.Tensor) -> tp.Tensor:
        thread = threading.Thread(target=call_inner)
        thread.start()
        thread.join(0.2)  # it may not end before this capture
        return inner(x) * 2

    thread = threading.Thread(target=lambda: results.append(CudaGraphManager(outer, warmup=0)(x).tolist()), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert sorted(results) == [[2, 2], [4, 4]]


def test_where_nothing_may_wait_calls_are_warm_ups() -> None:
    manager, x = CudaGraphManager(lambda x: x + 1, warmup=0), tp.ones(2, device="cuda")
    cuda.set_sync_debug_mode("error")
    try:
        results = [manager(x)]
    finally:
        cuda.set_sync_debug_mode("default")
    results.append(manager(x))
    assert [result.tolist() for result in results] == [[2, 2]] * 2
    assert counts(manager) == {"calls": 2, "warmups": 1, "captures": 1, "replays": 1, "entries": 1}


def test_while_the_program_captures_in_another_thread_calls_are_warm_ups() -> None:
    manager = CudaGraphManager(lambda x: x + 1, warmup=0)
    x, results = tp.ones(2, device="cuda"), []
    g = cuda.CUDAGraph()
    with cuda.graph(g, capture_error_mode="thread_local"):
        y = x * 3
        thread = threading.Thread(target=lambda: results.append(manager(x)))
        thread.start()
        thread.join()
    results.append(manager(x))
    g.replay()
    assert [result.tolist() for result in results] == [[2, 2]] * 2
    assert y.tolist() == [3, 3]
    assert counts(manager) == {"calls": 2, "warmups": 1, "captures": 1, "replays": 1, "entries": 1}
