"""Copies between devices and the host that do not wait, and the memory that they keep."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from helpers.pinned import MiB, active, filled, held_stream

import tensorplay as tp
from tensorplay import cuda
from tensorplay.testing import emulated as control

pytestmark = pytest.mark.usefixtures("pinned")


def test_a_source_may_be_dropped_while_it_is_copied(emulated: None) -> None:
    with held_stream() as stream:
        pinned = filled(1).pin_memory()
        address = pinned.data_ptr()
        arrived = pinned.to("cuda", non_blocking=True)
        temporary = filled(3).pin_memory().to("cuda", non_blocking=True)
        into = tp.zeros(5000, dtype=tp.int64, device="cuda")
        into.copy_(filled(4, pin_memory=True), non_blocking=True)
        assert not stream.query()
        del pinned
        for _ in range(4):
            later = filled(2, pin_memory=True)
            assert later.data_ptr() != address
    assert arrived.sum().item() == 5000
    assert temporary.sum().item() == 15000
    assert into.sum().item() == 20000
    assert active() - later.nbytes == 480  # of rounding


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[0, 0], lambda x: x[2:], lambda x: x.half(),
        lambda x: x.expand(2, 3, 4),
    ],
)  # fmt: skip
def test_a_result_on_the_host_is_pinned_and_must_be_waited_for(
    emulated: None, cut: Callable[[tp.Tensor], tp.Tensor]
) -> None:
    expected = cut(tp.arange(12, dtype=tp.float32).view(3, 4))
    x = tp.arange(12, dtype=tp.float32, device="cuda").view(3, 4)
    for send in (
        lambda part: part.to("cpu", non_blocking=True),
        lambda part: part.cpu(non_blocking=True),
        lambda part: part.to("cpu", tp.float64, non_blocking=True),
    ):
        with held_stream() as stream:
            arrived = send(cut(x))
            assert arrived.is_pinned()
            assert not stream.query()
            stream.synchronize()
            assert arrived.shape == expected.shape
            assert arrived.is_contiguous()
            assert arrived.tolist() == expected.tolist()


def test_a_result_without_elements_is_waited_for_by_nobody(emulated: None) -> None:
    for shape in ((0,), (3, 0)):
        x = tp.zeros(shape, dtype=tp.int32, device="cuda")
        with held_stream():
            arrived = x.to("cpu", tp.float64, non_blocking=True)
            assert (arrived.shape, arrived.dtype, arrived.is_pinned()) == (shape, tp.float64, False)


def test_a_dropped_result_keeps_its_memory_until_it_was_written(emulated: None) -> None:
    x = filled(7, device="cuda")
    with held_stream():
        dropped = x.to("cpu", non_blocking=True)
        address = dropped.data_ptr()
        del dropped, x
        later = filled(2, pin_memory=True)
        assert later.data_ptr() != address
    cuda.synchronize()
    assert (later == 2).all()


def test_a_copy_into_pinned_memory(emulated: None) -> None:
    target = filled(0, pin_memory=True)
    x = tp.full((5000,), 2.75, device="cuda")
    with held_stream() as stream:
        target.copy_(x, non_blocking=True)  # cast on the device
        assert not stream.query()
        assert target.sum().item() == 0
        stream.synchronize()
        assert target.sum().item() == 10000
        gaps = tp.zeros(5000, 2, pin_memory=True)
        gaps[:, 1].copy_(x, non_blocking=True)  # has gaps: complete on return
        assert gaps.sum().item() == 2.75 * 5000


def test_pageable_memory_is_safe(emulated: None) -> None:
    array = np.ones(600_000, np.float32)
    with held_stream() as stream:
        arrived = tp.from_numpy(array).to("cuda", non_blocking=True)
        array[:] = 2
        back = tp.zeros(600_000)
        back.copy_(arrived, non_blocking=True)
        assert back.sum().item() == 600_000
        assert stream.query()
        strided = tp.ones(6, 4, pin_memory=True)[:, 1::2]
        arrived = strided.to("cuda", non_blocking=True)  # has gaps: as if it were not pinned
        strided.zero_()
    assert arrived.sum().item() == 12


def test_without_non_blocking_everything_is_done_on_return(emulated: None) -> None:
    with control.copy_delay(50), cuda.stream(cuda.Stream()):
        pinned = filled(1).pin_memory()
        arrived = pinned.to("cuda")
        pinned.zero_()
        assert arrived.cpu().sum().item() == 5000
        assert pinned.copy_(arrived).sum().item() == 5000


def test_a_slow_stream_does_not_hold_up_others(emulated: None) -> None:
    with held_stream() as slow:
        kept = filled(1, MiB, pin_memory=True).to("cuda", non_blocking=True)
        fast = cuda.Stream()
        with cuda.stream(fast):
            addresses = set()
            for number in range(10):
                x = filled(number, MiB, pin_memory=True)
                addresses.add(x.data_ptr())
                arrived = x.to("cuda", non_blocking=True)
                del x
                fast.synchronize()
                assert arrived[-1].item() == number
        assert len(addresses) == 1
        assert not slow.query()
    assert kept.sum().item() == MiB


def test_copies_to_several_devices(two_gpus: None) -> None:
    x = filled(5, MiB, pin_memory=True)
    arrived = [x.to(f"cuda:{index}", non_blocking=True) for index in (0, 1, 0)]
    del x
    assert [y.sum().item() for y in arrived] == [5 * MiB] * 3


def test_many_threads_pin_and_copy() -> None:
    failed = []

    def work(number: int) -> None:
        with cuda.stream(cuda.Stream()) as stream:
            for turn in range(20):
                arrived = filled(number, 100 + 700 * turn).pin_memory().to("cuda", non_blocking=True)
                back = arrived.to("cpu", non_blocking=True)
                cuda.current_stream().synchronize()
                if not (back == number).all():
                    failed.append((number, turn, stream))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
