"""Memory of graphs: what their copies use, and blocks that several streams of a capture use."""

from __future__ import annotations

import pytest

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import StateError

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("ending", ["reset", "dropped"])
def test_pinned_memory_of_a_graph_stays_until_the_graph_is_gone(ending: str) -> None:
    sent = tensorplay.arange(500).pin_memory()
    x = tensorplay.zeros(500, dtype=sent.dtype, device="cuda")
    before = cuda.host_memory_stats()["active_requests.current"]
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        x.copy_(sent, non_blocking=True)
        received = (x * 2).to("cpu", non_blocking=True)
    address = sent.data_ptr()
    del sent
    others = [tensorplay.full((500,), -1, dtype=x.dtype, pin_memory=True) for _ in range(5)]
    assert address not in [other.data_ptr() for other in others]
    for _ in range(2):
        received.fill_(-5)
        g.replay()
        cuda.synchronize()
        assert received.tolist() == list(range(0, 1000, 2))
    del others
    assert cuda.host_memory_stats()["active_requests.current"] == before + 1
    if ending == "reset":
        g.reset()
    else:
        del g
    assert cuda.host_memory_stats()["active_requests.current"] == before
    assert received[1].item() == 2


@pytest.mark.parametrize("non_blocking", [False, True])
def test_pageable_memory_in_a_capture_is_refused(non_blocking: bool) -> None:
    host, x = tensorplay.ones(5), tensorplay.zeros(5, device="cuda")
    text = "gone when the graph is replayed: use pinned memory" if non_blocking else "is waited for: queue it"
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        with pytest.raises(StateError, match=text):
            x.copy_(host, non_blocking=non_blocking)
        with pytest.raises(StateError, match=text):
            host.to("cuda", non_blocking=non_blocking)
        with pytest.raises(StateError, match=text):
            host.copy_(x, non_blocking=non_blocking)
        with pytest.raises(StateError, match="is waited for: queue it"):
            x.cpu()
        x.add_(1)
    g.replay()
    assert (x.tolist(), host.tolist()) == ([1] * 5, [1] * 5)


def test_a_recorded_block_is_used_again_once_its_stream_is_joined() -> None:
    side = cuda.Stream()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        main = cuda.current_stream()
        kept = tensorplay.zeros(6_000_000, device="cuda")
        side.wait_stream(main)
        address = kept.data_ptr()
        side.wait_stream(main)
        with cuda.stream(side):
            total = kept.sum()
        kept.record_stream(side)
        del kept
        assert tensorplay.zeros(6_000_000, device="cuda").data_ptr() != address
        main.wait_stream(side)
        blocks = [tensorplay.zeros(6_000_000, device="cuda") for _ in range(2)]
        assert address in [block.data_ptr() for block in blocks]
    g.replay()
    assert total.item() == 0
