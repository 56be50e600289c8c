"""CUDA's graph: what was captured, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fsencode
from threading import get_ident
from typing import TYPE_CHECKING, Any

from tensorplay import _plugins
from tensorplay.errors import AcceleratorError, DTypeError, InvalidArgumentError, TensorPlayError

from . import _beside, _launches, _stage
from ._check import check, failure, not_null
from ._conditional import Conditional, capturing
from ._current import StreamContext
from ._library import native
from ._mempool import PoolId
from ._owner import Owner
from .device import CURRENT
from .streams import Stream, pointer_of

if TYPE_CHECKING:
    from tensorplay import Tensor

_GLOBAL, _THREAD_LOCAL, _RELAXED = 0, 1, 2  # TP_CAPTURE_GLOBAL, TP_CAPTURE_THREAD_LOCAL, TP_CAPTURE_RELAXED
_MODES = {"global": _GLOBAL, "thread_local": _THREAD_LOCAL, "relaxed": _RELAXED}


class CUDAGraph(Conditional, Owner):
    """Work that was captured, ready to run again.

    One object holds one capture, until `reset`. Tensors that a capture has made are overwritten by each replay.

    Parameters
    ----------
    keep_graph : bool
        Changes nothing: the graph is compiled when its capture ends, and `raw_cuda_graph` is there all the same.
    """

    __slots__ = ("__weakref__", "_bodies", "_context", "_is_verbose", "_pointer", "_release", "_thread")

    _pointer: Any

    def __init__(self, keep_graph: bool = False) -> None:
        self._release = native.tp_graph_release
        self._is_verbose = False
        self._context: StreamContext | None = None
        self._thread = 0  # whose stream that is, and those of the bodies
        self._bodies = []
        _plugins.get("cuda")  # It comes with a seed that may wait for it, which is not for a capture to set.
        self._pointer = not_null(native.tp_graph_create())

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", None)  # not there when __init__ was interrupted
        if pointer:
            self._release(pointer)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", stream: Stream | None = None) -> None:
        """Begins to capture the current stream (`tp_graph_capture_begin`).

        Parameters
        ----------
        pool : PoolId, pair or CUDAGraph, optional
            Where the capture allocates; a pool of its own when left out.
        capture_error_mode : str
            ``"global"``: calls that could break a capture fail, of any thread; ``"thread_local"``: of this thread;
            ``"relaxed"``: of none.
        stream : Stream, optional
            Is made current until the capture ends, and captured.

        Raises
        ------
        StateError
            The graph is not empty, or the stream is the default stream or takes part in a capture.
        """
        if not isinstance(capture_error_mode, str) or capture_error_mode not in _MODES:
            expected = ", ".join(map(repr, _MODES))
            raise InvalidArgumentError(f"capture_begin: got mode {capture_error_mode!r}, expected one of: {expected}")
        shared = None if pool is None else _pool_id(pool)
        context = StreamContext(stream)
        try:
            context.__enter__()
            check(
                native.tp_graph_capture_begin(
                    self._pointer,
                    native.tp_stream_current(CURRENT),
                    native.NULL if shared is None else shared._pool,
                    _MODES[capture_error_mode],
                )
            )
            self._context, self._thread = context, get_ident()
            capturing[id(self)] = self
        except TensorPlayError:
            context.__exit__(None, None, None)
            raise
        except BaseException:  # a signal's handler may raise behind each call
            self._context, self._thread = context, get_ident()
            self._abandon()
            raise

    def capture_end(self) -> None:
        """Ends the capture and compiles the graph (`tp_graph_capture_end`).

        Warns where the graph is empty, or the thread has queued work on a stream that took no part in the capture.

        Raises
        ------
        AcceleratorError
            Something broke the capture, which the text names with its line of the program; the graph is empty then.
        """
        self._end()
        _beside.warn(self._pointer)

    def _end(self) -> None:
        try:
            check(native.tp_graph_capture_end(self._pointer))
        finally:
            self._leave()

    def replay(self, stream: Stream | None = None) -> None:
        """Runs the graph once, on the current stream of its device or on the one given (`tp_graph_replay`)."""
        if stream is None:
            status = _launches.replay(self._pointer)
        else:
            status = _launches.replay(self._pointer, pointer_of("replay", stream))
        if status:
            raise failure()

    def stage_and_launch(self, static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Copies every input onto its static buffer and replays, in one call (`tp_graph_stage_and_launch`).

        Parameters
        ----------
        static_inputs : sequence of Tensor
            Buffers that the graph has captured; the caller keeps them alive.
        inputs : sequence of Tensor
            What overwrites the matching buffers, as ``static.copy_(input)`` in the order of the lists. They may be
            dropped at once. Contiguous pairs of one dtype on the graph's device are copied by the launch itself.

        Raises
        ------
        InvalidArgumentError
            The lists differ in length. What `copy_` refuses is refused as by it. Nothing was queued then.
        StateError
            Nothing was captured, or the current stream is captured.
        """
        status = _launches.stage_and_launch(self._pointer, static_inputs, inputs)
        if status is None:
            _stage.by_copies(self, static_inputs, inputs)
        elif status:
            _stage.refuse(static_inputs, inputs)

    def instantiate(self) -> None:
        """Does nothing: the graph was compiled when its capture ended."""

    def reset(self) -> None:
        """Makes the graph empty (`tp_graph_reset`).

        Raises
        ------
        StateError
            Tensors that the capture has made are in use, or it is underway.
        """
        check(native.tp_graph_reset(self._pointer))

    def pool(self) -> PoolId:
        """The id of the graph's pool, for other captures (`tp_graph_mempool`)."""
        return PoolId(not_null(native.tp_graph_mempool(self._pointer)))

    @property
    def pool_id(self) -> PoolId:
        """As `pool`."""
        return self.pool()

    def raw_cuda_graph(self) -> int:
        """``cudaGraph_t`` as a number, 0 while nothing is captured; it is this object's (`tp_graph_handle`)."""
        return int(native.tp_graph_handle(self._pointer))

    def raw_cuda_graph_exec(self) -> int:
        """``cudaGraphExec_t`` as a number, 0 while nothing is captured (`tp_graph_exec_handle`)."""
        return int(native.tp_graph_exec_handle(self._pointer))

    def enable_debug_mode(self) -> None:
        """`debug_dump` writes all that CUDA tells of nodes."""
        self._is_verbose = True

    def debug_dump(self, path: str | PathLike[str]) -> None:
        """Writes the graph in the language DOT (`tp_graph_write_dot`).

        Raises
        ------
        OSError
            The path cannot be written.
        StateError
            Nothing was captured.
        """
        export_dot(self, path)

    def _abandon(self) -> None:
        """Ends a capture for nothing."""
        native.tp_graph_capture_abandon(self._pointer)
        self._leave()

    def _forsake(self) -> None:
        """The same, late: contexts around the capture may have put back their streams by now."""
        if not self._bodies and self._context is not None and not self._context.is_current():
            self._context = None
        self._abandon()

    def _leave(self) -> None:
        """Puts back the stream that was current before the capture, in the thread where it began."""
        capturing.pop(id(self), None)
        if self._thread != get_ident():
            self._bodies, self._context = [], None
        while self._bodies:
            self._leave_body()
        if self._context is not None:
            self._context.__exit__(None, None, None)
            self._context = None


def export_dot(graph: CUDAGraph, path: str | PathLike[str]) -> None:
    """Writes a graph in the language DOT, as `CUDAGraph.debug_dump`."""
    if not isinstance(graph, CUDAGraph):
        raise DTypeError(f"export_dot: got {type(graph).__name__}, expected a CUDAGraph")
    encoded = fsencode(path)
    if b"\0" in encoded:
        raise InvalidArgumentError(f"debug_dump: got path {path!r}, expected one without null characters")
    try:
        check(native.tp_graph_write_dot(graph._pointer, encoded, graph._is_verbose))
    except AcceleratorError:
        open(path, "ab").close()  # Raises the system's own reason, where that is what failed.
        raise


def _pool_id(pool: Any) -> PoolId:
    """The id that a user means: an id, a pair, or a graph's.

    Raises
    ------
    InvalidArgumentError
        Nobody uses a pool of that pair any more.
    """
    if isinstance(pool, PoolId):
        return pool
    if isinstance(pool, CUDAGraph):
        return pool.pool()
    try:
        first, second = pool
        pointer = native.tp_mempool_find(first, second)
    except (TypeError, ValueError, OverflowError):
        raise DTypeError(f"capture_begin: got pool {pool!r}, expected a pool's id or a graph") from None
    return PoolId(not_null(pointer))
