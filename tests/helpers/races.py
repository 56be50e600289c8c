"""Races between streams, each a small program, and its mended twin."""

from __future__ import annotations

import tensorplay as tp
from tensorplay import cuda

N = 64


def is_filled(tensor: tp.Tensor, value: float) -> bool:
    """Whether all elements have the value."""
    return tensor.tolist() == [value] * N


def reads_too_early(*, mended: bool) -> None:
    """A stream reads what another one writes."""
    side = cuda.Stream()
    x = tp.zeros(N, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        x.fill_(1)
    if mended:
        cuda.current_stream().wait_stream(side)
    assert is_filled(x + 1, 2)


def overwrites_what_is_read(*, mended: bool) -> None:
    """A stream writes what another one still reads."""
    side = cuda.Stream()
    x = tp.ones(N, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x + 1
    if mended:
        cuda.current_stream().wait_stream(side)
    x.zero_()
    side.synchronize()
    assert is_filled(y, 2)


def two_writers(*, mended: bool) -> None:
    """Two streams write one tensor."""
    first, second = cuda.Stream(), cuda.Stream()
    x = tp.zeros(N, device="cuda")
    for stream, value in ((first, 1), (second, 2)):
        stream.wait_stream(first if mended and stream is second else cuda.default_stream())
        with cuda.stream(stream):
            x.fill_(value)
    cuda.synchronize()
    assert is_filled(x, 2)


def event_recorded_too_early(*, mended: bool) -> None:
    """An event is recorded before the work that it stands for."""
    side = cuda.Stream()
    x = tp.zeros(N, device="cuda")
    side.wait_stream(cuda.current_stream())
    event = cuda.Event()
    with cuda.stream(side):
        if not mended:
            event.record()
        x.fill_(1)
        if mended:
            event.record()
    cuda.current_stream().wait_event(event)
    assert is_filled(x + 1, 2)


def event_recorded_again(*, mended: bool) -> None:
    """One event serves two streams: waiting for it means the later record."""
    first, second = cuda.Stream(), cuda.Stream()
    x, y = tp.zeros(N, device="cuda"), tp.zeros(N, device="cuda")
    events = (cuda.Event(), cuda.Event()) if mended else (cuda.Event(),) * 2
    for stream, target, event in ((first, x, events[0]), (second, y, events[1])):
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            target.fill_(1)
            event.record()
    for event in events:
        cuda.current_stream().wait_event(event)
    assert is_filled(x + y, 2)


def forgets_record_stream(*, mended: bool) -> None:
    """A tensor is dropped while another stream reads it, and its memory is used again."""
    side = cuda.Stream()
    x = tp.ones(N, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x + 1
    if mended:
        x.record_stream(side)
    del x
    z = tp.zeros(N, device="cuda")
    side.synchronize()
    assert is_filled(y, 2)
    assert is_filled(z, 0)


def ring_of_one(*, mended: bool) -> None:
    """A ring of buffers is shorter than the work that it feeds."""
    filling, using = cuda.Stream(), cuda.Stream()
    ring = [tp.zeros(N, device="cuda") for _ in range(2)]
    sums = [tp.zeros(N, device="cuda") for _ in range(4)]
    used: list[cuda.Event | None] = [None, None]
    cuda.synchronize()
    for turn, total in enumerate(sums):
        buffer = ring[turn % 2]
        event = used[turn % 2]
        if mended and event is not None:
            filling.wait_event(event)
        with cuda.stream(filling):
            buffer.fill_(turn)
        using.wait_stream(filling)
        with cuda.stream(using):
            total.add_(buffer)
        used[turn % 2] = using.record_event()
    cuda.synchronize()
    assert all(is_filled(total, turn) for turn, total in enumerate(sums))


def waits_the_wrong_way(*, mended: bool) -> None:
    """The producer waits for the consumer."""
    side, main = cuda.Stream(), cuda.current_stream()
    x = tp.zeros(N, device="cuda")
    side.wait_stream(main)
    with cuda.stream(side):
        x.fill_(1)
    later, earlier = (main, side) if mended else (side, main)
    later.wait_stream(earlier)
    assert is_filled(x + 1, 2)


def forked_and_half_joined(*, mended: bool) -> None:
    """Work is spread over three streams, and two are waited for."""
    main = cuda.current_stream()
    streams = [cuda.Stream() for _ in range(3)]
    parts = [tp.zeros(N, device="cuda") for _ in streams]
    for stream, part in zip(streams, parts, strict=True):
        stream.wait_stream(main)
        with cuda.stream(stream):
            part.fill_(1)
    for stream in streams if mended else streams[:2]:
        main.wait_stream(stream)
    assert is_filled(parts[0] + parts[1] + parts[2], 3)


def accumulates_on_two_streams(*, mended: bool) -> None:
    """Two streams add to what a third one has set up, after waits that leave out the second."""
    main, side = cuda.current_stream(), cuda.Stream()
    total = tp.zeros(N, device="cuda")
    side.wait_stream(main)
    total.fill_(1)
    if mended:
        side.wait_stream(main)
    with cuda.stream(side):
        total.mul_(3)
    main.wait_stream(side)
    assert is_filled(total, 3)


RACES = (
    reads_too_early, overwrites_what_is_read, two_writers, event_recorded_too_early, event_recorded_again,
    forgets_record_stream, ring_of_one, waits_the_wrong_way, forked_and_half_joined, accumulates_on_two_streams,
)  # fmt: skip
