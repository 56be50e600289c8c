"""Seeds of the devices' random number generators.

Each device has one Philox generator; docs/design/random.md says which number comes where. Seeding starts
nothing: a seed that is given before first use waits until the library starts.
"""

from __future__ import annotations

import operator
import os
from typing import SupportsIndex

from tensorplay.errors import DTypeError, InvalidArgumentError

from ._check import check
from ._library import native
from .device import CURRENT, current_device, device_count

_MIN_SEED, _MAX_SEED = -(2**63), 2**64 - 1
_waiting: dict[int, int] = {}  # device: seed


def manual_seed(seed: SupportsIndex) -> None:
    """Seeds the current device's generator (`tp_generator_seed`).

    Parameters
    ----------
    seed : int
        -2**63 to 2**64 - 1; a negative seed means the positive one with the same 64 bits.
    """
    seed_device(current_device(), seed)


def manual_seed_all(seed: SupportsIndex) -> None:
    """Seeds the generators of all visible devices alike; does nothing where there is none."""
    for index in range(device_count()):
        seed_device(index, seed)


def seed() -> int:
    """Seeds the current device's generator by chance and returns the seed."""
    chosen = _by_chance()
    manual_seed(chosen)
    return chosen


def seed_all() -> int:
    """Seeds the generators of all visible devices alike, by chance, and returns the seed."""
    chosen = _by_chance()
    manual_seed_all(chosen)
    return chosen


def initial_seed() -> int:
    """The seed of the current device's generator (`tp_generator_get_state`)."""
    return device_state(CURRENT)[0]


def seed_device(index: int, seed: SupportsIndex) -> None:
    """Seeds the generator of the device with this index.

    Raises
    ------
    InvalidArgumentError
        The seed is out of range.
    DTypeError
        It is no integer.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise DTypeError(f"manual_seed: got {seed!r}, expected an integer") from None
    if not _MIN_SEED <= number <= _MAX_SEED:
        raise InvalidArgumentError(f"manual_seed: got {number}, expected {_MIN_SEED} to {_MAX_SEED}")
    number &= _MAX_SEED
    if native.is_started:
        check(native.tp_generator_seed(index, number))
    else:
        _waiting[index] = number


def device_state(index: int) -> tuple[int, int]:
    """Seed and offset of a device's generator."""
    seed, offset = native.ffi.new("uint64_t *"), native.ffi.new("uint64_t *")
    check(native.tp_generator_get_state(index, seed, offset))
    return int(seed[0]), int(offset[0])


def _by_chance() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _seed_waiting() -> None:
    for index, number in _waiting.items():
        check(native.tp_generator_seed(index, number))
    _waiting.clear()


native.at_start.append(_seed_waiting)
