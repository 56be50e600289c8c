"""Random numbers on every device at once. docs/design/random.md says how numbers are made.

Each device has a generator of its own, and so has the host; its numbers depend on its seed and on how
many were drawn before, and are the same on every kind of device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from . import _plugins
from ._backend import Backend
from ._device import Device, DeviceLike
from ._rng_state import packed, seed_by_chance, seed_number, unpacked
from ._tensor import Tensor

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed: int) -> None:
    """Seeds the generators of the host and of all devices, those that are not started yet too.

    Parameters
    ----------
    seed : int
        -2**63 to 2**64 - 1; a negative seed means the positive one with the same 64 bits.

    Raises
    ------
    InvalidArgumentError
        Another number.
    DTypeError
        No integer.
    """
    _plugins.seed_all(seed_number(seed))


def seed() -> int:
    """Seeds the generators of the host and of all devices alike, by chance, and returns the seed."""
    return seed_by_chance(_plugins.seed_all)


def initial_seed() -> int:
    """The seed of the host's generator."""
    return _host().get_rng_state(0)[0]


def get_rng_state() -> Tensor:
    """The state of the host's generator, and of no other: 16 bytes, a tensor of uint8 on the host.

    `tensorplay.cuda.random` and `tensorplay.accelerator.random` have the states of devices.
    """
    return packed(_host().get_rng_state(0))


def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the host's generator, and of no other.

    Parameters
    ----------
    new_state : Tensor
        As `get_rng_state` gives it, of any device; 8 bytes are a seed.

    Raises
    ------
    InvalidArgumentError, DTypeError
        Something else. The generator is unchanged.
    """
    _host().set_rng_state(0, *unpacked(new_state))


@contextmanager
def fork_rng(
    devices: Iterable[DeviceLike] | None = None, enabled: bool = True, device_type: str | None = None
) -> Iterator[None]:
    """Context that puts the generators back, after an exception too: what its block draws, nobody sees outside.

    Parameters
    ----------
    devices : iterable of device, str or int, optional
        Devices whose generators are put back, beside the host's, which always is; others are not touched, and none is
        started. All visible ones of the accelerator by default.
    enabled : bool
        False: the context does nothing.
    device_type : str, optional
        What is meant in the place of the accelerator, by bare indices and by default.

    Raises
    ------
    InvalidArgumentError
        A device that is not visible.
    BackendUnavailableError
        A device of a type without a backend.
    """
    if not enabled:
        yield
        return
    forked = dict.fromkeys([(_host(), 0), *_generators(devices, device_type)])
    states = [(backend, index, backend.get_rng_state(index)) for backend, index in forked]
    try:
        yield
    finally:
        for backend, index, state in states:
            backend.set_rng_state(index, *state)


def _host() -> Backend:
    return _plugins.get("cpu")


def _generators(devices: Iterable[DeviceLike] | None, kind: str | None) -> list[tuple[Backend, int]]:
    """Backends and indices of the devices named."""
    if devices is None:
        backend = _plugins.accelerator() if kind is None else _plugins.get(kind)
        return [] if backend is None else [(backend, index) for index in range(backend.device_count())]
    found = []
    for device in devices:
        is_bare = kind is not None and not isinstance(device, (str, Device))
        backend, named = _plugins.resolve(Device(kind, device) if is_bare else device)  # type: ignore[arg-type]
        found.append((backend, named.index or 0))
    return found
