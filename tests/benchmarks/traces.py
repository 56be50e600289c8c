"""Allocation traces: a text form, programs to record, and memory snapshots (ours or torch's) made into one.

    python tests/benchmarks/traces.py SNAPSHOT.pickle > TRACE.txt

A line is ``a ID BYTES STREAM`` (an allocation) or ``f ID`` (its release); STREAM is a small number, ID is never used
twice, lines that begin with # are comments. What was live when the history began is not part of a trace.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tensorplay as tp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "examples"))

MIB = 1024 * 1024


class Step(NamedTuple):
    """An allocation of nbytes on a stream, or (nbytes 0) the release of the one with that number."""

    id: int
    nbytes: int = 0
    stream: int = 0


def read(lines: Iterable[str]) -> Iterator[Step]:
    """The steps of a text."""
    for line in lines:
        kind, *numbers = line.split() or ["#"]
        if kind == "a":
            yield Step(*map(int, numbers))
        elif kind == "f":
            yield Step(int(numbers[0]))
        elif not kind.startswith("#"):
            raise ValueError(f"trace: got the line {line!r}, expected 'a ID BYTES STREAM', 'f ID' or a comment")


def write(steps: Iterable[Step]) -> Iterator[str]:
    """The lines of a text."""
    for step in steps:
        yield f"a {step.id} {step.nbytes} {step.stream}\n" if step.nbytes else f"f {step.id}\n"


def from_snapshot(snapshot: dict[str, Any]) -> Iterator[Step]:
    """The steps that a snapshot's history tells of device 0."""
    live: dict[int, int] = {}
    streams: dict[int, int] = {}
    for number, entry in enumerate(snapshot["device_traces"][0]):
        if entry["action"] == "alloc" and entry["size"] > 0:
            live[entry["addr"]] = number
            yield Step(number, entry["size"], streams.setdefault(entry["stream"], len(streams)))
        elif entry["action"] == "free_requested" and entry["addr"] in live:
            yield Step(live.pop(entry["addr"]))


# -- programs to record -----------------------------------------------------------------------------


def minilm() -> None:
    """A sentence encoder over batches of mixed lengths."""
    from minilm import Config, MiniLM

    config = Config(30522, 384, 6, 12, 1536, 512, 2, 1e-12)
    model = MiniLM(config).to("cuda").half()
    lengths = random.Random(0)
    for _ in range(40):
        batch, tokens = lengths.choice([64, 128, 256, 512]), lengths.randint(8, 256)
        model(tp.zeros(batch, tokens, dtype=tp.int64, device="cuda"))


def decode() -> None:
    """A decoder's cache that grows by one token a step, for requests of different lengths that come and go."""
    lengths = random.Random(1)
    layers, heads, width = 24, 16, 128
    for _ in range(4):
        batch = lengths.choice([8, 16, 24])
        shape = (batch, heads, lengths.randint(200, 700), width)
        caches = [tp.empty(*shape, dtype=tp.float16, device="cuda") for _ in range(2 * layers)]
        for _ in range(lengths.randint(20, 60)):
            for i, cache in enumerate(caches):
                token = tp.empty(batch, heads, 1, width, dtype=tp.float16, device="cuda")
                caches[i] = tp.cat([cache, token], 2)
            tp.empty(batch, 50257, dtype=tp.float32, device="cuda")


def mixed() -> None:
    """Blocks of 512 bytes to 200 MiB that live for random times."""
    sizes = random.Random(2)
    live: list[tp.Tensor] = []
    for _ in range(6000):
        nbytes = int(512 * (200 * MIB / 512) ** sizes.random())
        live.append(tp.empty(nbytes, dtype=tp.uint8, device="cuda"))
        while sum(tensor.numel() for tensor in live) > 6000 * MIB:
            live.pop(sizes.randrange(len(live)))


PROGRAMS = {"minilm": minilm, "decode": decode, "mixed": mixed}


def record(name: str) -> list[Step]:
    """The steps of a program, which runs now."""
    memory = tp.cuda.memory
    memory._record_memory_history("all", context=None, max_entries=2**20)
    try:
        PROGRAMS[name]()
        return list(from_snapshot(memory._snapshot()))
    finally:
        memory._record_memory_history(None)
        tp.cuda.empty_cache()


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        sys.stdout.writelines(write(from_snapshot(pickle.load(file))))
