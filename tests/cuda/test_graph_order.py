"""The order checker and graphs: a replay is one piece of work, with all that its graph reads and writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import OrderError

pytestmark = pytest.mark.usefixtures("checker")


def captured(pool: graphs.CUDAGraph | None = None) -> tuple[cuda.CUDAGraph, tp.Tensor, tp.Tensor]:
    """A graph with its input and its output."""
    x, g = tp.zeros(64, device="cuda"), cuda.CUDAGraph()
    with graphs.graph(g, pool=pool):
        y = (x + 1) * 2
    return g, x, y


def reads(x: tp.Tensor, y: tp.Tensor) -> None:
    y + 1


def overwrites(x: tp.Tensor, y: tp.Tensor) -> None:
    x.fill_(3)


@pytest.mark.parametrize("work", [reads, overwrites])
@pytest.mark.parametrize("call", ["replay", "stage_and_launch"])
def test_work_that_does_not_wait_for_a_replay_is_found(work: Callable[..., None], call: str) -> None:
    g, x, y = captured()
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    fresh = tp.ones(64, device="cuda")
    g.replay() if call == "replay" else g.stage_and_launch([x], [fresh])
    with pytest.raises(OrderError) as found, cuda.stream(side):
        work(x, y)
    assert found.value.operations[0] == call
    assert found.value.missing == "wait_stream"
    assert "test_graph_order.py" in found.value.places[0]
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        work(x, y)


def test_a_replay_that_does_not_wait_for_its_input_is_found() -> None:
    g, x, y = captured()
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        x.fill_(5)
    with pytest.raises(OrderError) as found:
        g.replay()
    assert found.value.operations == ("fill", "replay")
    assert found.value.writes == (True, False)
    cuda.current_stream().wait_stream(side)
    g.replay()
    assert y.tolist() == [12] * 64


def test_replays_of_one_graph_are_in_order_and_those_of_a_shared_pool_are_not() -> None:
    (g, *_), side = captured(), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    for _ in range(2):
        g.replay()
        g.replay(stream=side)
    cuda.synchronize()
    twin, *_ = captured(pool=g)
    side.wait_stream(cuda.current_stream())
    g.replay()
    with pytest.raises(OrderError) as found:
        twin.replay(stream=side)
    assert found.value.operations == ("replay", "replay")
    side.wait_stream(cuda.current_stream())
    twin.replay(stream=side)
    cuda.synchronize()
