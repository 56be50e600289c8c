"""What conditional nodes refuse, and that bodies that fail harm nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers.captures import flag

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import (
    AcceleratorError,
    BackendUnavailableError,
    DTypeError,
    InvalidArgumentError,
    StateError,
)
from tensorplay.testing import emulated as control

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture(autouse=True)
def _nothing_stays(gpu: None) -> Iterator[None]:
    """Whatever has failed: no stream is captured, no memory is lost, work and captures go on."""
    gc.collect()
    before, stream = cuda.memory_allocated(), cuda.current_stream()
    yield
    gc.collect()
    assert cuda.current_stream() == stream
    assert not graphs.is_current_stream_capturing()
    assert cuda.memory_allocated() == before
    x, g = tp.zeros(3, device="cuda"), cuda.CUDAGraph()
    with graphs.graph(g), g.if_(flag()):
        x.add_(1)
        with g.if_(flag()):
            x.add_(1)
    g.replay()
    assert x.tolist() == [2, 2, 2]


BAD = [
    (lambda: tp.ones(1, device="cuda"), DTypeError, "got a predicate of 1 elements of float32 on cuda:0"),
    (lambda: flag().expand(2), InvalidArgumentError, "got a predicate of 2 elements of bool on cuda:0, expected one"),
    (lambda: tp.zeros(0, dtype=tp.bool, device="cuda"), InvalidArgumentError, "got a predicate of 0 elements of bool"),
    (lambda: tp.tensor(True), InvalidArgumentError, "got a predicate on cpu, expected one on the graph's device"),
    (lambda: True, DTypeError, "got True as the predicate, expected a tensor with one bool"),
]


@pytest.mark.parametrize(("make", "error", "text"), BAD)
def test_predicates_that_are_none_are_refused_and_break_nothing(
    make: Callable[[], Any], error: type[Exception], text: str
) -> None:
    x, g = tp.zeros(3, device="cuda"), cuda.CUDAGraph()
    with graphs.graph(g):
        for begin in (g.begin_capture_to_if_node, g.begin_capture_to_while_node):
            with pytest.raises(error, match=f"{begin.__name__}: {text}"):
                begin(make())
        with g.if_(flag()):
            with pytest.raises(error, match=f"set_conditional_handle_for_current_node: {text}"):
                g.set_conditional_handle_for_current_node(make())
            x.add_(1)
    g.replay()
    assert x.tolist() == [1, 1, 1]


def test_a_predicate_of_another_device_is_refused(two_gpus: None) -> None:
    there, g = tp.full((), True, device="cuda:1"), cuda.CUDAGraph()
    with graphs.graph(g):
        flag()
        with pytest.raises(InvalidArgumentError, match="bool on cuda:1, expected one bool on cuda:0"):
            g.begin_capture_to_if_node(there)


def test_bodies_stand_in_captures() -> None:
    g, predicate = cuda.CUDAGraph(), flag()
    for call in (
        lambda: g.begin_capture_to_if_node(predicate),
        lambda: g.begin_capture_to_while_node(predicate),
        lambda: g.set_conditional_handle_for_current_node(predicate),
        lambda: g.else_().__enter__(),
    ):
        with pytest.raises(StateError, match="no capture of this graph is underway: begin one first"):
            call()
    with graphs.graph(g):
        flag()
        for end in (
            g.end_capture_to_conditional_node,
            lambda: g.set_conditional_handle_for_current_node(predicate),
        ):
            with pytest.raises(StateError, match="no body of a conditional node is open: begin one first"):
                end()


def test_the_stream_takes_part_in_what_is_open_innermost() -> None:
    g, predicate, apart = cuda.CUDAGraph(), flag(), cuda.Stream()
    with graphs.graph(g):
        main = cuda.current_stream()
        with cuda.stream(apart), pytest.raises(StateError, match="the stream takes no part in the capture"):
            g.begin_capture_to_if_node(predicate)
        with g.if_(predicate):
            for stream in (main, apart):
                with cuda.stream(stream):
                    with pytest.raises(StateError, match="not the one that the innermost open body has begun with"):
                        g.begin_capture_to_if_node(predicate)
                    with pytest.raises(StateError, match="takes no part in the innermost open body"):
                        g.set_conditional_handle_for_current_node(predicate)


def test_a_while_that_cannot_end_is_refused() -> None:
    g, predicate, x = cuda.CUDAGraph(), flag(), tp.zeros(3, device="cuda")

    def loop() -> None:
        with graphs.graph(g), g.while_(predicate):
            x.add_(predicate)

    def loop_in_a_loop() -> None:
        with graphs.graph(g), g.while_(predicate), g.while_(flag()):
            predicate.fill_(False)

    for capture in (loop, loop_in_a_loop):
        with pytest.raises(StateError, match=r"would never end: .* the predicate, or to call set_conditional_handle"):
            capture()
        with pytest.raises(StateError, match="replay: nothing was captured"):
            g.replay()


def test_else_stands_directly_behind_its_if(with_else: None) -> None:
    g, predicate, x, side = cuda.CUDAGraph(), flag(), tp.zeros(3, device="cuda"), cuda.Stream()

    def refused() -> None:
        with pytest.raises(StateError, match="else_: the stream's last work is no if node"), g.else_():
            raise AssertionError

    with graphs.graph(g):
        main = cuda.current_stream()
        refused()
        with g.if_(predicate):
            refused()
            with g.if_(predicate):
                x.add_(1)
            x.add_(1)
            refused()
        side.wait_stream(main)
        with cuda.stream(side):
            refused()
            x.mul_(2)
            refused()
        with g.else_():
            x.add_(10)
        refused()
        with g.while_(predicate):
            predicate.fill_(False)
        refused()
        main.wait_stream(side)
        with g.if_(predicate):
            pass
        x.add_(100)
        refused()


def test_else_needs_a_new_driver(emulated: None) -> None:
    g = cuda.CUDAGraph()
    with control.fail("cudaDriverGetVersion"), graphs.graph(g):
        with g.if_(flag()):
            pass
        with pytest.raises(BackendUnavailableError, match="no second body before CUDA 12.8"), g.else_():
            raise AssertionError
    g.replay()


def test_a_body_that_is_open_at_the_end_is_named() -> None:
    g, predicate = cuda.CUDAGraph(), flag()
    stream = cuda.current_stream()
    g.capture_begin(stream=cuda.Stream())
    g.begin_capture_to_if_node(predicate)
    g.begin_capture_to_if_node(predicate)
    with pytest.raises(StateError, match=r"capture_end: a body .* is open: end_capture_to_conditional_node\(\) comes"):
        g.capture_end()
    assert cuda.current_stream() == stream
    g.reset()


def test_exceptions_pass_through_bodies_unchanged() -> None:
    g, x, mistake = cuda.CUDAGraph(), tp.zeros(1000, device="cuda"), KeyError("mine")
    seen = []

    def capture() -> None:
        with graphs.graph(g):
            seen.append(cuda.current_stream())
            try:
                with g.if_(flag()):
                    seen.append(cuda.current_stream())
                    y = x + 1
                    with g.while_(flag()):
                        y.add_(1)
                        raise mistake
            finally:
                seen.append(cuda.current_stream())

    with pytest.raises(KeyError) as found:
        capture()
    assert found.value is mistake
    assert seen[0] == seen[2] != seen[1]
    assert found.value.__context__ is None


def test_an_exception_that_is_passed_over_breaks_the_graph() -> None:
    g, x = cuda.CUDAGraph(), tp.zeros(3, device="cuda")
    g.capture_begin(stream=cuda.Stream())
    with g.if_(flag()):
        try:
            with g.if_(flag()):
                raise KeyError
        except KeyError:
            x.add_(1)
        with pytest.raises(StateError, match="a body in this capture has failed: end the capture"):
            g.begin_capture_to_if_node(flag())
    x.add_(1)
    with pytest.raises(StateError, match="capture_end: a body .* has failed: an exception left it"):
        g.capture_end()
    assert x.tolist() == [0, 0, 0]


def test_what_is_forbidden_in_a_body_is_named_at_its_end() -> None:
    g, x, side, outside = cuda.CUDAGraph(), tp.zeros(3, device="cuda"), cuda.Stream(), cuda.Stream()

    def waits() -> None:
        with pytest.raises(AcceleratorError):
            cuda.current_stream().synchronize()

    def does_not_join() -> None:
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            x.add_(1)

    def records() -> None:
        cuda.Event(external=True).record()

    def waits_for() -> None:
        event = cuda.Event(external=True)
        with cuda.stream(cuda.default_stream()):
            event.record()
        event.wait()

    expected = {
        waits: "cudaErrorStreamCaptureInvalidated.* was broken .*by stream_synchronize: cudaErrorStreamCapture",
        does_not_join: f"cudaErrorStreamCaptureUnjoined.*not joined: stream {side.cuda_stream:#x}",
        records: "the body records an external event: CUDA takes kernels, copies and fills there",
        waits_for: "the body waits for an external event: CUDA takes kernels, copies and fills there",
    }
    for body, text in expected.items():
        g.capture_begin(stream=outside, capture_error_mode="thread_local")
        g.begin_capture_to_if_node(flag())
        x.mul_(2)
        body()
        with pytest.raises((StateError, AcceleratorError), match=f"end_capture_to_conditional_node: .*{text}"):
            g.end_capture_to_conditional_node()
        text = f"capture_end: a body of a conditional node has failed: end_capture_to_conditional_node: .*{text}"
        with pytest.raises(StateError, match=text):
            g.capture_end()
        assert not graphs.is_current_stream_capturing()
    assert x.tolist() == [0, 0, 0]


def test_waits_across_the_border_of_a_body_are_refused_and_break_nothing() -> None:
    g, x, side, apart = cuda.CUDAGraph(), tp.zeros(3, device="cuda"), cuda.Stream(), cuda.Stream()
    across = r"stream_wait_{}: nothing waits across the border of a conditional node's body: the body begins behind all"
    ended = r"{}: the event was recorded in a capture, or in a part of a body, that has ended"

    def refused(text: str, call: Callable[..., Any], *arguments: Any) -> None:
        with pytest.raises(StateError, match=text):
            call(*arguments)

    with graphs.graph(g):
        outside = cuda.current_stream()
        before = outside.record_event()
        with g.if_(flag()):
            inside = cuda.current_stream()
            first = inside.record_event()
            refused(across.format("event"), inside.wait_event, before)
            refused(across.format("event"), outside.wait_event, first)
            refused(across.format("stream"), inside.wait_stream, outside)
            refused(across.format("stream"), outside.wait_stream, inside)
            with g.while_(flag()):
                nested = cuda.current_stream()
                refused(across.format("event"), nested.wait_event, first)
                refused(across.format("event"), nested.wait_event, before)
                g.set_conditional_handle_for_current_node(flag(False))
            for stream in (inside, side):
                refused(ended.format("stream_wait_event"), stream.wait_event, first)
            side.wait_stream(inside)
            with cuda.stream(side):
                x.add_(1)
            inside.wait_stream(side)
            last = inside.record_event()
        for stream in (outside, side):
            refused(ended.format("stream_wait_event"), stream.wait_event, last)
        x.add_(10)
    for event in (before, first, last):
        refused(ended.format("stream_wait_event"), apart.wait_event, event)
        refused(ended.format("event_query"), event.query)
        refused(ended.format("event_synchronize"), event.synchronize)
        event.record()
        apart.wait_event(event)
        event.synchronize()
    g.replay()
    assert x.tolist() == [11, 11, 11]


def test_a_graph_may_be_dropped_in_its_own_body() -> None:
    g, stream = cuda.CUDAGraph(), cuda.current_stream()
    g.capture_begin(stream=cuda.Stream())
    g.begin_capture_to_if_node(flag())
    g.begin_capture_to_if_node(flag())
    inside = cuda.current_stream()
    del g
    gc.collect()
    cuda.set_stream(stream)
    with cuda.stream(inside):
        assert not graphs.is_current_stream_capturing()
