"""The host's random generator: docs/design/random.md."""

from __future__ import annotations

import threading

from .. import _operands
from .._device import Device
from .._rng_state import DEFAULT_SEED
from .._tensor import Tensor
from ..errors import InvalidArgumentError
from . import arrays, philox
from .arrays import Array
from .views import Views


class Random(Views):
    """The methods of `Backend` that fill with random numbers, and the generator's state."""

    def __init__(self) -> None:
        self._generator = (DEFAULT_SEED, 0)
        self._generator_lock = threading.Lock()

    def uniform_(self, tensor: Tensor, low: float, high: float) -> None:
        _operands.uniform_(tensor, low, high)
        bits = self._draw(tensor.numel(), tensor.itemsize)
        tensor._impl[...] = philox.uniform(bits, low, high, tensor._impl.dtype).reshape(tensor.shape)

    def normal_(self, tensor: Tensor, mean: float, std: float) -> None:
        _operands.normal_(tensor, mean, std)
        numel = tensor.numel()
        # Elements come in pairs; an odd tensor drops the second of its last pair.
        bits = self._draw(numel + numel % 2, tensor.itemsize)
        values = arrays.cast(philox.normal(bits, mean, std), tensor._impl.dtype)
        tensor._impl[...] = values[:numel].reshape(tensor.shape)

    def random_bits_(self, tensor: Tensor) -> None:
        _operands.random_bits_(tensor)
        bits = self._draw(tensor.numel(), tensor.itemsize)
        tensor._impl[...] = bits.view(tensor._impl.dtype).reshape(tensor.shape)

    def seed(self, index: int, seed: int) -> None:
        self.set_rng_state(index, seed, 0)

    def get_rng_state(self, index: int) -> tuple[int, int]:
        _operands.check_device("get_rng_state", Device("cpu", index))
        return self._generator

    def set_rng_state(self, index: int, seed: int, offset: int) -> None:
        _operands.check_device("set_rng_state", Device("cpu", index))
        if offset % 4:
            raise InvalidArgumentError(f"set_rng_state: got offset {offset}, expected a multiple of 4")
        self._generator = (seed % 2**64, offset)

    def _draw(self, numel: int, itemsize: int) -> Array:
        """The bits of each element, as uint64 for elements of 8 bytes, else as uint32; the offset moves on."""
        numel, both = (2 * numel, True) if itemsize == 8 else (numel, False)
        with self._generator_lock:
            seed, offset = self._generator
            self._generator = (seed, (offset + -(-numel // 4) * 4) % 2**64)
        words = philox.words(seed, offset, numel)
        return philox.pairs(words) if both else words
