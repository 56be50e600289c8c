"""Captures: the block whose work becomes a graph, and where it is captured."""

from __future__ import annotations

import gc
from threading import get_ident
from types import TracebackType
from typing import Any

from tensorplay.errors import DTypeError

from ._check import check
from ._current import StreamContext
from ._graph import CUDAGraph
from ._library import native
from .device import CURRENT
from .streams import Stream, pointer_of, stream_of


class graph:  # noqa: N801 - torch's name
    """Captures what its block queues: ``with graph(g): ...``

    Parameters
    ----------
    cuda_graph : CUDAGraph
    pool : PoolId, pair or CUDAGraph, optional
        Where the capture allocates; a pool of its own when left out.
    stream : Stream, optional
        Is current in the block; the device's stream for captures when left out.
    capture_error_mode : str
        As `CUDAGraph.capture_begin` takes it.
    """

    _thread = 0  # the one that is in the block
    _context: StreamContext | None = None  # of the capture that it began

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if not isinstance(cuda_graph, CUDAGraph):
            raise DTypeError(f"graph: got {cuda_graph!r}, expected a CUDAGraph")
        self._graph, self._pool, self._stream, self._mode = cuda_graph, pool, stream, capture_error_mode

    def __enter__(self) -> None:
        gc.collect()  # What dies inside of the capture could not go back.
        stream = stream_of_captures() if self._stream is None else self._stream
        check(native.tp_graph_prepare(native.tp_stream_device(pointer_of("graph", stream))))
        self._thread = get_ident()
        try:
            self._graph.capture_begin(self._pool, self._mode, stream)
            self._context = self._graph._context
        except BaseException as error:
            if not isinstance(error, Exception):  # of a signal's handler: behind the beginning
                self._graph._abandon()
            self._thread = 0
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._end()
            else:
                self._graph._abandon()
        except BaseException:  # of a signal's handler: it may have come before the end
            self._graph._abandon()
            raise
        finally:
            self._thread = 0

    def __del__(self) -> None:
        # A handler may raise before the first line of __exit__. What has no other name goes with the block's frame, or
        # late, with a traceback: the graph may capture anew by then.
        if self._thread == get_ident() and self._graph._context is self._context:
            self._graph._forsake()

    def _end(self) -> None:
        self._graph.capture_end()


def stream_of_captures() -> Stream:
    """Where the current device's graphs are captured unless another stream is chosen (`tp_stream_of_captures`)."""
    return stream_of(native.tp_stream_of_captures(CURRENT))


def is_current_stream_capturing() -> bool:
    """Whether work of the thread's current stream is captured now (`tp_stream_is_capturing`)."""
    return bool(native.tp_stream_is_capturing(native.tp_stream_current(CURRENT)))
