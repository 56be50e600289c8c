"""Devices through the facade: which there are, how they are named, which one is current."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import fresh

import tensorplay
from tensorplay import _plugins, accelerator
from tensorplay.errors import BackendUnavailableError, DTypeError, InvalidArgumentError

from .conftest import Place

Call = Callable[[Any], Any]

#: Everything that takes a device, and what may be left out.
READERS: dict[str, Call] = {
    "synchronize": accelerator.synchronize,
    "current_stream": accelerator.current_stream,
    "get_device_capability": accelerator.get_device_capability,
    "get_memory_info": accelerator.get_memory_info,
    "memory_stats": accelerator.memory_stats,
    "memory_allocated": accelerator.memory_allocated,
    "max_memory_allocated": accelerator.max_memory_allocated,
    "memory_reserved": accelerator.memory_reserved,
    "max_memory_reserved": accelerator.max_memory_reserved,
    "reset_peak_memory_stats": accelerator.reset_peak_memory_stats,
    "reset_accumulated_memory_stats": accelerator.reset_accumulated_memory_stats,
    "get_rng_state": accelerator.random.get_rng_state,
    "set_rng_state": lambda device: accelerator.random.set_rng_state(
        tensorplay.zeros(16, dtype=tensorplay.uint8), device
    ),
}
SETTERS: dict[str, Call] = {"set_device_index": accelerator.set_device_index, "device_index": accelerator.device_index}

BAD_SPELLINGS = [
    "cuda:2 cuda:3", "cuda0", "cuda:", "cuda:-1", "cuda:01", "cuda: 1", " cuda", "CUDA:0", "cuda:1.0",
    "cuda:99999999999", "", "cpu:-1", "gpu",
]  # fmt: skip

readers = pytest.mark.parametrize("call", READERS.values(), ids=READERS)
all_calls = pytest.mark.parametrize("call", [*READERS.values(), *SETTERS.values()], ids=[*READERS, *SETTERS])


def entered(index: Any) -> None:
    with accelerator.device_index(index):
        pass


# -- what there is -----------------------------------------------------------------------------------------


def test_questions(place: Place) -> None:
    found = accelerator.current_accelerator()
    assert found == (None if place.type is None else tensorplay.device(place.type))
    assert accelerator.current_accelerator(check_available=True) == found
    assert found is None or found.index is None
    assert accelerator.is_available() is (place.count > 0)
    assert accelerator.device_count() == place.count
    with place.needs():
        assert accelerator.current_device_index() == 0


def test_an_accelerator_that_does_not_work_is_named_unless_asked_to_check(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = _plugins.get(here.type or "")
    monkeypatch.setattr(type(backend), "is_available", lambda self: False)
    assert accelerator.current_accelerator() == tensorplay.device(backend.type)
    assert accelerator.current_accelerator(check_available=True) is None
    assert not accelerator.is_available()


# -- how a device is named -----------------------------------------------------------------------------------


@readers
def test_every_spelling_is_taken(here: Place, call: Call) -> None:
    for device in (None, here.last, np.int64(here.last), here.type, tensorplay.device(here.type or "")):
        call(device)
    for device in here.spellings(here.last):
        call(device)


@all_calls
def test_a_type_without_an_accelerator_is_a_runtime_error(nothing: None, call: Call) -> None:
    for device in ("cuda", "cuda:0", tensorplay.device("cuda", 0), "cpu"):
        with pytest.raises(BackendUnavailableError, match="no accelerator") as caught:
            call(device)
        assert not isinstance(caught.value, ValueError)


@all_calls
def test_another_type_is_a_value_error(here: Place, call: Call) -> None:
    for device in ("cpu", "cpu:0", tensorplay.device("cpu")):
        with pytest.raises(ValueError, match=f"got a device of type 'cpu', expected '{here.type}'"):
            call(device)


@all_calls
def test_a_bad_spelling_is_a_value_error_that_shows_it(place: Place, call: Call) -> None:
    for device in BAD_SPELLINGS:
        with pytest.raises(InvalidArgumentError, match=r"^device: got ") as caught:
            call(device)
        assert repr(device) in str(caught.value)


@all_calls
def test_another_object_is_a_type_error(place: Place, call: Call) -> None:
    for device in (1.0, True, [0], b"cuda", np.array([0]), tensorplay.zeros(1)):
        with pytest.raises(DTypeError, match="expected a device, a text such as"):
            call(device)


@pytest.mark.parametrize("call", [*READERS.values(), accelerator.set_device_index, entered],
                         ids=[*READERS, *SETTERS])  # fmt: skip
def test_an_index_past_the_end_is_refused_alike_and_changes_nothing(here: Place, call: Call) -> None:
    before = accelerator.random.get_rng_state_all()
    for index in (here.count, 99, 127, 128, 255, 256, 2**31 - 1, 2**40, -1, -2):
        if index < 0 and call in (accelerator.set_device_index, entered):
            call(index)
        else:
            with pytest.raises(InvalidArgumentError, match=f"device {index} asked for, {here.count} visible"):
                call(index)
    for device in here.spellings(99):
        with pytest.raises(InvalidArgumentError, match=f"device 99 asked for, {here.count} visible"):
            call(device)
    assert accelerator.current_device_index() == 0
    after = accelerator.random.get_rng_state_all()
    assert [state.tolist() for state in after] == [state.tolist() for state in before]


# -- which one is current ------------------------------------------------------------------------------------


def test_a_device_is_made_current(here: Place) -> None:
    for device in (here.last, *here.spellings(here.last)):
        accelerator.set_device_index(0)
        accelerator.set_device_index(device)
        assert accelerator.current_device_index() == here.last
        assert tensorplay.ones(1, device=here.type).device == tensorplay.device(here.type or "", here.last)
    accelerator.set_device_index(-1)
    assert accelerator.current_device_index() == here.last


def test_the_current_device_needs_an_accelerator(place: Place) -> None:
    for call in (lambda: accelerator.set_device_index(0), lambda: entered(0), accelerator.current_device_index):
        with place.needs():
            call()


@pytest.mark.parametrize("call", [accelerator.set_device_index, accelerator.device_index])
def test_a_device_without_an_index_cannot_be_made_current(here: Place, call: Call) -> None:
    for device in (here.type, tensorplay.device(here.type or "")):
        with pytest.raises(ValueError, match="expected a device with an index"):
            call(device)


def test_a_negative_index_needs_nothing(place: Place) -> None:
    for index in (-1, np.int64(-1), -(2**70)):
        accelerator.set_device_index(index)


def test_none_cannot_be_made_current(place: Place) -> None:
    with pytest.raises(ValueError, match="set_device_index: got None, expected a device with an index"):
        accelerator.set_device_index(None)  # type: ignore[arg-type]


def test_the_context_puts_the_former_device_back(two: Place) -> None:
    for device in (1, *two.spellings(1)):
        context = accelerator.device_index(device)
        with context, accelerator.device_index(0):
            with context:
                assert accelerator.current_device_index() == 1
            assert accelerator.current_device_index() == 0
        with pytest.raises(ZeroDivisionError), context:
            1 / 0  # noqa: B018
        assert accelerator.current_device_index() == 0


def test_an_interrupt_behind_the_call_makes_nothing_current(two: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = type(_plugins.get(two.type or ""))
    set_device = backend.set_device

    def interrupted(self: Any, index: int) -> None:
        set_device(self, index)
        if index == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(backend, "set_device", interrupted)
    with pytest.raises(KeyboardInterrupt):
        entered(1)
    assert accelerator.current_device_index() == 0


def test_the_context_of_nothing_does_nothing(place: Place) -> None:
    with accelerator.device_index(None), accelerator.device_index(-1):
        pass
    if place.count > 1:
        with accelerator.device_index(None):
            accelerator.set_device_index(1)
        assert accelerator.current_device_index() == 1


def test_each_thread_has_a_current_device(two: Place) -> None:
    found = []

    def work() -> None:
        found.append(accelerator.current_device_index())
        accelerator.set_device_index(0)

    accelerator.set_device_index(1)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [0]
    assert accelerator.current_device_index() == 1


def test_old_names_work_and_warn(place: Place) -> None:
    with pytest.warns(FutureWarning, match="use current_device_index"), place.needs():
        assert accelerator.current_device_idx() == accelerator.current_device_index()
    with pytest.warns(FutureWarning, match="use set_device_index"), place.needs():
        accelerator.set_device_idx(place.last)
    assert place.type is None or accelerator.current_device_index() == place.last


# -- what a device can do ------------------------------------------------------------------------------------


def test_supported_dtypes_can_be_allocated(here: Place) -> None:
    supported = accelerator.get_device_capability(here.last)["supported_dtypes"]
    assert {tensorplay.float32, tensorplay.float16, tensorplay.bool} <= supported
    for dtype in supported:
        assert tensorplay.zeros(2, dtype=dtype, device=here.spellings(here.last)[0]).dtype == dtype
    assert (tensorplay.complex64 in supported) is (here.type != "fake")


def test_a_device_is_asked_once_for_what_it_can(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = accelerator.get_device_capability()
    monkeypatch.setattr(type(_plugins.get(here.type or "")), "supported_dtypes", None)
    again = accelerator.get_device_capability(0)
    assert again == first
    again["supported_dtypes"].clear()  # the caller's own
    assert accelerator.get_device_capability() == first


def test_capability_needs_an_accelerator(place: Place) -> None:
    with place.needs():
        accelerator.get_device_capability()


def test_capability_of_devices_that_are_hidden_is_a_runtime_error_with_the_reason(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = type(_plugins.get(here.type or ""))
    monkeypatch.setattr(backend, "device_count", lambda self: 0)
    monkeypatch.setattr(backend, "unavailable_reason", lambda self: "all are hidden")
    with pytest.raises(BackendUnavailableError, match="^get_device_capability: all are hidden$"):
        accelerator.get_device_capability()


# -- what starts what ----------------------------------------------------------------------------------------


def test_import_loads_no_backend() -> None:
    program = "import sys, tensorplay.accelerator; print('tensorplay.cuda._backend' in sys.modules)"
    assert fresh.run(program) == "False\n"


def test_questions_and_waits_start_nothing() -> None:
    cuda = pytest.importorskip("tensorplay.cuda")
    if not cuda.is_available():
        pytest.skip("no CUDA device")
    program = """
        from tensorplay import accelerator, cuda
        assert accelerator.is_available()
        accelerator.synchronize()
        accelerator.get_device_capability()
        accelerator.memory_stats("cuda")
        accelerator.max_memory_reserved()
        accelerator.reset_peak_memory_stats()
        accelerator.empty_cache()
        accelerator.empty_host_cache()
        accelerator.random.manual_seed_all(3)
        accelerator.random.set_rng_state_all(accelerator.random.get_rng_state_all())
        with accelerator.random.fork_rng():
            accelerator.random.seed()
        print(accelerator.random.initial_seed(), cuda.is_initialized())
    """
    assert fresh.run(program, TENSORPLAY_ACCELERATOR=None) == "3 False\n"
