"""Inputs that are staged and a replay, in one call."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import tensorplay
from tensorplay import cuda, nn
from tensorplay.cuda import _launches, graphs
from tensorplay.cuda._library import native
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")

Captured = tuple[cuda.CUDAGraph, list[tensorplay.Tensor], tensorplay.Tensor]


def capture() -> Captured:
    """A graph that adds three static inputs."""
    statics = [tensorplay.zeros(2, 3, device="cuda") for _ in range(3)]
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        out = statics[1] * statics[2]
        out += statics[0]
    return g, statics, out


@pytest.mark.smoke
def test_each_call_uses_fresh_inputs() -> None:
    g, statics, out = capture()
    for i in range(4):
        fresh = [tensorplay.full((2, 3), float(i + k), device="cuda") for k in range(3)]
        g.stage_and_launch(statics, fresh)
        del fresh
        assert out.tolist() == [[i + (i + 1) * (i + 2)] * 3] * 2
    g.replay()
    assert out.tolist() == [[23] * 3] * 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: tensorplay.full((3,), 2.0, device="cuda"),
        lambda: tensorplay.full((2, 3), 2, device="cuda"),
        lambda: tensorplay.full((3, 2), 2.0, device="cuda").t(),
        lambda: tensorplay.full((2, 3), 2.0),
        lambda: tensorplay.full((1, 3), 2, dtype=tensorplay.int64),
    ],
    ids=["broadcast", "cast", "strided", "host", "host, cast and broadcast"],
)
def test_every_pair_is_what_copy_would_make_of_it(make: Callable[[], tensorplay.Tensor]) -> None:
    g, statics, out = capture()
    plain = tensorplay.full((2, 3), 5.0, device="cuda")
    g.stage_and_launch(tuple(statics), (plain, make(), plain))
    assert out.tolist() == [[15] * 3] * 2
    assert statics[1].tolist() == [[2] * 3] * 2


@pytest.mark.parametrize("kind", [list, tuple, deque])
def test_any_sequence_of_any_length(kind: Callable[..., Sequence[tensorplay.Tensor]]) -> None:
    statics = [tensorplay.zeros(i % 5, device="cuda") for i in range(150)]
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        out = tensorplay.cat(statics)
    for offset in (0.0, 1000.0):
        fresh = [tensorplay.full((i % 5,), i + offset, device="cuda") for i in range(150)]
        g.stage_and_launch(kind(statics), kind(fresh))
        assert out.tolist() == [i + offset for i in range(150) for _ in range(i % 5)]


@pytest.mark.parametrize("count", [3, 40])
def test_nothing_that_is_given_is_kept(count: int) -> None:
    statics = [tensorplay.zeros(3, device="cuda") for _ in range(count)]
    fresh = [tensorplay.ones(3, device="cuda") for _ in range(count)]
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        out = statics[0] + statics[-1]
    wrong: list[Any] = [*fresh[:-1], None]
    before = [sys.getrefcount(x) for x in statics + fresh]
    for _ in range(5):
        g.stage_and_launch(statics, fresh)
        with pytest.raises(DTypeError):
            g.stage_and_launch(statics, wrong)
        with pytest.raises(InvalidArgumentError):
            g.stage_and_launch(statics[:-1], fresh)
    assert out.tolist() == [2] * 3
    assert [sys.getrefcount(x) for x in statics + fresh] == before


def test_a_static_input_may_be_another_tensor_in_the_same_memory() -> None:
    g, statics, out = capture()
    for i in range(1, 4):
        g.stage_and_launch(statics, [tensorplay.full((2, 3), float(i), device="cuda")] * 3)
        assert out.tolist() == [[i * i + i] * 3] * 2
        flat = [static.view(6) for static in statics]
        g.stage_and_launch(flat, [tensorplay.full((6,), float(i + 1), device="cuda")] * 3)
        assert out.tolist() == [[(i + 1) * (i + 2)] * 3] * 2
        with pytest.raises(InvalidArgumentError, match="pair 0"):
            g.stage_and_launch(statics, [tensorplay.ones(6, device="cuda")] * 3)
        g.stage_and_launch([statics[1], statics[0], statics[2]], [static + k for k, static in enumerate(statics, 1)])
        assert [static[0, 0].item() for static in statics] == [i + 3, i + 2, i + 4]


def test_calls_of_one_graph_may_have_more_inputs_and_fewer() -> None:
    statics = [tensorplay.zeros(10 + 5000 * (i % 3), device="cuda") for i in range(64)]
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        total = tensorplay.stack([static.sum() for static in statics])
    expected = [0.0] * len(statics)
    for call, count in enumerate((3, 9, 40, 64, 1, 33, 8)):
        fresh = [tensorplay.full_like(static, float(call + i % 4)) for i, static in enumerate(statics[:count])]
        g.stage_and_launch(statics[:count], fresh)
        expected[:count] = [x.numel() * float(call + i % 4) for i, x in enumerate(fresh)]
        assert total.tolist() == expected


def test_handles_of_every_kind_are_read() -> None:
    """cffi has several classes for pointers; the binding looks into those of the most frequent one."""
    g, statics, out = capture()
    fresh = [tensorplay.full((2, 3), 3.0, device="cuda") for _ in statics]
    fresh[1]._impl = native.ffi.gc(fresh[1]._impl, lambda _: None)
    assert _launches.stage_and_launch(native.ffi.gc(g._pointer, lambda _: None), statics, fresh) == 0
    assert out.tolist() == [[12] * 3] * 2
    statics[0].fill_(1)
    cuda.synchronize()
    assert _launches.replay(native.ffi.gc(g._pointer, lambda _: None), cuda.Stream()._pointer) == 0
    cuda.synchronize()
    assert out.tolist() == [[10] * 3] * 2
    for wrong in (fresh[0]._impl, cuda.Stream()._pointer, None, 0):
        with pytest.raises(TypeError, match="struct tp_graph"):
            _launches.replay(wrong)
        assert _launches.stage_and_launch(wrong, statics, fresh) is None
    with pytest.raises(TypeError, match="struct tp_stream"):
        _launches.replay(g._pointer, g._pointer)


def test_parameters_are_tensors() -> None:
    g, statics, out = capture()
    g.stage_and_launch(statics, [nn.Parameter(tensorplay.full((2, 3), 3.0, device="cuda"))] * 3)
    assert out.tolist() == [[12] * 3] * 2


def test_no_inputs_are_a_replay() -> None:
    g, statics, out = capture()
    statics[0].fill_(4)
    g.stage_and_launch([], [])
    assert out.tolist() == [[4] * 3] * 2


def test_what_is_refused_changes_nothing() -> None:
    g, statics, _ = capture()
    good, bad = tensorplay.ones(2, 3, device="cuda"), tensorplay.ones(2, 4, device="cuda")
    with pytest.raises(InvalidArgumentError, match=r"stage_and_launch: got 2 inputs for 3 static inputs"):
        g.stage_and_launch(statics, [good, good])
    expected = r"stage_and_launch: pair 1: copy_: got a source of shape \(2, 4\), expected one that broadcasts"
    for fresh in ([good, bad, good], [good, bad.cpu(), good]):
        with pytest.raises(InvalidArgumentError, match=expected):
            g.stage_and_launch(statics, fresh)
    for wrong in ([good, None, good], [good, 1.5, good]):
        with pytest.raises(DTypeError, match="stage_and_launch: got .*, expected a tensor"):
            g.stage_and_launch(statics, wrong)  # type: ignore[arg-type]
    for no_list in (None, 5):
        with pytest.raises(DTypeError, match="stage_and_launch: got .*, expected a sequence of tensors"):
            g.stage_and_launch(statics, no_list)  # type: ignore[arg-type]
    assert all(static.sum().item() == 0 for static in statics)


def test_a_graph_without_a_capture_is_refused() -> None:
    g = cuda.CUDAGraph()
    x, host = tensorplay.zeros(3, device="cuda"), tensorplay.ones(3)
    for fresh in (x + 1, host):
        with pytest.raises(StateError, match="nothing was captured"):
            g.stage_and_launch([x], [fresh])
    assert x.tolist() == [0, 0, 0]


def test_a_captured_stream_is_refused_and_its_capture_goes_on() -> None:
    g, statics, _ = capture()
    other = cuda.CUDAGraph()
    with graphs.graph(other):
        y = statics[0] + 1
        with pytest.raises(StateError, match="the stream is captured"):
            g.stage_and_launch(statics, statics)
    other.replay()
    assert y.tolist() == [[1] * 3] * 2


def test_reset_gives_the_second_executable_graph_up() -> None:
    g, statics, out = capture()
    g.stage_and_launch(statics, [tensorplay.ones(2, 3, device="cuda")] * 3)
    assert out.tolist() == [[2] * 3] * 2
    with pytest.raises(StateError, match="in use"):
        g.reset()
    del out
    g.reset()
    with graphs.graph(g):
        total = statics[0] + statics[1]
    g.stage_and_launch(statics[:1], [tensorplay.full((2, 3), 9.0, device="cuda")])
    assert total.tolist() == [[10] * 3] * 2


def test_a_condition_reads_what_was_staged() -> None:
    x, wanted = tensorplay.zeros(3, device="cuda"), tensorplay.zeros((), dtype=tensorplay.bool, device="cuda")
    out, g = tensorplay.zeros(3, device="cuda"), cuda.CUDAGraph()
    with graphs.graph(g):
        out.copy_(x)
        with g.if_(wanted):
            out.mul_(-1)
    for i, flag in enumerate((True, False, True)):
        fresh = [tensorplay.full((3,), float(i + 1), device="cuda"), tensorplay.tensor(flag, device="cuda")]
        g.stage_and_launch([x, wanted], fresh)
        assert out.tolist() == [-(i + 1) if flag else i + 1] * 3
