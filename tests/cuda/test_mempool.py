"""Private pools: what they serve, how long their memory stays, where it comes from."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.blocks import MiB, empty
from helpers.compiled import shared_library

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory


def reserved(pool: memory.PoolId) -> int:
    first, second = pool
    return cuda.memory_stats().get(f"reserved_bytes_by_private_pools.{first}_{second}", 0)


@pytest.fixture(autouse=True)
def _no_pool_stays(gpu: None) -> Iterator[None]:
    yield
    gc.collect()
    assert not [name for name in cuda.memory_stats() if "private_pools" in name]


def test_ids_are_values() -> None:
    pool, other = cuda.MemPool(), cuda.graph_pool_handle()
    assert pool.id == pool.id
    assert pool.id != other
    assert pool.id != tuple(pool.id)
    assert len({pool.id, pool.id, other}) == 2
    assert [first for first, _ in (pool.id, other)] == [0, 0]
    assert all(isinstance(number, int) and number > 0 for number in (tuple(pool.id)[1], tuple(other)[1]))
    assert repr(tuple(other)) in repr(other)


@pytest.mark.smoke
def test_a_pool_has_what_its_block_allocates() -> None:
    pool = cuda.MemPool()
    before = cuda.memory_reserved()
    assert pool.use_count() == 1
    with cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = empty(1000)
    outside = empty(1000)
    assert pool.use_count() == 1
    assert reserved(pool.id) == 2 * MiB
    assert cuda.memory_reserved() >= before + 2 * MiB  # It is in the sum as well.
    (segment,) = pool.snapshot()
    assert segment["segment_pool_id"] == tuple(pool.id)
    assert segment["allocated_size"] == 1024
    assert segment["address"] == inside.data_ptr()
    assert outside.data_ptr() not in range(segment["address"], segment["address"] + segment["total_size"])


def test_other_threads_and_devices_are_not_concerned(two_gpus: None) -> None:
    pool = cuda.MemPool()
    made: list[tp.Tensor] = []
    with cuda.use_mem_pool(pool, device=1):
        thread = threading.Thread(target=lambda: made.append(empty(1000, device=1)))
        thread.start()
        thread.join()
        made.append(empty(1000, device=0))
        assert pool.snapshot() == []
        made.append(empty(1000, device=1))
    assert [segment["device"] for segment in pool.snapshot()] == [1]
    made.clear()


def test_the_innermost_block_counts_and_an_exception_ends_it() -> None:
    outer, inner = cuda.MemPool(), cuda.MemPool()
    with cuda.use_mem_pool(outer):
        with contextlib.suppress(KeyError), cuda.use_mem_pool(inner):
            kept = [empty(1000)]
            raise KeyError
        kept.append(empty(1000))
    kept.append(empty(1000))
    assert len(inner.snapshot()) == len(outer.snapshot()) == 1
    assert inner.use_count() == outer.use_count() == 1
    del kept


def test_memory_goes_back_when_nothing_needs_the_pool() -> None:
    cuda.empty_cache()
    before = cuda.memory_reserved()
    pool = cuda.MemPool()
    name = pool.id
    with cuda.use_mem_pool(pool):
        dropped, kept = empty(30 * MiB), empty(1000)
    del dropped
    cuda.empty_cache()
    assert cuda.memory_reserved() == before + 32 * MiB  # The pool has a user, which keeps even what is idle.
    del pool
    assert cuda.memory_reserved() == before + 32 * MiB
    del name
    assert cuda.memory_reserved() == before + 2 * MiB
    kept.fill_(True)
    assert bool(kept.all())
    before = cuda.memory_reserved()
    del kept
    assert cuda.memory_reserved() == before - 2 * MiB


def test_a_pool_helps_out_when_the_driver_has_no_room(small: int) -> None:
    helps, keeps = cuda.MemPool(use_on_oom=True), cuda.MemPool()
    for pool in (helps, keeps):
        with cuda.use_mem_pool(pool):
            empty(30 * MiB)
    found = empty(29 * MiB)
    assert helps.snapshot()[0]["allocated_size"] == 30 * MiB
    with pytest.raises(cuda.OutOfMemoryError) as caught:
        empty(29 * MiB)
    assert caught.value.private_pools == 60 * MiB
    del found


def test_blocks_that_are_not_split() -> None:
    pool = cuda.MemPool(no_split=True)
    with cuda.use_mem_pool(pool):
        kept = [empty(1000), empty(1000), empty(3 * MiB)]
    assert sorted(segment["total_size"] // MiB for segment in pool.snapshot()) == [2, 2, 4]
    assert all(len(segment["blocks"]) == 1 for segment in pool.snapshot())
    del kept


SOURCE = """
#include <stddef.h>
#include <stdint.h>
static char room[3 << 20];
static void *start(void) { return (void *)(((uintptr_t)room + 4095) / 4096 * 4096); }
int taken, returned;
void *take(ptrdiff_t size, int device, void *stream) {
  if (size > 2 << 20 || device || stream || taken > returned) return NULL;
  taken++;
  return start();
}
void give(void *pointer, ptrdiff_t size, int device, void *stream) {
  if (pointer == start() && size == 2 << 20 && !device && !stream) returned++;
}
"""


def test_segments_of_a_shared_library(small: int, tmp_path: Path) -> None:
    built = shared_library(tmp_path / "source.so", SOURCE)
    source = cuda.CUDAPluggableAllocator(built, "take", "give")
    assert memory.CUDAPluggableAllocator is cuda.CUDAPluggableAllocator
    pool = cuda.MemPool(source.allocator())
    with cuda.use_mem_pool(pool):
        kept = empty(1000)
        with pytest.raises(cuda.OutOfMemoryError):
            empty(3 * MiB)
    assert kept.data_ptr() == pool.snapshot()[0]["address"]
    del kept
    library = ctypes.CDLL(str(built))
    assert ctypes.c_int.in_dll(library, "taken").value == 1
    assert ctypes.c_int.in_dll(library, "returned").value == 0
    del pool
    assert ctypes.c_int.in_dll(library, "returned").value == 1


def test_what_is_no_pool_is_refused(tmp_path: Path) -> None:
    nothing: Any = None
    text: Any = "x"
    with pytest.raises(tp.errors.DTypeError, match="use_mem_pool: got None"), cuda.use_mem_pool(nothing):
        pass
    with pytest.raises(tp.errors.InvalidArgumentError), cuda.use_mem_pool(cuda.MemPool(), device=99):
        pass
    with pytest.raises(tp.errors.DTypeError, match="MemPool: got allocator 'x'"):
        cuda.MemPool(text)
    with pytest.raises(tp.errors.InvalidArgumentError, match="CUDAPluggableAllocator"):
        memory.CUDAPluggableAllocator(tmp_path / "none.so", "take", "give")
    with pytest.raises(tp.errors.InvalidArgumentError, match="no_such_function"):
        memory.CUDAPluggableAllocator("libc.so.6", "no_such_function", "free")
    with pytest.raises(tp.errors.InvalidArgumentError, match="_handle"):
        memory.CUDAPluggableAllocator("libc.so.6", "malloc", "_handle")  # which ctypes's object has
    with pytest.raises(tp.errors.InvalidArgumentError, match="null"):
        memory.CUDAPluggableAllocator("libc\0.so", "malloc", "free")
    with pytest.raises(tp.errors.DTypeError, match="expected a path and two names"):
        memory.CUDAPluggableAllocator("libc.so.6", "malloc", nothing)
    with pytest.raises(tp.errors.DTypeError, match="memory_snapshot: got pool 5, expected a pair"):
        memory.memory_snapshot(5)  # type: ignore[arg-type]
