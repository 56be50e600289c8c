"""Captures that fail: the call that broke them is named, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from helpers.captures import ask_the_stream, check_capture

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import AcceleratorError

pytestmark = pytest.mark.usefixtures("nothing_stays")


def wait_for_the_stream() -> None:
    cuda.current_stream().synchronize()


def ask_a_captured_event() -> None:
    cuda.current_stream().record_event().query()


def wait_for_other_work() -> None:
    cuda.Stream().record_event().wait()


def let_the_default_stream_wait() -> None:
    cuda.default_stream().wait_stream(cuda.current_stream())


def merge_two_captures() -> None:
    other = cuda.CUDAGraph()
    captured = cuda.current_stream()
    other.capture_begin(stream=cuda.Stream(), capture_error_mode="relaxed")
    try:
        cuda.current_stream().wait_stream(captured)
    finally:
        with suppress(AcceleratorError):
            other.capture_end()


BREAKING = [
    (cuda.synchronize, 900, "device_synchronize", "nothing may wait for it or ask how far it is"),
    (wait_for_the_stream, 900, "stream_synchronize", "before the capture begins or after its end"),
    (ask_the_stream, 900, "stream_query", "nothing may wait for it or ask how far it is"),
    (merge_two_captures, 902, "stream_wait_stream", "different captures: end one of them first"),
    (wait_for_other_work, 905, "stream_wait_event", "wait for that work before the capture begins, or capture it too"),
    (let_the_default_stream_wait, 906, "stream_wait_stream", "give this work another stream"),
    (ask_a_captured_event, 907, "event_query", "record an event made with external=True"),
]
OWN = tuple(tensorplay.__path__)
IDS = [call.__name__ for call, *_ in BREAKING]


@pytest.mark.parametrize(("call", "code", "operation", "advice"), BREAKING, ids=IDS)
def test_the_call_that_breaks_a_capture_says_so(
    call: Callable[[], None], code: int, operation: str, advice: str
) -> None:
    g, raised, handle = cuda.CUDAGraph(), None, 0
    try:
        with graphs.graph(g):
            handle = cuda.current_stream().cuda_stream
            try:
                call()
            except AcceleratorError as error:
                raised = error
                raise
    except AcceleratorError as error:
        assert error is raised
        assert (error.code, error.operation) == (code, operation)
        assert advice in str(error)
        assert f"the capture that began on stream {handle:#x} of cuda:0 is broken by it" in str(error)
    assert raised is not None
    del raised
    check_capture(g)


@pytest.mark.parametrize(("call", "code", "operation", "advice"), BREAKING, ids=IDS)
def test_the_end_names_the_call_that_the_program_passed_over(
    call: Callable[[], None], code: int, operation: str, advice: str
) -> None:
    g, x, handle = cuda.CUDAGraph(), tensorplay.zeros(5, device="cuda"), 0
    with pytest.raises(AcceleratorError) as caught, graphs.graph(g):  # noqa: PT012 - the block's end is what raises
        handle = cuda.current_stream().cuda_stream
        with pytest.raises(AcceleratorError) as first:
            call()
        with pytest.raises(AcceleratorError, match=f"^add: cudaErrorStreamCaptureInvalidated: .* by {operation}: "):
            _ = x + 1
        with suppress(AcceleratorError):
            cuda.current_stream().synchronize()
    place = next(entry for entry in reversed(first.traceback) if not str(entry.path).startswith(OWN))
    assert caught.value.code == 901
    assert str(caught.value).startswith("capture_end: cudaErrorStreamCaptureInvalidated: ")
    assert f"stream {handle:#x} of cuda:0 was broken at {place.path}:{place.lineno + 1} by {operation}: " in str(
        caught.value
    )
    assert advice in str(caught.value)
    del caught, first, place
    check_capture(g)


def test_streams_that_were_not_joined_are_named() -> None:
    g, x = cuda.CUDAGraph(), tensorplay.zeros(5, device="cuda")
    joined, loose = cuda.Stream(), cuda.Stream()
    with pytest.raises(AcceleratorError) as caught, graphs.graph(g):  # noqa: PT012
        for side in (joined, loose):
            side.wait_stream(cuda.current_stream())
            with cuda.stream(side):
                x.add_(1)
        cuda.current_stream().wait_stream(joined)
    assert caught.value.code == 904
    assert "has to wait_stream() for every other one that took part" in str(caught.value)
    assert str(caught.value).endswith(f"; not joined: stream {loose.cuda_stream:#x} of cuda:0")
    for stream in (joined, loose):
        with cuda.stream(stream):
            assert (x + 1).tolist() == [1] * 5
    check_capture(g)


def test_a_failed_beginning_puts_the_stream_back(emulated: None) -> None:
    from tensorplay.testing import emulated as control

    g, before = cuda.CUDAGraph(), cuda.current_stream()
    for stream in (None, cuda.Stream()):
        with control.fail("cudaStreamBeginCapture"), pytest.raises(AcceleratorError, match="cudaStreamBeginCapture"):
            graphs.graph(g, stream=stream).__enter__()
        assert cuda.current_stream() == before
    check_capture(g)


def test_a_graph_that_cuda_does_not_compile(emulated: None) -> None:
    from tensorplay.testing import emulated as control

    g, x = cuda.CUDAGraph(), tensorplay.zeros(5, device="cuda")
    with (
        control.fail("cudaGraphInstantiate"),
        pytest.raises(AcceleratorError, match=r"capture_end: .*\(in cudaGraphInstantiate\)"),
        graphs.graph(g),
    ):
        x.add_(1)
    check_capture(g)
