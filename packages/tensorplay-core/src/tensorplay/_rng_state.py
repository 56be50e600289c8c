"""Seeds and states of generators, as programs see them. docs/design/random.md says what the numbers mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import _shape
from ._data import from_numpy
from ._tensor import Tensor
from .errors import DTypeError, InvalidArgumentError

#: The seed of a generator that nobody has seeded.
DEFAULT_SEED = 67280421310721

_MIN_SEED, _MAX_SEED = -(2**63), 2**64 - 1


def seed_number(seed: Any) -> int:
    """The 64 bits of what a user seeds with; a negative number means the positive one with the same bits.

    Raises
    ------
    DTypeError
        No integer.
    InvalidArgumentError
        An integer outside -2**63 to 2**64 - 1.
    """
    number = _shape.integer("manual_seed", seed)
    if not _MIN_SEED <= number <= _MAX_SEED:
        raise InvalidArgumentError(f"manual_seed: got {number}, expected {_MIN_SEED} to {_MAX_SEED}")
    return number & _MAX_SEED


def seed_by_chance(manual_seed: Callable[[int], None]) -> int:
    """Seeds with 64 bits that nobody can predict, and returns them."""
    chosen = int.from_bytes(os.urandom(8), "little")
    manual_seed(chosen)
    return chosen


def packed(state: tuple[int, int]) -> Tensor:
    """Seed and offset as a tensor of 16 bytes on the host: two numbers of 64 bits in the machine's order."""
    return from_numpy(np.array(state, np.uint64).view(np.uint8))


def unpacked(state: Any) -> tuple[int, int]:
    """Seed and offset of what `packed` made; 8 bytes are a seed, with offset 0.

    Raises
    ------
    DTypeError
        No tensor, or not of uint8.
    InvalidArgumentError
        A tensor that is not on the host, another size, or an offset that is no multiple of 4.
    """
    operation = "set_rng_state"
    if not isinstance(state, Tensor):
        raise DTypeError(f"{operation}: got {type(state).__name__}, expected a tensor that get_rng_state gave")
    if state.dtype.name != "uint8":
        raise DTypeError(f"{operation}: got a tensor of {state.dtype.name}, expected uint8")
    if not state.is_cpu or state.shape not in ((8,), (16,)):
        raise InvalidArgumentError(
            f"{operation}: got a tensor of shape {state.shape} on {state.device}, expected 16 bytes on the host (seed "
            "and offset), or 8 (a seed)"
        )
    seed, *rest = np.ascontiguousarray(state.numpy()).view(np.uint64).tolist()
    offset = rest[0] if rest else 0
    if offset % 4:
        raise InvalidArgumentError(f"{operation}: got offset {offset}, expected a multiple of 4")
    return seed, offset


def unpacked_all(states: Sequence[Any], count: int) -> list[tuple[int, int]]:
    """`unpacked` for each of `count` devices.

    Raises
    ------
    DTypeError, InvalidArgumentError
        As `unpacked`, and another number of states.
    """
    if not isinstance(states, Iterable):
        raise DTypeError(f"set_rng_state_all: got {type(states).__name__}, expected a sequence of states")
    found = [unpacked(state) for state in states]
    if len(found) != count:
        raise InvalidArgumentError(
            f"set_rng_state_all: got {len(found)} states, expected one for each of {count} devices"
        )
    return found
