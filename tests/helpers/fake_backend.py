"""A second backend, on NumPy: docs/guide/writing-a-backend.md walks through it.

It has devices of type "fake", streams, counted memory, generators and graphs. Each device is a host backend of its own;
work is done when its call returns, unless a stream is being captured: then it is noted, and done by the replays.
"""

from __future__ import annotations

import inspect
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from helpers.fake_graphs import Graph

from tensorplay import Device, DType, Tensor, _operands, complex64, complex128
from tensorplay._backend import Backend
from tensorplay._host.backend import HostBackend
from tensorplay.errors import DTypeError, ExchangeError, InvalidArgumentError, StateError

_HOST = Device("cpu")


@dataclass(frozen=True)
class Piece:
    """What a tensor holds: its device, and the elements as a tensor of that device's host backend."""

    index: int
    host: Tensor


# -- streams ---------------------------------------------------------------------------------------------


class Stream:
    """A queue of a device, which is always empty: work is done at once."""

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.graph: Graph | None = None  # what captures it

    @property
    def device(self) -> Device:
        return Device("fake", self.index)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        if self.graph is not None:
            raise StateError("synchronize: would wait for a stream that is being captured")

    def wait_stream(self, stream: Stream) -> None:
        """Nothing: there is no work to wait for."""


class _Thread(threading.local):
    """What is current in a thread; a device that is not in the dictionary has its default stream."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Stream] = {}


# -- work ------------------------------------------------------------------------------------------------


def _swapped(value: Any) -> Any:
    """An argument as the host backends take it."""
    if isinstance(value, Tensor):
        return value._impl.host
    if isinstance(value, (list, tuple)):
        return type(value)(_swapped(element) for element in value)
    return _HOST if isinstance(value, Device) else value


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    nested = [element for value in values if isinstance(value, (list, tuple)) for element in value]
    return [value for value in (*values, *nested) if isinstance(value, Tensor)]


def _forwarded(name: str) -> Callable[..., Any]:
    """A method of `Backend` that has the device's host backend do it, now or in replays."""
    signature, check = inspect.signature(getattr(Backend, name)), getattr(_operands, name, None)

    def method(self: FakeBackend, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        del given["self"]
        if check is not None:
            check(**given)  # refuses what cannot be done, in the words of all backends
        tensors = _tensors([*given.values()])
        named = [value.index for value in given.values() if isinstance(value, Device)]
        index = self.index_of(name, named[0] if named else tensors[0].device.index)
        target = next(iter(given.values())) if name.endswith("_") else given.get("out")

        def call() -> Any:
            return getattr(self.units[index], name)(**{key: _swapped(value) for key, value in given.items()})

        return self.do(index, name, call, target, [tensor._impl.host for tensor in tensors])

    return method


def _described(name: str) -> Callable[..., Any]:
    """A method of `Backend` that describes an impl."""

    def method(self: FakeBackend, impl: Piece) -> Any:
        return getattr(impl.host._backend, name)(impl.host._impl)

    return method


_DESCRIPTIONS = (
    "shape", "strides", "storage_offset", "dtype", "data_ptr", "storage_id", "storage_nbytes", "is_contiguous",
)  # fmt: skip

#: All that a backend must have: what is not a description or work stands below.
_Methods: Any = type(
    "_Methods",
    (Backend,),
    {name: (_described if name in _DESCRIPTIONS else _forwarded)(name) for name in Backend.__abstractmethods__},
)


class FakeBackend(_Methods):
    """Keeper of the tensors on devices of type "fake". An impl is a `Piece`."""

    type = "fake"

    def __init__(self, count: int = 2) -> None:
        self.units = [HostBackend() for _ in range(count)]
        self.defaults = [Stream(index) for index in range(count)]
        self._thread = _Thread()
        self._lock = threading.RLock()
        self._handles: Counter[tuple[int, int]] = Counter()  # of each storage
        self._counters: list[Counter[str]] = [Counter() for _ in range(count)]
        self._pools = itertools.count(1)

    # -- devices ------------------------------------------------------------------------------------

    def is_available(self) -> bool:
        return self.device_count() > 0

    def unavailable_reason(self) -> str | None:
        return None if self.units else "there are no fake devices"

    def device_count(self) -> int:
        return len(self.units)

    def current_device(self) -> int:
        return self._thread.device

    def set_device(self, index: int) -> None:
        if index >= 0:
            self._thread.device = self.index_of("set_device", index)

    def synchronize(self, index: int | None) -> None:
        self.current_stream(self.index_of("synchronize", index)).synchronize()

    def supported_dtypes(self, index: int) -> set[DType]:
        return {*super().supported_dtypes(index)} - {complex64, complex128}

    def index_of(self, operation: str, index: int | None) -> int:
        """The index of a device that there is."""
        index = self._thread.device if index is None else index
        if not 0 <= index < len(self.units):
            raise InvalidArgumentError(f"{operation}: device {index} asked for, {len(self.units)} visible")
        return index

    # -- tensors ------------------------------------------------------------------------------------

    def device(self, impl: Piece) -> Device:
        return Device("fake", impl.index)

    def wrap(self, index: int, host: Tensor) -> Tensor:
        """A tensor on a device; memory is counted by storage, whatever the number of its views."""
        made: Tensor = object.__new__(Tensor)
        made._backend, made._impl = self, Piece(index, host)
        with self._lock:
            key = index, self.storage_id(made._impl)
            if not self._handles[key]:
                self._count(index, "allocated", self.storage_nbytes(made._impl))
            self._handles[key] += 1
        return made

    def release(self, impl: Piece) -> None:
        with self._lock:
            key = impl.index, self.storage_id(impl)
            self._handles[key] -= 1
            if not self._handles[key]:
                del self._handles[key]
                self._count(impl.index, "freed", self.storage_nbytes(impl))

    def live(self, storages: list[tuple[int, int]]) -> int:
        """How many of them a tensor still holds."""
        with self._lock:
            return sum(key in self._handles for key in storages)

    def do(
        self, index: int, name: str, call: Callable[[], Any], target: Tensor | None, operands: Sequence[Tensor]
    ) -> Any:
        """Does work, or notes it for the replays; what it makes is there in both cases."""
        graph, unit = self.current_stream(index).graph, self.units[index]
        if graph is not None and target is not None:
            graph.note(name, call)
            return target
        result = call()
        if target is not None or not isinstance(result, Tensor):
            return target
        storages = [operand._backend.storage_id(operand._impl) for operand in operands]
        if graph is not None and name != "empty" and unit.storage_id(result._impl) not in storages:
            graph.note(name, lambda: unit.copy_(result, call()))
            graph.made.append((index, unit.storage_id(result._impl)))
        return self.wrap(index, result)

    def from_host(self, array: np.ndarray[Any, Any], device: Device, non_blocking: bool = False) -> Tensor:
        index = self.index_of("from_host", device.index)
        self._refuse_capture("from_host", index)
        return self.wrap(index, self.units[index].from_host(np.array(array), _HOST))

    def to_host(self, tensor: Tensor, non_blocking: bool = False) -> np.ndarray[Any, Any]:
        self._refuse_capture("to_host", tensor._impl.index)
        return np.array(tensor._impl.host.numpy())

    # -- streams and graphs --------------------------------------------------------------------------

    def current_stream(self, index: int | None) -> Stream:
        index = self.index_of("current_stream", index)
        return self._thread.streams.get(index, self.defaults[index])

    def set_stream(self, stream: Any) -> None:
        own = self.stream_of("set_stream", stream)
        self._thread.device = own.index
        self._thread.streams[own.index] = own

    def stream_of(self, operation: str, stream: Any) -> Stream:
        if not isinstance(stream, Stream):
            raise DTypeError(f"{operation}: got {stream!r}, expected a stream of a fake device")
        return stream

    def graph(self, keep_graph: bool) -> Graph:
        return Graph(self)

    @contextmanager
    def capture(self, graph: Graph, pool: Any, capture_error_mode: str) -> Iterator[None]:
        graph.capture_begin(pool, capture_error_mode)
        try:
            yield
        except BaseException:
            graph.capture_end()
            graph.reset()
            raise
        graph.capture_end()

    def graph_pool_handle(self) -> tuple[int, int]:
        return 0, next(self._pools)

    def _refuse_capture(self, operation: str, index: int) -> None:
        if self.current_stream(index).graph is not None:
            raise StateError(f"{operation}: the stream is being captured, and this would wait for it")

    # -- memory -------------------------------------------------------------------------------------

    def memory_stats(self, index: int | None) -> dict[str, int]:
        counters = self._counters[self.index_of("memory_stats", index)]
        figures = ("current", "peak", "allocated", "freed")
        return {
            f"{family}.all.{key}": counters[key] for family in ("allocated_bytes", "reserved_bytes") for key in figures
        }

    def memory_info(self, index: int | None) -> tuple[int, int]:
        return 2**30 - self.memory_stats(index)["allocated_bytes.all.current"], 2**30

    def reset_peak_memory_stats(self, index: int | None) -> None:
        counters = self._counters[self.index_of("reset_peak_memory_stats", index)]
        counters["peak"] = counters["current"]

    def reset_accumulated_memory_stats(self, index: int | None) -> None:
        counters = self._counters[self.index_of("reset_accumulated_memory_stats", index)]
        counters["allocated"] = counters["freed"] = 0

    def _count(self, index: int, figure: str, nbytes: int) -> None:
        counters = self._counters[index]
        counters[figure] += nbytes
        counters["current"] += nbytes if figure == "allocated" else -nbytes
        counters["peak"] = max(counters["peak"], counters["current"])

    # -- random numbers ------------------------------------------------------------------------------

    def seed(self, index: int, seed: int) -> None:
        self.set_rng_state(index, seed, 0)

    def get_rng_state(self, index: int) -> tuple[int, int]:
        index = self.index_of("get_rng_state", index)
        self._refuse_capture("get_rng_state", index)
        return self.units[index].get_rng_state(0)

    def set_rng_state(self, index: int, seed: int, offset: int) -> None:
        index = self.index_of("set_rng_state", index)
        self._refuse_capture("set_rng_state", index)
        self.units[index].set_rng_state(0, seed, offset)

    # -- exchange -----------------------------------------------------------------------------------

    def dlpack_stream(self, index: int) -> int | None:
        return None

    def export_dlpack(self, tensor: Tensor, stream: int | None, is_versioned: bool, flags: int) -> object:
        raise ExchangeError("__dlpack__: memory of fake devices is not shared")

    def import_dlpack(self, managed: int, is_versioned: bool) -> tuple[Tensor, int]:
        raise ExchangeError("from_dlpack: fake devices use no memory of others")


backend = FakeBackend()
