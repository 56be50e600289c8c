"""Streams through the facade."""

from __future__ import annotations

import threading

import pytest

import tensorplay
from tensorplay import accelerator
from tensorplay.errors import BackendUnavailableError, DTypeError

from .conftest import Place


def test_a_stream_is_made_current_and_its_device_too(two: Place) -> None:
    first = accelerator.current_stream()
    stream = two.new_stream(1)
    accelerator.set_stream(stream)
    assert accelerator.current_device_index() == 1
    for device in (None, 1, two.type, *two.spellings(1)):
        assert accelerator.current_stream(device) == stream
    assert accelerator.current_stream(1).device == tensorplay.device(two.type or "", 1)
    assert accelerator.current_stream(0) == first != stream


def test_streams_have_what_the_protocol_says(here: Place) -> None:
    first, stream = accelerator.current_stream(), here.new_stream()
    accelerator.set_stream(stream)
    x = tensorplay.ones(100, device=here.type).add_(1)
    first.wait_stream(stream)
    accelerator.set_stream(first)
    x.add_(1)
    first.synchronize()
    assert first.query()
    assert x.tolist() == [3] * 100
    assert len({first, accelerator.current_stream(0)}) == 1


def test_each_thread_has_current_streams(here: Place) -> None:
    first, found = accelerator.current_stream(), []
    accelerator.set_stream(here.new_stream())
    thread = threading.Thread(target=lambda: found.append(accelerator.current_stream()))
    thread.start()
    thread.join()
    assert found == [first]


def test_waiting_for_a_device_waits_for_its_work(here: Place) -> None:
    stream = here.new_stream()
    accelerator.set_stream(stream)
    x = tensorplay.ones(10_000, device=here.type).mul_(2)
    accelerator.synchronize()
    assert stream.query()
    assert x.sum().item() == 20_000


def test_streams_need_an_accelerator(place: Place) -> None:
    with place.needs():
        accelerator.set_stream(accelerator.current_stream())
    with place.needs():
        accelerator.synchronize()


@pytest.mark.parametrize("stream", [0, "stream", object()])
def test_what_is_no_stream_is_refused(here: Place, stream: object) -> None:
    before = accelerator.current_stream()
    with pytest.raises(DTypeError, match="set_stream: got "):
        accelerator.set_stream(stream)
    assert accelerator.current_stream() == before


def test_a_backend_without_streams_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    host = tensorplay.zeros(1)._backend
    monkeypatch.setattr("tensorplay._plugins.accelerator", lambda: host)
    for call in (accelerator.current_stream, lambda: accelerator.set_stream(None)):
        with pytest.raises(BackendUnavailableError, match="the backend of type 'cpu' has no streams"):
            call()
    accelerator.synchronize("cpu")
