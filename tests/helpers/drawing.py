"""Programs that draw random numbers, with conditions, loops and streams: chosen by chance, run eagerly or captured.

Predicates and counts are read by the device in a graph, and by the host in an eager run, from the same tensors.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any

import tensorplay
from tensorplay import cuda

# ("draw", place, kind), ("if", count, body, other), ("while", count, body), ("fork", aside, here, aside)
Statement = tuple[Any, ...]

KINDS = ("uniform", "normal", "double", "bits")


class Program:
    """Statements, and the tensors that they work on.

    Parameters
    ----------
    chooser : random.Random
        Chooses the statements.
    conditions : bool
        Whether there are some.
    """

    def __init__(self, chooser: random.Random, conditions: bool = True) -> None:
        self._chooser = chooser
        self._conditions = conditions
        self._sums: list[tensorplay.Tensor] = []
        self._counts: list[tensorplay.Tensor] = []
        self._left = 14  # statements
        self.statements = self._choose(0)
        self.choose_counts()

    def choose_counts(self) -> None:
        """Other predicates and numbers of rounds."""
        for count in self._counts:
            count.fill_(self._chooser.randrange(4))

    def clear(self) -> None:
        """Forgets what was drawn."""
        for total in self._sums:
            total.zero_()

    def results(self) -> list[Any]:
        """Depends on every number that was drawn in each place, and on their order."""
        return [total.tolist() for total in self._sums]

    def run(self, graph: cuda.CUDAGraph | None = None) -> None:
        """Queues the statements on the current stream; into the graph that is being captured, where one is given."""
        self._run(self.statements, graph)

    # -- choosing ----------------------------------------------------------------------------------

    def _choose(self, depth: int) -> list[Statement]:
        return [self._choose_one(depth) for _ in range(self._chooser.randrange(1, 5)) if self._take()]

    def _take(self) -> bool:
        self._left -= 1
        return self._left > 0

    def _choose_one(self, depth: int) -> Statement:
        kind = self._chooser.choice(["draw", "draw", "fork", "if", "while"])
        if kind == "fork" and depth < 2:
            # What the body of a node forks is joined before the next node.
            aside, here = ([self._draw()] if depth else self._choose(1) for _ in range(2))
            return ("fork", aside, here, [self._draw()])
        if kind in ("draw", "fork") or depth == 3 or not self._conditions:
            return self._draw()
        self._counts.append(tensorplay.zeros((), dtype=tensorplay.int64, device="cuda"))
        count = len(self._counts) - 1
        if kind == "while":
            return ("while", count, self._choose(depth + 1))
        return ("if", count, self._choose(depth + 1), self._choose(depth + 1))

    def _draw(self) -> Statement:
        self._sums.append(tensorplay.zeros(self._chooser.randrange(1, 70), dtype=tensorplay.float64, device="cuda"))
        return ("draw", len(self._sums) - 1, self._chooser.choice(KINDS))

    # -- running -----------------------------------------------------------------------------------

    def _run(self, statements: list[Statement], graph: cuda.CUDAGraph | None) -> None:
        for kind, *rest in statements:
            getattr(self, f"_run_{kind}")(*rest, graph)

    def _run_draw(self, place: int, kind: str, _graph: cuda.CUDAGraph | None) -> None:
        total = self._sums[place]
        if kind == "bits":
            drawn = tensorplay.randint(1000, (total.numel(),), device="cuda").to(tensorplay.float64)
        else:
            drawn = tensorplay.empty(total.numel(), dtype=_dtype(kind), device="cuda")
            drawn = drawn.normal_() if kind == "normal" else drawn.uniform_()
        total.mul_(0.5).add_(drawn)

    def _run_fork(
        self, aside: list[Statement], here: list[Statement], later: list[Statement], graph: cuda.CUDAGraph | None
    ) -> None:
        stream, side = cuda.current_stream(), cuda.Stream()
        side.wait_stream(stream)
        with cuda.stream(side):
            self._run(aside, graph)
        self._run(here, graph)
        with cuda.stream(side):
            self._run(later, graph)
        stream.wait_stream(side)

    def _run_if(self, count: int, body: list[Statement], other: list[Statement], graph: cuda.CUDAGraph | None) -> None:
        predicate = self._counts[count] > 1
        if graph is None:
            self._run(body if predicate.item() else other, graph)
            return
        with graph.if_(predicate):
            self._run(body, graph)
        with graph.else_():
            self._run(other, graph)

    def _run_while(self, count: int, body: list[Statement], graph: cuda.CUDAGraph | None) -> None:
        left = self._counts[count].clone()
        predicate = left > 0
        while graph is not None or predicate.item():
            with nullcontext() if graph is None else graph.while_(predicate):
                self._run(body, graph)
                left.sub_(1)
                predicate.copy_(left > 0)
            if graph is not None:
                return


def _dtype(kind: str) -> tensorplay.dtype:
    return tensorplay.float64 if kind == "double" else tensorplay.float32
