"""The part of the protocol between core and a backend (`tensorplay._backend`) that concerns random numbers' states.

Each device has one generator; its state is a seed of 64 bits and an offset, the words drawn so far. Which number comes
where is the same on every backend: docs/design/random.md. What is asked or set here starts no device, and holds before
its first use as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class Generators(ABC):
    """The state of each device's generator."""

    @abstractmethod
    def seed(self, index: int, seed: int) -> None:
        """Seeds a device's generator and sets its offset to 0; whoever calls has seen that the device is visible."""

    @abstractmethod
    def get_rng_state(self, index: int) -> tuple[int, int]:
        """(seed, offset) of a device, which is refused where it is not visible."""

    @abstractmethod
    def set_rng_state(self, index: int, seed: int, offset: int) -> None:
        """Sets both of a device, which is refused where it is not visible; an offset is a multiple of 4."""
