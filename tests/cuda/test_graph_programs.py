"""Random programs on several streams, which drop memory as they go: as graphs they give what the host gives."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from helpers.replays import REPLAYS, capturing, order, poison

import tensorplay as tp
from tensorplay import Tensor, cuda

pytestmark = pytest.mark.usefixtures("gpu")

INPUTS, STREAMS, STEPS = 3, 4, 30
SIZES = (40, 3000, 300_000)  # of the small pool, of the large one
PROGRAMS = 60


@dataclass(frozen=True)
class Step:
    """A new value ("add", "mul", "sub"), a change in place ("add_"), or the end of a value ("drop")."""

    what: str
    stream: int
    first: int
    second: int


def invent(chance: random.Random) -> list[Step]:
    """Values are numbered as they are made; those of the inputs stay."""
    steps, made, live = [], INPUTS, list(range(INPUTS))
    for _ in range(STEPS):
        what = chance.choice(["add", "mul", "sub", "add_", "drop", "drop"])
        droppable = live[INPUTS:]
        if what == "drop":
            if droppable:
                step = Step(what, 0, chance.choice(droppable), 0)
                live.remove(step.first)
                steps.append(step)
            continue
        steps.append(Step(what, chance.randrange(STREAMS), chance.choice(live), chance.choice(live)))
        if what != "add_":
            live.append(made)
            made += 1
    return steps


@dataclass
class Value:
    """A tensor, the stream that made it, where it was written last, and where it was used since then and ever."""

    tensor: Tensor
    owner: int
    writer: int
    readers: set[int] = field(default_factory=set)
    users: set[int] = field(default_factory=set)


def run_on_host(steps: list[Step], inputs: list[Tensor]) -> list[Tensor]:
    values = [tensor.clone() for tensor in inputs]
    dropped = set()
    for step in steps:
        if step.what == "drop":
            dropped.add(step.first)
        elif step.what == "add_":
            values[step.first].add_(values[step.second])
        else:
            values.append(getattr(tp, step.what)(values[step.first], values[step.second]))
    return [value for number, value in enumerate(values) if number not in dropped]


def run_on_streams(steps: list[Step], inputs: list[Tensor]) -> list[Tensor]:
    """Each stream waits for those whose values it uses, and for no others; the current one for all at the end."""
    streams = [cuda.current_stream(), *(cuda.Stream() for _ in range(STREAMS - 1))]
    for stream in streams[1:]:
        stream.wait_stream(streams[0])
    values: dict[int, Value] = {number: Value(tensor, 0, 0) for number, tensor in enumerate(inputs)}
    made = INPUTS
    for step in steps:
        if step.what == "drop":
            value = values.pop(step.first)
            for user in value.users - {value.owner}:
                value.tensor.record_stream(streams[user])
            continue
        first, second, here = values[step.first], values[step.second], step.stream
        writes = step.what == "add_"
        for other in {first.writer, second.writer} | (first.readers if writes else set()):
            streams[here].wait_stream(streams[other])
        with cuda.stream(streams[here]):
            made_here = getattr(tp, step.what)(first.tensor, second.tensor) if not writes else None
            if writes:
                first.tensor.add_(second.tensor)
        for value in (first, second):
            value.readers.add(here)
            value.users.add(here)
        if writes:
            first.writer, first.readers = here, set()
        if made_here is not None:
            values[made] = Value(made_here, here, here)
            made += 1
        del made_here, first, second, value  # Else a name would keep what the next step drops.
    for stream in streams[1:]:
        streams[0].wait_stream(stream)
    return [values[number].tensor for number in sorted(values)]


@pytest.mark.parametrize("size", SIZES)
def test_a_program_as_a_graph_gives_what_the_host_gives(size: int, fresh_seed: int) -> None:
    for number in range(PROGRAMS if size < SIZES[-1] else PROGRAMS // 10):
        seed = fresh_seed + number
        chance = random.Random(seed)
        steps, g = invent(chance), cuda.CUDAGraph()
        statics = [tp.zeros(size, dtype=tp.int64, device="cuda") for _ in range(INPUTS)]
        with order(seed), capturing(g):
            outputs = run_on_streams(steps, statics)
        for round_ in range(REPLAYS):
            inputs = [tp.arange(size) % chance.randrange(3, 100) - 20 for _ in statics]
            poison(outputs, round_)
            for target, source in zip(statics, inputs, strict=True):
                target.copy_(source)
            with order(seed + 1000 * round_):
                g.replay()
                got = [tensor.cpu() for tensor in outputs]
            for value, expected in zip(got, run_on_host(steps, inputs), strict=True):
                assert tp.equal(value, expected), f"seed {seed}, replay {round_}: {steps}"
