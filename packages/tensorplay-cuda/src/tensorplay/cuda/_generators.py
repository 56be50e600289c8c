"""Random numbers on CUDA devices: the draws, and the generators' states, which wait here until the library starts."""

from __future__ import annotations

from tensorplay._backend import Backend
from tensorplay._rng_state import DEFAULT_SEED
from tensorplay._tensor import Tensor
from tensorplay.errors import BackendUnavailableError

from ._check import check, refused
from ._library import native, starter
from .device import device_index, unavailable_reason

_waiting: dict[int, tuple[int, int]] = {}  # by device


class Generators(Backend):
    """The methods of `Backend` that concern random numbers."""

    def uniform_(self, tensor: Tensor, low: float, high: float) -> None:
        status = native.tp_random_uniform(tensor._impl, low, high)
        if status:
            refused(status, "uniform_", (tensor, low, high))

    def normal_(self, tensor: Tensor, mean: float, std: float) -> None:
        status = native.tp_random_normal(tensor._impl, mean, std)
        if status:
            refused(status, "normal_", (tensor, mean, std))

    def random_bits_(self, tensor: Tensor) -> None:
        status = native.tp_random_bits(tensor._impl)
        if status:
            refused(status, "random_bits_", (tensor,))

    def seed(self, index: int, seed: int) -> None:
        if not _wait(index, (seed, 0)):
            check(native.tp_generator_seed(index, seed))

    def get_rng_state(self, index: int) -> tuple[int, int]:
        _check_visible("get_rng_state", index)
        with starter.lock:  # another thread may be starting
            if not native.is_started:
                return _waiting.get(index, (DEFAULT_SEED, 0))
        seed, offset = native.ffi.new("uint64_t *"), native.ffi.new("uint64_t *")
        check(native.tp_generator_get_state(index, seed, offset))
        return int(seed[0]), int(offset[0])

    def set_rng_state(self, index: int, seed: int, offset: int) -> None:
        _check_visible("set_rng_state", index)
        if not _wait(index, (seed, offset)):
            check(native.tp_generator_set_state(index, seed, offset))


def _check_visible(operation: str, index: int) -> None:
    device_index(index)
    reason = unavailable_reason()
    if reason is not None:
        raise BackendUnavailableError(f"{operation}: {reason}")


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
        if index < native.tp_device_count():  # else it was hidden since
            check(native.tp_generator_set_state(index, *state))
    _waiting.clear()


native.at_start.append(_hand_over)
