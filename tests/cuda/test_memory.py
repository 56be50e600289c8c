"""The allocator as Python sees it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from helpers import fresh
from helpers.blocks import MiB, empty

import tensorplay as tp
from tensorplay import cuda


def test_blocks_are_counted_rounded_and_requests_as_asked(gpu: None) -> None:
    allocated = cuda.memory_allocated()
    requested = cuda.memory_stats()["requested_bytes.all.current"]
    one = empty(1)
    assert cuda.memory_allocated() == allocated + 512
    assert cuda.memory_stats()["requested_bytes.all.current"] == requested + 1
    del one
    assert cuda.memory_allocated() == allocated


def test_reserved_is_never_less_than_allocated(gpu: None) -> None:
    held = []
    for nbytes in (1, 513, MiB, MiB + 1, 5 * MiB, 11 * MiB):
        held.append(empty(nbytes))
        assert cuda.memory_reserved() >= cuda.memory_allocated()
    held.clear()
    assert cuda.memory_reserved() >= cuda.memory_allocated()


def test_no_elements_take_no_memory(gpu: None) -> None:
    before = cuda.memory_allocated()
    nothing = tp.empty((0, 3), device="cuda")
    assert cuda.memory_allocated() == before
    assert nothing.data_ptr() == 0


def test_peak_reset_keeps_what_is_held(gpu: None) -> None:
    start = cuda.memory_allocated()
    held = empty(8 * MiB)
    counts = cuda.memory_stats()
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == cuda.memory_allocated() == start + 8 * MiB
    more = empty(2 * MiB)
    del more
    assert cuda.max_memory_allocated() == start + 10 * MiB
    assert cuda.memory_allocated() == start + 8 * MiB
    assert cuda.max_memory_reserved() >= cuda.memory_reserved()
    assert cuda.memory_stats()["allocation.all.allocated"] == counts["allocation.all.allocated"] + 1
    del held


def test_peak_reset_of_one_device_leaves_the_other(two_gpus: None) -> None:
    held = empty(4 * MiB, 1)
    del held
    peak = cuda.max_memory_allocated(1)
    cuda.reset_peak_memory_stats(0)
    assert cuda.max_memory_allocated(1) == peak > cuda.memory_allocated(1)
    cuda.reset_peak_memory_stats(1)
    assert cuda.max_memory_allocated(1) == cuda.memory_allocated(1)


def test_peak_reset_of_reserved_memory_keeps_what_is_held(two_gpus: None) -> None:
    for index in (0, 1):  # Device 0 is the current one.
        gc.collect()
        cuda.empty_cache()
        start = cuda.memory_reserved(index)
        held = empty(16 * MiB, index)
        cuda.reset_peak_memory_stats(index)
        assert cuda.max_memory_reserved(index) == cuda.memory_reserved(index) == start + 16 * MiB
        more = empty(12 * MiB, index)
        del more
        cuda.empty_cache()
        assert cuda.max_memory_reserved(index) == start + 28 * MiB
        assert cuda.memory_reserved(index) == start + 16 * MiB
        del held


def test_peak_reset_leaves_what_is_counted_alone(gpu: None) -> None:
    held = empty(MiB)
    with pytest.raises(tp.OutOfMemoryError):
        empty(2**50)
    before = cuda.memory_stats()
    cuda.reset_peak_memory_stats()
    after = cuda.memory_stats()
    assert before["num_ooms"] > 0
    assert before["num_device_alloc"] > 0
    assert [name for name in after if after[name] != before[name] and not name.endswith(".peak")] == []
    del held


def test_accumulated_reset_keeps_current_and_peak(gpu: None) -> None:
    held = empty(MiB)
    before = cuda.memory_stats()
    cuda.reset_accumulated_memory_stats()
    after = cuda.memory_stats()
    assert after["allocation.all.allocated"] == after["allocation.all.freed"] == 0
    for figure in ("current", "peak"):
        assert after[f"allocated_bytes.all.{figure}"] == before[f"allocated_bytes.all.{figure}"]
    del held


@pytest.mark.smoke
def test_empty_cache_gives_back_what_nobody_holds(gpu: None) -> None:
    cuda.empty_cache()
    reserved = cuda.memory_reserved()
    held = empty(32 * MiB)
    assert cuda.memory_reserved() == reserved + 32 * MiB
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved + 32 * MiB
    del held
    free = cuda.mem_get_info()[0]
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved
    assert cuda.mem_get_info()[0] >= free + 32 * MiB


def test_empty_cache_touches_no_device_that_was_not_used(two_gpus: None) -> None:
    cuda.empty_cache()
    assert cuda.current_device() == 0


@pytest.mark.smoke
def test_stats_agree_with_the_single_numbers(gpu: None) -> None:
    held = [empty(3 * MiB), empty(700)]
    stats = cuda.memory_stats()
    assert list(stats) == sorted(stats)
    assert stats["allocated_bytes.all.current"] == cuda.memory_allocated()
    assert stats["allocated_bytes.all.peak"] == cuda.max_memory_allocated()
    assert stats["reserved_bytes.all.current"] == cuda.memory_reserved()
    for family in ("allocation", "segment", "active", "allocated_bytes", "reserved_bytes", "requested_bytes"):
        for figure in ("current", "allocated", "freed"):
            parts = [stats[f"{family}.{pool}.{figure}"] for pool in ("small_pool", "large_pool")]
            assert stats[f"{family}.all.{figure}"] == sum(parts)
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["large_pool"]["current"] == stats["allocated_bytes.large_pool.current"]
    assert nested["oversize_segments"]["peak"] == stats["oversize_segments.peak"]
    assert nested["num_ooms"] == stats["num_ooms"]
    held.clear()


def test_stats_have_torchs_names(gpu: None) -> None:
    quantities = (
        "allocation",
        "segment",
        "active",
        "inactive_split",
        "allocated_bytes",
        "reserved_bytes",
        "active_bytes",
    )
    figures = ("current", "peak", "allocated", "freed")
    names = {
        f"{family}.{pool}.{figure}"
        for family in (*quantities, "inactive_split_bytes", "requested_bytes")
        for pool in ("all", "large_pool", "small_pool")
        for figure in figures
    }
    assert len(names) == 108
    names |= {f"oversize_{kind}.{figure}" for kind in ("allocations", "segments") for figure in figures}
    names |= {"num_alloc_retries", "num_ooms", "num_oom_rejections", "num_sync_all_streams", "num_device_alloc"}
    names |= {"num_device_free", "max_split_size"}
    assert {name for name in cuda.memory_stats() if not name.startswith("reserved_bytes_by_private_pools")} == names


QUESTIONS = """
    import tensorplay as tp
    from tensorplay import cuda
    from tensorplay.cuda import memory

    devices = [None, 0, "cuda", "cuda:0", tp.device("cuda"), tp.device("cuda", 0)]
    devices += [cuda.device_count() - 1] if cuda.is_available() else []
    for device in devices:
        assert memory.get_memory_limit(device) is None
        assert memory.get_per_process_memory_fraction(device) == 1
        for flat, nested in (
            (cuda.memory_stats(device), cuda.memory_stats_as_nested_dict(device)),
            (cuda.host_memory_stats(), cuda.host_memory_stats_as_nested_dict()),
        ):
            for name, number in flat.items():
                found = nested
                for part in name.split("."):
                    found = found[part]
                assert found == number == 0
        assert len(cuda.memory_summary(device, abbreviated=True).splitlines()) > 20
    assert cuda.memory_snapshot() == memory._snapshot()["segments"] == []
    assert cuda.memory_budgets() == {}
    assert cuda.get_allocator_backend() == "native"
    for change in (
        cuda.reset_peak_host_memory_stats, cuda.reset_accumulated_host_memory_stats, cuda.empty_host_cache,
        cuda.empty_cache, lambda: memory._record_memory_history(None), lambda: memory.set_memory_limit(None),
    ):
        assert change() is None
    native = cuda._library.native
    print(native.is_started and any(native.tp_device_is_started(i) for i in range(cuda.device_count())))
"""

USED = """
    before = cuda.memory_stats(), cuda.host_memory_stats()
    held = tp.ones(1, device="cuda"), tp.ones(1, pin_memory=True)
    print([list(stats) for stats in before] == [list(cuda.memory_stats()), list(cuda.host_memory_stats())])
"""


@pytest.mark.parametrize("variant", ["emulated", "none"])
def test_every_question_has_an_answer_before_first_use(variant: str) -> None:
    assert fresh.run(QUESTIONS, TENSORPLAY_CUDA_RUNTIME=variant) == "False\n"


def test_statistics_have_the_same_names_before_first_use(emulated: None) -> None:
    assert fresh.run(QUESTIONS + USED) == "False\nTrue\n"


@pytest.mark.parametrize(("executable", "starts"), [("sys.executable", False), ("''", True), ("'/nonexistent'", True)])
def test_free_memory_is_asked_of_another_process_before_first_use(gpu: None, executable: str, starts: bool) -> None:
    code = f"""
        import sys
        import tensorplay as tp
        from tensorplay.cuda._library import native
        sys.executable = {executable}
        free, total = tp.cuda.mem_get_info()
        assert 0 < free <= total
        print(native.is_started)
        tp.ones(3, device="cuda")
        assert tp.cuda.mem_get_info()[1] == total
    """
    assert fresh.run(code) == f"{starts}\n"


def test_driver_calls_are_counted(gpu: None) -> None:
    cuda.empty_cache()
    before = cuda.memory_stats()
    held = empty(30 * MiB)
    del held
    cuda.empty_cache()
    after = cuda.memory_stats()
    assert after["num_device_alloc"] == before["num_device_alloc"] + 1
    assert after["num_device_free"] == before["num_device_free"] + 1


@pytest.mark.parametrize("abbreviated", [False, True])
def test_summary_is_a_table_of_75_columns(gpu: None, abbreviated: bool) -> None:
    held = empty(900 * MiB // 1024)
    lines = cuda.memory_summary(abbreviated=abbreviated).splitlines()
    assert {len(line) for line in lines} == {77}
    assert all(line[0] == line[-1] == "|" for line in lines)
    assert any("from large pool" in line for line in lines) != abbreviated
    (row,) = [line for line in lines if "Requested memory" in line]
    asked = cuda.memory_stats()["requested_bytes.all.current"]
    assert f"{asked // 1024:6d} KiB" in row
    del held


def test_summary_counts_failures(gpu: None) -> None:
    failures = cuda.memory_stats()["num_ooms"]
    with pytest.raises(tp.OutOfMemoryError):
        empty(2**50)
    assert f"CUDA OOMs: {failures + 1}" in cuda.memory_summary()


REFUSED: list[tuple[tuple[int, ...], tp.DType, type[Exception]]] = [
    ((-1,), tp.uint8, ValueError),
    ((2**50,), tp.uint8, tp.OutOfMemoryError),
    *(((2**63 - nbytes,), tp.uint8, OverflowError) for nbytes in (1, 300)),  # 63 bits count them, but not rounded up
    *(((nbytes,), tp.uint8, OverflowError) for nbytes in (2**63, 2**64 - 300, 2**64 - 1, 2**64)),
    *(((numel,), tp.int64, OverflowError) for numel in (2**62, 2**63 - 1)),
    ((2**33, 2**33), tp.uint8, OverflowError),
]


@pytest.mark.parametrize(("shape", "dtype", "error"), REFUSED)
def test_refused_sizes_change_no_counter(
    gpu: None, shape: tuple[int, ...], dtype: tp.DType, error: type[Exception]
) -> None:
    gc.collect()
    cuda.empty_cache()  # Small blocks leave the thread's cache when memory is short, and count as pieces then.
    before = cuda.memory_stats()
    with pytest.raises(error, match="(empty|allocate): "):
        tp.empty(shape, dtype=dtype, device="cuda")
    after = cuda.memory_stats()
    if error is tp.OutOfMemoryError:
        assert after.pop("num_ooms") == before.pop("num_ooms") + 1
    assert after == before
    first, second = empty(600), empty(600)
    assert abs(first.data_ptr() - second.data_ptr()) >= 1024


def test_values_survive_a_busy_allocator(gpu: None) -> None:
    rng = np.random.default_rng(1)
    held: dict[int, tp.Tensor] = {}
    for step in range(300):
        place = int(rng.integers(20))
        if place in held:
            values = held.pop(place).cpu().numpy()
            assert (values == values[0]).all()
        else:
            held[place] = tp.full((int(rng.integers(1, 5000)),), step, dtype=tp.int32, device="cuda")
