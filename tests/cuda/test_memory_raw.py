"""Blocks by their address."""

from __future__ import annotations

import gc

import pytest

import tensorplay as tp
from tensorplay import cuda


def test_a_block_lives_until_it_is_deleted(gpu: None) -> None:
    before = cuda.memory_allocated()
    address = cuda.caching_allocator_alloc(1000)
    assert address % 512 == 0
    assert address > 0
    assert cuda.memory_allocated() == before + 1024
    other = cuda.caching_allocator_alloc(1, "cuda:0", cuda.Stream(0))
    assert cuda.memory_allocated() == before + 1024 + 512
    cuda.caching_allocator_delete(address)
    cuda.caching_allocator_delete(other)
    assert cuda.memory_allocated() == before
    for unknown in (address, other, 0, 512, 2**64 - 1):
        cuda.caching_allocator_delete(unknown)
    assert cuda.memory_allocated() == before


def test_a_block_belongs_to_the_stream_that_is_given(gpu: None) -> None:
    stream = cuda.Stream()
    found = {}
    for given in (stream, stream.cuda_stream):
        address = cuda.caching_allocator_alloc(3000, None, given)
        found[given] = {
            block["stream"]
            for segment in cuda.memory_snapshot()
            for block in segment["blocks"]
            if block["address"] == address
        }
        cuda.caching_allocator_delete(address)
    assert found == {stream: {stream.cuda_stream}, stream.cuda_stream: {stream.cuda_stream}}


def test_nothing_takes_no_memory(gpu: None) -> None:
    gc.collect()
    before = cuda.memory_stats()
    assert cuda.caching_allocator_alloc(0) == 0
    assert cuda.memory_stats() == before


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (-1, ValueError),
        (-(2**64), ValueError),
        (2**40, tp.OutOfMemoryError),
        (2**63 - 1, OverflowError),
        (2**63, OverflowError),
        (2**64 - 300, OverflowError),
        (2**64 - 1, OverflowError),
        (2**64, OverflowError),
    ],
)
def test_sizes_at_the_edge_are_refused_and_nothing_overlaps(gpu: None, size: int, error: type[Exception]) -> None:
    gc.collect()
    cuda.empty_cache()  # Small blocks leave the thread's cache when memory is short, and count as pieces then.
    before = cuda.memory_stats()
    with pytest.raises(error, match="caching_allocator_alloc|allocate"):
        cuda.caching_allocator_alloc(size)
    after = cuda.memory_stats()
    if error is tp.OutOfMemoryError:
        assert after.pop("num_ooms") == before.pop("num_ooms") + 1
    assert after == before
    first, second = cuda.caching_allocator_alloc(600), cuda.caching_allocator_alloc(600)
    assert abs(first - second) >= 1024
    cuda.caching_allocator_delete(first)
    cuda.caching_allocator_delete(second)


@pytest.mark.parametrize("size", [1.0, "1", None, True])
def test_sizes_that_are_no_integers_are_type_errors(gpu: None, size: object) -> None:
    with pytest.raises(TypeError, match="caching_allocator_alloc: got .*, expected an integer"):
        cuda.caching_allocator_alloc(size)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="caching_allocator_delete: got .*, expected an integer"):
        cuda.caching_allocator_delete(size)  # type: ignore[arg-type]


def test_devices_and_streams_are_checked(two_gpus: None) -> None:
    for device in (99, -1, "cuda:99"):
        with pytest.raises(ValueError, match="99 asked for|-1 asked for"):
            cuda.caching_allocator_alloc(512, device)
    with pytest.raises(ValueError, match="got a stream of cuda:0, expected one of cuda:1"):
        cuda.caching_allocator_alloc(512, 1, cuda.Stream(0))
    with pytest.raises(TypeError, match="caching_allocator_alloc: got str, expected"):
        cuda.caching_allocator_alloc(512, 0, "stream")
