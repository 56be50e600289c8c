"""Runs a piece of a program once as it stands and several times as a graph, and compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields

import numpy as np

import tensorplay
from tensorplay import Tensor, cuda

REPLAYS = 3


@dataclass
class Operands:
    """What a piece works on, and may change."""

    x: Tensor
    y: Tensor
    half: Tensor
    n: Tensor
    rows: Tensor
    flags: Tensor
    flag: Tensor
    rounds: Tensor

    @classmethod
    def fresh(cls, seed: int) -> Operands:
        """On the current device; equal seeds give equal values."""
        rng = np.random.default_rng(seed)
        arrays = (
            rng.standard_normal((6, 7)).astype(np.float32),
            rng.standard_normal((6, 7)).astype(np.float32),
            rng.standard_normal((6, 8)).astype(np.float16),
            rng.integers(-50, 50, (6, 7)),
            rng.integers(0, 6, 9),
            rng.random((6, 7)) < 0.5,
            np.array(rng.random() < 0.5),
            np.array(rng.integers(0, 5)),
        )
        return cls(*(tensorplay.from_numpy(array).to("cuda") for array in arrays))

    def all(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]


class Eager:
    """Conditions as a program has them without a graph."""

    def run_if(self, predicate: Tensor, body: Callable[[], None]) -> None:
        if predicate.item():
            body()

    def run_while(self, predicate: Tensor, body: Callable[[], None]) -> None:
        while predicate.item():
            body()


class Captured:
    """The same in a capture."""

    def __init__(self, graph: cuda.CUDAGraph) -> None:
        self._graph = graph

    def run_if(self, predicate: Tensor, body: Callable[[], None]) -> None:
        with self._graph.if_(predicate):
            body()

    def run_while(self, predicate: Tensor, body: Callable[[], None]) -> None:
        with self._graph.while_(predicate):
            body()


Conditions = Eager | Captured
Piece = Callable[[Operands, Conditions], Sequence[Tensor]]


@contextmanager
def capturing(graph: cuda.CUDAGraph, stream: cuda.Stream | None = None) -> Iterator[None]:
    """As `cuda.graph`, which collects garbage first: that would be most of the time of many captures."""
    cuda.synchronize()
    graph.capture_begin(stream=stream or cuda.Stream())
    try:
        yield
    except BaseException:
        graph._abandon()
        raise
    graph.capture_end()


@contextmanager
def fork() -> Iterator[None]:
    """Work of the block goes to another stream, behind that of the current one, which then waits for it."""
    here, side = cuda.current_stream(), cuda.Stream()
    side.wait_stream(here)
    with cuda.stream(side):
        yield
    here.wait_stream(side)


def order(seed: int) -> AbstractContextManager[None]:
    """One of the orders in which streams may run; a GPU chooses by itself."""
    if tensorplay._plugins.get("cuda").describe()["variant"] != "emulated":
        return nullcontext()
    from tensorplay.testing import emulated

    return emulated.seed(seed)


def storage_of(tensor: Tensor) -> int:
    return tensor._backend.storage_id(tensor._impl)


def poison(tensors: Sequence[Tensor], round_: int) -> None:
    """Writes over results what no piece gives."""
    for tensor in tensors:
        if tensor.dtype.is_floating_point:
            tensor.fill_(float("nan"))
        else:
            tensor.fill_(bool(round_ % 2) if tensor.dtype == tensorplay.bool else 77)


def check(piece: Piece, seed: int) -> None:
    """The graph gives, at each replay, exactly what the piece gives eagerly from the same operands and numbers."""
    static, g = Operands.fresh(seed), cuda.CUDAGraph()
    with order(seed), capturing(g):
        outputs = list(piece(static, Captured(g)))
    inputs = {storage_of(tensor) for tensor in static.all()}
    own = [tensor for tensor in outputs if storage_of(tensor) not in inputs]
    for round_ in range(REPLAYS):
        operands = Operands.fresh(REPLAYS * seed + round_)
        for target, source in zip(static.all(), operands.all(), strict=True):
            target.copy_(source)
        poison(own, round_)
        cuda.manual_seed(seed + round_)
        with order(seed + 100 * round_):
            g.replay()
            got = [tensor.tolist() for tensor in [*outputs, *static.all()]]
        cuda.manual_seed(seed + round_)
        expected = [tensor.tolist() for tensor in [*piece(operands, Eager()), *operands.all()]]
        assert got == expected, f"replay {round_}"
