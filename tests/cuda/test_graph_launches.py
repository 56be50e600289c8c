"""Launches of one graph run one after the other, in the order of the calls, whatever streams they are on."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from helpers.captures import flag

import tensorplay as tp
from tensorplay import Tensor, cuda
from tensorplay.cuda import graphs
from tensorplay.errors import StateError
from tensorplay.testing import emulated as control
from tensorplay.testing import explore_orders

pytestmark = pytest.mark.usefixtures("gpu")

PRIME, COUNT = 1009, 70  # static inputs: more than one launch can stage


def capture(condition: Tensor | None) -> tuple[cuda.CUDAGraph, list[Tensor], Tensor]:
    """A graph that makes a total of its inputs and of the former total: each launch changes what the next one does."""
    statics = [tp.zeros(1, dtype=tp.int64, device="cuda") for _ in range(COUNT)]
    total, g = tp.ones(1, dtype=tp.int64, device="cuda"), cuda.CUDAGraph()
    with graphs.graph(g):
        added = total * 2 + statics[0] + statics[-1]
        with nullcontext() if condition is None else g.if_(condition):
            total.copy_(added % PRIME)
    return g, statics, total


def inputs(kind: str, value: int) -> list[Tensor]:
    """Of one plain pair, of one that is copied by itself, of one on the host, of more pairs than one launch stages."""
    dtype, device = tp.float32 if kind == "cast" else tp.int64, "cpu" if kind == "host" else "cuda"
    return [tp.full((1,), value + i, dtype=dtype, device=device) for i in range(COUNT if kind == "many" else 1)]


@pytest.mark.parametrize("conditional", [False, True])
def test_replays_and_staged_launches_on_several_streams_are_in_order(conditional: bool) -> None:
    def run(seed: int) -> None:
        choose, expected, last = random.Random(seed), 1, [0, 0]
        condition = flag() if conditional else None
        g, statics, total = capture(condition)
        streams = [cuda.Stream() for _ in range(3)]
        calls = [(choose.choice(streams), choose.choice(["replay", "one", "cast", "host", "many"])) for _ in range(12)]
        given = [inputs(kind, 10 * i) for i, (_, kind) in enumerate(calls)]
        cuda.synchronize()
        for i, (stream, kind) in enumerate(calls):
            with cuda.stream(stream):
                if kind == "replay":
                    g.replay()
                else:
                    g.stage_and_launch(statics[: len(given[i])], given[i])
                    last = [10 * i, 10 * i + COUNT - 1 if kind == "many" else last[1]]
            expected = (2 * expected + sum(last)) % PRIME
        cuda.synchronize()
        assert total.item() == expected

    for seed in range(3):
        in_any_order(lambda seed=seed: run(seed))  # type: ignore[misc]


def test_a_launch_asks_cuda_for_order_only_where_it_is_not_there(emulated: None) -> None:
    g, statics, _ = capture(None)
    first, second = cuda.Stream(), cuda.Stream()
    fresh = inputs("one", 3)
    cuda.synchronize()

    def staged(stream: cuda.Stream) -> None:
        with cuda.stream(stream):
            g.stage_and_launch(statics[:1], fresh)

    g.replay(first)
    staged(second)
    waits = {"cudaGraphLaunch": 1, "cudaEventRecord": 1, "cudaStreamWaitEvent": 1}
    for call, expected in (
        (lambda: g.replay(first), waits),
        (lambda: g.replay(first), {"cudaGraphLaunch": 1}),
        (lambda: g.replay(second), {"cudaGraphLaunch": 1}),  # CUDA orders launches of one executable graph
        (lambda: staged(second), {"cudaGraphLaunch": 1}),
        (lambda: staged(first), {"cudaGraphLaunch": 1}),
        (lambda: g.replay(second), waits),
    ):
        with control.calls() as counted:
            call()
        assert {name: count for name, count in counted.items() if name in waits and count} == expected


@pytest.mark.filterwarnings("ignore:capture_end")  # of work that ran beside it
def test_the_stream_of_the_last_launch_may_be_captured_by_now() -> None:
    g, statics, total = capture(None)
    busy, free = cuda.Stream(), cuda.Stream()
    fresh = inputs("one", 3)
    cuda.synchronize()
    g.replay(busy)
    other = cuda.CUDAGraph()
    with graphs.graph(other, stream=busy):
        doubled = statics[0] * 2
        with cuda.stream(free):
            with pytest.raises(StateError, match=rf"stream {busy.cuda_stream:#x} of cuda:0, which is captured now"):
                g.stage_and_launch(statics[:1], fresh)
            g.replay()  # behind the other one all the same, by CUDA itself
            g.stage_and_launch(statics[:1], fresh)
    cuda.synchronize()
    other.replay()
    assert (total.item(), doubled.item()) == (11, 6)


def in_any_order(run: Callable[[], None]) -> None:
    """In several orders of the streams' work, where a test can choose them."""
    emulated = tp._plugins.get("cuda").describe()["variant"] == "emulated"
    explore_orders(run, range(6)) if emulated else run()
