"""Events: points in streams, time between them, and those that processes share."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import AbstractContextManager, nullcontext

import pytest

import tensorplay as tp
from tensorplay import cuda
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError
from tensorplay.testing import emulated as control

IS_EMULATED = tp._plugins.get("cuda").describe()["variant"] == "emulated"


def held(stream: cuda.Stream) -> AbstractContextManager[None]:
    """Holds the stream, where that can be done."""
    return control.hold(stream) if IS_EMULATED else nullcontext()


def test_an_external_event_is_a_node_of_the_graph_in_a_capture_only(emulated: None) -> None:
    event, stream = cuda.Event(external=True), cuda.Stream()
    event.record(stream)
    stream.wait_event(event)
    event.synchronize()
    # What only captures take is refused, since there is none.
    for call, name in ((event.record, "cudaEventRecordWithFlags"), (event.wait, "cudaStreamWaitEvent")):
        with (
            control.fail("cudaStreamIsCapturing", 1, "cudaErrorStreamCaptureUnsupported"),
            pytest.raises(tp.AcceleratorError, match=name),
        ):
            call(stream)
    event.record(stream)
    event.synchronize()


@pytest.mark.smoke
def test_external_events_happen_in_each_replay(gpu: None) -> None:
    """Recorded and waited for in captures of two graphs, which are replayed on two streams."""
    first, second = cuda.Stream(), cuda.Stream()
    event, x = cuda.Event(external=True), tp.zeros(1000, device="cuda")
    adds, doubles = cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(adds, stream=first):
        x.add_(1)
        event.record()
    with cuda.graph(doubles, stream=second):
        event.wait()
        x.mul_(2)
    expected = 0
    for _ in range(3):
        first.wait_stream(second)
        with held(first):
            adds.replay(first)
            if IS_EMULATED:
                assert not event.query()
            doubles.replay(second)
            if IS_EMULATED:
                assert not second.query()
        second.synchronize()
        event.synchronize()
        expected = (expected + 1) * 2
        assert x.tolist() == [expected] * 1000


def test_an_event_that_is_not_external_is_order_inside_the_graph(gpu: None) -> None:
    first, second, event = cuda.Stream(), cuda.Stream(), cuda.Event()
    x, adds = tp.zeros(1000, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(adds, stream=first):
        x.add_(1)
        event.record()
        second.wait_event(event)
        with second:
            x.mul_(2)
        first.wait_stream(second)
    adds.replay(first)
    first.synchronize()
    assert x.tolist() == [2] * 1000
    with pytest.raises(StateError, match="event_query: the event was recorded in a capture, .* that has ended"):
        event.query()
    event.record()
    event.synchronize()


@pytest.mark.smoke
def test_event_orders_two_streams(gpu: None) -> None:
    first, second = cuda.Stream(), cuda.Stream()
    with cuda.stream(first):
        values = tp.arange(4096, device="cuda") * 2
        done = first.record_event()
    second.wait_event(done)
    with cuda.stream(second):
        total = values.sum()
    second.synchronize()
    assert done.query()
    assert total.item() == 4095 * 4096


def test_event_wait_is_wait_event(gpu: None) -> None:
    first, second = cuda.Stream(), cuda.Stream()
    event = cuda.Event()
    with cuda.stream(first):
        values = tp.full((512,), 3, device="cuda")
        event.record()
    with cuda.stream(second):
        event.wait()
        total = values.sum()
    second.synchronize()
    assert total.item() == 1536


def test_event_before_its_first_record(gpu: None) -> None:
    event = cuda.Event()
    assert event.query()
    event.synchronize()
    event.wait()
    assert event.device is None
    assert event.cuda_event == 0
    event.record()
    assert event.device == tp.device("cuda:0")
    assert event.cuda_event != 0


def test_event_stays_on_its_device(two_gpus: None) -> None:
    event = cuda.Event()
    event.record(cuda.Stream(0))
    with pytest.raises(InvalidArgumentError):
        event.record(cuda.Stream(1))


def test_a_stream_of_another_device_waits_for_an_event(two_gpus: None) -> None:
    here, there = cuda.Stream(0), cuda.Stream(1)
    with held(here):
        with cuda.stream(here):
            values = tp.ones(4096, device="cuda") * 3
            done = cuda.Event()
            done.record()
        there.wait_event(done)
        with cuda.stream(there):
            late = tp.ones(1, device="cuda")
            assert late.device == tp.device("cuda:1")
        if IS_EMULATED:
            assert not there.query()
    there.synchronize()
    assert done.query()
    with cuda.stream(here):
        assert values.sum().item() == 3 * 4096
    assert late.item() == 1


@pytest.mark.smoke
def test_elapsed_time_counts_forwards_and_back(gpu: None) -> None:
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True, blocking=True)
    start.record()
    tp.zeros(1 << 20, device="cuda").add_(1)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0
    assert end.elapsed_time(start) == -start.elapsed_time(end)
    assert start.elapsed_time(start) == 0


def test_elapsed_time_says_which_of_four_causes(two_gpus: None, emulated: None) -> None:
    def recorded(stream: cuda.Stream, timing: bool = True) -> cuda.Event:
        event = cuda.Event(enable_timing=timing)
        event.record(stream)
        return event

    here, there = cuda.Stream(0), cuda.Stream(1)
    good = recorded(here)
    good.synchronize()
    elsewhere = recorded(there)
    elsewhere.synchronize()
    untimed = recorded(here, timing=False)
    untimed.synchronize()
    with control.hold(here):
        with cuda.stream(here):
            tp.zeros(1 << 16, device="cuda").add_(1)
        pending = recorded(here)
        texts = []
        for other in (untimed, cuda.Event(enable_timing=True), pending, elsewhere):
            with pytest.raises(StateError) as caught:
                good.elapsed_time(other)
            texts.append(str(caught.value).removeprefix("event_elapsed_time: "))
        assert not pending.query()  # Nobody has waited for it.
    assert texts == [
        "the end event was made without timing; make it with timing enabled",
        "the end event was never recorded; record it first",
        "the work before the end event is not done; synchronize with the event first",
        "start was recorded on cuda:0, end on cuda:1; record both on one device",
    ]
    pending.synchronize()
    assert good.elapsed_time(pending) > 0


# Answers each line with what it sees.
OTHER = """
    import sys
    import tensorplay as tp
    from tensorplay import cuda
    event, side = cuda.Event.from_ipc_handle("cuda", bytes.fromhex(sys.argv[1])), cuda.Stream()
    print(event.device, event.query(), flush=True)
    for line in sys.stdin:
        if line == "wait\\n":
            side.wait_event(event)
            print(side.query(), event.query(), flush=True)
        elif line == "synchronize\\n":
            side.synchronize()
            event.synchronize()
            print(side.query(), event.query(), flush=True)
        else:
            event.record(side)
            print("recorded", flush=True)
"""
LIMIT_S = 60


class Other:
    """Another process, which has opened an event by its handle."""

    def __init__(self, event: cuda.Event) -> None:
        command = [sys.executable, "-c", textwrap.dedent(OTHER), event.ipc_handle().hex()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.opened = self.hear()

    def hear(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, what: str) -> str:
        """What it answers."""
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        return self.hear()

    def end(self) -> int:
        """How it ended."""
        self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode


def test_two_processes_wait_for_each_others_records(gpu: None) -> None:
    event, stream = cuda.Event(interprocess=True), cuda.Stream()
    other = Other(event)
    assert other.opened == "cuda:0 True"
    with held(stream):
        with cuda.stream(stream):
            kept = tp.ones(1 << 20, device="cuda") + 1
        event.record(stream)
        answer = other.ask("wait")
        if IS_EMULATED:
            assert (answer, event.query()) == ("False False", False)
    stream.synchronize()
    assert event.query()
    assert other.ask("synchronize") == "True True"
    assert other.ask("record") == "recorded"
    event.wait(stream)
    stream.synchronize()
    event.synchronize()
    assert event.query()
    assert other.end() == 0
    assert kept.sum().item() == 2 << 20


def test_a_handle_is_another_processes_and_of_an_event_for_processes(gpu: None) -> None:
    with pytest.raises(StateError, match="make it with interprocess enabled"):
        cuda.Event().ipc_handle()
    with pytest.raises(InvalidArgumentError, match="timing for an event between processes"):
        cuda.Event(enable_timing=True, interprocess=True)
    event = cuda.Event(interprocess=True)
    handle = event.ipc_handle()
    assert (type(handle), len(handle), event.device) == (bytes, 64, tp.device("cuda:0"))
    assert event.ipc_handle() == handle
    with pytest.raises(tp.AcceleratorError, match="event_from_ipc_handle") as caught:
        cuda.Event.from_ipc_handle(0, handle)
    assert caught.value.name == "cudaErrorDeviceUninitialized"
    with pytest.raises(InvalidArgumentError, match="device 99 asked for"):
        cuda.Event.from_ipc_handle(99, handle)
    for wrong in (b"", handle[1:], handle + b"0"):
        with pytest.raises(InvalidArgumentError, match=f"got {len(wrong)} bytes, expected 64"):
            cuda.Event.from_ipc_handle(0, wrong)
    with pytest.raises(DTypeError, match="got str, expected bytes"):
        cuda.Event.from_ipc_handle(0, handle.hex())  # type: ignore[arg-type]


def test_an_event_between_processes_is_not_used_again(emulated: None) -> None:
    with control.calls() as calls:
        for _ in range(3):
            cuda.Event(interprocess=True).record()
    assert (calls["cudaEventCreateWithFlags"], calls["cudaEventDestroy"]) == (3, 3)
