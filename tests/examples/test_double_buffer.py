"""The example as a user runs it."""

from __future__ import annotations

import os
import re

import double_buffer
import pytest
from helpers import examples

import tensorplay as tp

on_cuda = pytest.mark.parametrize("device", ["cuda"], indirect=True)


def run(**environment: str) -> str:
    done = examples.run("double_buffer", "--mib", "2", "--batches", "24", **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@on_cuda
@pytest.mark.parametrize("rounds", [62, 63])
def test_the_work_tells_batches_apart(device: str, rounds: int) -> None:
    # Otherwise the program's comparison with the run in one stream could not fail.
    batches = [tp.full((64,), float(value), device=device) for value in range(7)]
    assert len({double_buffer.compute(batch, rounds).item() for batch in batches}) == len(batches)


@on_cuda
def test_copies_hide_behind_the_work(device: str) -> None:
    output = run()
    found = dict(re.findall(r"^(\w[\w ]*?) +([\d.]+) ms", output, re.M))
    copies, computing = float(found["copies alone"]), float(found["computing alone"])
    assert float(found["one after the other"]) > 1.5 * max(copies, computing)
    if os.environ.get("TENSORPLAY_CUDA_RUNTIME") == "emulated":  # whose time is the same in every run
        assert "virtual" in output
        assert float(found["overlapped"]) <= 1.1 * max(copies, computing)


@on_cuda
def test_every_order_is_declared(device: str) -> None:
    assert "overlapped" in run(TENSORPLAY_CUDA_SANITIZER="1")
