"""Seeds and states of the devices' random number generators.

Each device has one Philox generator; docs/design/random.md says which number comes where. Nothing here starts a device:
what is set before first use waits until the library starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

from tensorplay import _plugins
from tensorplay._rng_state import DEFAULT_SEED, packed, seed_by_chance, seed_number, unpacked
from tensorplay._tensor import Tensor
from tensorplay.errors import BackendUnavailableError, InvalidArgumentError
from tensorplay.random import fork_rng

from ._check import check
from ._library import native, starter
from .device import DeviceArgument, current_device, device_count, device_index, unavailable_reason

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

_waiting: dict[int, tuple[int, int]] = {}  # by device, until the library starts


def manual_seed(seed: SupportsIndex) -> None:
    """Seeds the current device's generator (`tp_generator_seed`).

    Parameters
    ----------
    seed : int
        -2**63 to 2**64 - 1; a negative seed means the positive one with the same 64 bits.
    """
    seed_device(current_device(), seed_number(seed))


def manual_seed_all(seed: SupportsIndex) -> None:
    """Seeds the generators of all visible devices alike; does nothing where there is none."""
    number = seed_number(seed)
    for index in range(device_count()):
        seed_device(index, number)


def seed() -> int:
    """Seeds the current device's generator by chance and returns the seed."""
    chosen = seed_by_chance()
    manual_seed(chosen)
    return chosen


def seed_all() -> int:
    """Seeds the generators of all visible devices alike, by chance, and returns the seed."""
    chosen = seed_by_chance()
    manual_seed_all(chosen)
    return chosen


def initial_seed() -> int:
    """The seed of the current device's generator (`tp_generator_get_state`)."""
    return device_state(None)[0]


def get_rng_state(device: DeviceArgument = "cuda") -> Tensor:
    """The state of one device's generator: 16 bytes, a tensor of uint8 on the host.

    Raises
    ------
    BackendUnavailableError
        No device is visible.
    StateError
        The device's current stream is being captured.
    """
    return packed(device_state(device))


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
    set_device_state(device, unpacked(new_state))


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Sets the states of the generators of all visible devices: one state for each.

    Raises
    ------
    InvalidArgumentError
        Another number of states. No generator is changed.
    """
    states = [unpacked(state) for state in new_states]
    if len(states) != device_count():
        raise InvalidArgumentError(
            f"set_rng_state_all: got {len(states)} states, expected one for each of {device_count()} devices"
        )
    for index, state in enumerate(states):
        set_device_state(index, state)


def seed_device(index: int, seed: int) -> None:
    """Seeds the generator of the device with this index."""
    _meet_backend()
    if not _wait(index, (seed, 0)):
        check(native.tp_generator_seed(index, seed))


def device_state(device: DeviceArgument) -> tuple[int, int]:
    """Seed and offset of a device's generator."""
    index = _visible_index("get_rng_state", device)
    if not native.is_started:
        return _waiting.get(index, (DEFAULT_SEED, 0))
    seed, offset = native.ffi.new("uint64_t *"), native.ffi.new("uint64_t *")
    check(native.tp_generator_get_state(index, seed, offset))
    return int(seed[0]), int(offset[0])


def set_device_state(device: DeviceArgument, state: tuple[int, int]) -> None:
    """Sets seed and offset of a device's generator."""
    index = _visible_index("set_rng_state", device)
    if not _wait(index, state):
        check(native.tp_generator_set_state(index, *state))


def _visible_index(operation: str, device: DeviceArgument) -> int:
    _meet_backend()
    index = device_index(device)
    reason = unavailable_reason()
    if reason is not None:
        raise BackendUnavailableError(f"{operation}: {reason}")
    return index


def _meet_backend() -> None:
    """Core knows the backend from here on: it seeds those that come late, which must not undo what comes now."""
    _plugins.get("cuda")


def _wait(index: int, state: tuple[int, int]) -> bool:
    """Keeps a state for the start; False where that was."""
    if native.is_started:
        return False
    with starter.lock:  # another thread may be starting
        if not native.is_started:
            _waiting[index] = state
        return not native.is_started


def _hand_over() -> None:
    for index, state in _waiting.items():
        check(native.tp_generator_set_state(index, *state))
    _waiting.clear()


native.at_start.append(_hand_over)
