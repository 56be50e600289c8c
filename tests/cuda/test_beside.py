"""Captures that miss work: queued on another device or stream, or not queued at all."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


@contextmanager
def warned() -> Iterator[list[str]]:
    """Texts of the warnings, all of which point to this file; each place warns once."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        yield texts
    assert all(warning.filename == __file__ and warning.category is UserWarning for warning in found)
    texts += [str(warning.message) for warning in found]


def test_work_on_another_device_is_named_with_both_devices(two_gpus: None) -> None:
    x = tensorplay.zeros(3, device="cuda:0")
    g = cuda.CUDAGraph()
    with warned() as texts, cuda.device(1), graphs.graph(g):
        x.add_(1)
        x.mul_(2)
    (text,) = texts
    assert text.startswith("capture_end: 2 pieces of work ran at once, and no replay repeats it: add was queued on ")
    assert "on the default stream of cuda:0, which took no part in the capture of stream 0x" in text
    assert text.endswith(" of cuda:1; the graph is empty")
    g.replay()
    cuda.synchronize(1)
    assert x.tolist() == [2, 2, 2]


def test_work_on_a_stream_that_was_not_forked_is_named() -> None:
    x, y, side = tensorplay.zeros(3, device="cuda"), tensorplay.zeros(3, device="cuda"), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    g = cuda.CUDAGraph()
    with warned() as texts, graphs.graph(g):
        y += 1
        with cuda.stream(side):
            x += 1
    (text,) = texts
    assert text.startswith("capture_end: 1 piece of work ran at once")
    assert f"stream {side.cuda_stream:#x} of cuda:0, which took no part in" in text
    assert "empty" not in text
    g.replay()
    cuda.synchronize()
    assert (x.tolist(), y.tolist()) == ([1, 1, 1], [1, 1, 1])


def test_work_of_forked_streams_other_threads_and_reads_are_no_mistake() -> None:
    x, y, side = tensorplay.zeros(3, device="cuda"), tensorplay.zeros(3, device="cuda"), cuda.Stream()
    thread = threading.Thread(target=lambda: y.add_(1))
    cuda.synchronize()
    g = cuda.CUDAGraph()
    with graphs.graph(g, capture_error_mode="relaxed"):
        here = cuda.current_stream()
        side.wait_stream(here)
        with cuda.stream(side):
            x += 1
        here.wait_stream(side)
        thread.start()
        thread.join()
        with cuda.stream(cuda.default_stream()):
            assert y.tolist() == [1, 1, 1]
    g.replay()
    cuda.synchronize()
    assert x.tolist() == [1, 1, 1]


def test_an_empty_graph_warns_once_at_each_place_and_replays() -> None:
    x = tensorplay.arange(6, device="cuda")
    with warned() as texts:
        for _ in range(3):
            g = cuda.CUDAGraph()
            with graphs.graph(g):
                y = x.view(2, 3)
        other = cuda.CUDAGraph()
        with graphs.graph(other):
            pass
    assert texts == ["capture_end: the graph is empty: nothing was queued on the stream that was captured"] * 2
    for _ in range(2):
        g.replay()
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_program_without_a_name_is_warned_too() -> None:
    program = compile("with graphs.graph(cuda.CUDAGraph()):\n    pass", "a program", "exec")
    with pytest.warns(UserWarning, match="the graph is empty") as warnings:
        exec(program, {"graphs": graphs, "cuda": cuda})
    assert [warning.filename for warning in warnings] == ["a program"]


def test_a_warning_may_be_an_error_and_the_graph_is_captured() -> None:
    g = cuda.CUDAGraph()
    with pytest.raises(UserWarning, match="the graph is empty"), graphs.graph(g):
        pass
    assert not graphs.is_current_stream_capturing()
    g.replay()


def test_functions_that_miss_work_are_not_graphed() -> None:
    x, side = tensorplay.zeros(3, device="cuda"), cuda.Stream()
    total = tensorplay.zeros(3, device="cuda")
    side.wait_stream(cuda.current_stream())

    def count(value: tensorplay.Tensor) -> tensorplay.Tensor:
        with cuda.stream(side):
            total.add_(1)
        return value + 1

    with pytest.raises(tensorplay.errors.StateError, match="capture: 1 piece of work ran at once"):
        cuda.make_graphed_callables(count, (x,), num_warmup_iters=1)
    cuda.synchronize()
    assert total.tolist() == [2, 2, 2]
