"""Seeds and states of the devices' random number generators.

Each device has one Philox generator; docs/design/random.md says which number comes where. Nothing here starts a device:
what is set before first use waits until the library starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

from tensorplay._backend import Backend
from tensorplay._plugins import get, seed_backend
from tensorplay._rng_state import packed, seed_by_chance, seed_number, unpacked, unpacked_all
from tensorplay._tensor import Tensor
from tensorplay.random import fork_rng

from .device import DeviceArgument, current_device, device_count, device_index

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
    """Seeds the current device's generator (`tp_generator_seed`).

    Parameters
    ----------
    seed : int
        As `tensorplay.manual_seed` takes it, here and below.
    """
    _backend().seed(current_device(), seed_number(seed))


def manual_seed_all(seed: SupportsIndex) -> None:
    """Seeds the generators of all visible devices alike; does nothing where there is none."""
    seed_backend(_backend(), seed_number(seed))


def seed() -> int:
    """Seeds the current device's generator by chance and returns the seed."""
    return seed_by_chance(manual_seed)


def seed_all() -> int:
    """Seeds the generators of all visible devices alike, by chance, and returns the seed."""
    return seed_by_chance(manual_seed_all)


def initial_seed() -> int:
    """The seed of the current device's generator (`tp_generator_get_state`)."""
    return _backend().get_rng_state(current_device())[0]


def get_rng_state(device: DeviceArgument = "cuda") -> Tensor:
    """The state of one device's generator: 16 bytes, a tensor of uint8 on the host.

    Raises
    ------
    BackendUnavailableError
        No device is visible.
    StateError
        The device's current stream is being captured.
    """
    return packed(_backend().get_rng_state(device_index(device)))


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all visible devices, and not the host's."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: DeviceArgument = "cuda") -> None:
    """Sets the state of one device's generator.

    Parameters
    ----------
    new_state : Tensor
        As `get_rng_state` gives it, of any device, or the host; 8 bytes are a seed.
    device : device, str or int
        Whose generator is set.

    Raises
    ------
    InvalidArgumentError, DTypeError
        Something else. The generator is unchanged.
    StateError
        The device's current stream is being captured.
    """
    _backend().set_rng_state(device_index(device), *unpacked(new_state))


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Sets the states of the generators of all visible devices: one state for each.

    Raises
    ------
    InvalidArgumentError
        Another number of states. No generator is changed.
    """
    for index, state in enumerate(unpacked_all(new_states, device_count())):
        _backend().set_rng_state(index, *state)


def _backend() -> Backend:
    """Core knows the backend from here on: it seeds those that come late, which must not undo what comes now."""
    return get("cuda")
