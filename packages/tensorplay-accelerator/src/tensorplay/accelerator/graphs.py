"""Device-agnostic capture/replay graphs for the current accelerator.

`Graph` records a sequence of operations on the active accelerator backend and replays it with reduced launch overhead.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from os import PathLike
from types import TracebackType
from typing import Any

from tensorplay._plugins import needed
from tensorplay._tensor import Tensor

__all__ = ["Graph", "graph_pool_handle"]

_UNSET = "__unset__"  # what the constructor was given


class Graph:
    """Capture/replay graph on the current accelerator device.

    ``with graph: ...`` captures what its block queues on the current stream; an exception ends the capture for nothing.

    Parameters
    ----------
    keep_graph : bool
        Accepted for generic code; the executable is compiled when the capture ends.
    pool : optional
        None captures into a fresh private pool; an id of `graph_pool_handle`, another graph, or another graph's pool id
        shares that pool.
    capture_error_mode : str
        ``"global"``: calls that could break a capture fail, of any thread; ``"thread_local"``: of this thread;
        ``"relaxed"``: of none. ``"default"`` is ``"global"``, for code that leaves the choice to the accelerator.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    """

    __slots__ = ("__weakref__", "_backend", "_capture", "_graph", "_mode", "_pool")

    def __init__(self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "global") -> None:
        self._backend = needed("Graph")
        self._graph = self._backend.graph(keep_graph)
        self._pool, self._mode = pool, capture_error_mode
        self._capture: AbstractContextManager[None] | None = None

    def __enter__(self) -> Graph:
        capture = self._backend.capture(self._graph, _of_backend(self._pool), _mode(self._mode))
        capture.__enter__()
        self._capture = capture
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        capture, self._capture = self._capture, None
        if capture is not None:
            capture.__exit__(kind, error, traceback)

    def capture_begin(self, pool: Any = _UNSET, capture_error_mode: Any = _UNSET, stream: Any = None) -> None:
        """Begins to capture the current stream with the settings of the constructor, or with those given.

        Parameters
        ----------
        pool, capture_error_mode : optional
            As the constructor takes them.
        stream : optional
            Is made current until the capture ends, and captured.

        Raises
        ------
        StateError
            The graph is not empty, or the stream is the default stream or takes part in a capture.
        """
        pool = self._pool if pool is _UNSET else pool
        mode = self._mode if capture_error_mode is _UNSET else capture_error_mode
        self._graph.capture_begin(_of_backend(pool), _mode(mode), stream)

    def capture_end(self) -> None:
        """Ends the capture and compiles the executable (paid here, not at the first replay).

        After a failure the graph is empty; the error names the call that broke the capture.
        """
        self._graph.capture_end()

    def instantiate(self) -> None:
        """Does nothing: the executable is compiled when the capture ends."""
        self._graph.instantiate()

    def replay(self, stream: Any = None) -> None:
        """Launches the executable on the current stream, or on the one given, which saves the look-up."""
        self._graph.replay(stream)

    def stage_and_launch(self, static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Copies every input onto its static buffer and replays, in one call.

        Parameters
        ----------
        static_inputs : sequence of Tensor
            Buffers that the graph has captured; the caller keeps them alive.
        inputs : sequence of Tensor
            What overwrites the matching buffers, as ``static.copy_(input)`` in the order of the lists. Contiguous pairs
            of one dtype and device take one kernel together, which is part of the launch.

        Raises
        ------
        InvalidArgumentError
            A ValueError, where the lists differ in length; what `copy_` refuses is refused as by it. Nothing was queued
            then.
        """
        self._graph.stage_and_launch(static_inputs, inputs)

    def reset(self) -> None:
        """Destroys the executable and gives up the pool, so that the graph can capture again.

        Raises
        ------
        StateError
            Tensors that were allocated in the capture live on (the text counts them), or it is underway.
        """
        self._graph.reset()

    def pool(self) -> Any:
        """Opaque id of this graph's memory pool, shareable with others; ``tuple(id)`` is a pair."""
        return self._graph.pool()

    @property
    def pool_id(self) -> Any:
        """As `pool`."""
        return self._graph.pool()

    def enable_debug_mode(self) -> None:
        """`debug_dump` writes all attributes of the nodes."""
        self._graph.enable_debug_mode()

    def debug_dump(self, path: str | PathLike[str]) -> None:
        """Writes a rendering of the captured graph in the language DOT.

        Raises
        ------
        OSError
            The path cannot be written.
        StateError
            Nothing was captured.
        """
        self._graph.debug_dump(path)

    def begin_capture_to_if_node(self, scalar_pred: Tensor) -> None:
        """Inside an open capture, gates the following work on an if node.

        Parameters
        ----------
        scalar_pred : Tensor
            One element of dtype bool on the graph's device. It is read in each replay, and decides whether the body
            runs: what is captured from here to `end_capture_to_conditional_node`.
        """
        self._graph.begin_capture_to_if_node(scalar_pred)

    def begin_capture_to_while_node(self, scalar_pred: Tensor) -> None:
        """As `begin_capture_to_if_node`, but the body runs again for as long as the predicate is true.

        A body that writes `scalar_pred` renews it so; one that does not must call
        `set_conditional_handle_for_current_node`.
        """
        self._graph.begin_capture_to_while_node(scalar_pred)

    def end_capture_to_conditional_node(self) -> None:
        """Closes the innermost open body; what follows is captured behind its node again."""
        self._graph.end_capture_to_conditional_node()

    def set_conditional_handle_for_current_node(self, scalar_pred: Tensor) -> None:
        """In the innermost open body, sets from a tensor what its node reads next."""
        self._graph.set_conditional_handle_for_current_node(scalar_pred)

    def if_(self, scalar_pred: Tensor) -> AbstractContextManager[None]:
        """``with g.if_(pred):`` captures the body of an if node (`begin_capture_to_if_node`)."""
        return self._graph.if_(scalar_pred)

    def else_(self) -> AbstractContextManager[None]:
        """``with g.else_():``, directly after the block of `if_`, captures what runs where the predicate is false."""
        return self._graph.else_()

    def while_(self, scalar_pred: Tensor) -> AbstractContextManager[None]:
        """``with g.while_(pred):`` captures the body of a while node (`begin_capture_to_while_node`)."""
        return self._graph.while_(scalar_pred)


def graph_pool_handle() -> Any:
    """The id of a new memory pool, which graphs can share: ``Graph(pool=handle)``.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator.
    """
    return needed("graph_pool_handle").graph_pool_handle()


def _of_backend(pool: Any) -> Any:
    """A pool as the backend knows it: of a `Graph`, what it wraps."""
    return pool._graph if isinstance(pool, Graph) else pool


def _mode(mode: Any) -> Any:
    return "global" if mode == "default" else mode
