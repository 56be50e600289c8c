"""What tests of captures share."""

from __future__ import annotations

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs


def flag(value: bool = True) -> tensorplay.Tensor:
    """A predicate."""
    return tensorplay.full((), value, device="cuda")


def check_capture(g: cuda.CUDAGraph) -> None:
    """The graph captures, and what it has captured is right."""
    x = tensorplay.zeros(5, device="cuda")
    with graphs.graph(g):
        y = x + 1
    for value in (2.0, -7.0):
        x.fill_(value)
        y.fill_(float("nan"))
        g.replay()
        assert y.tolist() == [value + 1] * 5
    del y
    g.reset()


def ask_the_stream() -> None:
    """Breaks the capture of the current stream."""
    cuda.current_stream().query()
