"""Memory through the facade."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from helpers import fresh

import tensorplay
from tensorplay import _plugins, accelerator
from tensorplay.errors import BackendUnavailableError

from .conftest import Place

MEBIBYTE = 2**20


def held(place: Place, mebibytes: int, index: int = 0) -> tensorplay.Tensor:
    return tensorplay.zeros(mebibytes * MEBIBYTE, dtype=tensorplay.uint8, device=place.spellings(index)[0])


def test_live_tensors_are_counted_on_their_device(here: Place) -> None:
    before = accelerator.memory_allocated(here.last)
    x = held(here, 4, here.last)
    for device in (here.last, *here.spellings(here.last)):
        assert accelerator.memory_allocated(device) == accelerator.memory_allocated(device=device)
        assert accelerator.memory_allocated(device) - before == 4 * MEBIBYTE
        assert accelerator.memory_reserved(device) >= accelerator.memory_allocated(device)
        assert accelerator.max_memory_reserved(device) >= accelerator.max_memory_allocated(device) >= 4 * MEBIBYTE
    del x
    assert accelerator.memory_allocated(here.last) == before


def test_the_current_device_is_meant_by_default(two: Place) -> None:
    first = accelerator.memory_allocated(0)
    x = held(two, 4, 1)
    with accelerator.device_index(1):
        assert accelerator.memory_allocated() == accelerator.memory_allocated(1) >= x.nbytes
        assert accelerator.memory_allocated(two.type) == accelerator.memory_allocated(1)
        assert accelerator.memory_stats() == accelerator.memory_stats(1)
    assert accelerator.memory_allocated() == first


def test_a_peak_falls_to_what_is_held_and_sums_stay(two: Place) -> None:
    for index in (0, 1):
        x = held(two, 8, index)
        del x
        accelerator.reset_peak_memory_stats(index)
        base = accelerator.memory_allocated(index)
        x = held(two, 8, index)
        accelerator.reset_peak_memory_stats(index)
        total = accelerator.memory_stats(index)["allocated_bytes.all.allocated"]
        y = held(two, 2, index)
        del y
        assert accelerator.memory_allocated(index) == base + 8 * MEBIBYTE
        assert accelerator.max_memory_allocated(index) == base + 10 * MEBIBYTE
        assert accelerator.memory_stats(index)["allocated_bytes.all.allocated"] == total + 2 * MEBIBYTE
        del x


def test_sums_start_anew(here: Place) -> None:
    x = held(here, 2)
    accelerator.reset_accumulated_memory_stats()
    found = accelerator.memory_stats()
    assert found["allocated_bytes.all.allocated"] == found["allocated_bytes.all.freed"] == 0
    assert found["allocated_bytes.all.current"] >= x.nbytes
    del x
    assert accelerator.memory_stats()["allocated_bytes.all.freed"] == 2 * MEBIBYTE


def test_statistics_are_flat_and_sorted(here: Place) -> None:
    found = accelerator.memory_stats(here.last)
    assert isinstance(found, OrderedDict)
    assert list(found) == sorted(found)
    assert all(isinstance(value, int) for value in found.values())
    assert found["allocated_bytes.all.current"] == accelerator.memory_allocated(here.last)
    assert found["allocated_bytes.all.peak"] == accelerator.max_memory_allocated(here.last)
    assert found["reserved_bytes.all.current"] == accelerator.memory_reserved(here.last)
    assert found["reserved_bytes.all.peak"] == accelerator.max_memory_reserved(here.last)


def test_cached_memory_is_given_back(here: Place) -> None:
    accelerator.empty_cache()
    accelerator.empty_host_cache()
    before = accelerator.memory_reserved()
    x = held(here, 40)
    del x
    accelerator.empty_cache()
    assert accelerator.memory_reserved() == before
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total


def test_questions_before_first_use_start_nothing(here: Place) -> None:
    if here.type == "fake":
        pytest.skip("the other process has only what is installed")
    program = f"""
        import tensorplay
        from tensorplay import accelerator, cuda
        names = list(accelerator.memory_stats())
        for device in (None, 0, "{here.type}", "{here.type}:0", tensorplay.device("{here.type}", 0)):
            for ask in (
                accelerator.memory_allocated, accelerator.max_memory_allocated,
                accelerator.memory_reserved, accelerator.max_memory_reserved,
            ):
                assert ask(device) == 0
            assert list(accelerator.memory_stats(device)) == names
            assert not any(accelerator.memory_stats(device).values())
            assert accelerator.reset_peak_memory_stats(device) is None
            assert accelerator.reset_accumulated_memory_stats(device) is None
            free, total = accelerator.get_memory_info(device)
            assert 0 < free <= total
        assert accelerator.empty_cache() is accelerator.empty_host_cache() is None
        assert not cuda.is_initialized()
        x = tensorplay.ones(3, device="{here.type}")
        print(list(accelerator.memory_stats()) == names)
    """
    assert fresh.run(program, TENSORPLAY_ACCELERATOR=None) == "True\n"


def test_without_an_accelerator_nothing_is_allocated(nothing: None) -> None:
    for device in (None, 0, 3):
        assert accelerator.memory_allocated(device) == accelerator.max_memory_allocated(device) == 0
        assert accelerator.memory_reserved(device) == accelerator.max_memory_reserved(device) == 0
        assert accelerator.memory_stats(device) == OrderedDict()
        accelerator.reset_peak_memory_stats(device)
        accelerator.reset_accumulated_memory_stats(device)
        with pytest.raises(BackendUnavailableError, match="get_memory_info: no accelerator"):
            accelerator.get_memory_info(device)
    accelerator.empty_cache()
    accelerator.empty_host_cache()


def test_a_backend_that_counts_nothing_gives_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorplay.accelerator.memory.accelerator", lambda: _plugins.get("cpu"))
    assert accelerator.memory_stats() == OrderedDict()
    assert accelerator.max_memory_allocated() == 0
    accelerator.empty_cache()
    accelerator.empty_host_cache()
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    with pytest.raises(BackendUnavailableError, match="the backend of type 'cpu' cannot tell"):
        _plugins.get("cpu").memory_info(0)
