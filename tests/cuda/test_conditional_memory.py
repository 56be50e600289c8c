"""Memory of conditional nodes' bodies: whose it is, and who uses it again."""

from __future__ import annotations

import pytest
from helpers.captures import flag

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import graphs

pytestmark = pytest.mark.usefixtures("gpu")


def test_memory_of_bodies_is_the_graphs() -> None:
    g = cuda.CUDAGraph()
    with graphs.graph(g), g.if_(flag()):
        first = tp.zeros(1000, device="cuda")
        address = first.data_ptr()
        del first
        with g.if_(flag()):
            kept = tp.zeros(1000, device="cuda")
        again = tp.zeros(1000, device="cuda")
        assert again.data_ptr() == address != kept.data_ptr()
    g.replay()
    with pytest.raises(tp.errors.StateError, match="reset: 2 blocks of 8192 bytes"):
        g.reset()
    del kept, again
    g.reset()


def test_branches_that_run_at_once_share_no_memory() -> None:
    g, side = cuda.CUDAGraph(), cuda.Stream()
    taken = []
    with graphs.graph(g):
        main = cuda.current_stream()
        side.wait_stream(main)
        for stream in (main, side):
            with cuda.stream(stream), g.if_(flag()):
                taken.append(tp.zeros(1000, device="cuda").data_ptr())
        main.wait_stream(side)
        with g.if_(flag()):
            taken.append(tp.zeros(1000, device="cuda").data_ptr())
    assert taken[0] != taken[1]
    assert taken[2] == taken[0]


def test_streams_that_were_forked_in_a_body_take_no_memory_of_it_along() -> None:
    g, apart, inner = cuda.CUDAGraph(), cuda.Stream(), cuda.Stream()
    taken, kept = set(), []
    with graphs.graph(g):
        main = cuda.current_stream()
        apart.wait_stream(main)
        with g.if_(flag()):
            body = cuda.current_stream()
            inner.wait_stream(body)
            with cuda.stream(inner):
                taken |= {tp.zeros(1000, device="cuda").data_ptr() for _ in range(2)}
                kept.append(tp.zeros(1000, device="cuda"))
            body.wait_stream(inner)
            kept.append(tp.zeros(1000, device="cuda"))
        taken |= {x.data_ptr() for x in kept}
        inner.wait_stream(apart)  # It runs beside the body from now on.
        with cuda.stream(inner):
            assert tp.zeros(1000, device="cuda").data_ptr() not in taken
            kept.clear()
            assert tp.zeros(1000, device="cuda").data_ptr() not in taken
        main.wait_stream(inner)
        with g.if_(flag()):
            assert tp.zeros(1000, device="cuda").data_ptr() >> 21 in {address >> 21 for address in taken}  # segments
    g.replay()


def test_pinned_memory_of_a_body_stays_until_the_graph_is_gone() -> None:
    sent, x = tp.arange(500).pin_memory(), tp.zeros(500, dtype=tp.int64, device="cuda")
    before = cuda.host_memory_stats()["active_requests.current"]
    g = cuda.CUDAGraph()
    with graphs.graph(g), g.if_(flag()):
        x.copy_(sent, non_blocking=True)
        with g.if_(flag()):
            x.add_(1)
        y = x * 2
    del sent
    others = [tp.full((500,), -1, dtype=x.dtype, pin_memory=True) for _ in range(5)]
    g.replay()
    assert y.tolist() == list(range(2, 1002, 2))
    del others, y
    assert cuda.host_memory_stats()["active_requests.current"] == before
    g.reset()
    assert cuda.host_memory_stats()["active_requests.current"] == before - 1
