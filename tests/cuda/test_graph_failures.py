"""Captures that fail: they say what broke them, and leave nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from helpers import fresh

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import AcceleratorError, OutOfMemoryError, StateError

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture(autouse=True)
def everything_returns() -> Iterator[None]:
    """Afterwards the stream is the one from before, nothing is captured, and no pool of a capture has memory."""
    gc.collect()
    cuda.empty_cache()
    reserved, stream = cuda.memory_reserved(), cuda.current_stream()
    yield
    assert cuda.current_stream() == stream
    assert not cuda.is_current_stream_capturing()
    gc.collect()  # An exception that a test looks at holds the test's own frame.
    cuda.empty_cache()
    assert cuda.memory_reserved() <= reserved


def check_capture(g: cuda.CUDAGraph) -> None:
    """The graph captures, and what it has captured is right."""
    x = tensorplay.zeros(5, device="cuda")
    with graphs.graph(g):
        y = x + 1
    for value in (2.0, -7.0):
        x.fill_(value)
        y.fill_(float("nan"))
        g.replay()
        assert y.tolist() == [value + 1] * 5
    del y
    g.reset()


# -- what broke it ----------------------------------------------------------------------------------


def ask_the_stream() -> None:
    cuda.current_stream().query()


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
    place = next(entry for entry in reversed(first.traceback) if str(entry.path) == __file__)
    assert caught.value.code == 901
    assert str(caught.value).startswith("capture_end: cudaErrorStreamCaptureInvalidated: ")
    assert f"stream {handle:#x} of cuda:0 was broken at {__file__}:{place.lineno + 1} by {operation}: " in str(
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


# -- what is left (R12) ------------------------------------------------------------------------------


def raise_an_error() -> None:
    raise KeyError("the program's own")


def copy_to_the_host() -> None:
    tensorplay.ones(5, device="cuda").cpu()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (raise_an_error, KeyError, "the program's own"),
        (copy_to_the_host, StateError, "copy_to_host: the stream is being captured"),
        (ask_the_stream, AcceleratorError, "stream_query: cudaErrorStreamCaptureUnsupported"),
    ],
)
def test_memory_of_a_failed_capture_comes_back(call: Callable[[], None], kind: type[Exception], text: str) -> None:
    reserved = cuda.memory_reserved()
    g = cuda.CUDAGraph()
    with pytest.raises(kind, match=text) as caught, graphs.graph(g):  # noqa: PT012
        captured = cuda.current_stream()
        kept = tensorplay.ones(2_000_000, device="cuda")
        call()
    assert not graphs.is_current_stream_capturing()
    assert cuda.memory_reserved() > reserved  # for as long as `kept` lives
    del kept, caught
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved
    for stream in (captured, cuda.default_stream()):
        with cuda.stream(stream):
            assert not graphs.is_current_stream_capturing()
            assert tensorplay.arange(5, device="cuda").sum().item() == 10
    check_capture(g)


def test_memory_that_runs_out_in_a_capture(small: None) -> None:
    g, reserved = cuda.CUDAGraph(), cuda.memory_reserved()
    with pytest.raises(OutOfMemoryError) as caught, graphs.graph(g):
        kept = [tensorplay.ones(1_000_000, device="cuda") for _ in range(100)]
    assert caught.value.is_capturing
    assert "kept" not in locals()
    del caught
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved
    check_capture(g)


def test_a_capture_goes_on_after_memory_ran_out(small: None) -> None:
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        with pytest.raises(OutOfMemoryError):
            tensorplay.ones(100_000_000, device="cuda")
        x = tensorplay.ones(5, device="cuda") + 1
    g.replay()
    assert x.tolist() == [2] * 5


# -- reset (R13) -------------------------------------------------------------------------------------


def test_reset_may_be_repeated_and_allows_another_capture() -> None:
    g = cuda.CUDAGraph()
    g.reset()
    with pytest.raises(StateError, match="replay: nothing was captured: capture something first"):
        g.replay()
    for _ in range(2):
        check_capture(g)
        g.reset()
        with pytest.raises(StateError, match="replay: nothing was captured"):
            g.replay()
        with pytest.raises(StateError, match="pool: nothing was captured"):
            g.pool()


def test_outputs_stay_readable_and_counted_until_they_are_dropped() -> None:
    g, before = cuda.CUDAGraph(), cuda.memory_allocated()
    with graphs.graph(g):
        x = tensorplay.full((1000,), 7.0, device="cuda")
    g.replay()
    with pytest.raises(StateError, match="1 blocks of 4096 bytes .* drop their tensors first"):
        g.reset()
    assert x.sum().item() == 7000
    del g
    gc.collect()
    assert x.sum().item() == 7000
    assert cuda.memory_allocated() == before + 4096
    del x
    assert cuda.memory_allocated() == before


# -- destruction at any moment (R15) -----------------------------------------------------------------


def test_anything_may_be_collected_in_a_capture() -> None:
    x = tensorplay.zeros(5, device="cuda")
    old = cuda.CUDAGraph()
    with graphs.graph(old):
        output = x + 3
    event = cuda.Event()
    event.record(cuda.Stream())
    pinned = tensorplay.ones(1000).pin_memory()
    copy = pinned.to("cuda", non_blocking=True)
    spent = cuda.CUDAGraph()
    with suppress(AcceleratorError), graphs.graph(spent):
        ask_the_stream()
    pool = graphs.graph_pool_handle()
    garbage = [old, output, event, pinned, copy, spent, pool, cuda.Stream(), tensorplay.ones(2_000_000, device="cuda")]
    garbage.append(garbage)
    del old, output, event, pinned, copy, spent, pool
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        y = x + 1
        captured = cuda.current_stream().record_event()
        inner = [captured, tensorplay.ones(1000, device="cuda")]
        inner.append(inner)
        del garbage, captured, inner
        assert gc.collect() > 0
        y = y * 2
        again = cuda.Event()  # may be the very event of CUDA's that was collected
        again.record()
        again.wait()
    g.replay()
    assert y.tolist() == [2] * 5


def test_broken_captures_leave_no_growth() -> None:
    x = tensorplay.zeros(5, device="cuda")

    def break_one(round_: int) -> None:
        g, side = cuda.CUDAGraph(), cuda.Stream()
        kept = []
        g.capture_begin(capture_error_mode="relaxed", stream=cuda.Stream())
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            kept.append(x + 1)
        with suppress(AcceleratorError):
            (ask_the_stream, side.synchronize, int)[round_ % 3]()
        with pytest.raises(AcceleratorError):
            g.capture_end()
        kept.append(g)
        kept.append(kept)

    def used() -> tuple[int, int]:
        gc.collect()
        cuda.empty_cache()
        return cuda.memory_reserved(), len(gc.get_objects())

    for round_ in range(3):
        break_one(round_)
    reserved, count = used()
    for round_ in range(200):
        break_one(round_)
    after = used()
    assert after[0] == reserved
    assert after[1] < count + 100
    check_capture(cuda.CUDAGraph())


@pytest.mark.parametrize("ending", ["", "cuda.current_stream().synchronize()", "g = None", "raise SystemExit(0)"])
def test_a_process_may_end_in_a_capture(ending: str) -> None:
    code = """
        import tensorplay
        from tensorplay import cuda
        x = tensorplay.zeros(5, device="cuda")
        g = cuda.CUDAGraph()
        g.capture_begin(stream=cuda.Stream())
        y = x + 1
        try:
            ENDING
        except cuda.AcceleratorError:
            pass
        print("done")
    """
    assert fresh.run(code.replace("ENDING", ending or "pass")) == ("" if "raise" in ending else "done\n")
