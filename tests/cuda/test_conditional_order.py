"""The order checker and bodies of conditional nodes: each comes behind its stream, and the stream behind the body."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from helpers.captures import flag

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import OrderError

pytestmark = pytest.mark.usefixtures("gpu")


def test_bodies_are_in_line(with_else: None, checker: None) -> None:
    g, x, side = cuda.CUDAGraph(), tp.zeros(3, device="cuda"), cuda.Stream()
    with graphs.graph(g):
        x.add_(1)
        with g.if_(flag()):
            x.mul_(2)
            with g.if_(flag()):
                x.mul_(3)
            x.add_(1)
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                x.mul_(5)
            cuda.current_stream().wait_stream(side)
            x.add_(2)
        with g.else_():
            x.add_(7)
        x.add_(4)
    for _ in range(2):
        g.replay()
    assert x.tolist() == [1271] * 3


@pytest.mark.parametrize("where", ["beside", "inside", "nested"])
def test_races_with_bodies_are_found(checker: None, where: str) -> None:
    g, x, side = cuda.CUDAGraph(), tp.zeros(3, device="cuda"), cuda.Stream()

    def capture() -> None:
        with graphs.graph(g):
            if where == "beside":
                side.wait_stream(cuda.current_stream())
            with g.if_(flag()), g.if_(flag()) if where == "nested" else nullcontext():
                if where != "beside":
                    side.wait_stream(cuda.current_stream())
                x.mul_(2)
                if where != "beside":
                    on_side()
            on_side()

    def on_side() -> None:
        with cuda.stream(side):
            x.add_(1)

    with pytest.raises(OrderError, match="nothing orders them"):
        capture()
