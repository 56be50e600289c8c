"""Captures and replays of several threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from helpers.captures import ask_the_stream, check_capture

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import AcceleratorError, StateError

pytestmark = pytest.mark.usefixtures("nothing_stays")

THREADS = 4
LIMIT_S = 60


def in_threads(call: Callable[[int], None], count: int = THREADS) -> None:
    """Calls with 0, 1, ... in as many threads at once; what one raises comes out."""
    with ThreadPoolExecutor(count) as pool:
        for _ in pool.map(call, range(count)):
            pass


class Underway:
    """A capture of another thread: of its device's stream for captures, until the block ends."""

    def __init__(self, mode: str) -> None:
        self._mode, self._begun, self._over = mode, Event(), Event()
        self._pool = ThreadPoolExecutor(1)
        self.graph = cuda.CUDAGraph()
        self._input = tensorplay.ones(5, device="cuda")
        self.output: tensorplay.Tensor | None = None
        self._is_underway = False

    def _capture(self) -> None:
        try:
            with graphs.graph(self.graph, capture_error_mode=self._mode):
                tripled = self._input * 3
                self._is_underway = True
                self._begun.set()
                assert self._over.wait(LIMIT_S)
                self.output = tripled + 1
        finally:
            self._begun.set()

    def __enter__(self) -> Underway:
        self._done = self._pool.submit(self._capture)
        assert self._begun.wait(LIMIT_S)
        if not self._is_underway:
            self._done.result()  # raises what the capture met
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._pool.shutdown()

    def check(self) -> None:
        """It went well, and can be replayed here."""
        self._done.result()
        assert self.output is not None
        self.graph.replay()
        assert self.output.tolist() == [4] * 5


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_the_stream_for_captures_serves_one_at_a_time(mode: str) -> None:
    g = cuda.CUDAGraph()
    with Underway(mode) as other:
        with pytest.raises(
            StateError, match="capture_begin: the stream takes part in a capture already: pass .* stream="
        ):
            graphs.graph(g, capture_error_mode=mode).__enter__()
        assert not cuda.is_current_stream_capturing()
        x = tensorplay.zeros(5, device="cuda")
        with graphs.graph(g, stream=cuda.Stream(), capture_error_mode=mode):
            y = x + 1
    other.check()
    g.replay()
    assert y.tolist() == [1] * 5
    check_capture(cuda.CUDAGraph())


def test_a_second_capture_of_the_same_thread_is_refused_alike() -> None:
    first, second = cuda.CUDAGraph(), cuda.CUDAGraph()
    x = tensorplay.zeros(5, device="cuda")
    with graphs.graph(first):
        y = x + 1
        with pytest.raises(StateError, match="pass another one as stream="):
            graphs.graph(second).__enter__()
        with graphs.graph(second, stream=cuda.Stream()):
            z = x + 2
        y = y + 1
    for g in (second, first):
        g.replay()
    assert (y.tolist(), z.tolist()) == ([2] * 5, [2] * 5)


@pytest.mark.parametrize("mode", ["thread_local", "relaxed"])
def test_captures_at_once(mode: str) -> None:
    barrier = Barrier(THREADS, timeout=LIMIT_S)

    def capture(number: int) -> None:
        g, x = cuda.CUDAGraph(), tensorplay.full((1000,), float(number), device="cuda")
        with cuda.stream(cuda.Stream()):
            cuda.current_stream().wait_stream(cuda.default_stream())
            for round_ in range(3):
                barrier.wait()
                with graphs.graph(g, stream=cuda.current_stream(), capture_error_mode=mode):
                    barrier.wait()  # All of them are underway.
                    y = (x + 1) * (round_ + 1)
                    del_me = tensorplay.zeros(300_000, device="cuda")
                    del del_me
                    y = y + tensorplay.zeros(1000, device="cuda")
                    barrier.wait()
                for _ in range(2):
                    y.fill_(float("nan"))
                    g.replay()
                    assert y.tolist() == [(number + 1) * (round_ + 1)] * 1000
                del y
                g.reset()

    in_threads(capture)


def test_captures_of_two_devices_at_once(two_gpus: None) -> None:
    barrier = Barrier(2, timeout=LIMIT_S)

    def capture(index: int) -> None:
        with cuda.device(index):
            g, x = cuda.CUDAGraph(), tensorplay.ones(1000, device="cuda")
            cuda.synchronize()
            barrier.wait()
            with graphs.graph(g, capture_error_mode="thread_local"):
                barrier.wait()
                y = x + index
                barrier.wait()
            g.replay()
            assert y.device.index == index
            assert y.tolist() == [1 + index] * 1000

    in_threads(capture, 2)


@pytest.mark.parametrize("mode", ["thread_local", "relaxed"])
def test_other_threads_work_beside_a_capture(mode: str) -> None:
    with Underway(mode) as other:
        for size in (10, 100_000, 3_000_000):
            x = tensorplay.ones(size, device="cuda")
            assert (x + 1).sum().item() == 2 * size
            event = cuda.Stream().record_event()
            event.synchronize()
            del x
            cuda.empty_cache()
    other.check()


def test_memory_may_come_and_go_beside_a_capture_of_the_global_mode() -> None:
    with Underway("global") as other:
        for size in (10, 100_000, 3_000_000):
            x = tensorplay.ones(size, device="cuda")
            y = x + 1
            del x
            cuda.empty_cache()
    other.check()
    assert y.sum().item() == 2 * 3_000_000


def test_a_wait_of_another_thread_breaks_a_capture_of_the_global_mode() -> None:
    x = tensorplay.ones(5, device="cuda")
    with Underway("global") as other, pytest.raises(AcceleratorError, match='"global"; the capture .* is broken by it'):
        x.tolist()
    with pytest.raises(AcceleratorError, match=f"add: .* was broken at {__file__}:[0-9]+ by copy_to_host: "):
        other.check()
    del other
    check_capture(cuda.CUDAGraph())


def test_a_capture_that_breaks_leaves_others_alone() -> None:
    g = cuda.CUDAGraph()
    with (
        Underway("thread_local") as other,
        pytest.raises(AcceleratorError, match="is broken by it$"),
        graphs.graph(g, stream=cuda.Stream(), capture_error_mode="thread_local"),
    ):
        ask_the_stream()
    other.check()


def test_one_graph_is_replayed_by_several_threads() -> None:
    x = tensorplay.zeros(5, device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        x.add_(1)

    def replay(number: int) -> None:
        with cuda.stream(cuda.Stream()):
            for _ in range(50):
                g.replay()
            cuda.current_stream().synchronize()

    in_threads(replay)
    assert x.tolist() == [50 * THREADS] * 5


def test_a_capture_that_another_thread_ends_leaves_that_threads_stream_alone() -> None:
    g, x, before = cuda.CUDAGraph(), tensorplay.zeros(3, device="cuda"), cuda.current_stream()
    captured, other = cuda.Stream(), cuda.Stream()
    g.capture_begin(stream=captured, capture_error_mode="relaxed")
    x.add_(1)

    def end(_: int) -> None:
        with cuda.stream(other):
            g.capture_end()
            assert cuda.current_stream() == other

    in_threads(end, 1)
    assert cuda.current_stream() == captured
    cuda.set_stream(before)
    g.replay()
    assert x.tolist() == [1, 1, 1]
