"""Tensors used by other streams than their own: when their memory is used again."""

from __future__ import annotations

import gc

import pytest

import tensorplay as tp
from tensorplay import cuda
from tensorplay.testing import emulated as control

SIZE = 1 << 20  # elements of 4 bytes: no thread's cache takes them


@pytest.fixture
def streams(emulated: None) -> tuple[cuda.Stream, cuda.Stream]:
    """Two streams, one that allocates and one that reads; nothing is cached."""
    gc.collect()
    cuda.empty_cache()
    return cuda.Stream(), cuda.Stream()


def filled(value: int, stream: cuda.Stream) -> tp.Tensor:
    with cuda.stream(stream):
        return tp.full((SIZE,), value, dtype=tp.int32, device="cuda")


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_sees_what_was_there_when_the_tensor_was_dropped(
    streams: tuple[cuda.Stream, cuda.Stream], seed: int
) -> None:
    owner, reader = streams
    with control.seed(seed):
        source = filled(7, owner)
        reader.wait_stream(owner)
        address = source.data_ptr()
        with control.hold(reader):
            with cuda.stream(reader):
                copy = source.clone()
            source.record_stream(reader)
            del source
            later = [filled(9, owner) for _ in range(3)]
            owner.synchronize()
            assert address not in [tensor.data_ptr() for tensor in later]
        reader.synchronize()
        assert filled(5, owner).data_ptr() == address  # The very next one has it, and the peak did not grow for it.
        with cuda.stream(reader):
            assert copy.sum().item() == 7 * SIZE


def test_a_mark_on_a_view_is_one_on_the_memory(streams: tuple[cuda.Stream, cuda.Stream]) -> None:
    owner, reader = streams
    source = filled(7, owner)
    reader.wait_stream(owner)
    address, view = source.data_ptr(), source[1:].reshape(3, -1)
    with control.hold(reader):
        with cuda.stream(reader):
            copy = view.clone()
        view.record_stream(reader)
        del view
        source.fill_(7)  # Still there.
        del source
        assert filled(9, owner).data_ptr() != address
    reader.synchronize()
    assert filled(9, owner).data_ptr() == address
    assert (copy == 7).all().item()


def test_waiting_for_many_readers_makes_no_events_and_holds_one_block(streams: tuple[cuda.Stream, cuda.Stream]) -> None:
    """The cure for early reuse does not double the peak: a loop whose reader keeps up has two blocks at most."""
    owner, reader = streams
    cuda.reset_peak_memory_stats()
    before = cuda.memory_stats()["active_bytes.all.current"]
    for value in range(50):
        source = filled(value, owner)
        reader.wait_stream(owner)
        with cuda.stream(reader):
            source.sum()
        source.record_stream(reader)
        del source
        reader.synchronize()
        if value == 10:
            with control.calls() as calls:
                filled(value, owner).record_stream(reader)
            assert calls["cudaEventCreateWithFlags"] == 0
    assert cuda.memory_stats()["active_bytes.all.peak"] - before <= 2 * 4 * SIZE + 2**16


def test_without_the_mark_the_memory_is_used_again_at_once(streams: tuple[cuda.Stream, cuda.Stream]) -> None:
    owner, reader = streams
    source = filled(7, owner)
    address = source.data_ptr()
    reader.wait_stream(owner)
    with control.hold(reader), cuda.stream(reader):
        source.clone()
        del source
        assert filled(9, owner).data_ptr() == address
