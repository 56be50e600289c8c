"""The marker and the fixture of the pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("emulated")


def test_marker_and_fixture(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tensorplay.testing.pytest_orders"]\n')
    (tmp_path / "test_program.py").write_text(
        """
import pytest
import tensorplay as tp
from tensorplay.testing import SeedError

runs = []

def race(wait):
    side = tp.cuda.Stream()
    x = tp.zeros(8, device="cuda")
    side.wait_stream(tp.cuda.current_stream())
    with tp.cuda.stream(side):
        x.fill_(1)
    if wait:
        tp.cuda.current_stream().wait_stream(side)
    assert x.tolist() == [1] * 8

@pytest.mark.orders
def test_without_a_wait():
    race(False)

@pytest.mark.orders(seeds=5)
@pytest.mark.parametrize("wait", [True])
def test_with_a_wait(wait, tmp_path):
    runs.append(tmp_path)
    race(wait)

def test_five_runs():
    assert len(runs) == 5 and len(set(runs)) == 1

def test_fixture(explore_orders):
    with pytest.raises(SeedError):
        explore_orders(lambda: race(False))
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert "SeedError: test_without_a_wait failed with seed" in done.stdout
