"""Random numbers on every device at once. docs/design/random.md says how numbers are made.

Each device has a generator of its own, and so has the host; its numbers depend on its seed and on how
many were drawn before, and are the same on every kind of device.
"""

from __future__ import annotations

from operator import index

from . import _plugins
from .errors import DTypeError

__all__ = ["initial_seed", "manual_seed"]


def manual_seed(seed: int) -> None:
    """Seeds the generators of the host and of all devices, those that are not started yet too.

    Parameters
    ----------
    seed : int
        Taken modulo 2**64; negative numbers are taken from its end, as in torch.

    Raises
    ------
    DTypeError
        No integer.
    """
    try:
        number = index(seed)
    except TypeError:
        raise DTypeError(f"manual_seed: got {type(seed).__name__}, expected an integer") from None
    _plugins.seed_all(number % 2**64)


def initial_seed() -> int:
    """The seed of the host's generator."""
    return _plugins.get("cpu").get_rng_state(0)[0]
