"""Device-agnostic random-number helpers for the current accelerator.

Every device has a generator of its own, and so has the host, which is not meant here; equal seeds give equal numbers on
all of them (docs/design/random.md). A device is a device object, a text such as ``"cuda:1"``, an integer index, or None
for the current device. Nothing here starts one. Seeding without an accelerator does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

from tensorplay._backend import Backend
from tensorplay._device import DeviceLike
from tensorplay._plugins import accelerator, needed, seed_backend
from tensorplay._rng_state import packed, seed_by_chance, seed_number, unpacked, unpacked_all
from tensorplay._tensor import Tensor
from tensorplay.random import fork_rng

from ._arguments import on_device

__all__ = [
    "fork_rng",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: SupportsIndex) -> None:
    """Seeds the current device's generator.

    Parameters
    ----------
    seed : int
        As `tensorplay.manual_seed` takes it, here and below.
    """
    number, backend = seed_number(seed), accelerator()
    if backend is not None:
        backend.seed(backend.current_device(), number)


def manual_seed_all(seed: SupportsIndex) -> None:
    """Seeds the generators of all visible devices alike, and not the host's."""
    number, backend = seed_number(seed), accelerator()
    if backend is not None:
        seed_backend(backend, number)


def seed() -> int:
    """Seeds the current device's generator by chance and returns the seed."""
    return seed_by_chance(manual_seed)


def seed_all() -> int:
    """Seeds the generators of all visible devices alike, by chance, and returns the seed."""
    return seed_by_chance(manual_seed_all)


def initial_seed() -> int:
    """The seed of the current device's generator.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator or a device of it.
    """
    backend = needed("initial_seed")
    return backend.get_rng_state(backend.current_device())[0]


def get_rng_state(device: DeviceLike | None = None) -> Tensor:
    """The state of one device's generator: 16 bytes, a tensor of uint8 on the host.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator or a device of it.
    InvalidArgumentError
        A ValueError, for a device of another type or an index out of range.
    """
    backend, index = _generator("get_rng_state", device)
    return packed(backend.get_rng_state(index))


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all visible devices, and not the host's."""
    return [get_rng_state(index) for index in range(_count())]


def set_rng_state(new_state: Tensor, device: DeviceLike | None = None) -> None:
    """Sets the state of one device's generator.

    Parameters
    ----------
    new_state : Tensor
        As `get_rng_state` gives it, of any device, or the host; 8 bytes are a seed.
    device : int, str or Device, optional
        The current device by default.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, without an accelerator or a device of it.
    InvalidArgumentError, DTypeError
        A ValueError or a TypeError: no such state or device. The generator is unchanged.
    """
    backend, index = _generator("set_rng_state", device)
    backend.set_rng_state(index, *unpacked(new_state))


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Sets the states of the generators of all visible devices: one state for each.

    Raises
    ------
    InvalidArgumentError, DTypeError
        Another number of states, or something else than states. No generator is changed.
    """
    for index, state in enumerate(unpacked_all(new_states, _count())):
        needed("set_rng_state_all").set_rng_state(index, *state)


def _count() -> int:
    backend = accelerator()
    return 0 if backend is None else backend.device_count()


def _generator(operation: str, device: DeviceLike | None) -> tuple[Backend, int]:
    backend, index = on_device(operation, device)
    return backend, backend.current_device() if index is None else index
