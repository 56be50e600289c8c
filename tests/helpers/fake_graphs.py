"""Graphs of the backend in `helpers.fake_backend`: work that is noted, and done by every replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorplay import Tensor
from tensorplay.errors import InvalidArgumentError, StateError

if TYPE_CHECKING:
    from helpers.fake_backend import FakeBackend, Stream

#: Names and calls, in order.
Work = list[tuple[str, Callable[[], Any]]]


class _Node:
    """A conditional node: whether its body runs (next); None where the predicate has to be read."""

    is_true: bool | None = None


class Graph:
    """Work as a list of names and calls; bodies of conditional nodes are lists in it."""

    def __init__(self, backend: FakeBackend) -> None:
        self._backend = backend
        self._pool: Any = None
        self.made: list[tuple[int, int]] = []  # device and storage of what the capture has allocated
        self._stream: Stream | None = None
        self._work: Work | None = None
        self._open: list[Work] = []
        self._nodes: list[_Node] = []
        self._former: Stream | None = None
        self._last = _Node()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", stream: Stream | None = None) -> None:
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise InvalidArgumentError(f"capture_begin: got capture_error_mode {capture_error_mode!r}")
        if self._open:
            raise StateError("capture_begin: a capture of this graph is underway")
        if self._work is not None:
            raise StateError("capture_begin: the graph has a capture already: reset it first")
        former = self._backend.current_stream(None)
        stream = former if stream is None else self._backend.stream_of("capture_begin", stream)
        if stream in self._backend.defaults:
            raise StateError(
                "capture_begin: the default stream cannot be captured: make another, and pass it as stream="
            )
        if stream.graph is not None:
            raise StateError("capture_begin: the stream takes part in a capture")
        self._pool = self._backend.graph_pool_handle() if pool is None else getattr(pool, "_pool", pool)
        self._former, self._stream, stream.graph, self._open = former, stream, self, [[]]
        self._backend.set_stream(stream)

    def capture_end(self) -> None:
        if self._stream is None or self._former is None:
            raise StateError("capture_end: no capture of this graph is underway")
        self._stream.graph = None
        self._stream = None
        work, *bodies = self._open
        self._open, self._nodes = [], []
        self._backend.set_stream(self._former)
        if bodies:
            raise StateError(f"capture_end: {len(bodies)} bodies of conditional nodes are open")
        self._work = work

    def note(self, name: str, call: Callable[[], Any]) -> None:
        """Puts work at the end of the innermost open body."""
        self._open[-1].append((name, call))

    def instantiate(self) -> None:
        """Nothing: a list needs no preparation."""

    def replay(self, stream: Stream | None = None) -> None:
        if stream is not None:
            self._backend.stream_of("replay", stream)
        _run(self._captured("replay"))

    def stage_and_launch(self, static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        if len(static_inputs) != len(inputs):
            raise InvalidArgumentError(f"stage_and_launch: got {len(static_inputs)} buffers and {len(inputs)} inputs")
        for static, fresh in zip(static_inputs, inputs, strict=True):
            static.copy_(fresh)
        self.replay()

    def reset(self) -> None:
        if self._open:
            raise StateError("reset: a capture of this graph is underway")
        live = self._backend.live(self.made)
        if live:
            raise StateError(f"reset: {live} blocks of the capture are in use: drop the tensors first")
        self.made = []
        self._work = None

    def pool(self) -> Any:
        return self._pool

    def enable_debug_mode(self) -> None:
        """Nothing: all that is known is written anyway."""

    def debug_dump(self, path: str | PathLike[str]) -> None:
        nodes = "".join(f'  n{i} [label="{name}"];\n' for i, (name, _) in enumerate(self._captured("debug_dump")))
        Path(path).write_text(f"digraph {{\n{nodes}}}\n")

    def begin_capture_to_if_node(self, scalar_pred: Tensor) -> None:
        self._begin("if", scalar_pred, lambda body, node: _run(body) if node.is_true else None)

    def begin_capture_to_while_node(self, scalar_pred: Tensor) -> None:
        def loop(body: Work, node: _Node) -> None:
            while node.is_true:
                node.is_true = None
                _run(body)
                if node.is_true is None:
                    node.is_true = _truth(scalar_pred)

        self._begin("while", scalar_pred, loop)

    def _begin(self, name: str, pred: Tensor, run: Callable[[Any, _Node], None]) -> None:
        body: Work = []
        node = _Node()

        def call() -> None:
            node.is_true = _truth(pred)
            run(body, node)

        self.note(name, call)
        self._open.append(body)
        self._nodes.append(node)

    def end_capture_to_conditional_node(self) -> None:
        if not self._nodes:
            raise StateError("end_capture_to_conditional_node: no body is open")
        self._open.pop()
        self._last = self._nodes.pop()

    def set_conditional_handle_for_current_node(self, scalar_pred: Tensor) -> None:
        node = self._nodes[-1]
        self.note("set", lambda: setattr(node, "is_true", _truth(scalar_pred)))

    @contextmanager
    def if_(self, scalar_pred: Tensor) -> Iterator[None]:
        self.begin_capture_to_if_node(scalar_pred)
        yield
        self.end_capture_to_conditional_node()

    @contextmanager
    def else_(self) -> Iterator[None]:
        body: Work = []
        before = self._last
        self.note("else", lambda: None if before.is_true else _run(body))
        self._open.append(body)
        yield
        self._open.pop()

    @contextmanager
    def while_(self, scalar_pred: Tensor) -> Iterator[None]:
        self.begin_capture_to_while_node(scalar_pred)
        yield
        self.end_capture_to_conditional_node()

    def _captured(self, operation: str) -> Work:
        if self._work is None:
            raise StateError(f"{operation}: nothing was captured")
        return self._work


def _run(work: Work) -> None:
    for _, call in work:
        call()


def _truth(pred: Tensor) -> bool:
    return bool(pred._impl.host.item())
