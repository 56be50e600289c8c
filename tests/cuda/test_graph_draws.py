"""Random numbers in graphs: a replay draws what an eager run of the same program would draw in its place.

The programs have conditions, loops and streams; they are chosen by chance, and so is the order of the emulated device.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from helpers.drawing import Program

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs, sanitizer
from tensorplay.errors import StateError
from tensorplay.testing import emulated

pytestmark = pytest.mark.usefixtures("with_else")


@pytest.fixture(params=range(30))
def chance(request: pytest.FixtureRequest) -> Iterator[random.Random]:
    """Another one for each test of a name, which chooses the emulated device's order too."""
    chooser = random.Random(request.param)
    is_emulated = tensorplay._plugins.get("cuda").describe()["variant"] == "emulated"
    with emulated.seed(chooser.randrange(2**64)) if is_emulated else nullcontext():
        yield chooser


def state() -> tuple[int, int]:
    return tensorplay._plugins.get("cuda").get_rng_state(0)


def capture(program: Program) -> cuda.CUDAGraph:
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        program.run(g)
    return g


def run(program: Program, work: Callable[[], None]) -> tuple[list[Any], tuple[int, int]]:
    """What it draws, and where it leaves the generator."""
    program.clear()
    work()
    cuda.synchronize()
    return program.results(), state()


def test_replays_draw_what_eager_runs_draw(chance: random.Random) -> None:
    program = Program(chance)
    g = capture(program)
    for seed in range(3):
        program.choose_counts()
        tensorplay.manual_seed(seed)
        expected = [run(program, program.run) for _ in range(2)]
        tensorplay.manual_seed(seed)
        assert [run(program, g.replay) for _ in range(2)] == expected


def test_graphs_and_eager_work_take_turns_without_a_wait(chance: random.Random) -> None:
    """Each program has a stream of its own: only the generator is shared."""
    programs = [Program(chance), Program(chance, conditions=False)]
    captured = [capture(program) for program in programs]
    streams = [cuda.Stream(), cuda.Stream()]
    turns = [(chance.randrange(2), chance.random() < 0.5) for _ in range(8)]

    def take_turns(replays: bool) -> tuple[list[Any], tuple[int, int]]:
        for program in programs:
            program.clear()
        cuda.synchronize()
        tensorplay.manual_seed(7)
        for which, is_replay in turns:
            with cuda.stream(streams[which]):
                captured[which].replay() if replays and is_replay else programs[which].run()
        cuda.synchronize()
        return [program.results() for program in programs], state()

    assert take_turns(True) == take_turns(False)


def test_the_order_checker_knows_the_order_of_draws(chance: random.Random) -> None:
    """What orders draws on several streams is the library's, and no wait of the program."""
    program = Program(chance)
    sanitizer.enable()
    try:
        g = capture(program)
        for _ in range(2):
            program.choose_counts()
            tensorplay.manual_seed(2)
            drawn = run(program, g.replay)
            tensorplay.manual_seed(2)
            assert run(program, program.run) == drawn
    finally:
        sanitizer.disable()


def test_staged_launches_draw_on(gpu: None) -> None:
    x, y = (tensorplay.zeros(5, device="cuda") for _ in range(2))
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        y.uniform_().add_(x)
    tensorplay.manual_seed(3)
    expected = [tensorplay.rand(5, device="cuda").add_(n).tolist() for n in range(4)]
    tensorplay.manual_seed(3)
    for n in range(4):
        fresh = tensorplay.full((5,), float(n), device="cuda")
        if n % 2:
            g.stage_and_launch([x], [fresh])
        else:
            x.copy_(fresh)
            g.replay()
        assert y.tolist() == expected[n]


def draw_in_a_loop() -> tuple[cuda.CUDAGraph, tensorplay.Tensor, tensorplay.Tensor]:
    """A graph that draws once before and three times in a loop; the first and the last number."""
    first, last = (tensorplay.zeros((), device="cuda") for _ in range(2))
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        first.uniform_()
        left = tensorplay.full((), 3, device="cuda")
        predicate = left > 0
        with g.while_(predicate):
            last.uniform_()
            left.sub_(1)
            predicate.copy_(left > 0)
    return g, first, last


def numbers(seed: int, count: int) -> list[float]:
    """What `count` single numbers are that are drawn one by one."""
    tensorplay.manual_seed(seed)
    return [tensorplay.rand((), device="cuda").item() for _ in range(count)]


def test_reseeding_between_replays_changes_seed_and_counter(gpu: None) -> None:
    g, first, last = draw_in_a_loop()
    drawn = {seed: numbers(seed, 8) for seed in (1, 2)}
    for seed in (1, 2, 1):
        tensorplay.manual_seed(seed)
        for turn in range(2):
            g.replay()
            assert (first.item(), last.item()) == (drawn[seed][4 * turn], drawn[seed][4 * turn + 3])


def test_a_state_that_was_read_brings_its_numbers_back(gpu: None) -> None:
    backend = tensorplay._plugins.get("cuda")
    g, first, last = draw_in_a_loop()
    tensorplay.manual_seed(5)
    g.replay()
    seed, offset = state()
    assert (seed, offset) == (5, 16)
    g.replay()
    drawn = first.item(), last.item()
    g.replay()
    backend.set_rng_state(0, seed, offset)
    g.replay()
    assert (first.item(), last.item()) == drawn
    assert state() == (5, 32)


def test_a_seed_that_is_refused_in_a_capture_leaves_the_host_alone(gpu: None) -> None:
    tensorplay.manual_seed(1)
    with graphs.graph(cuda.CUDAGraph()):
        tensorplay.zeros(3, device="cuda").uniform_()
        with pytest.raises(StateError, match="manual_seed: .* is being captured"):
            tensorplay.manual_seed(2)
    assert tensorplay.initial_seed() == 1
    assert state() == (1, 0)


def test_each_device_has_a_generator_of_its_own(two_gpus: None) -> None:
    expected = numbers(3, 3)
    tensorplay.manual_seed(3)
    with cuda.device(1):
        first, last = (tensorplay.zeros((), device="cuda") for _ in range(2))
        predicate = tensorplay.ones((), dtype=tensorplay.bool, device="cuda")
        g = cuda.CUDAGraph()
        with graphs.graph(g):
            first.uniform_()
            with g.if_(predicate):
                last.uniform_()
            last.uniform_()
        g.replay()
    assert state() == (3, 0)
    assert tensorplay._plugins.get("cuda").get_rng_state(1) == (3, 12)
    assert [first.item(), last.item()] == [expected[0], expected[2]]


def test_the_generator_is_not_read_or_set_in_a_body(gpu: None) -> None:
    predicate = tensorplay.ones((), dtype=tensorplay.bool, device="cuda")
    g = cuda.CUDAGraph()
    tensorplay.manual_seed(1)
    with graphs.graph(g), g.if_(predicate):
        for call in (state, cuda.initial_seed, lambda: cuda.manual_seed(2)):
            with pytest.raises(StateError, match="is being captured: seeds and states of generators are read and set"):
                call()
    assert state() == (1, 0)


def test_a_body_is_open_and_another_stream_draws(gpu: None) -> None:
    predicate = tensorplay.ones((), dtype=tensorplay.bool, device="cuda")
    x = tensorplay.zeros(4, device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        outside = cuda.current_stream()
        with g.if_(predicate):
            with (
                cuda.stream(outside),
                pytest.raises(StateError, match="uniform_: a body of a conditional node is open"),
            ):
                x.uniform_()
            x.uniform_()


def test_another_stream_draws_between_if_and_else(gpu: None) -> None:
    predicate = tensorplay.ones((), dtype=tensorplay.bool, device="cuda")
    x = tensorplay.zeros(4, device="cuda")
    g, side = cuda.CUDAGraph(), cuda.Stream()
    with graphs.graph(g):
        stream = cuda.current_stream()
        side.wait_stream(stream)
        with g.if_(predicate):
            x.uniform_()
        with cuda.stream(side):
            tensorplay.zeros(4, device="cuda").uniform_()
        with g.else_(), pytest.raises(StateError, match="uniform_: another stream has drawn .* since the if"):
            x.uniform_()
        stream.wait_stream(side)


def test_asking_for_the_state_waits_and_says_so(gpu: None) -> None:
    g, *_ = draw_in_a_loop()
    tensorplay.manual_seed(3)
    g.replay()
    cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(StateError, match="get_rng_state: would wait"):
            state()
        tensorplay.manual_seed(4)  # needs no wait
        assert state() == (4, 0)
    finally:
        cuda.set_sync_debug_mode("default")


def test_a_graph_that_is_dropped_while_it_draws_leaves_the_generator_in_order(gpu: None) -> None:
    g, *_ = draw_in_a_loop()
    expected = numbers(6, 5)[4]
    tensorplay.manual_seed(6)
    g.replay()
    del g
    assert tensorplay.rand((), device="cuda").item() == expected
