"""Streams and events."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import tensorplay as tp
from tensorplay import cuda
from tensorplay.errors import DTypeError
from tensorplay.testing import emulated as control


def test_default_stream_is_current_at_first(gpu: None) -> None:
    default = cuda.default_stream()
    assert cuda.current_stream() == default
    assert default.cuda_stream == 0
    assert default.device == tp.device("cuda:0")


def test_streams_are_equal_by_identity_of_the_stream(gpu: None) -> None:
    streams = [cuda.Stream() for _ in range(32)]
    assert len(set(streams)) == 32
    assert all(stream.cuda_stream for stream in streams)
    again = cuda.Stream()
    assert again == streams[0]
    assert hash(again) == hash(streams[0])
    assert again is not streams[0]
    assert again != streams[1]
    assert again != "a stream"


def test_streams_of_two_devices_differ(two_gpus: None) -> None:
    assert cuda.default_stream(0) != cuda.default_stream(1)
    assert cuda.Stream(1).device == tp.device("cuda:1")


@pytest.mark.parametrize("priority", [0, -1, -5, -100, 1, 100, -(2**80), 2**80])
def test_priority_is_clamped_and_told(gpu: None, priority: int) -> None:
    least, greatest = cuda.Stream(priority=10**6).priority, cuda.Stream(priority=-(10**6)).priority
    assert greatest <= least == 0
    assert cuda.Stream(priority=priority).priority == min(max(priority, greatest), least)


def test_priorities_are_those_of_every_device(two_gpus: None) -> None:
    for priority in (0, -1, -5, 100):
        assert cuda.Stream(1, priority).priority == cuda.Stream(0, priority).priority
    assert cuda.current_device() == 0


@pytest.mark.parametrize("priority", [True, 0.5, "high", None])
def test_priority_of_another_type_is_refused(gpu: None, priority: Any) -> None:
    with pytest.raises(DTypeError, match="priority"):
        cuda.Stream(priority=priority)


def test_stream_context_puts_back(gpu: None) -> None:
    stream, other = cuda.Stream(), cuda.Stream()
    with cuda.stream(stream):
        assert cuda.current_stream() == stream
        with cuda.stream(other):
            assert cuda.current_stream() == other
        with cuda.stream(None):
            assert cuda.current_stream() == stream
        assert cuda.current_stream() == stream
    assert cuda.current_stream() == cuda.default_stream()
    with pytest.raises(KeyError), cuda.StreamContext(stream):
        raise KeyError
    assert cuda.current_stream() == cuda.default_stream()


def test_a_stream_is_a_context_that_may_be_entered_twice(gpu: None) -> None:
    stream, other = cuda.Stream(), cuda.Stream()
    with stream as entered:
        assert entered is stream
        with other, stream:
            assert cuda.current_stream() == stream
        assert cuda.current_stream() == stream
    assert cuda.current_stream() == cuda.default_stream()
    with pytest.raises(KeyError), stream:
        raise KeyError
    assert cuda.current_stream() == cuda.default_stream()


def test_a_context_may_be_entered_again_in_its_block(gpu: None) -> None:
    stream, other = cuda.Stream(), cuda.Stream()
    context = cuda.stream(stream)
    with context, cuda.stream(other):
        with context:
            assert cuda.current_stream() == stream
        assert cuda.current_stream() == other
    assert cuda.current_stream() == cuda.default_stream()
    cuda.set_stream(other)
    context.__exit__(None, None, None)  # a second time
    assert cuda.current_stream() == other


def test_an_external_stream_by_its_other_name(gpu: None) -> None:
    stream = cuda.Stream()
    found = cuda.get_stream_from_external(stream.cuda_stream)
    assert isinstance(found, cuda.ExternalStream)
    assert found == stream


def test_an_external_stream_is_its_owners_to_destroy(emulated: None) -> None:
    stream = cuda.Stream()
    with control.calls() as calls:
        for _ in range(3):
            found = cuda.ExternalStream(stream.cuda_stream)
            with found, cuda.stream(found):
                tp.ones(3, device="cuda").record_stream(found)
            del found
            gc.collect()
        stream.synchronize()
    assert calls["cudaStreamDestroy"] == 0


def test_stream_context_of_another_device_puts_back_both(two_gpus: None) -> None:
    first, second, before = cuda.Stream(0), cuda.Stream(1), cuda.Stream(1)
    cuda.set_stream(before)
    cuda.set_stream(first)
    for failing in (False, True):
        try:
            with cuda.stream(second):
                assert cuda.current_device() == 1
                assert cuda.current_stream(1) == second
                assert cuda.current_stream(0) == first
                if failing:
                    raise KeyError
        except KeyError:
            pass
        assert cuda.current_device() == 0
        assert cuda.current_stream(0) == first
        assert cuda.current_stream(1) == before


def test_queries_leave_the_current_device(two_gpus: None) -> None:
    stream = cuda.default_stream(1)
    assert stream.query()
    stream.synchronize()
    assert cuda.current_device() == 0


def test_queries_ask_the_streams_own_device(two_gpus: None, emulated: None) -> None:
    x = tp.zeros(3, device="cuda:1")
    stream = cuda.default_stream(1)
    with control.hold(stream):
        x.add_(1)
        assert not stream.query()
        assert cuda.default_stream().query()
        cuda.default_stream().synchronize()
        assert not stream.query()
        stream.synchronize()
        assert stream.query()
    assert cuda.current_device() == 0


def test_set_stream_sets_the_device_too(two_gpus: None) -> None:
    stream = cuda.Stream(1)
    cuda.set_stream(stream)
    assert cuda.current_device() == 1
    assert cuda.current_stream() == stream
    cuda.set_stream(None)
    assert cuda.current_stream() == stream


@pytest.mark.smoke
def test_work_follows_the_current_stream(gpu: None) -> None:
    stream = cuda.Stream()
    with cuda.stream(stream):
        ones = tp.ones(1000, device="cuda")
        twos = ones + ones
    cuda.current_stream().wait_stream(stream)
    assert (twos + 1).sum().item() == 3000


@pytest.mark.smoke
def test_record_stream_keeps_memory_for_the_other_stream(emulated: None) -> None:
    cuda.empty_cache()
    first, second = cuda.Stream(), cuda.Stream()
    with cuda.stream(first):
        source = tp.full((1 << 16,), 7, device="cuda")
    second.wait_stream(first)
    with cuda.stream(second):
        copy = source.clone()
    source.record_stream(second)
    address = source.data_ptr()
    del source
    with cuda.stream(first):
        later = tp.full((1 << 16,), 9, device="cuda")
    assert later.data_ptr() != address
    second.synchronize()
    with cuda.stream(first):
        again = tp.empty((1 << 16,), dtype=tp.int64, device="cuda")
    assert again.data_ptr() == address
    assert copy.sum().item() == 7 << 16


def test_a_copy_to_the_host_is_complete_on_return(emulated: None) -> None:
    """Without non_blocking; with it, see test_pinned.py."""
    cuts = (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[0, 0], lambda x: x[3:], lambda x: x.half())
    with control.copy_delay(50), cuda.stream(cuda.Stream()):
        x = tp.zeros(3, 4, device="cuda")
        for number, cut in enumerate(cuts, start=1):
            x.copy_(tp.full((3, 4), number, dtype=tp.float32, device="cuda"))  # runs late
            arrived = cut(x).to("cpu")
            assert arrived.tolist() == cut(tp.full((3, 4), float(number))).tolist()


def test_representations_name_the_device(gpu: None) -> None:
    assert "cuda:0" in repr(cuda.Stream())
    assert "None" in repr(cuda.Event())


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("wait_event", lambda stream, event: stream.wait_event(stream)),
        ("wait_stream", lambda stream, event: stream.wait_stream(event)),
        ("record_event", lambda stream, event: stream.record_event(stream)),
        ("record", lambda stream, event: event.record(event)),
        ("wait", lambda stream, event: event.wait(3)),
        ("elapsed_time", lambda stream, event: event.elapsed_time(stream)),
        ("stream", lambda stream, event: cuda.stream(stream.cuda_stream)),
        ("set_stream", lambda stream, event: cuda.set_stream(event)),
        ("record_stream", lambda stream, event: tp.ones(1, device="cuda").record_stream(event)),
    ],
)
def test_another_object_than_a_stream_or_event_is_refused(gpu: None, name: str, call: Any) -> None:
    with pytest.raises(DTypeError, match=rf"^{name}: got \w+, expected a tensorplay\.cuda\.(Stream|Event)$"):
        call(cuda.Stream(), cuda.Event(enable_timing=True))
