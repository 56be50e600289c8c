"""Graphs of the CUDA backend: capture, replay, reset."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from helpers import fresh

import tensorplay
from tensorplay import accelerator, cuda
from tensorplay.cuda import graphs
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


@pytest.mark.smoke
def test_a_replay_does_the_captured_work_again() -> None:
    x = tensorplay.zeros(5, device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        assert graphs.is_current_stream_capturing()
        y = (x + 1) * 2
    assert not graphs.is_current_stream_capturing()
    for value in (3.0, -1.5):
        x.fill_(value)
        y.fill_(float("nan"))
        g.replay()
        assert y.tolist() == [(value + 1) * 2] * 5


def test_the_current_stream_comes_back() -> None:
    before = cuda.current_stream()
    g = cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), graphs.graph(g):
        1 / 0  # noqa: B018
    assert cuda.current_stream() == before
    g.capture_begin(stream=cuda.Stream())
    assert cuda.current_stream() != before
    tensorplay.ones(3, device="cuda")
    g.capture_end()
    assert cuda.current_stream() == before


def test_each_device_has_a_stream_for_captures(two_gpus: None) -> None:
    pooled = {cuda.Stream(index) for index in (0, 1) for _ in range(32)}
    found: list[list[cuda.Stream]] = []
    for index in (0, 1):
        x = tensorplay.zeros(3, device=f"cuda:{index}")
        found.append([])
        for _ in range(2):
            with cuda.device(index), graphs.graph(cuda.CUDAGraph()):
                found[index].append(cuda.current_stream())
                x.add_(1)
    assert [[stream.device_index for stream in set(streams)] for streams in found] == [[0], [1]]
    assert not pooled & {stream for streams in found for stream in streams}


def test_the_device_of_the_stream_is_made_ready(two_gpus: None) -> None:
    with cuda.device(1):
        tensorplay.zeros(30_000_000, device="cuda:1")
        g, x = cuda.CUDAGraph(), tensorplay.zeros(3, device="cuda:1")
        cached = cuda.memory_reserved(1)
    with cuda.graph(g, stream=cuda.Stream(1)):
        assert cuda.memory_reserved(1) < cached
        x.add_(1)
    assert cuda.current_device() == 0
    g.replay()
    assert x.tolist() == [1, 1, 1]


def test_the_default_stream_is_refused() -> None:
    with pytest.raises(StateError, match="capture_begin: the default stream cannot be captured: .* pass stream="):
        cuda.CUDAGraph().capture_begin()


def test_reset_waits_for_live_tensors() -> None:
    g = cuda.CUDAGraph()
    g.reset()
    with graphs.graph(g):
        y = tensorplay.ones(1000, device="cuda")
    g.replay()
    with pytest.raises(StateError, match="reset: 1 blocks of 4096 bytes .* in use"):
        g.reset()
    g.replay()
    assert y.sum().item() == 1000
    del y
    g.reset()
    g.reset()
    with pytest.raises(StateError, match="replay: nothing was captured"):
        g.replay()
    with graphs.graph(g):
        z = tensorplay.ones(3, device="cuda")
    g.replay()
    assert z.tolist() == [1, 1, 1]


@pytest.mark.parametrize("pool", [5, "x", (1,), (1, 2, 3), (1.5, 0), (2**70, 0)])
def test_what_is_no_pool_is_refused(pool: object) -> None:
    with pytest.raises(DTypeError, match="expected a pool's id or a graph"):
        cuda.CUDAGraph().capture_begin(pool=pool, stream=cuda.Stream())
    assert cuda.current_stream() == cuda.default_stream()


@pytest.mark.parametrize("mode", ["local", 1, None, ["global"]])
def test_what_is_no_mode_is_refused(mode: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="capture_begin: got mode .*, expected one of: 'global'"):
        cuda.CUDAGraph().capture_begin(capture_error_mode=mode, stream=cuda.Stream())
    assert cuda.current_stream() == cuda.default_stream()


def test_a_pool_that_is_gone_is_refused() -> None:
    pair = tuple(graphs.graph_pool_handle())
    with pytest.raises(InvalidArgumentError, match="expected the id of a private pool in use"):
        cuda.CUDAGraph().capture_begin(pool=pair, stream=cuda.Stream())


def names_of(call: Any) -> list[str]:
    return list(inspect.signature(call).parameters)


def test_methods_have_the_parameters_of_the_facades_graph() -> None:
    for name, method in inspect.getmembers(accelerator.Graph, inspect.isfunction):
        if not name.startswith("_"):
            assert names_of(getattr(cuda.CUDAGraph, name)) == names_of(method), name
    assert isinstance(inspect.getattr_static(cuda.CUDAGraph, "pool_id"), property)
    defaults = {name: one.default for name, one in inspect.signature(graphs.graph).parameters.items()}
    assert {name: defaults.get(name, "none") for name in ("pool", "stream", "capture_error_mode")} == {
        "pool": None, "stream": None, "capture_error_mode": "global",
    }  # fmt: skip


def test_the_first_work_of_a_program_may_be_captured() -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        tp.manual_seed(3)
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            x = tp.zeros(3, device="cuda").uniform_()
        g.replay()
        first = x.tolist()
        tp.manual_seed(3)
        print(first == x.uniform_().tolist())
    """
    assert fresh.run(code).strip() == "True"
