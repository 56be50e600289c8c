"""Random programs on several streams, with conditions, which drop memory as they go: equal to the host as graphs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count

import pytest
from helpers.replays import REPLAYS, capturing, order, poison

import tensorplay as tp
from tensorplay import Tensor, cuda

pytestmark = pytest.mark.usefixtures("gpu")

INPUTS, FLAGS, STREAMS = 3, 2, 4
STEPS, STEPS_OF_BODY, DEPTH = 30, 10, 2
SIZES = (40, 3000, 300_000)  # of the small pool, of the large one
PROGRAMS = 60
OPERATIONS = {"add": tp.add, "mul": tp.mul, "sub": tp.sub}


@dataclass(frozen=True)
class Step:
    """A new value of two others, or a change of the first in place ("add_")."""

    what: str
    stream: int
    first: int
    second: int
    made: int


@dataclass(frozen=True)
class Drop:
    """The end of a value."""

    number: int


@dataclass(frozen=True)
class Body:
    """What is done on one condition; it changes values from around it, and drops what it makes."""

    flag: int
    stream: int
    steps: Program


Program = list[Step | Drop | Body]


def invent(chance: random.Random, length: int, around: list[int], numbers: count[int], depth: int = 0) -> Program:
    """Values are numbered as they are made; those from around stay."""
    steps: Program = []
    own: list[int] = []
    for _ in range(length):
        what = chance.choice([*OPERATIONS, "add_", "drop", "drop", "body"])
        live = around + own
        if what == "body":
            if depth < DEPTH and chance.random() < 0.4:
                body = invent(chance, STEPS_OF_BODY, live, numbers, depth + 1)
                stream = 0 if depth else chance.randrange(STREAMS)  # One in a body begins on the body's own stream.
                steps.append(Body(chance.randrange(FLAGS), stream, body))
        elif what == "drop":
            if own:
                steps.append(Drop(own.pop(chance.randrange(len(own)))))
        else:
            made = -1 if what == "add_" else next(numbers)
            steps.append(Step(what, chance.randrange(STREAMS), chance.choice(live), chance.choice(live), made))
            own += [made] if made >= 0 else []
    return steps + ([Drop(number) for number in own] if depth else [])


def run_on_host(program: Program, values: dict[int, Tensor], flags: list[bool]) -> None:
    """Changes `values`, which are by number."""
    for step in program:
        if isinstance(step, Body):
            if flags[step.flag]:
                run_on_host(step.steps, values, flags)
        elif isinstance(step, Drop):
            del values[step.number]
        elif step.what == "add_":
            values[step.first].add_(values[step.second])
        else:
            values[step.made] = OPERATIONS[step.what](values[step.first], values[step.second])


@dataclass
class Value:
    """A tensor, the stream that made it, where it was written last, and where it was used since then and ever."""

    tensor: Tensor
    owner: cuda.Stream
    writer: cuda.Stream
    readers: set[cuda.Stream] = field(default_factory=set)
    users: set[cuda.Stream] = field(default_factory=set)


class Capture:
    """Runs programs in a capture. Each stream waits for those whose values it uses, and for no others."""

    def __init__(self, graph: cuda.CUDAGraph, flags: list[Tensor]) -> None:
        self._graph, self._flags, self._depth = graph, flags, -1
        self._sides = [[cuda.Stream() for _ in range(STREAMS - 1)] for _ in range(DEPTH + 1)]

    def run(self, program: Program, tensors: dict[int, Tensor]) -> dict[int, Tensor]:
        """The values that are left; the current stream waits for all of them."""
        here = cuda.current_stream()
        self._depth += 1
        streams = [here, *self._sides[self._depth]]
        for stream in streams[1:]:
            stream.wait_stream(here)
        values = {number: Value(tensor, here, here) for number, tensor in tensors.items()}
        del tensors  # Else it would hold what is dropped.
        for step in program:
            if isinstance(step, Drop):
                value = values.pop(step.number)
                for user in value.users - {value.owner}:
                    value.tensor.record_stream(user)
                del value
            elif isinstance(step, Body):
                self._run_body(step, streams, values)
                for stream in streams[1:] if self._depth else []:
                    stream.wait_stream(here)  # Forks of a body end before one inside of it.
            else:
                self._step(step, streams[step.stream], values)
        for stream in streams[1:]:
            here.wait_stream(stream)
        self._depth -= 1
        return {number: value.tensor for number, value in values.items()}

    def _run_body(self, body: Body, streams: list[cuda.Stream], values: dict[int, Value]) -> None:
        here = streams[body.stream]
        for stream in streams:
            here.wait_stream(stream)
        with cuda.stream(here), self._graph.if_(self._flags[body.flag]):
            self.run(body.steps, {number: value.tensor for number, value in values.items()})
        for value in values.values():
            value.writer, value.readers = here, {here}
            value.users.add(here)

    def _step(self, step: Step, here: cuda.Stream, values: dict[int, Value]) -> None:
        first, second = values[step.first], values[step.second]
        for other in {first.writer, second.writer} | (first.readers if step.made < 0 else set()):
            here.wait_stream(other)
        with cuda.stream(here):
            if step.made < 0:
                first.tensor.add_(second.tensor)
            else:
                made = OPERATIONS[step.what](first.tensor, second.tensor)
                values[step.made] = Value(made, here, here)
        for value in (first, second):
            value.readers.add(here)
            value.users.add(here)
        if step.made < 0:
            first.writer, first.readers = here, set()


@pytest.mark.parametrize("size", SIZES)
def test_a_program_as_a_graph_gives_what_the_host_gives(size: int, own_seed: int) -> None:
    for number in range(PROGRAMS if size < SIZES[-1] else PROGRAMS // 10):
        seed = own_seed + number
        chance = random.Random(seed)
        program, g = invent(chance, STEPS, list(range(INPUTS)), count(INPUTS)), cuda.CUDAGraph()
        statics = {place: tp.zeros(size, dtype=tp.int64, device="cuda") for place in range(INPUTS)}
        flags = [tp.zeros((), dtype=tp.bool, device="cuda") for _ in range(FLAGS)]
        with order(seed), capturing(g):
            outputs = Capture(g, flags).run(program, statics)
        for round_ in range(REPLAYS):
            values = {place: tp.arange(size) % chance.randrange(3, 100) - 20 for place in statics}
            wanted = [chance.random() < 0.6 for _ in flags]
            poison(list(outputs.values()), round_)
            for place, static in statics.items():
                static.copy_(values[place])
            for flag, value in zip(flags, wanted, strict=True):
                flag.fill_(value)
            with order(seed + 1000 * round_):
                g.replay()
                got = {place: tensor.cpu() for place, tensor in outputs.items()}
            run_on_host(program, values, wanted)
            assert got.keys() == values.keys()
            for place, tensor in got.items():
                assert tp.equal(tensor, values[place]), f"seed {seed}, replay {round_}, value {place}: {program}"
