"""What failed captures, and graphs that are reset or dropped, leave behind: nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress

import pytest
from helpers import fresh
from helpers.captures import ask_the_stream, check_capture

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import AcceleratorError, OutOfMemoryError, StateError
from tensorplay.testing import emulated as control

pytestmark = pytest.mark.usefixtures("nothing_stays")


# -- memory ------------------------------------------------------------------------------------


def raise_an_error() -> None:
    raise KeyError("the program's own")


def copy_to_the_host() -> None:
    tensorplay.ones(5, device="cuda").cpu()


def check_eager_work(captured: cuda.Stream) -> None:
    """Neither the stream that was captured nor the default one is in a capture, and both work."""
    for stream in (captured, cuda.default_stream()):
        with cuda.stream(stream):
            assert not graphs.is_current_stream_capturing()
            assert tensorplay.arange(5, device="cuda").sum().item() == 10


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
    check_eager_work(captured)
    check_capture(g)


def test_memory_that_runs_out_in_a_capture(small: int) -> None:
    g, reserved = cuda.CUDAGraph(), cuda.memory_reserved()
    with pytest.raises(OutOfMemoryError) as caught, graphs.graph(g):  # noqa: PT012
        captured = cuda.current_stream()
        kept = [tensorplay.ones(1_000_000, device="cuda") for _ in range(100)]
    assert caught.value.is_capturing
    assert "kept" not in locals()
    del caught
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved
    check_eager_work(captured)
    check_capture(g)


def test_a_capture_goes_on_after_memory_ran_out(small: int) -> None:
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        with pytest.raises(OutOfMemoryError):
            tensorplay.ones(100_000_000, device="cuda")
        x = tensorplay.ones(5, device="cuda") + 1
    g.replay()
    assert x.tolist() == [2] * 5


# -- reset -------------------------------------------------------------------------------------


def test_a_capture_in_which_cuda_did_not_tell_where_work_belongs_is_given_up(emulated: None) -> None:
    before = cuda.memory_allocated()
    for nth in range(1, 5):
        x, g = tensorplay.ones(100, device="cuda"), cuda.CUDAGraph()
        refusal = pytest.raises(StateError, match=r"did not tell .* \(cudaStreamGetCaptureInfo\).*: capture again")
        with refusal, cuda.graph(g), control.fail("cudaStreamGetCaptureInfo", nth):
            y = x + 1 + 2
        del y
        with cuda.graph(g):
            y = x + 1 + 2
        g.replay()
        assert y.tolist() == [4] * 100
        del x, y, g
    assert cuda.memory_allocated() == before


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


# -- destruction at any moment -----------------------------------------------------------------


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


@pytest.mark.parametrize("in_a_body", [False, True])
@pytest.mark.parametrize("device", [0, 1])
def test_a_capture_ends_where_its_device_cannot_be_made_current(
    two_gpus: None, emulated: None, device: int, in_a_body: bool
) -> None:
    g, stream, x = cuda.CUDAGraph(), cuda.Stream(device), tensorplay.zeros(3, device=f"cuda:{device}")
    predicate = tensorplay.full((), True, device=f"cuda:{device}")
    g.capture_begin(stream=stream)
    if in_a_body:
        g.begin_capture_to_if_node(predicate)
    x.add_(1)
    tensorplay.zeros(3, device=f"cuda:{1 - device}")  # now the other one is CUDA's current device
    with control.fail("cudaSetDevice"):
        del g
    cuda.set_stream(cuda.default_stream(device))
    cuda.set_device(0)
    g = cuda.CUDAGraph()
    with graphs.graph(g, stream=stream):
        x.add_(1)
    g.replay()
    assert x.tolist() == [1, 1, 1]


def test_graphs_of_a_device_that_is_lost_say_so_and_can_be_dropped(emulated: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        g, other = cuda.CUDAGraph(), cuda.CUDAGraph()
        x, y = tp.zeros(3_000_000, device="cuda"), tp.zeros(3, device="cuda")
        for graph, argument in ((g, x), (other, y)):
            with cuda.graph(graph):
                argument.add_(1)
        fresh, side = tp.ones(3, device="cuda"), cuda.Stream()
        del x, argument
        cuda.empty_cache()
        g.replay()
        for call in (
            cuda.synchronize, g.replay, other.replay, lambda: other.replay(side),
            lambda: other.stage_and_launch([y], [fresh]), lambda: cuda.CUDAGraph().capture_begin(stream=side),
            lambda: cuda.graph(cuda.CUDAGraph()).__enter__(),
        ):
            try:
                call()
            except cuda.AcceleratorError as error:
                print(error.operation, error.name)
        g.reset()
        del g, other
        assert cuda.current_stream() == cuda.default_stream()
    """
    operations = ["device_synchronize", *["replay"] * 3, "stage_and_launch", "capture_begin", "graph_prepare"]
    assert fresh.run(code).splitlines() == [f"{operation} cudaErrorIllegalAddress" for operation in operations]


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
