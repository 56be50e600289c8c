"""Conditional nodes of graphs: bodies that replays run, leave out, and repeat."""

from __future__ import annotations

import pytest
from helpers.captures import flag

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.testing import emulated as control
from tensorplay.testing import explore_orders

pytestmark = pytest.mark.usefixtures("gpu")


def number(value: int = 0) -> tp.Tensor:
    """A counter, or a limit."""
    return tp.full((), value, device="cuda")


@pytest.mark.smoke
def test_an_if_runs_its_body_where_the_predicate_is_true() -> None:
    x, wanted = tp.zeros(5, device="cuda"), flag()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        x.add_(1)
        with g.if_(wanted):
            x.mul_(10)
        x.add_(0.5)
    for value, expected in ((True, 10.5), (False, 1.5), (True, 10.5)):
        x.fill_(0)
        wanted.fill_(value)
        g.replay()
        assert x.tolist() == [expected] * 5


@pytest.mark.smoke
def test_else_runs_where_the_if_did_not(with_else: None) -> None:
    x, wanted = tp.zeros(5, device="cuda"), flag()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        with g.if_(wanted):
            y = x + 1
        with g.else_():
            y.copy_(x - 1)
        z = y * 2
    for value, expected in ((True, 2), (False, -2), (True, 2)):
        wanted.fill_(value)
        g.replay()
        assert z.tolist() == [expected] * 5


@pytest.mark.smoke
@pytest.mark.parametrize("rounds", [0, 1, 1000])
def test_a_while_ends_where_its_body_says(rounds: int) -> None:
    n, limit, doubled = number(), number(rounds), number()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        n.zero_()
        going = n < limit
        with g.while_(going):
            n.add_(1)
            tp.mul(n, 2, out=doubled)
            tp.lt(n, limit, out=going)
        n.add_(5)
    for _ in range(2):
        doubled.fill_(-1)
        g.replay()
        assert n.item() == rounds + 5
        assert doubled.item() == (2 * rounds or -1)
    limit.fill_(3)
    g.replay()
    assert (n.item(), doubled.item()) == (8, 6)


def test_rounds_wait_for_nothing_on_the_host(emulated: None) -> None:
    n, limit, going = number(), number(50), flag()
    g = cuda.CUDAGraph()
    with graphs.graph(g), g.while_(going):
        n.add_(1)
        tp.lt(n, limit, out=going)
    with control.calls() as counted:
        g.replay()
    assert {name for name, count in counted.items() if count} <= {"cudaGraphLaunch", "cudaGetDevice"}
    assert n.item() == 50


def test_a_predicate_may_be_another_tensor_in_each_round() -> None:
    n, limit = number(), number(4)
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        n.zero_()
        g.begin_capture_to_while_node(n < limit)
        n.add_(1)
        g.set_conditional_handle_for_current_node(n < limit)
        g.end_capture_to_conditional_node()
    for rounds in (4, 1, 7):
        limit.fill_(rounds)
        g.replay()
        assert n.item() == rounds


def test_a_predicate_may_be_one_of_many_flags() -> None:
    x, flags = tp.zeros(3, device="cuda"), tp.tensor([False, True, False], device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        with g.if_(flags[0]):
            x.add_(1)
        with g.if_(flags[1:2]):
            x.add_(10)
        with g.while_(flags[2]):
            x.add_(100)
            flags[2].fill_(False)
    g.replay()
    assert x.tolist() == [10] * 3
    flags.copy_(tp.tensor([True, False, True], device="cuda"))
    g.replay()
    assert x.tolist() == [111] * 3


def collatz(start: int) -> tuple[int, int]:
    """Steps down to 1, and the largest number on the way."""
    steps, largest = 0, start
    while start != 1:
        start = 3 * start + 1 if start % 2 else start // 2
        steps, largest = steps + 1, max(steps, largest, start)
    return steps, largest


@pytest.mark.smoke
def test_nested_bodies() -> None:
    n, steps, largest = number(), number(), number()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        steps.zero_()
        largest.copy_(n)
        going = n != 1
        with g.while_(going):
            is_odd = n % 2 == 1
            is_even = ~is_odd
            with g.if_(is_odd):
                n.mul_(3).add_(1)
            with g.if_(is_even):
                n.copy_(n // 2)
            steps.add_(1)
            with g.if_(n > largest):
                largest.copy_(n)
            tp.ne(n, 1, out=going)
        steps.add_(0)
    for start in (1, 6, 27, 97, 2):
        n.fill_(start)
        g.replay()
        assert (steps.item(), largest.item()) == collatz(start)
        assert n.item() == 1


def test_a_block_that_is_entered_again_is_another_node() -> None:
    g, x, predicate = cuda.CUDAGraph(), tp.zeros(3, device="cuda"), flag()
    with graphs.graph(g):
        block = g.if_(predicate)
        with block:
            x.add_(1)
        x.mul_(10)
        with block:
            x.add_(1)
    g.replay()
    assert x.tolist() == [11, 11, 11]


def test_a_loop_in_a_loop_begins_anew_in_each_round() -> None:
    i, j, total, outer, inner = number(), number(), number(), number(4), number(3)
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        i.zero_()
        total.zero_()
        going = i < outer
        with g.while_(going):
            j.zero_()
            more = j < inner
            with g.while_(more):
                total.add_(i * 10 + j)
                j.add_(1)
                tp.lt(j, inner, out=more)
            i.add_(1)
            tp.lt(i, outer, out=going)
    for rounds in ((4, 3), (2, 0), (0, 5), (3, 1)):
        outer.fill_(rounds[0])
        inner.fill_(rounds[1])
        g.replay()
        assert total.item() == sum(a * 10 + b for a in range(rounds[0]) for b in range(rounds[1]))


def test_a_body_in_the_body_may_write_the_predicate() -> None:
    n, going = number(), flag()
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        going.fill_(True)
        with g.while_(going):
            n.add_(1)
            with g.if_(n >= 6):
                going.fill_(False)
    g.replay()
    assert n.item() == 6


def test_streams_fork_around_and_inside_of_bodies() -> None:
    def run() -> None:
        x, y, n, limit = tp.ones(100, device="cuda"), tp.zeros(100, device="cuda"), number(), number(3)
        side, inner, other = cuda.Stream(), cuda.Stream(), cuda.Stream()
        g = cuda.CUDAGraph()
        with graphs.graph(g):
            main = cuda.current_stream()
            side.wait_stream(main)
            n.zero_()
            going = n < limit
            with cuda.stream(side):
                z = x * 3
                with g.if_(n >= 0):
                    z.add_(1)
            with g.while_(going):
                body = cuda.current_stream()
                assert body not in (main, side)
                inner.wait_stream(body)
                with cuda.stream(inner):
                    w = x + n
                n.add_(1)
                body.wait_stream(inner)
                y.add_(w)
                tp.lt(n, limit, out=going)
            with cuda.stream(other):
                other.wait_stream(side)
                z.mul_(2)
            main.wait_stream(side)
            main.wait_stream(other)
            y.add_(z)
        cuda.synchronize()
        for _ in range(3):
            y.zero_()
            g.replay()
            assert z.tolist() == [8] * 100

    explore_orders(run, seeds=range(20)) if control_is_possible() else run()


def control_is_possible() -> bool:
    """Whether the emulated device serves."""
    return bool(tp._plugins.get("cuda").describe()["variant"] == "emulated")


def test_the_graph_that_captures_is_known() -> None:
    g, other = cuda.CUDAGraph(), cuda.CUDAGraph()
    with pytest.raises(tp.errors.StateError, match="takes part in the capture of no graph"):
        cuda.CUDAGraph.get_currently_capturing_graph()
    with graphs.graph(g):
        assert cuda.CUDAGraph.get_currently_capturing_graph() is g
        with g.if_(flag()):
            assert g.get_currently_capturing_graph() is g
            with g.while_(going := flag()):
                assert cuda.CUDAGraph.get_currently_capturing_graph() is g
                going.fill_(False)
        side = cuda.Stream()
        other.capture_begin(stream=side, capture_error_mode="thread_local")
        assert cuda.CUDAGraph.get_currently_capturing_graph() is other
        flag()
        other.capture_end()
        assert cuda.CUDAGraph.get_currently_capturing_graph() is g
    with pytest.raises(tp.errors.StateError):
        g.get_currently_capturing_graph()


def test_random_numbers_differ_in_every_round_and_replay() -> None:
    n, limit, seen = number(), number(3), tp.zeros(8, 4, device="cuda")
    x = tp.zeros(4, device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        n.zero_()
        going = n < limit
        with g.while_(going):
            x.uniform_()
            seen.index_copy_(0, n.view(1), x.view(1, 4))
            n.add_(1)
            tp.lt(n, limit, out=going)

    def rows(rounds: int) -> list[tuple[float, ...]]:
        limit.fill_(rounds)
        g.replay()
        return [tuple(row) for row in seen[:rounds].tolist()]

    tp.manual_seed(5)
    found = rows(3) + rows(5)
    assert len(set(found)) == 8
    tp.manual_seed(5)
    assert rows(3) + rows(5) == found
    tp.manual_seed(5)
    eager = []
    for _ in range(8):
        x.uniform_()
        eager.append(tuple(x.tolist()))
    assert found == eager
