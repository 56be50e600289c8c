"""Threads: one start, current values of their own, one allocator."""

from __future__ import annotations

import threading
from collections.abc import Callable

from helpers import fresh

import tensorplay as tp
from tensorplay import cuda

THREADS = 8


def together(work: Callable[[int], None]) -> None:
    """Runs work(0) to work(7) at the same time; what one raises is raised."""
    failures: list[BaseException] = []
    gate = threading.Barrier(THREADS)

    def body(number: int) -> None:
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_current_values_belong_to_the_thread(two_gpus: None) -> None:
    def work(number: int) -> None:
        assert cuda.current_device() == 0
        assert cuda.current_stream() == cuda.default_stream(0)
        cuda.set_device(number % 2)
        stream = cuda.Stream()
        cuda.set_stream(stream)
        for _ in range(100):
            assert cuda.current_device() == number % 2
            assert cuda.current_stream() == stream

    together(work)
    assert cuda.current_device() == 0
    assert cuda.current_stream() == cuda.default_stream(0)


def test_results_and_counters_hold_with_many_threads(gpu: None) -> None:
    before = cuda.memory_allocated()

    def work(number: int) -> None:
        with cuda.stream(cuda.Stream()):
            for step in range(40):
                values = tp.full((1000 + step,), number, dtype=tp.int64, device="cuda")
                assert (values + step).sum().item() == (number + step) * (1000 + step)

    together(work)
    assert cuda.memory_allocated() == before


def test_errors_belong_to_the_thread(gpu: None) -> None:
    def work(number: int) -> None:
        for _ in range(50):
            try:
                tp.zeros(number + 2, device="cuda") + tp.zeros(number + 3, device="cuda")
            except tp.errors.InvalidArgumentError as error:
                assert f"({number + 2},)" in str(error)
            else:
                raise AssertionError("no error")

    together(work)


def test_first_use_in_many_threads_starts_once(gpu: None) -> None:
    code = """
        import threading
        import tensorplay as tp
        tp.manual_seed(5)
        gate = threading.Barrier(8)
        sums = []
        def work():
            gate.wait()
            sums.append(tp.ones(100, device="cuda").sum().item())
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sums == [100] * 8, tp.cuda.initial_seed())
    """
    assert fresh.run(code) == "True 5\n"


def test_import_starts_no_thread() -> None:
    code = """
        import os
        import numpy
        before = os.listdir("/proc/self/task")
        import tensorplay, tensorplay.cuda
        print(os.listdir("/proc/self/task") == before, tensorplay.cuda._library.native.is_started)
    """
    assert fresh.run(code) == "True False\n"
