"""Running out of device memory: what the error says, and what stays afterwards."""

from __future__ import annotations

import gc
import pickle
import re

import numpy as np
import pytest
from helpers.blocks import MiB, empty

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import _shortage, memory
from tensorplay.testing import emulated as control

# ---- the error ----


def test_the_error_has_the_facts(small: int) -> None:
    held = empty(40 * MiB)
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(30 * MiB + 1)
    error = caught.value
    assert (error.device, error.reason, error.is_capturing, error.is_hopeless) == ("cuda:0", "device", False, False)
    assert (error.requested, error.rounded) == (30 * MiB + 1, 30 * MiB + 512)
    assert (error.device_free, error.device_total, error.others) == (24 * MiB, 64 * MiB + small, small)
    assert (error.allocated, error.reserved, error.returnable) == (40 * MiB, 40 * MiB, 0)
    assert (error.pending, error.private_pools, error.largest_free) == (0, 0, 0)
    assert (error.limit, error.budget, error.budget_live) == (None, None, None)
    assert error.processes == {}
    assert str(error).startswith("allocate: cuda:0 has no room for 30.00 MiB (31457792 bytes).")
    del held


def test_the_error_changes_no_figure(gpu: None) -> None:
    held = empty(MiB)
    before = cuda.memory_stats()
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(2**50)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, RuntimeError)
    after = cuda.memory_stats()
    for family in ("allocation", "allocated_bytes", "requested_bytes", "active"):
        assert after[f"{family}.all.current"] == before[f"{family}.all.current"]
    del held


def test_the_text_says_where_the_memory_is(emulated: None) -> None:
    gc.collect()
    cuda.empty_cache()
    with control.capacity(control.used() + 64 * MiB):
        pieces = [empty(9 * MiB) for _ in range(6)]
        del pieces[::2]
        with pytest.raises(tp.OutOfMemoryError) as pieced:
            empty(20 * MiB)
        with pytest.raises(tp.OutOfMemoryError) as held:
            empty(60 * MiB)
        with pytest.raises(tp.OutOfMemoryError) as never:
            empty(2**40)
        words = str(pieced.value)
        for part in ("20.00 MiB (20971520 bytes)", "are free", "are reserved here", "used by others", "are allocated"):
            assert part in words
        assert "the largest free block has" in words
        assert "can be returned to the driver" in words
        assert "lies in pieces" in words
        assert "drop some" in str(held.value)
        assert "larger than the device" in str(never.value)
    del pieces
    cuda.empty_cache()


def test_the_error_survives_pickling(small: int) -> None:
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(65 * MiB)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.requested, again.is_hopeless, again.device) == (65 * MiB, True, "cuda:0")


def test_facts_are_unknown_where_nobody_tells() -> None:
    error = tp.OutOfMemoryError("full")
    assert (error.requested, error.device, error.largest_free_by_stream) == (None, None, {})
    assert tp.OutOfMemoryError("full", requested=5).requested == 5
    with pytest.raises(TypeError, match="'bytes'"):
        tp.OutOfMemoryError("full", bytes=5)


def test_fragmentation_shows_in_the_figures_and_in_the_advice(small: int) -> None:
    walls, holes = [], []
    for _ in range(3):
        walls.append(empty(2 * MiB))
        holes += [empty(9 * MiB), empty(9 * MiB)]
    holes.clear()
    with pytest.raises(tp.OutOfMemoryError, match="lies in pieces") as caught:
        empty(25 * MiB)
    error = caught.value
    assert (error.allocated, error.reserved, error.largest_free) == (6 * MiB, 60 * MiB, 18 * MiB)
    assert error.largest_free_by_stream == {0: 18 * MiB}
    assert (error.returnable, error.device_free) == (0, 4 * MiB)
    assert error.device_free == cuda.mem_get_info()[0]
    assert "expandable_segments:True" in str(error)
    cuda.memory.set_allocator_settings("expandable_segments:True")
    try:
        with pytest.raises(tp.OutOfMemoryError, match="lies in pieces") as caught:
            empty(25 * MiB)
    finally:
        cuda.memory.set_allocator_settings("")
    assert "expandable_segments" not in str(caught.value)  # It is on already.
    walls.clear()


def test_memory_that_streams_still_use_is_told(small: int) -> None:
    """In a capture, where nobody waits for them."""
    x, g, side = tp.zeros(3, device="cuda"), cuda.CUDAGraph(), cuda.Stream()
    used = empty(20 * MiB)
    side.wait_stream(cuda.current_stream())
    with control.hold(side):
        with cuda.stream(side):
            used.fill_(1)
        used.record_stream(side)
        with cuda.graph(g, stream=cuda.Stream(), capture_error_mode="relaxed"):
            x.add_(1)
            del used
            with pytest.raises(tp.OutOfMemoryError, match=r"Streams still use 20\.00 MiB that were dropped") as caught:
                empty(50 * MiB)
    assert (caught.value.pending, caught.value.is_capturing) == (20 * MiB, True)
    found = empty(50 * MiB)
    del found


def test_a_refusal_that_is_not_the_allocators_has_no_facts(emulated: None) -> None:
    a = tp.ones(4, device="cuda")
    with control.fail("cudaLaunchKernel", 1, "cudaErrorMemoryAllocation"), pytest.raises(tp.OutOfMemoryError) as caught:
        a + 1
    assert caught.value.requested is None


def test_the_error_names_the_places_that_hold_most(small: int) -> None:
    before = empty(3 * 2**10)
    memory._record_memory_history("state")
    try:
        most = [empty(10 * MiB), empty(12 * MiB)]  # the most
        with pytest.raises(tp.OutOfMemoryError, match=r"Most is held by blocks from .*blocks.py:\d+ empty"):
            empty(60 * MiB)
        with pytest.raises(tp.OutOfMemoryError) as caught:
            empty(60 * MiB)
    finally:
        memory._record_memory_history(None)
    (first, nbytes), (_, others) = caught.value.places.items()
    assert (nbytes, others) == (22 * MiB, 3 * 2**10)
    assert re.search(r" empty \(22\.00 MiB\), .* \(3\.00 KiB\)\.$", str(caught.value))
    assert first.startswith(empty.__code__.co_filename)
    del before, most


def test_the_error_names_other_processes(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shortage.native, "tp_table_has_emulated", lambda: 0)  # which has no other processes
    monkeypatch.setattr(_shortage._processes, "others", lambda device: {13: 3 * MiB, 11: 500})
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(65 * MiB)
    assert caught.value.processes == {13: 3 * MiB, 11: 500}
    assert str(caught.value).endswith(" Other processes on the device: 13 (3.00 MiB), 11 (500 bytes).")


# ---- what stays ----


def fill_and_catch() -> int:
    held = []
    try:
        while True:
            held.append(empty(3 * MiB))
    except tp.OutOfMemoryError:
        return len(held)


def test_the_same_size_is_reached_in_every_round(small: int) -> None:
    gc.disable()
    try:
        assert len({fill_and_catch() for _ in range(10)}) == 1
        assert cuda.memory_allocated() == 0
    finally:
        gc.enable()


def test_nothing_stays_when_the_error_is_gone(small: int) -> None:
    errors: list[tp.OutOfMemoryError] = []

    def fill() -> None:
        held = []
        try:
            while True:
                held.append(empty(3 * MiB))
        except tp.OutOfMemoryError as error:
            errors.append(error)

    gc.collect()
    gc.disable()
    try:
        fill()
        assert cuda.memory_allocated() > 0  # The traceback has the frames, whose variables live.
        errors.clear()
        assert cuda.memory_allocated() == 0
    finally:
        gc.enable()


def test_an_error_holds_no_tensor_once_it_is_gone(emulated: None) -> None:
    def fail() -> tp.OutOfMemoryError:
        host = [tp.zeros(MiB, dtype=tp.bool) for _ in range(5)]
        held = []
        try:
            for one in host:
                held.append(one.to("cuda"))
        except tp.OutOfMemoryError as error:
            return error
        raise AssertionError("there was room")

    gc.collect()  # Else what earlier tests have left would make room.
    cuda.empty_cache()
    start = cuda.memory_allocated()
    gc.disable()
    try:
        with control.capacity(control.used() + 4 * MiB):
            error = fail()
            assert cuda.memory_allocated() > start  # its traceback holds the frame
            del error
            assert cuda.memory_allocated() == start
            kept = fail().with_traceback(None)
            assert cuda.memory_allocated() == start
        assert "no room" in str(kept)
    finally:
        gc.enable()
    cuda.empty_cache()


def test_nothing_stays_of_tensors_that_were_on_their_way(small: int) -> None:
    def move() -> None:
        arrays = [tp.from_numpy(np.ones(14 * MiB, np.uint8)) for _ in range(5)]
        with pytest.raises(tp.OutOfMemoryError):
            [array.to("cuda") for array in arrays]

    gc.collect()
    gc.disable()
    try:
        move()
        assert cuda.memory_allocated() == 0
    finally:
        gc.enable()


def test_what_was_free_is_still_free(small: int) -> None:
    kept = empty(10 * MiB)
    for nbytes in (512, 100 * 1024, 2 * MiB):
        del (block := [empty(nbytes) for _ in range(3)])[:]
    with pytest.raises(tp.OutOfMemoryError):
        empty(60 * MiB)
    assert cuda.memory_allocated() == 10 * MiB
    rest = empty(50 * MiB)
    del rest, kept, block
