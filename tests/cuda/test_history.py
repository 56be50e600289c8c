"""Snapshots and the history of memory."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import cuda
from tensorplay.testing import emulated as control

MiB = 2**20


def empty(nbytes: int, device: int = 0) -> tp.Tensor:
    return tp.empty(nbytes, dtype=tp.bool, device=f"cuda:{device}")


def check_segments(segments: list[dict[str, Any]]) -> None:
    """Blocks cover their segments, sizes add up, and all of it is what the counters say."""
    for segment in segments:
        place = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == place
            assert block["size"] > 0
            assert 0 <= block["requested_size"] <= block["size"]
            assert (block["requested_size"] == 0) == (block["state"] == "inactive")
            place += block["size"]
        assert place == segment["address"] + segment["total_size"]
        sizes = {"active_allocated": 0, "active_pending_free": 0, "inactive": 0}
        for block in segment["blocks"]:
            sizes[block["state"]] += block["size"]
        assert segment["allocated_size"] == sizes["active_allocated"]
        assert segment["active_size"] == sizes["active_allocated"] + sizes["active_pending_free"]
        assert segment["requested_size"] == sum(block["requested_size"] for block in segment["blocks"])
    for device in range(cuda.device_count()):
        own = [segment for segment in segments if segment["device"] == device]
        assert [segment["address"] for segment in own] == sorted(segment["address"] for segment in own)
        stats = cuda.memory_stats(device)
        assert sum(segment["total_size"] for segment in own) == cuda.memory_reserved(device)
        assert sum(segment["allocated_size"] for segment in own) == cuda.memory_allocated(device)
        assert sum(segment["active_size"] for segment in own) == stats["active_bytes.all.current"]
        assert len(own) == stats["segment.all.current"]


def states(address: int) -> str:
    (state,) = [b["state"] for s in cuda.memory_snapshot() for b in s["blocks"] if b["address"] == address]
    return str(state)


def test_snapshot_adds_up_to_the_counters(gpu: None) -> None:
    held = [empty(nbytes) for nbytes in (1, 513, MiB, MiB + 1, 5 * MiB, 11 * MiB, 700)]
    del held[1::2]
    segments = cuda.memory_snapshot()
    check_segments(segments)
    assert {segment["segment_type"] for segment in segments} == {"small", "large"}
    found = {block["address"]: block for segment in segments for block in segment["blocks"]}
    for tensor in held:
        block = found[tensor.data_ptr()]
        assert (block["state"], block["requested_size"]) == ("active_allocated", tensor.numel())


def test_snapshot_before_first_use_starts_nothing() -> None:
    done = fresh.start(
        """
        import tensorplay as tp
        from tensorplay import cuda
        assert cuda.memory_snapshot() == []
        assert not tp.cuda._library.native.is_started
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_block_that_another_stream_uses_is_pending(emulated: None) -> None:
    stream = cuda.Stream()
    tensor = empty(3 * MiB)
    address = tensor.data_ptr()
    with control.hold(stream):
        with cuda.stream(stream):
            tensor.fill_(True)
        tensor.record_stream(stream)
        del tensor
        assert states(address) == "active_pending_free"
        check_segments(cuda.memory_snapshot())
    stream.synchronize()
    cuda.empty_cache()
    check_segments(cuda.memory_snapshot())


def test_snapshot_names_streams_and_devices(two_gpus: None) -> None:
    stream = cuda.Stream(1)
    with cuda.stream(stream):
        tensor = empty(2 * MiB, 1)
    (segment,) = [
        segment
        for segment in cuda.memory_snapshot()
        if any(block["address"] == tensor.data_ptr() for block in segment["blocks"])
    ]
    assert (segment["device"], segment["stream"]) == (1, stream.cuda_stream)
    assert segment["segment_pool_id"] == (0, 0)
    assert segment in cuda.memory_snapshot((0, 0))
    assert cuda.memory_snapshot((0, 10**9)) == []


def test_snapshot_without_host_memory_or_device_says_so(gpu: None) -> None:
    with pytest.raises(tp.errors.TensorPlayError, match="memory_snapshot"):
        tp.cuda._snapshot.segments(1000)
