"""Control of the emulated device: failures, delays, counts and seeds for tests.

Works where the emulated device serves (``TENSORPLAY_CUDA_RUNTIME=emulated``); elsewhere every function
raises `BackendUnavailableError`. Functions and errors have CUDA's names. What a ``with`` statement sets is
as before when it ends; `reset` puts everything back to what the environment says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tensorplay.cuda import Stream, device_count
from tensorplay.cuda._library import native
from tensorplay.errors import BackendUnavailableError

__all__ = [
    "Calls",
    "calls",
    "capacity",
    "copy_delay",
    "fail",
    "fault_text",
    "fibres",
    "hold",
    "is_own_address",
    "queued",
    "reset",
    "seed",
    "step",
    "used",
]


def _control() -> Any:
    """The functions of tp_emulated.h."""
    variant = native.choice().variant
    if variant != "emulated":
        raise BackendUnavailableError(
            f"tensorplay.testing.emulated: the emulated device is needed, got {variant or 'no CUDA device'}; "
            "set TENSORPLAY_CUDA_RUNTIME=emulated before the first use of tensorplay.cuda"
        )
    return native


def _device(device: int | None) -> int:
    """The device's number, -1 for all."""
    _control()
    if device is None:
        return -1
    if not 0 <= device < device_count():
        raise IndexError(f"emulated device: got {device}, expected 0 <= device < {device_count()}")
    return device


def reset() -> None:
    """Ends all failures, holds and delays, and sets counts to 0; devices that an error had ended work again.

    Memory, queued work and CUDA objects stay.
    """
    _control().tp_emulated_reset()


@contextmanager
def fail(call: str, nth: int = 1, error: str | int = "cudaErrorUnknown") -> Iterator[None]:
    """Lets one call of a CUDA function fail: it does nothing and returns the error.

    Parameters
    ----------
    call : str
        CUDA's name of the function, ``"cudaMalloc"`` for example.
    nth : int
        Which call from now on; 1 is the next.
    error : str or int
        Name or number, ``"cudaErrorMemoryAllocation"`` or 2 for example.

    Raises
    ------
    ValueError
        For a name that the emulated device lacks, or ``nth`` below 1.
    """
    control = _control()
    code = control.tp_emulated_error_code(error.encode()) if isinstance(error, str) else error
    if code <= 0:
        raise ValueError(f"fail: got error {error!r}, expected the name or number of a CUDA error")
    if nth < 1:
        raise ValueError(f"fail: got nth {nth}, expected 1 or more")
    if control.tp_emulated_fail(call.encode(), nth, code):
        raise ValueError(f"fail: got function {call!r}, expected one of {', '.join(_functions())}")
    try:
        yield
    finally:
        control.tp_emulated_fail(call.encode(), 0, 0)


@contextmanager
def hold(stream: Stream) -> Iterator[None]:
    """Holds a stream back: what is queued on it waits until the end of the block.

    Queries and the progress of other streams do not run it. A call that has to wait for it does (the hold
    delays, it never blocks).
    """
    control = _control()
    where = (stream.device_index, stream.cuda_stream)
    if control.tp_emulated_hold(*where):
        raise ValueError(f"hold: got {stream!r}, expected a stream of the emulated device")
    try:
        yield
    finally:
        control.tp_emulated_release(*where)


class Calls(Mapping[str, int]):
    """How often each CUDA function was called since this object was made, failed calls included."""

    def __init__(self, device: int | None = None) -> None:
        self._device = _device(device)
        self._start = self._read()
        self._end: dict[str, int] | None = None

    def _read(self) -> dict[str, int]:
        control = _control()
        return {name: control.tp_emulated_call_count(name.encode(), self._device) for name in _functions()}

    def stop(self) -> None:
        """Counts no further."""
        self._end = self._read()

    def __getitem__(self, name: str) -> int:
        return (self._end or self._read())[name] - self._start[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._start)

    def __len__(self) -> int:
        return len(self._start)

    def __repr__(self) -> str:
        return f"Calls({ {name: count for name, count in self.items() if count} })"


@contextmanager
def calls(device: int | None = None) -> Iterator[Calls]:
    """Counts the CUDA calls of the block; the counter can be read inside of it and afterwards.

    Parameters
    ----------
    device : int, optional
        Only calls made while this device was CUDA's current one.
    """
    counter = Calls(device)
    try:
        yield counter
    finally:
        counter.stop()


@contextmanager
def capacity(nbytes: int, device: int | None = None) -> Iterator[None]:
    """Lets a device (all of them when left out) have this much memory.

    Raises
    ------
    ValueError
        For ``nbytes`` below 1.
    """
    control = _control()
    if nbytes < 1:
        raise ValueError(f"capacity: got {nbytes} bytes, expected 1 or more")
    index = _device(device)
    devices = range(device_count()) if index < 0 else (index,)
    before = {one: control.tp_emulated_capacity(one) for one in devices}
    for one in devices:
        control.tp_emulated_set_capacity(one, nbytes)
    try:
        yield
    finally:
        for one, former in before.items():
            control.tp_emulated_set_capacity(one, former)


@contextmanager
def seed(value: int) -> Iterator[None]:
    """Starts the sequence that decides which ready stream goes next; at the end, the former one anew.

    Raises
    ------
    ValueError
        For what is no integer of 64 bits without a sign.
    """
    control = _control()
    if not 0 <= value < 2**64:
        raise ValueError(f"seed: got {value}, expected 0 to 2**64 - 1")
    before = control.tp_emulated_seed()
    control.tp_emulated_set_seed(value)
    try:
        yield
    finally:
        control.tp_emulated_set_seed(before)


@contextmanager
def fibres(on: bool = True) -> Iterator[None]:
    """Runs blocks with up to 32 threads, which change over at barriers in seeded order, instead of 1."""
    control = _control()
    before = control.tp_emulated_fibres()
    control.tp_emulated_set_fibres(on)
    try:
        yield
    finally:
        control.tp_emulated_set_fibres(before)


@contextmanager
def copy_delay(steps: int) -> Iterator[None]:
    """Lets copies that are queued in the block be slow: the scheduler passes over each so many times."""
    control = _control()
    before = control.tp_emulated_copy_delay()
    if control.tp_emulated_set_copy_delay(steps):
        raise ValueError(f"copy_delay: got {steps} steps, expected 0 or more")
    try:
        yield
    finally:
        control.tp_emulated_set_copy_delay(before)


def queued(where: Stream | int | None = None) -> int:
    """Pieces of work that are queued: of a stream, of a device's streams, or of all devices."""
    control = _control()
    if isinstance(where, Stream):
        return int(control.tp_emulated_stream_queued(where.device_index, where.cuda_stream))
    return int(control.tp_emulated_queued(_device(where)))


def step(n: int = 1) -> int:
    """Takes up to ``n`` steps of the scheduler and returns how many there were to take."""
    return int(_control().tp_emulated_step(n))


def used(device: int = 0) -> int:
    """Bytes of a device that are allocated."""
    return int(_control().tp_emulated_used(_device(device)))


def is_own_address(address: int) -> bool:
    """Whether a live allocation of an emulated device, or of its pinned memory, holds the address."""
    return bool(_control().tp_emulated_is_own_address(address))


def fault_text() -> str:
    """What the last kernel did that was ended early: its name, its block and why; empty when there was none."""
    control = _control()
    return str(control.ffi.string(control.tp_emulated_fault_text()).decode())


def _functions() -> list[str]:
    """Names of the CUDA functions that the emulated device has."""
    control = _control()
    names: list[str] = []
    while name := control.tp_emulated_function_name(len(names)):
        names.append(control.ffi.string(name).decode())
    return names
