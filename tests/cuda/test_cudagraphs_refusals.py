"""Calls that the compiler backend refuses to capture, with a reason, and errors."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from helpers.managers import counts, vector

import tensorplay as tp
from tensorplay import cuda
from tensorplay.compiler.backends.cudagraphs import CudaGraphManager
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError
from tensorplay.testing import emulated

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")
needs_emulation = pytest.mark.usefixtures("emulated")


def test_what_cannot_be_captured_runs_with_a_reason() -> None:
    manager = CudaGraphManager(lambda x: x * x.sum().item())
    for value in (1.0, 2.0, 3.0):
        assert manager(vector(value, 1)).tolist() == [value * (value + 1), value + 1]
    assert counts(manager) == {"calls": 3, "warmups": 1, "eager": 2, "refusals": 1, "entries": 1}
    (reason,) = manager.refusals()
    assert "the stream is being captured" in reason


def test_a_refusal_raises_when_that_was_asked_for() -> None:
    manager = CudaGraphManager(lambda x: x.tolist(), fullgraph=True)
    assert manager(vector(1)) == [1]
    for _ in range(2):
        with pytest.raises(StateError, match=r"<lambda>: cannot be captured: copy_to_host: .* is being captured"):
            manager(vector(1))
    assert not cuda.is_current_stream_capturing()


class Opaque:
    """Nothing that could be compared."""


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (lambda x, y: x, lambda: (vector(1), Opaque()), "argument 1 is a Opaque, expected a tensor, a module"),
        (lambda x, y: x, lambda: (vector(1), tp.ones(1)), "the arguments lie on cpu, cuda:0, expected one CUDA device"),
        (lambda x: x + 1, lambda: (tp.ones(1),), "the arguments lie on cpu"),
        (lambda x: Opaque(), lambda: (vector(1),), "the result holds a Opaque, expected tensors, numbers and text"),
        (lambda x: (x, tp.ones(1)), lambda: (vector(1),), "the result holds a tensor on cpu, expected one on cuda:0"),
        (lambda x: x + 1, lambda: (tp.ones(4, device="cuda").unfold(0, 2, 1),), "elements of argument 0 share memory"),
    ],
    ids=["argument", "devices", "host", "result", "host-result", "overlapping"],
)
def test_what_is_refused(function: Callable[..., Any], arguments: Callable[[], Any], reason: str) -> None:
    manager = CudaGraphManager(function, warmup=0)
    for _ in range(2):
        assert type(manager(*arguments())) is type(function(*arguments()))
    assert counts(manager) == {"calls": 2, "eager": 2, "refusals": 1, "entries": 1}
    assert reason in manager.refusals()[0]
    with pytest.raises(StateError, match="cannot be captured"):
        CudaGraphManager(function, warmup=0, fullgraph=True)(*arguments())


def test_arguments_that_are_written_are_the_callers() -> None:
    manager = CudaGraphManager(lambda x, y, z: y[1:].add_(x) * 2)
    for _ in range(3):
        y = vector(1, 2, 3)
        assert manager(vector(10, 20), y, y).tolist() == [24, 46]
        assert y.tolist() == [1, 12, 23]
    assert manager.refusals() == ["argument 1 is written, and a graph would write its own copy of it"]
    assert counts(manager) == {"calls": 3, "warmups": 1, "eager": 2, "refusals": 1, "entries": 1}


def test_errors_of_the_function_pass_through() -> None:
    class OwnError(Exception):
        pass

    fails = False

    def function(x: tp.Tensor) -> tp.Tensor:
        if fails:
            raise OwnError("mine")
        return x + 1

    manager = CudaGraphManager(function)
    assert manager(vector(1)).item() == 2
    fails = True
    for _ in range(2):
        with pytest.raises(OwnError, match="mine"):
            manager(vector(1))
    assert manager.refusals() == ["OwnError: mine"]
    fails = False
    assert manager(vector(1)).item() == 2
    manager.clear()
    assert [manager(vector(value)).item() for value in (1, 2, 3)] == [2, 3, 4]
    assert manager.statistics()["captures"] == 1


def test_an_error_in_a_warm_up_does_not_count_as_one() -> None:
    manager = CudaGraphManager(lambda x: x.view(3))
    with pytest.raises(InvalidArgumentError, match="view"):
        manager(vector(1))
    assert counts(manager) == {"entries": 1}


def test_options_are_checked() -> None:
    with pytest.raises(DTypeError, match="got 3, expected a callable"):
        CudaGraphManager(3)  # type: ignore[arg-type]
    for name, value in (("warmup", -1), ("warmup", True), ("max_entries", 0), ("max_entries", 1.5)):
        with pytest.raises(InvalidArgumentError, match=rf"got {name}={value}, expected an integer >= \d"):
            CudaGraphManager(len, **{name: value})


@needs_emulation
def test_a_graph_that_cuda_does_not_make_is_a_refusal() -> None:
    manager = CudaGraphManager(lambda x: x + 1, warmup=0)
    with emulated.fail("cudaGraphInstantiate"):
        assert manager(vector(1)).item() == 2
    assert "cudaGraphInstantiate" in manager.refusals()[0]
    assert manager(vector(2)).item() == 3
    manager.clear()
    assert manager(vector(3)).item() == 4
    assert counts(manager) == {"calls": 3, "eager": 2, "refusals": 1, "captures": 1, "replays": 1, "entries": 1}


@needs_emulation
def test_no_memory_for_a_capture_is_a_refusal() -> None:
    manager = CudaGraphManager(lambda x: x + 1, warmup=0)
    x = tp.zeros(2**20, device="cuda")
    gc.collect()
    cuda.empty_cache()  # Else idle segments would make room.
    for _ in range(2):
        with emulated.capacity(cuda.memory_reserved() + 2**22):
            assert manager(x).sum().item() == 2**20
    assert manager.statistics()["eager"] == 2
    assert "memory" in manager.refusals()[0]
