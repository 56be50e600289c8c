"""The order checker finds planted errors, says where they are, and is silent about programs without one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest
from helpers.fresh import run, start
from helpers.races import RACES

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import sanitizer
from tensorplay.errors import InvalidArgumentError, OrderError

pytestmark = pytest.mark.usefixtures("gpu")


def on(stream: cuda.Stream, work: Callable[[], object]) -> object:
    """What the work on a stream gives."""
    with cuda.stream(stream):
        return work()


def pair(shape: tuple[int, ...] = (8, 8)) -> tuple[cuda.Stream, tp.Tensor]:
    """A stream, and a tensor of ones that it may use."""
    side, x = cuda.Stream(), tp.ones(shape, device="cuda")
    side.wait_stream(cuda.current_stream())
    return side, x


@pytest.mark.parametrize("race", RACES)
def test_race_is_found_where_it_stands(race: Callable[..., None], checker: None) -> None:
    with pytest.raises(OrderError) as found:
        race(mended=False)
    assert all("races.py:" in place for place in (*found.value.places, found.value.allocated))
    expected = "record_stream" if race.__name__ == "forgets_record_stream" else "wait_stream"
    assert found.value.missing == expected
    assert expected in str(found.value)


@pytest.mark.parametrize("race", RACES)
def test_mended_race_is_not_reported(race: Callable[..., None], checker: None) -> None:
    for _ in range(3):
        race(mended=True)


def planted(name: str) -> tuple[cuda.Stream, Callable[[], object], Callable[[], object]]:
    """A stream, work on it, and work on the default stream that must come behind it."""
    side, x = pair()
    rows = tp.tensor([0, 1, 2], device="cuda")
    b, out = tp.ones(8, 8, device="cuda"), tp.empty(8, 8, device="cuda")
    host = [[1.0] * 8] * 8
    side.wait_stream(cuda.current_stream())
    works: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "product": (lambda: x.zero_(), lambda: b @ x),
        "output of a product": (lambda: tp.matmul(x, b, out=out), lambda: out.zero_()),
        "copy": (lambda: out.copy_(x), lambda: x.fill_(2)),
        "copy to the host": (lambda: x.add_(1), lambda: x.tolist()),
        "copy from the host": (lambda: x + 1, lambda: x.copy_(tp.tensor(host))),
        "index": (lambda: rows.add_(1), lambda: x[rows]),
        "index_put": (lambda: x.sum(), lambda: x.index_put_((rows,), tp.zeros(3, 8, device="cuda"))),
        "random": (lambda: x.softmax(-1), lambda: x.uniform_()),
        "sort": (lambda: x.t().contiguous(), lambda: x.copy_(b.sort(-1).values)),
        "view": (lambda: x[4:].zero_(), lambda: x.t()[0, 6:] + 1),
        "where": (lambda: x.cumsum_(0), lambda: tp.where(b > 0, x, b)),
        "reduction": (lambda: x.mul_(2), lambda: x.amax(1)),
    }
    return (side, *works[name])


PLANTED = (
    "product", "output of a product", "copy", "copy to the host", "copy from the host", "index", "index_put",
    "random", "sort", "view", "where", "reduction",
)  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_error_is_found_and_its_mending_ends_it(name: str, checker: None) -> None:
    side, first, second = planted(name)
    on(side, first)
    with pytest.raises(OrderError, match="wait_stream"):
        second()
    cuda.current_stream().wait_stream(side)
    second()


def test_text_names_both_operations_streams_and_lines(checker: None) -> None:
    side, x = pair()
    on(side, lambda: x.fill_(3))
    with pytest.raises(OrderError) as found:
        x.add_(1)
    error = found.value
    assert error.operations == ("fill", "add")
    assert error.streams == (side.cuda_stream, 0)
    assert error.devices == (0, 0)
    assert error.writes == (True, True)
    assert error.nbytes == 512
    assert "add (writes, on the default stream of cuda:0, at " in str(error)
    assert f"fill (writes, on stream {side.cuda_stream:#x} of cuda:0, at " in str(error)
    assert str(error).count("test_sanitizer.py:") == 3


def test_refused_work_is_not_queued(checker: None) -> None:
    side, x = pair()
    on(side, lambda: x.fill_(3))
    for _ in range(2):
        with pytest.raises(OrderError):
            x.add_(1)
    cuda.current_stream().wait_stream(side)
    assert x[0, 0].item() == 3


WAITS: dict[str, Callable[[cuda.Stream, cuda.Event], object]] = {
    "stream": lambda side, event: cuda.current_stream().wait_stream(side),
    "event": lambda side, event: event.wait(),
    "synchronize of the stream": lambda side, event: side.synchronize(),
    "synchronize of the event": lambda side, event: event.synchronize(),
    "synchronize of the device": lambda side, event: cuda.synchronize(),
    "query of the stream": lambda side, event: polled(side),
    "query of the event": lambda side, event: polled(event),
    "another stream": lambda side, event: through_another(side),
}


def polled(asked: cuda.Stream | cuda.Event) -> None:
    """Asks until it is done."""
    while not asked.query():
        pass


def through_another(side: cuda.Stream) -> None:
    """The current stream waits for one that waits for `side`."""
    other = cuda.Stream()
    other.wait_stream(side)
    cuda.current_stream().wait_stream(other)


@pytest.mark.parametrize("wait", WAITS)
def test_every_way_to_wait_is_known(wait: str, checker: None) -> None:
    side, x = pair()
    on(side, lambda: x.fill_(3))
    event = side.record_event()
    WAITS[wait](side, event)
    x.add_(1)


@pytest.mark.parametrize("early", ["event", "query"])
def test_what_comes_after_the_wait_is_not_covered(early: str, checker: None) -> None:
    side, x = pair()
    on(side, lambda: x.fill_(3))
    event = side.record_event()
    event.wait() if early == "event" else polled(event)
    on(side, lambda: x.fill_(4))
    with pytest.raises(OrderError):
        x.add_(1)


def test_reads_on_many_streams_need_no_order(checker: None) -> None:
    x = tp.ones(8, device="cuda")
    streams = [cuda.Stream() for _ in range(4)]
    for stream in streams:
        stream.wait_stream(cuda.current_stream())
        on(stream, lambda: x + 1)
    for stream in streams[1:]:
        cuda.current_stream().wait_stream(stream)
    with pytest.raises(OrderError) as found:
        x.zero_()
    assert found.value.streams[0] == streams[0].cuda_stream


def test_threads_without_a_wait_are_found(checker: None) -> None:
    side, x = pair()
    thread = threading.Thread(target=on, args=(side, lambda: x.fill_(3)))
    thread.start()
    thread.join()
    with pytest.raises(OrderError):
        x.add_(1)


def test_memory_of_a_dropped_tensor_is_safe_in_the_order_of_its_stream(checker: None) -> None:
    side, x = pair()
    on(side, partial(x.add, 1))
    del x
    cuda.current_stream().wait_stream(side)
    for _ in range(3):
        tp.zeros(8, 8, device="cuda")


def test_part_of_a_dropped_tensor_is_found_in_a_larger_one(checker: None) -> None:
    cuda.empty_cache()
    parts = [tp.ones(2**19, dtype=tp.uint8, device="cuda") for _ in range(4)]
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    on(side, lambda: parts[1] + 1)
    parts.clear()
    whole = tp.empty(2**20, dtype=tp.uint8, device="cuda")
    with pytest.raises(OrderError) as found:
        whole.zero_()
    assert found.value.missing == "record_stream"


def test_memory_that_went_back_to_the_driver_has_no_past(checker: None) -> None:
    side, x = pair((4096, 4096))
    on(side, partial(x.add, 1))
    del x
    cuda.empty_cache()
    tp.zeros(4096, 4096, device="cuda")


def test_tensors_from_before_are_watched_too(gpu: None) -> None:
    side, x = pair()
    cuda.synchronize()
    sanitizer.enable()
    try:
        on(side, lambda: x.fill_(3))
        with pytest.raises(OrderError, match="not recorded|memory at"):
            x.add_(1)
    finally:
        sanitizer.disable()


def test_peer_copies_are_ordered_on_both_devices(checker: None, two_gpus: None) -> None:
    x = tp.ones(64, device="cuda:0")
    y = x.to("cuda:1")
    y.add_(1)
    x.zero_()
    side = cuda.Stream("cuda:1")
    on(side, lambda: None)
    with pytest.raises(OrderError) as found, cuda.stream(side):
        y.add_(1)
    assert found.value.devices == (1, 1)


def test_collected_reports_let_the_program_go_on(gpu: None) -> None:
    sanitizer.enable("collect")
    try:
        side, x = pair()
        for _ in range(3):
            on(side, lambda: x.fill_(3))
            x.add_(1)
        found = sanitizer.reports()
        assert {error.operations for error in found} == {("fill", "add"), ("add", "fill")}
        assert len(found) == 2
        assert sanitizer.reports() == []
    finally:
        sanitizer.disable()


def test_history_of_memory_keeps_the_checkers_stacks(checker: None) -> None:
    side, x = pair()
    on(side, lambda: x.fill_(3))
    cuda.memory._record_memory_history()
    try:
        with pytest.raises(OrderError) as found:
            x.add_(1)
    finally:
        cuda.memory._record_memory_history(None)
    assert all("test_sanitizer.py:" in place for place in found.value.places)


def test_off_watches_nothing_and_on_begins_anew(gpu: None) -> None:
    assert not sanitizer.is_enabled()
    side, x = pair()
    on(side, lambda: x.fill_(3))
    sanitizer.enable()
    assert sanitizer.is_enabled()
    x.add_(1)  # what was queued before is not known
    sanitizer.disable()
    on(side, lambda: x.fill_(3))
    x.add_(1)


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got mode \['raise'\], expected one of"):
        sanitizer.enable(["raise"])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="got mode 'loud', expected one of"):
        sanitizer.enable("loud")  # type: ignore[arg-type]


PROGRAM = """
    import tensorplay as tp
    side, x = tp.cuda.Stream(), tp.ones(8, device="cuda")
    tp.cuda.synchronize()
    with tp.cuda.stream(side):
        x.fill_(3)
    try:
        x.add_(1)
    except tp.errors.OrderError as error:
        print(error.missing)
"""


@pytest.mark.parametrize(("setting", "printed"), [("1", "wait_stream\n"), ("0", ""), (None, "")])
def test_environment_enables_it(setting: str | None, printed: str) -> None:
    assert run(PROGRAM, TENSORPLAY_CUDA_SANITIZER=setting) == printed


def test_environment_that_says_neither_is_refused() -> None:
    done = start(PROGRAM, TENSORPLAY_CUDA_SANITIZER="yes")
    assert "TENSORPLAY_CUDA_SANITIZER: got 'yes', expected 0 or 1" in done.stderr
