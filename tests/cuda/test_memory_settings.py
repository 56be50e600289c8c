"""The allocators' settings, and the memory fraction, which is a note."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory

MiB = 2**20


@pytest.fixture
def settings(gpu: None) -> Iterator[None]:
    """Settings of the test's own, and an empty cache before and after."""
    before = memory.get_allocator_settings()
    cuda.empty_cache()
    yield
    memory.set_allocator_settings(before)
    cuda.empty_cache()


def test_settings_are_obeyed_and_read_back(settings: None) -> None:
    memory.set_allocator_settings("roundup_power2_divisions:4, max_split_size_mb:64")
    assert memory.get_allocator_settings() == "roundup_power2_divisions:4,max_split_size_mb:64"
    before = cuda.memory_allocated()
    held = tp.empty(1200 * 1024, dtype=tp.bool, device="cuda")
    assert cuda.memory_allocated() == before + 1280 * 1024
    assert cuda.memory_stats()["max_split_size"] == 64 * MiB
    memory._set_allocator_settings("")
    assert memory.get_allocator_settings() == ""
    assert cuda.memory_stats()["max_split_size"] == 0
    del held


def test_the_backend_is_our_own(gpu: None) -> None:
    assert cuda.get_allocator_backend() == "native"
    memory.set_allocator_settings(f"backend:{cuda.get_allocator_backend()}")
    memory.set_allocator_settings("")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what:1", "got the key 'what', expected one of backend, expandable_segments,"),
        ("max_split_size_mb:64,max_split_size_mb:x", "got 'x', expected MiB as an integer, at least 20"),
        ("expandable_segments:true", "got 'true', expected True or False"),
        ("max_split_size_mb:64\0", "null character"),
    ],
)
def test_what_cannot_be_obeyed_is_a_value_error_and_changes_nothing(settings: None, text: str, words: str) -> None:
    memory.set_allocator_settings("max_split_size_mb:32")
    with pytest.raises(ValueError, match=r"set_allocator_settings: ") as caught:
        memory.set_allocator_settings(text)
    assert words in str(caught.value)
    assert memory.get_allocator_settings() == "max_split_size_mb:32"
    with pytest.raises(TypeError, match="expected a text"):
        memory.set_allocator_settings(b"max_split_size_mb:32")  # type: ignore[arg-type]


def test_settings_start_no_device() -> None:
    fresh.run(
        """
        from tensorplay import cuda
        from tensorplay.cuda._library import native
        cuda.memory.set_allocator_settings("max_split_size_mb:32")
        assert not native.tp_device_is_started(0)
        assert cuda.memory_stats()["max_split_size"] == 32 * 2**20
        """,
        TENSORPLAY_CUDA_RUNTIME="emulated",
    )


def test_the_variable_is_obeyed() -> None:
    fresh.run(
        """
        import tensorplay as tp
        from tensorplay import cuda
        assert cuda.get_per_process_memory_fraction() == 0.25
        x = tp.empty(2 * 2**20, dtype=tp.bool, device="cuda")
        assert cuda.memory_reserved() == 32 * 2**20
        """,
        TENSORPLAY_CUDA_RUNTIME="emulated",
        TENSORPLAY_CUDA_ALLOC_CONF="large_segment_size_mb:32,per_process_memory_fraction:0.25",
    )


def test_a_wrong_variable_fails_what_needs_a_device_and_no_question() -> None:
    fresh.run(
        """
        import tensorplay as tp
        from tensorplay import cuda
        assert cuda.is_available() and cuda.device_count() >= 1
        assert cuda.memory_allocated() == 0
        for _ in range(2):
            for call in (lambda: tp.ones(3, device="cuda"), cuda.mem_get_info, cuda.Stream):
                try:
                    call()
                except tp.errors.StateError as error:
                    words = "the variable TENSORPLAY_CUDA_ALLOC_CONF cannot be obeyed: got the key 'max_split'"
                    assert words in str(error)
                else:
                    raise AssertionError(call)
        cuda.memory.set_allocator_settings("")
        assert tp.ones(3, device="cuda").sum().item() == 3
        """,
        TENSORPLAY_CUDA_RUNTIME="emulated",
        TENSORPLAY_CUDA_ALLOC_CONF="max_split:32",
    )


def test_without_caching_everything_goes_back_at_once() -> None:
    fresh.run(
        """
        import tensorplay as tp
        from tensorplay import cuda
        x = tp.arange(1000, device="cuda")
        y = (x * 2 + 1).sum()
        assert y.item() == 1000 * 1000
        assert cuda.memory_reserved() == cuda.memory_allocated() > 0
        del x, y
        assert cuda.memory_reserved() == 0
        """,
        TENSORPLAY_CUDA_RUNTIME="emulated",
        TENSORPLAY_NO_CUDA_MEMORY_CACHING="1",
    )


# ---- the fraction ----


def test_the_fraction_is_noted_for_each_device_and_limits_nothing(two_gpus: None) -> None:
    before = cuda.get_per_process_memory_fraction("cuda:1")
    cuda.set_per_process_memory_fraction(0.001, 0)
    try:
        assert cuda.get_per_process_memory_fraction() == cuda.get_per_process_memory_fraction("cuda") == 0.001
        assert cuda.get_per_process_memory_fraction(1) == before
        held = tp.empty(cuda.mem_get_info()[1] // 100, dtype=tp.bool, device="cuda")
        assert "fraction" not in cuda.memory_summary()
        with pytest.raises(tp.OutOfMemoryError) as caught:
            tp.empty(2**45, dtype=tp.bool, device="cuda")
        assert "limited" not in str(caught.value)
        assert caught.value.limit is None
        del held
    finally:
        cuda.set_per_process_memory_fraction(1.0, 0)


@pytest.mark.parametrize("call", [cuda.set_per_process_memory_fraction, cuda.get_per_process_memory_fraction])
def test_the_first_line_says_that_a_fraction_is_not_enforced(call: object) -> None:
    assert str(call.__doc__).startswith("Not enforced: ")


@pytest.mark.parametrize("fraction", [-0.1, 1.5, math.nan, math.inf, -math.inf, np.float64(1.01)])
def test_fractions_outside_of_0_to_1_are_value_errors(gpu: None, fraction: float) -> None:
    with pytest.raises(ValueError, match="expected a number from 0 to 1"):
        cuda.set_per_process_memory_fraction(fraction)
    assert cuda.get_per_process_memory_fraction() == 1.0


@pytest.mark.parametrize("fraction", ["0.5", None, True, 0.5j, [0.5]])
def test_fractions_that_are_no_numbers_are_type_errors(gpu: None, fraction: object) -> None:
    with pytest.raises(TypeError, match="expected a number from 0 to 1"):
        cuda.set_per_process_memory_fraction(fraction)  # type: ignore[arg-type]
    assert cuda.get_per_process_memory_fraction() == 1.0
