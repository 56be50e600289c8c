"""The example as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

on_cuda = pytest.mark.parametrize("device", ["cuda"], indirect=True)
PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "double_buffer.py"


def run(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--mib", "2", "--batches", "24"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@on_cuda
def test_copies_hide_behind_the_work(device: str) -> None:
    found = dict(re.findall(r"^(\w[\w ]*?) +([\d.]+) ms", run(), re.M))
    copies, computing = float(found["copies alone"]), float(found["computing alone"])
    assert float(found["one after the other"]) > 1.5 * max(copies, computing)
    if os.environ.get("TENSORPLAY_CUDA_RUNTIME") == "emulated":  # whose time is the same in every run
        assert float(found["overlapped"]) <= 1.1 * max(copies, computing)


@on_cuda
def test_every_order_is_declared(device: str) -> None:
    assert "overlapped" in run(TENSORPLAY_CUDA_SANITIZER="1")
