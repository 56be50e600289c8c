"""The part of the protocol between core and a backend (`tensorplay._backend`) that concerns graphs.

A graph is work that was captured once and is replayed with one call. Pools and streams are the backend's own objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from .errors import BackendUnavailableError

if TYPE_CHECKING:
    from ._tensor import Tensor


class Graph(Protocol):
    """One capture, until it is reset."""

    def capture_begin(self, pool: Any, capture_error_mode: str, stream: Any) -> None:
        """Of the current stream where `stream` is None; a pool of its own where `pool` is None."""

    def capture_end(self) -> None: ...
    def instantiate(self) -> None: ...
    def replay(self, stream: Any = None) -> None: ...
    def reset(self) -> None: ...
    def pool(self) -> Any: ...
    def enable_debug_mode(self) -> None: ...
    def debug_dump(self, path: str | PathLike[str]) -> None: ...
    def stage_and_launch(self, static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None: ...

    def begin_capture_to_if_node(self, scalar_pred: Tensor) -> None: ...
    def begin_capture_to_while_node(self, scalar_pred: Tensor) -> None: ...
    def end_capture_to_conditional_node(self) -> None: ...
    def set_conditional_handle_for_current_node(self, scalar_pred: Tensor) -> None: ...
    def if_(self, scalar_pred: Tensor) -> AbstractContextManager[None]: ...
    def else_(self) -> AbstractContextManager[None]: ...
    def while_(self, scalar_pred: Tensor) -> AbstractContextManager[None]: ...


class Graphs:
    """What a backend without graphs inherits."""

    type: str

    def graph(self, keep_graph: bool) -> Graph:
        """An empty graph."""
        raise BackendUnavailableError(f"Graph: the backend of type {self.type!r} has no graphs")

    def capture(self, graph: Graph, pool: Any, capture_error_mode: str) -> AbstractContextManager[None]:
        """The context that captures its block on the current stream; after an exception `graph` is empty."""
        raise BackendUnavailableError(f"Graph: the backend of type {self.type!r} has no graphs")

    def graph_pool_handle(self) -> Any:
        """The id of a new pool that graphs can share."""
        raise BackendUnavailableError(f"graph_pool_handle: the backend of type {self.type!r} has no graphs")
