"""CUDA graphs as a compiler backend: what a call queues is captured once for each signature, and replayed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorplay import Tensor, cuda
from tensorplay.compiler import register_backend
from tensorplay.cuda._buffers import Buffer, Results
from tensorplay.cuda._capture import stream_of_captures
from tensorplay.cuda._check import check
from tensorplay.cuda._graphed import GraphedCall, warm_up
from tensorplay.cuda._library import native
from tensorplay.cuda._modules import Former, Weights
from tensorplay.cuda._signature import Refusal, Signature
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError, TensorPlayError
from tensorplay.nn import Module

__all__ = ["CudaGraphManager", "cudagraphs"]

#: Who wants to capture: the first one may, for a device has one stream for it. Nobody waits for a turn, since the
#: function that is captured may call other managers, whose locks who waits would hold. Not a lock: a signal's handler
#: could raise when it was just taken, and it would stay so.
_turns: list[object] = []
_MAY_NOT_WAIT = 2  # mode "error" of `cuda.set_sync_debug_mode`; before a capture the device is waited for


@dataclass
class _Entry:
    """What is known of one signature."""

    warmups: int = 0
    refusal: str | None = None
    graphed: _Graphed | None = None


class _Graphed:
    """A signature with its graph."""

    def __init__(self, function: Callable[..., Any], signature: Signature, pool: cuda.MemPool, clones: bool) -> None:
        owner = getattr(function, "__self__", function)  # of a method
        modules = [owner, *signature.modules] if isinstance(owner, Module) else signature.modules
        self.weights, former = Weights(modules), Former(modules)
        with cuda.use_mem_pool(pool):
            self._buffers = [Buffer(*pair) for pair in zip(signature.places, signature.tensors, strict=True)]
        tensors = [buffer.tensor for buffer in self._buffers]
        args, kwargs = signature.with_tensors(tensors)
        targets = [buffer.target for buffer in self._buffers]
        try:
            self._call = GraphedCall(_on(signature.current, function, args, kwargs), targets, pool.id)
            for buffer in self._buffers:
                if native.tp_graph_writes(self._call.graph._pointer, buffer.tensor._impl):
                    raise Refusal(f"argument {buffer.place} is written, and a graph would write its own copy of it")
            self._results = Results(self._call, tensors, signature.device, clones)
            if not self.weights.are_the_same():
                raise Refusal("the function replaces a tensor or a part of its module, expected changes in place")
        except BaseException:
            former.put_back()
            raise

    def replay(self, arguments: list[Tensor]) -> Any:
        """The function's result for these arguments, on the current stream."""
        self._call.replay([buffer.source(given) for buffer, given in zip(self._buffers, arguments, strict=True)])
        return self._results.make(arguments)


class CudaGraphManager:
    """Runs a function through CUDA graphs, one for each signature of its arguments.

    The device's work is done once in every call, in the order of the current stream, so what it changes and draws is as
    without graphs. The function's Python runs in the first calls of a signature (`warmup` of them, on a side stream,
    and the one that is captured), not in replays: what it reads from outside keeps the value, and tensors from outside
    the memory, that they had in the capture. Only the tensors of a `Module` are looked at in every call: where one was
    replaced, moved or cast, or the mode has changed, the signature starts anew.

    A signature is shape, dtype, device and strides of each tensor, the value of everything else, how tuples, lists and
    dicts hold them, the default dtype and the precision of products. Arguments are copied in each call.

    What cannot be captured is refused, with a reason (`refusals`), and runs as it would without this class. So does a
    call inside of a capture, which becomes part of it.

    Parameters
    ----------
    function : callable
        A function, a method or a `Module`.
    warmup : int
        Calls of a signature before it is captured; they do what was asked and give its results.
    max_entries : int
        Signatures that are kept. One more drops the one whose last call is longest ago.
    fullgraph : bool
        Whether a refusal raises, instead of running the function.
    clone_outputs : bool
        Whether results are the caller's own. Else those that a graph has written stay the graph's: the next call with
        the same signature overwrites them.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        warmup: int = 1,
        max_entries: int = 8,
        fullgraph: bool = False,
        clone_outputs: bool = True,
    ) -> None:
        if not callable(function):
            raise DTypeError(f"CudaGraphManager: got {function!r}, expected a callable")
        for name, value, least in (("warmup", warmup, 0), ("max_entries", max_entries, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidArgumentError(f"CudaGraphManager: got {name}={value!r}, expected an integer >= {least}")
        self._function, self._warmup, self._room = function, warmup, max_entries
        self._raises, self._clones = fullgraph, clone_outputs
        self._pool: cuda.MemPool | None = None  # made by a capture
        self._sides: dict[int, cuda.Stream] = {}
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        kinds = ("warmups", "replays", "eager", "captures", "refusals", "renewals", "evictions")
        self._counts = dict.fromkeys(kinds, 0)
        # By device: the stream of the latest replay (its pointer), and an event behind it. All graphs share memory.
        self._latest: dict[int, tuple[Any, cuda.Event]] = {}
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            signature = Signature(args, kwargs)
        except Refusal as refusal:
            with self._lock:
                entry = self._find(str(refusal))
                self._refuse(entry, str(refusal))
        else:
            if any(map(_is_captured, {signature.device, signature.current})):
                return self._eagerly(args, kwargs)
            with self._lock:
                entry = self._find(signature.key)
                self._capture_when_due(entry, signature)
                if entry.graphed is not None:
                    return self._replay(entry.graphed, signature)
        if entry.refusal is None:
            return self._warm_up(entry, signature, args, kwargs)
        if self._raises:
            name = getattr(self._function, "__qualname__", type(self._function).__name__)
            raise StateError(f"{name}: cannot be captured: {entry.refusal}")
        return self._eagerly(args, kwargs)

    # -- what users ask ------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int]:
        """Counts since the manager was made.

        Returns
        -------
        dict of str to int
            ``calls``, each of which is one of: ``warmups``, ``replays``, ``eager`` (refused, or inside of a capture).
            ``captures`` and ``refusals``: how signatures were decided. ``renewals``: graphs dropped for new weights.
            ``evictions``: signatures dropped for others. ``entries``: signatures that are kept.
        """
        with self._lock:
            counts = dict(self._counts)
            calls = counts["warmups"] + counts["replays"] + counts["eager"]
            return {"calls": calls, **counts, "entries": len(self._entries)}

    def refusals(self) -> list[str]:
        """Why calls run eagerly: the reasons of the signatures that are kept, the latest last."""
        with self._lock:
            return [entry.refusal for entry in self._entries.values() if entry.refusal is not None]

    def clear(self) -> None:
        """Drops all signatures and graphs, and their memory: the next calls begin anew. The counts stay."""
        with self._lock:
            self._entries.clear()
            self._pool = None

    # -- the ways of a call --------------------------------------------------------------------------

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._lock:
            self._counts["eager"] += 1
        return self._function(*args, **kwargs)

    def _warm_up(self, entry: _Entry, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with cuda.device(signature.device):
            with self._lock:
                if signature.device not in self._sides:
                    self._sides[signature.device] = cuda.Stream()
            call = _on(signature.current, self._function, args, kwargs)
            result = warm_up(call, self._sides[signature.device])
        with self._lock:
            entry.warmups += 1
            self._counts["warmups"] += 1
        return result

    def _replay(self, graphed: _Graphed, signature: Signature) -> Any:
        stream = native.tp_stream_current(signature.device)
        if signature.device not in self._latest:
            self._latest[signature.device] = stream, cuda.Event()
        former, done = self._latest[signature.device]
        if former != stream:
            check(native.tp_stream_wait_event(stream, done._pointer))
        self._counts["replays"] += 1
        self._latest[signature.device] = stream, done
        try:
            return graphed.replay(signature.tensors)
        finally:
            check(native.tp_event_record(done._pointer, stream))

    # -- entries, under the lock ---------------------------------------------------------------------

    def _find(self, key: Hashable) -> _Entry:
        """The entry of a key, which is the latest now."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        self._entries.move_to_end(key)
        if len(self._entries) > self._room:
            self._entries.popitem(last=False)
            self._counts["evictions"] += 1
        return entry

    def _refuse(self, entry: _Entry, reason: str) -> None:
        if entry.refusal is None:
            entry.refusal = reason
            self._counts["refusals"] += 1

    def _capture_when_due(self, entry: _Entry, signature: Signature) -> None:
        if entry.graphed is not None and not entry.graphed.weights.are_the_same():
            entry.graphed, entry.warmups = None, 0
            self._counts["renewals"] += 1
        if entry.graphed is None and entry.refusal is None and entry.warmups >= self._warmup:
            turn = object()
            try:
                _turns.append(turn)
                if _turns[0] is turn:  # else a later call captures
                    self._capture(entry, signature)
            finally:
                if turn in _turns:
                    _turns.remove(turn)

    def _capture(self, entry: _Entry, signature: Signature) -> None:
        self._pool = cuda.MemPool() if self._pool is None else self._pool
        with cuda.device(signature.device):
            busy = native.tp_stream_is_capturing(stream_of_captures()._pointer)  # by the program
            if busy or cuda.get_sync_debug_mode() == _MAY_NOT_WAIT:
                return  # a later call captures
            try:
                entry.graphed = _Graphed(self._function, signature, self._pool, self._clones)
                self._counts["captures"] += 1
            except Exception as error:
                # If it is the function's own one, the call without a graph raises it again.
                said = isinstance(error, (Refusal, TensorPlayError))
                self._refuse(entry, str(error) if said else f"{type(error).__name__}: {error}")


def _is_captured(device: int) -> bool:
    """Whether the current stream of a device takes part in a capture."""
    return bool(native.tp_stream_is_capturing(native.tp_stream_current(device)))


def _on(device: int, function: Callable[..., Any], args: Any, kwargs: Any) -> Callable[[], Any]:
    """The call, to be made where another device may be current."""

    def call() -> Any:
        with cuda.device(device):
            return function(*args, **kwargs)

    return call


@register_backend
def cudagraphs(function: Callable[..., Any], example_inputs: Sequence[Any] = (), **options: Any) -> CudaGraphManager:
    """The backend: a `CudaGraphManager` of the function, with its options. Examples are not needed."""
    return CudaGraphManager(function, **options)
