"""Growing segments: expandable_segments:True."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from helpers.blocks import MiB, empty

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory
from tensorplay.errors import BackendUnavailableError
from tensorplay.testing import emulated as control


@pytest.fixture
def growing(gpu: None) -> Iterator[None]:
    gc.collect()
    cuda.empty_cache()
    memory.set_allocator_settings("expandable_segments:True")
    yield
    gc.collect()
    cuda.empty_cache()
    memory.set_allocator_settings("")


@pytest.mark.smoke
def test_pages_come_and_go_with_their_blocks(growing: None) -> None:
    before = cuda.memory_stats()
    tensors = [empty(10 * MiB) for _ in range(6)]
    stats = cuda.memory_stats()
    reserved = "reserved_bytes.large_pool.current"
    assert stats[reserved] - before[reserved] == 60 * MiB  # 30 pages of 2 MiB
    assert stats["segment.large_pool.current"] - before["segment.large_pool.current"] == 1
    assert stats["inactive_split.large_pool.current"] == before["inactive_split.large_pool.current"]
    del tensors[2:4]  # 20 to 40 MiB
    cuda.empty_cache()
    assert cuda.memory_stats()[reserved] - before[reserved] == 40 * MiB
    tensors.clear()
    cuda.empty_cache()
    assert cuda.memory_stats()[reserved] == before[reserved]


def test_values_survive_while_others_are_unmapped(growing: None) -> None:
    kept = [tp.full((5 * MiB // 4,), float(i), device="cuda") for i in range(12)]
    gone = kept[::2]
    kept = kept[1::2]
    del gone
    cuda.empty_cache()
    large = tp.full((60 * MiB // 4,), -1.0, device="cuda")
    for index, tensor in enumerate(kept):
        assert np.all(tensor.cpu().numpy() == 2 * index + 1)
    assert large.sum().item() == -60 * MiB // 4


def test_sizes_that_rise_reuse_what_smaller_ones_left(growing: None) -> None:
    cuda.reset_peak_memory_stats()
    start = cuda.memory_reserved()
    for step in range(20):
        tensor = empty((20 + 2 * step) * MiB)
        del tensor
    assert cuda.max_memory_reserved() - start <= 60 * MiB  # segments of their own would hold 780


def test_a_snapshot_shows_memory_without_the_gaps(growing: None) -> None:
    tensors = [empty(20 * MiB) for _ in range(3)]
    del tensors[1]
    cuda.empty_cache()
    grown = [segment for segment in cuda.memory_snapshot() if segment["is_expandable"]]
    assert [segment["total_size"] for segment in grown if segment["segment_type"] == "large"] == [20 * MiB] * 2
    for segment in grown:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]


def test_copies_between_devices(growing: None, two_gpus: None) -> None:
    here = tp.arange(MiB, device="cuda:0")
    there = here.to("cuda:1")
    assert there.sum().item() == here.sum().item()
    later = tp.ones(8 * MiB, device="cuda:1").to("cuda:0")
    assert later.sum().item() == 8 * MiB


def test_a_device_without_virtual_memory_names_the_setting(growing: None, emulated: None) -> None:
    with (
        control.fail("cuMemAddressReserve", 1, "cudaErrorNotSupported"),
        pytest.raises(BackendUnavailableError, match="set expandable_segments:False"),
    ):
        empty(MiB)
    assert empty(MiB).numel() == MiB
