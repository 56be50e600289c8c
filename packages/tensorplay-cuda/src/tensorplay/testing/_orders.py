"""A function under many of the orders that CUDA allows.

Work of different streams that no wait orders may run in any order. The emulated device chooses one by a seed and keeps
to it, so a function that runs under many seeds meets many orders, and the seed of a failure shows the mistake again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from inspect import iscoroutinefunction

from tensorplay import cuda
from tensorplay.errors import DTypeError

from . import emulated

__all__ = ["SEEDS", "SeedError", "explore_orders"]

SEEDS = range(100)

# Work that copies are overtaken by: from none to more than a short function queues.
_DELAYS = (0, 1, 4, 16)


class SeedError(AssertionError):
    """A function failed under one order of its work; ``__cause__`` is what it raised.

    Attributes
    ----------
    seed : int
        The seed of that order: ``explore_orders(fn, seeds=[seed])`` runs it again.
    """

    def __init__(self, message: str, seed: int) -> None:
        super().__init__(message)
        self.seed = seed


def explore_orders(fn: Callable[[], object], seeds: Iterable[int] = SEEDS) -> None:
    """Runs a function once for each seed, each time in another order of work that nothing orders.

    Each run begins on idle devices without cached memory, on default streams, and ends when all work is done. A
    function that makes its streams and tensors itself runs the same way whenever its seed comes again.

    Parameters
    ----------
    fn : callable
        Called without arguments; fails by raising, an assertion for example.
    seeds : iterable of int

    Raises
    ------
    SeedError
        For the first seed under which the function, or work that it left behind, fails.
    BackendUnavailableError
        No emulated device serves.
    DTypeError
        `fn` is a coroutine function.
    """
    emulated._control()  # Elsewhere no run begins.
    name = getattr(fn, "__qualname__", repr(fn))
    if iscoroutinefunction(fn):
        raise DTypeError(f"explore_orders: got {name}, whose calls only make coroutines, expected a plain function")
    gc.collect()  # What is dead already must not go amid a run.
    firsts = [cuda.Stream(index) for index in range(cuda.device_count())]
    for seed in seeds:
        _begin(firsts)
        with emulated.seed(seed), emulated.copy_delay(_DELAYS[seed % len(_DELAYS)]):
            try:
                fn()
                _finish()
            except Exception as error:
                text = f"{name} failed with seed {seed}: {type(error).__name__}: {error}"
                raise SeedError(text, seed) from error


def _finish() -> None:
    for index in range(cuda.device_count()):
        cuda.synchronize(index)


def _begin(firsts: list[cuda.Stream]) -> None:
    """Idle devices, no cached memory; streams come from the same place in the pool, for a choice goes by that."""
    _finish()
    cuda.empty_cache()
    for index, first in enumerate(firsts):
        cuda.set_stream(cuda.default_stream(index))
        while cuda.Stream(index) != first:
            pass
    cuda.set_device(0)
