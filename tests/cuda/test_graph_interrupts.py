"""A signal's handler that raises, wherever Python lets it, leaves no capture open, no stream current, no pool in use.

Python runs handlers when it enters a function of its own, and behind each call of C. Both are events of a profiler,
which raises here in their place, in one after the other. Only what comes before the first line of an ``__exit__`` is
left out: Python then has not begun it, and of captures alone the object's end takes care.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from helpers.captures import check_capture, flag

import tensorplay as tp
from tensorplay import cuda
from tensorplay.compiler.backends.cudagraphs import CudaGraphManager
from tensorplay.cuda import graphs

pytestmark = pytest.mark.usefixtures("nothing_stays")

FILES = {
    *("_capture.py", "_conditional.py", "_current.py", "_graph.py", "_graphed.py", "_mempool.py"),
    *("cudagraphs.py", "device.py", "streams.py"),
}


#: What they return is lost where a handler raises before it has a name, and only the process's end frees it.
MAKERS = ("tp_graph_create", "tp_graph_mempool", "tp_mempool_create", "tp_mempool_find")


class Interrupts:
    """Raises a KeyboardInterrupt in the n-th event of the program inside of these files; 0 only counts."""

    def __init__(self, nth: int) -> None:
        self.nth, self.count, self.place = nth, 0, ""

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        name, path = frame.f_code.co_name, Path(frame.f_code.co_filename)
        if "tensorplay" not in path.parts or path.name not in FILES or name == "__del__":
            return
        if event == "call":
            out_of_reach = name == "__exit__" and path.name not in ("_capture.py", "_conditional.py")
            out_of_reach |= bool(frame.f_code.co_flags & CO_GENERATOR)  # Python 3.10 would not go on with one
            counts = not out_of_reach and (path.name, name) != ("_mempool.py", "__init__")
        else:
            counts = event == "c_return" and function.__name__ not in MAKERS
        if counts:
            self.count += 1
            if self.count == self.nth:
                sys.setprofile(None)
                self.place = f"{event} in {path}:{frame.f_lineno}, {name}"
                raise KeyboardInterrupt


@contextmanager
def raised_at(nth: int) -> Iterator[Interrupts]:
    interrupts = Interrupts(nth)
    sys.setprofile(interrupts)
    try:
        yield interrupts
    finally:
        sys.setprofile(None)


def by_hand() -> None:
    g, x, side, entered = cuda.CUDAGraph(), tp.zeros(100, device="cuda"), cuda.Stream(), cuda.Stream()
    with cuda.device(0), entered, cuda.use_mem_pool(cuda.MemPool()), graphs.graph(g):
        y = x + 1
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            z = x + 2
        cuda.current_stream().wait_stream(side)
        with g.if_(flag()):
            y.add_(z)
            with g.while_(flag()):
                g.set_conditional_handle_for_current_node(flag(False))
    g.replay()
    other = cuda.CUDAGraph()
    with graphs.graph(other, pool=g, stream=side):
        x.add_(1)


def callables() -> None:
    first = cuda.make_graphed_callables(lambda a: a + 1, (tp.zeros(3, device="cuda"),), num_warmup_iters=1)
    first(tp.ones(3, device="cuda"))


def compiled() -> None:
    function = CudaGraphManager(lambda a: a + 1)
    for stream in (cuda.Stream(), cuda.Stream(), cuda.Stream()):
        with cuda.stream(stream):
            function(tp.ones(3, device="cuda"))
    cuda.synchronize()


@pytest.mark.parametrize("program", [by_hand, callables, compiled], ids=lambda program: program.__name__)
def test_an_interrupt_at_any_place_leaves_nothing(program: Callable[[], None]) -> None:
    program()
    with raised_at(0) as counted:
        program()
    assert counted.count > 30
    gc.collect()
    gc.freeze()  # Each capture collects garbage: now only its own.
    before = cuda.memory_allocated(), cuda.current_stream(), cuda.current_device()
    try:
        for nth in range(1, counted.count + 1):
            with raised_at(nth) as interrupts:
                try:
                    program()
                except KeyboardInterrupt:
                    pass
            assert interrupts.place, nth
            gc.collect()
            assert (cuda.memory_allocated(), cuda.current_stream(), cuda.current_device()) == before, interrupts.place
            check_capture(cuda.CUDAGraph())
            assert (cuda.memory_allocated(), cuda.current_stream(), cuda.current_device()) == before, interrupts.place
    finally:
        gc.unfreeze()


def raise_at(place: tuple[str, str, str]) -> Callable[[FrameType, str, Any], None]:
    """A profiler that raises once, at an event of a function, of C or in a file."""

    def profile(frame: FrameType, event: str, function: Any) -> None:
        name = getattr(function, "__name__", None) or frame.f_code.co_name
        if (event, name, Path(frame.f_code.co_filename).name) == place:
            sys.setprofile(None)
            raise KeyboardInterrupt

    return profile


def interrupted(g: cuda.CUDAGraph, place: tuple[str, str, str], *, with_body: bool = False) -> KeyboardInterrupt:
    """The interrupt of a capture, with its traceback."""
    predicate = flag()
    try:
        sys.setprofile(raise_at(place))
        with graphs.graph(g):
            if with_body:
                g.begin_capture_to_if_node(predicate)
            tp.zeros(3, device="cuda")
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        sys.setprofile(None)
    raise AssertionError("nothing was interrupted")


def test_what_keeps_an_interrupt_does_not_end_a_later_capture_of_the_graph() -> None:
    g, x = cuda.CUDAGraph(), tp.zeros(3, device="cuda")
    kept: list[Any] = [interrupted(g, ("c_return", "tp_graph_capture_begin", "_graph.py"))]
    with graphs.graph(g):
        kept.clear()  # as sys.last_value goes when another error comes
        gc.collect()
        assert cuda.is_current_stream_capturing()
        x.add_(1)
    g.replay()
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("with_body", [False, True])
def test_an_interrupt_before_the_end_of_a_capture_leaves_its_stream(with_body: bool) -> None:
    before = cuda.current_stream()
    interrupted(cuda.CUDAGraph(), ("call", "__exit__", "_capture.py"), with_body=with_body)
    gc.collect()
    assert cuda.current_stream() == before
    check_capture(cuda.CUDAGraph())
