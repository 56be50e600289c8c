"""The part of the protocol between core and a backend (`tensorplay._backend`) that concerns the devices' memory.

An index is refused where no such device is visible; None is the thread's current device. Only `memory_info` may start
a device.
"""

from __future__ import annotations

from .errors import BackendUnavailableError


class Memory:
    """What a backend inherits that counts nothing and keeps nothing back for later."""

    type: str

    def memory_stats(self, index: int | None) -> dict[str, int]:
        """All counters of a device, by torch's names; the same names before its first use, with 0.

        `allocated_bytes.all` and `reserved_bytes.all` (what live tensors hold; what the backend holds for them), each
        with `.current`, `.peak`, `.allocated` and `.freed`, are those that programs ask for by themselves.
        """
        return {}

    def memory_stat(self, index: int | None, name: str) -> int:
        """One of them, 0 where it is not counted; for backends that read one faster than all."""
        return self.memory_stats(index).get(name, 0)

    def memory_info(self, index: int | None) -> tuple[int, int]:
        """Free and total bytes of a device, over all processes."""
        raise BackendUnavailableError(f"get_memory_info: the backend of type {self.type!r} cannot tell")

    def reset_peak_memory_stats(self, index: int | None) -> None:
        """Moves every `.peak` down to `.current`."""

    def reset_accumulated_memory_stats(self, index: int | None) -> None:
        """Sets `.allocated`, `.freed` and counts of events to 0."""

    def empty_cache(self) -> None:
        """Gives back what is kept for later on all devices."""

    def empty_host_cache(self) -> None:
        """Gives back pinned memory of the host that is kept for later."""
