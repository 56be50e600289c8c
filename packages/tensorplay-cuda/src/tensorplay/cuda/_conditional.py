"""Conditional nodes of graphs: work that each replay does or leaves out, as memory of the device says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tensorplay._tensor import Tensor
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError

from ._check import check, not_null
from ._library import native
from .device import CURRENT

if TYPE_CHECKING:
    from ._graph import CUDAGraph

# Those with a capture underway, by `id`.
capturing: WeakValueDictionary[int, CUDAGraph] = WeakValueDictionary()


class Conditional:
    """What `CUDAGraph` has for conditional nodes.

    A body is what is captured between the call that begins it, or the ``with`` that enters it, and its end. It is
    captured on a stream of its own, which is current meanwhile. Bodies may be nested. A predicate is one bool on the
    graph's device, and is read in each replay.
    """

    __slots__ = ()

    _pointer: Any
    _bodies: list[Any]  # for each that is open: what was current before it

    @staticmethod
    def get_currently_capturing_graph() -> CUDAGraph:
        """The graph into whose capture the work of the current stream goes (`tp_graph_is_capturing`).

        Raises
        ------
        StateError
            There is none.
        """
        stream = native.tp_stream_current(CURRENT)
        for reference in capturing.valuerefs():
            graph = reference()
            if graph is not None and native.tp_graph_is_capturing(graph._pointer, stream):
                return graph
        raise StateError("get_currently_capturing_graph: the current stream takes part in the capture of no graph")

    def begin_capture_to_if_node(self, scalar_pred: Tensor) -> None:
        """Begins a body that a replay runs where the predicate is true (`tp_graph_begin_if`).

        Parameters
        ----------
        scalar_pred : Tensor
            One bool on the graph's device.

        Raises
        ------
        StateError
            No capture of this graph is underway, or the current stream takes no part in what is open innermost.
        """
        predicate = _pointer_of("begin_capture_to_if_node", scalar_pred)
        self._enter_body(native.tp_graph_begin_if(self._pointer, predicate, native.tp_stream_current(CURRENT)))

    def begin_capture_to_while_node(self, scalar_pred: Tensor) -> None:
        """Begins a body that a replay runs again for as long as the predicate is true (`tp_graph_begin_while`).

        The body writes the predicate, which is then read at its end, or calls
        `set_conditional_handle_for_current_node`; else its end is refused, since the loop would have none.

        Parameters
        ----------
        scalar_pred : Tensor
            One bool on the graph's device.
        """
        predicate = _pointer_of("begin_capture_to_while_node", scalar_pred)
        self._enter_body(native.tp_graph_begin_while(self._pointer, predicate, native.tp_stream_current(CURRENT)))

    def end_capture_to_conditional_node(self) -> None:
        """Ends the innermost body, also where that fails, and puts the former stream back (`tp_graph_end_body`).

        Raises
        ------
        StateError
            The body of a ``while`` can never end its loop, or holds what CUDA does not take in a body.
        """
        try:
            check(native.tp_graph_end_body(self._pointer))
        finally:
            self._leave_body()

    def set_conditional_handle_for_current_node(self, scalar_pred: Tensor) -> None:
        """The node of the innermost body goes by this predicate from here on (`tp_graph_set_condition`).

        The body of a ``while`` calls it for a predicate that is another tensor in each round.
        """
        predicate = _pointer_of("set_conditional_handle_for_current_node", scalar_pred)
        check(native.tp_graph_set_condition(self._pointer, predicate, native.tp_stream_current(CURRENT)))

    def if_(self, scalar_pred: Tensor) -> AbstractContextManager[None]:
        """``with g.if_(pred):`` captures what a replay does where the predicate is true."""
        return _Body(self, lambda: self.begin_capture_to_if_node(scalar_pred))

    def else_(self) -> AbstractContextManager[None]:
        """``with g.else_():``, directly behind the block of `if_`: what is done where its predicate is false.

        Raises
        ------
        BackendUnavailableError
            The driver, or the CUDA runtime of this library, is older than 12.8.
        StateError
            Something else was captured on the stream since.
        """

        def begin() -> None:
            self._enter_body(native.tp_graph_begin_else(self._pointer, native.tp_stream_current(CURRENT)))

        return _Body(self, begin)

    def while_(self, scalar_pred: Tensor) -> AbstractContextManager[None]:
        """``with g.while_(pred):`` captures what a replay does again and again, until the predicate is false."""
        return _Body(self, lambda: self.begin_capture_to_while_node(scalar_pred))

    def _enter_body(self, pointer: Any) -> None:
        """Makes the body's stream current; NULL: the body did not begin."""
        self._bodies += [native.tp_stream_place(not_null(pointer))]
        native.tp_stream_enter(pointer)

    def _leave_body(self) -> None:
        """Puts back the stream that was current before the innermost body, if any."""
        if self._bodies:
            try:
                native.tp_stream_leave(self._bodies[-1])
            finally:
                del self._bodies[-1]


class _Body:
    """A body as a block; each time that it is entered, one more."""

    __slots__ = ("_begin", "_graph")

    def __init__(self, graph: Conditional, begin: Callable[[], None]) -> None:
        self._graph, self._begin = graph, begin

    def __enter__(self) -> None:
        self._begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._graph.end_capture_to_conditional_node()
        else:
            native.tp_graph_abandon_body(self._graph._pointer)
            self._graph._leave_body()


def _pointer_of(operation: str, predicate: Any) -> Any:
    """The C object of a predicate; C looks at the rest."""
    if not isinstance(predicate, Tensor):
        raise DTypeError(f"{operation}: got {predicate!r} as the predicate, expected a tensor with one bool")
    if predicate.device.type != "cuda":
        raise InvalidArgumentError(
            f"{operation}: got a predicate on {predicate.device}, expected one on the graph's device"
        )
    return predicate._impl
