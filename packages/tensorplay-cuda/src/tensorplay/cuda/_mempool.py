"""Private pools of device memory: apart from the default pool, and from each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorplay.errors import DTypeError

from ._check import check, not_null
from ._history import memory_snapshot
from ._library import native
from ._pluggable import CUDAPluggableAllocator
from .device import DeviceArgument, device_index

_USE_ON_OOM, _NO_SPLIT = 1, 2  # TP_MEMPOOL_USE_ON_OOM, TP_MEMPOOL_NO_SPLIT


class PoolId:
    """Names a private pool, and keeps it: an opaque value, hashable, equal to another id of the same pool.

    ``tuple(id)`` is the pair by which torch knows pools; the first number is not 0 where a capture has made the pool.
    """

    __slots__ = ("_pair", "_pool")

    def __init__(self, pool: Any) -> None:
        self._pool = native.ffi.gc(pool, native.tp_mempool_release)
        pair = native.ffi.new("int64_t[2]")
        native.tp_mempool_id(pool, pair, pair + 1)
        self._pair: tuple[int, int] = (pair[0], pair[1])

    def __iter__(self) -> Iterator[int]:
        return iter(self._pair)

    def __eq__(self, other: object) -> bool:
        return self._pair == other._pair if isinstance(other, PoolId) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._pair)

    def __repr__(self) -> str:
        return f"<PoolId {self._pair}>"


class MemPool:
    """A pool of device memory apart from the default one, on whatever devices it is used (`tp_mempool_create`).

    Its blocks serve nothing else, and its segments stay while somebody uses it: this object, its id, a `use_mem_pool`
    block or a graph. Then they go back to the driver, those with live tensors once these are gone. `empty_cache` and a
    shortage leave a pool in use alone.

    Parameters
    ----------
    allocator : CUDAPluggableAllocator, optional
        Where segments come from, and go back to; else the driver.
    use_on_oom : bool
        Whether its free blocks serve other requests of their stream for which the driver has no room.
    no_split : bool
        Whether each block is a whole segment, in steps of 2 MiB.
    """

    __slots__ = ("_id",)

    def __init__(
        self, allocator: CUDAPluggableAllocator | None = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        functions = [native.NULL, native.NULL]
        if allocator is not None:
            if not isinstance(allocator, CUDAPluggableAllocator):
                raise DTypeError(f"MemPool: got allocator {allocator!r}, expected a CUDAPluggableAllocator")
            kinds = ("tp_mempool_allocate_t", "tp_mempool_free_t")
            functions = [native.ffi.cast(*pair) for pair in zip(kinds, allocator._functions, strict=True)]
        flags = _USE_ON_OOM * bool(use_on_oom) | _NO_SPLIT * bool(no_split)
        self._id = _made(flags, functions)

    @property
    def id(self) -> PoolId:
        """Equal for equal pools; as `graph_pool_handle` gives it."""
        return self._id

    def use_count(self) -> int:
        """Users: this object with its id, `use_mem_pool` blocks and graphs (`tp_mempool_use_count`)."""
        count: int = native.tp_mempool_use_count(self._id._pool)
        return count

    def snapshot(self) -> list[dict[str, Any]]:
        """The pool's segments and their blocks, as `memory_snapshot` describes them."""
        first, second = self._id
        return memory_snapshot((first, second))


@contextmanager
def use_mem_pool(pool: MemPool, device: DeviceArgument = None) -> Iterator[None]:
    """What this thread allocates on a device inside of the block comes from a pool (`tp_mempool_enter`).

    Other threads are not concerned, and streams in a capture have the capture's pool all the same. Of blocks
    inside of each other the innermost counts.

    Parameters
    ----------
    pool : MemPool
    device : device, str or int, optional
        Else the current one.
    """
    if not isinstance(pool, MemPool):
        raise DTypeError(f"use_mem_pool: got {pool!r}, expected a MemPool")
    around = scope = native.tp_mempool_scope()
    try:
        scope = not_null(native.tp_mempool_enter(pool._id._pool, device_index(device)))
        yield
    finally:
        if scope == around:  # refused, or a signal's handler has raised right behind the call
            scope = native.tp_mempool_scope()
        if scope != around:
            native.tp_mempool_leave(scope)


def graph_pool_handle() -> PoolId:
    """The id of a new pool, which graphs can share (`tp_mempool_create`)."""
    return _made(0, [native.NULL, native.NULL])


def reserved_by_pool(device: int) -> dict[tuple[int, int], int]:
    """Bytes that private pools hold from the driver, by their pair (`tp_mempool_list`)."""
    room, count = 0, native.tp_mempool_list(device, 0, native.NULL)
    while count > room:  # Other threads may make some meanwhile.
        room = count
        figures = native.ffi.new("tp_mempool_figures_t[]", room)
        count = native.tp_mempool_list(device, room, figures)
    check(count)
    return {(one.id[0], one.id[1]): one.reserved for one in native.ffi.unpack(figures, count)} if count else {}


def _made(flags: int, functions: list[Any]) -> PoolId:
    return PoolId(not_null(native.tp_mempool_create(flags, *functions)))
