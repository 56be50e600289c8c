"""Sync debug mode: every call that waits is told of, at the program's line, or refused."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import cuda
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError
from tensorplay.testing import emulated as control


@pytest.fixture(autouse=True)
def default_mode(pinned: None) -> Iterator[None]:
    yield
    cuda.set_sync_debug_mode("default")


def recorded() -> cuda.Event:
    return cuda.current_stream().record_event()


WAITS: dict[str, Callable[[tp.Tensor], Any]] = {
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "from_host": lambda x: tp.tensor([1.0], device="cuda"),
    "to_device": lambda x: tp.ones(3).to("cuda"),
    "non_blocking_from_pageable": lambda x: tp.ones(3).to("cuda", non_blocking=True),
    "copy_from_host": lambda x: x.copy_(tp.ones(3)),
    "copy_to_host": lambda x: tp.ones(3).copy_(x),
    "repr": repr,
    "iteration": lambda x: [value.item() for value in x[:1]],
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: tp.unique(x),
    "equal": lambda x: x.equal(x),
    "mask": lambda x: x[x > 0],
    "bool": lambda x: bool(x[0]),
    "float": lambda x: float(x[0]),
    "masked_select": lambda x: tp.masked_select(x, x > 0),
    "pickle": pickle.dumps,
    "dlpack_of_the_host": lambda x: np.from_dlpack(x, device="cpu"),
    "device": lambda x: cuda.synchronize(),
    "stream": lambda x: cuda.current_stream().synchronize(),
    "event": lambda x: recorded().synchronize(),
}
NONE: dict[str, Callable[[tp.Tensor], Any]] = {
    "add": lambda x: x + 1,
    "zeros": lambda x: tp.zeros(3, device="cuda"),
    "query": lambda x: (cuda.current_stream().query(), recorded().query()),
    "wait_stream": lambda x: cuda.Stream().wait_stream(cuda.current_stream()),
    "clone": lambda x: x.clone(),
    "never_recorded": lambda x: cuda.Event().synchronize(),
    "statistics": lambda x: cuda.memory_stats(),
    "pinned_to_device": lambda x: tp.ones(3).pin_memory().to("cuda", non_blocking=True),
    "to_pinned": lambda x: x.to("cpu", non_blocking=True),
    "sums and products": lambda x: (x.view(1, 3) @ x.view(3, 1)).sum(),
    "sort": lambda x: x.sort(),
    "random": lambda x: tp.multinomial(x, 2),
    "index": lambda x: x[x.long()],
    "seed": lambda x: cuda.manual_seed(1),
    "snapshot": lambda x: cuda.memory_snapshot(),
}
# What waits in CUDA.
WAITING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaFree", "cudaFreeHost")


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_is_refused_or_told_of_once_at_the_programs_line(name: str) -> None:
    cuda.empty_cache()  # to give some back is one more wait
    x = tp.ones(3, device="cuda")
    cuda.set_sync_debug_mode("error")
    with pytest.raises(StateError, match="would wait for the device"):
        WAITS[name](x)
    cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WAITS[name](x)
    assert [(warning.category, warning.filename) for warning in caught] == [(UserWarning, __file__)]
    assert str(caught[0].message).endswith(": waits for the device")
    cuda.set_sync_debug_mode("default")
    WAITS[name](x)


@pytest.mark.parametrize("name", NONE)
def test_what_does_not_wait_is_not_refused(name: str) -> None:
    x = tp.ones(3, device="cuda")
    cuda.set_sync_debug_mode("error")
    NONE[name](x)


@pytest.mark.parametrize("name", NONE)
def test_what_is_not_refused_does_not_wait(name: str, emulated: None) -> None:
    x = tp.ones(3, device="cuda")
    NONE[name](x)  # The first call may load kernels.
    with control.calls() as calls:
        NONE[name](x)
    assert [call for call in WAITING if calls[call]] == []


def test_empty_cache_waits_when_it_has_memory_to_release() -> None:
    cuda.empty_cache()
    cuda.set_sync_debug_mode("error")
    cuda.empty_cache()
    x = tp.ones(2**20, device="cuda")
    cuda.empty_cache()
    del x
    with pytest.raises(StateError, match="memory_empty_cache"):
        cuda.empty_cache()
    cuda.set_sync_debug_mode("default")
    cuda.empty_cache()


def test_a_capture_waits_before_it_begins() -> None:
    x, graph = tp.ones(3, device="cuda"), cuda.CUDAGraph()
    cuda.set_sync_debug_mode("error")
    with pytest.raises(StateError, match="would wait for the device"), cuda.graph(graph):
        x.add_(1)
    assert not cuda.graphs.is_current_stream_capturing()
    cuda.set_sync_debug_mode("default")
    with cuda.graph(graph):
        x.add_(1)
    cuda.set_sync_debug_mode("error")
    graph.replay()
    cuda.set_sync_debug_mode("default")
    assert x.tolist() == [2] * 3


def test_empty_host_cache_waits_for_copies(emulated: None) -> None:
    side = cuda.Stream()
    with control.hold(side), cuda.stream(side):
        x = tp.ones(3, device="cuda")
        x.copy_(tp.ones(3).pin_memory(), non_blocking=True)
        cuda.set_sync_debug_mode("error")
        with pytest.raises(StateError, match="empty_host_cache"):
            cuda.empty_host_cache()
        cuda.set_sync_debug_mode("default")
        cuda.empty_host_cache()
    assert cuda.host_memory_stats()["allocations.current"] == 0


def test_empty_host_cache_waits_when_it_has_memory_to_release() -> None:
    cuda.set_sync_debug_mode("error")
    cuda.empty_host_cache()
    tp.empty(5, pin_memory=True, device="cpu")
    with pytest.raises(StateError, match="empty_host_cache"):
        cuda.empty_host_cache()
    cuda.set_sync_debug_mode("default")
    cuda.empty_host_cache()


def test_pinned_memory_waits_when_the_host_is_short(emulated: None) -> None:
    def use(*, cached: bool) -> None:
        cuda.set_sync_debug_mode("default")
        cuda.empty_host_cache()
        if cached:
            tp.empty(5, pin_memory=True)
        cuda.set_sync_debug_mode(mode)
        with control.fail("cudaHostAlloc", error="cudaErrorMemoryAllocation"):
            tp.empty(7 * 2**20, dtype=tp.uint8, pin_memory=True)

    mode = "error"
    use(cached=False)
    with pytest.raises(StateError, match="pin_memory: would wait"):
        use(cached=True)
    assert cuda.host_memory_stats()["allocations.current"] == 1
    mode = "warn"
    with pytest.warns(UserWarning, match="pin_memory: waits for the device"):
        use(cached=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StateError, match="pin_memory: would wait"):
            use(cached=True)


def test_an_allocation_waits_when_memory_is_short(small: int) -> None:
    side = cuda.Stream()

    def use() -> None:
        used = tp.zeros(40 * 2**20, dtype=tp.uint8, device="cuda")
        used.record_stream(side)

    with control.hold(side):
        with cuda.stream(side):
            busy = tp.ones(1000, device="cuda")
            busy.add_(1)
        use()
        cuda.set_sync_debug_mode("error")
        before = cuda.memory_allocated()
        with pytest.raises(StateError, match="allocate"):
            tp.empty(48 * 2**20, dtype=tp.uint8, device="cuda")
        assert cuda.memory_allocated() == before
        cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="allocate: waits for the device"):
            tp.empty(48 * 2**20, dtype=tp.uint8, device="cuda")
    cuda.set_sync_debug_mode("default")


def test_a_warning_that_a_filter_makes_an_error_refuses() -> None:
    x = tp.ones(3, device="cuda")
    cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StateError, match="copy_to_host"):
            x.cpu()


def test_the_mode_is_a_name_or_a_number() -> None:
    for mode, number in {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}.items():
        cuda.set_sync_debug_mode(mode)
        assert cuda.get_sync_debug_mode() == number
    for wrong in (3, -1, "loud"):
        with pytest.raises(InvalidArgumentError, match="set_sync_debug_mode"):
            cuda.set_sync_debug_mode(wrong)
    for other in (True, None, 1.0):
        with pytest.raises(DTypeError, match="set_sync_debug_mode"):
            cuda.set_sync_debug_mode(other)
    assert cuda.get_sync_debug_mode() == 2


def test_a_mode_that_was_set_before_first_use_holds_and_ends_with_the_process() -> None:
    code = """
        import tensorplay as tp, warnings, threading, time
        tp.cuda.set_sync_debug_mode("warn")
        assert not tp.cuda.is_initialized()
        x = tp.ones(3, device="cuda")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x.cpu()
        print(len(caught), caught[0].lineno)
        warnings.simplefilter("ignore")
        def work():
            while True: x.cpu()
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
    """
    assert fresh.run(code) == "1 8\n"


LAUNCH = """
    import tensorplay as tp
    table = tp.ones(4, 2, device="cuda")
    index = tp.full((3,), 9, dtype=tp.int64, device="cuda")
    for step in ("guilty", "innocent", "waits"):
        try:
            if step == "guilty": table.index_select(0, index)
            elif step == "innocent": table + 1
            else: tp.cuda.synchronize()
        except tp.errors.OutOfRangeError as error:
            print(step, error)
"""


def test_launch_blocking_reports_at_the_guilty_call() -> None:
    text = "index_select: index 9 is out of range for a dimension of size 4 on cuda:0\n"
    assert fresh.run(LAUNCH, TENSORPLAY_LAUNCH_BLOCKING="1") == f"guilty {text}"
    assert fresh.run(LAUNCH, TENSORPLAY_LAUNCH_BLOCKING=None) == f"waits {text}"
    for off in ("0", ""):
        assert fresh.run(LAUNCH, TENSORPLAY_LAUNCH_BLOCKING=off) == f"waits {text}"
    refusal = "TENSORPLAY_LAUNCH_BLOCKING cannot be obeyed: got 'yes', expected 0 or 1"
    assert refusal in fresh.start(LAUNCH, TENSORPLAY_LAUNCH_BLOCKING="yes").stderr


# An array whose memory has gone: the kernel that reads it ends the device, when it runs.
KERNEL = """
    import tensorplay as tp
    class Stale:
        def __init__(self, memory):
            self.__cuda_array_interface__ = {**memory.__cuda_array_interface__}
    memory = tp.ones(2**20, device="cuda")
    stale = tp.asarray(Stale(memory))
    del memory
    tp.cuda.empty_cache()
    for step in ("guilty", "waits"):
        try:
            if step == "guilty": stale.add_(1)
            else: tp.cuda.synchronize()
        except tp.AcceleratorError as error:
            print(step, error.operation, error.name)
            break
"""


def test_launch_blocking_reports_a_kernel_that_ends_the_device(emulated: None) -> None:
    assert fresh.run(KERNEL, TENSORPLAY_LAUNCH_BLOCKING="1") == "guilty add cudaErrorIllegalAddress\n"
    assert fresh.run(KERNEL, TENSORPLAY_LAUNCH_BLOCKING=None) == "waits device_synchronize cudaErrorIllegalAddress\n"


# Whatever is queued is waited for, so that an error of the wait is its own.
QUEUED = """
    import tensorplay as tp
    from tensorplay.testing import emulated as control
    pinned, x, y = tp.ones(100).pin_memory(), tp.ones(10, 10, device="cuda"), tp.ones(100, device="cuda")
    other, matrix, graph = tp.ones(100, device="cuda:1"), tp.ones(10, 10, device="cuda"), tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        y.add_(1)
    calls = {
        "kernel": lambda: y.add_(1),
        "cast": lambda: x.half(),
        "fill": lambda: y.zero_(),
        "to_device": lambda: y.copy_(pinned, non_blocking=True),
        "to_host": lambda: pinned.copy_(y, non_blocking=True),
        "strided": lambda: x.T.contiguous(),
        "peer": lambda: y.copy_(other),
        "product": lambda: matrix @ x,
        "replay": lambda: graph.replay(),
    }
    for name, call in calls.items():
        call()
        try:
            with control.fail("cudaStreamSynchronize", 1, "cudaErrorLaunchFailure"):
                call()
            print(name, None)
        except tp.AcceleratorError as error:
            print(name, error.name)
"""


def test_launch_blocking_waits_for_all_that_is_queued(two_gpus: None, emulated: None) -> None:
    lines = fresh.run(QUEUED, TENSORPLAY_LAUNCH_BLOCKING="1").splitlines()
    assert len(lines) == 9
    assert [line for line in lines if not line.endswith(" cudaErrorLaunchFailure")] == []
    lines = fresh.run(QUEUED, TENSORPLAY_LAUNCH_BLOCKING=None).splitlines()
    assert [line for line in lines if not line.endswith(" None")] == []


def test_an_error_that_ends_the_device_says_so(emulated: None) -> None:
    with (
        control.fail("cudaDeviceSynchronize", 1, "cudaErrorIllegalAddress"),
        pytest.raises(tp.AcceleratorError, match="illegal memory access.*lost to this process: restart it") as caught,
    ):
        cuda.synchronize()
    assert (caught.value.code, caught.value.name) == (700, "cudaErrorIllegalAddress")
    with (
        control.fail("cudaDeviceSynchronize", 1, "cudaErrorUnknown"),
        pytest.raises(tp.AcceleratorError) as mild,
    ):
        cuda.synchronize()
    assert "restart" not in str(mild.value)
