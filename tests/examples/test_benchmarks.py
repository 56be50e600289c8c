"""The programs of tests/benchmarks at their smallest sizes: each prints its table. What they measure is no test."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
LEAST = {
    "bench_allocator": "--number 10",
    "bench_graphs": "--number 1",
    "checker_cost": "--rounds 1 --number 1 --repeats 1",
    "host_cost": "--number 1",
    "model": "--shapes 1x4 --runs 1",
    "replay_trace": "",
    "throughput": "--mib 1 --matmul 32 --loops 1",
    "transfers": "--mib 1",
}
NEEDS_16_GIB = {"TENSORPLAY_EMULATED_MEMORY": "16GiB"}  # ten thousand blocks of up to 1 MiB


def printed(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{program}.py"), *LEAST[program].split(), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **NEEDS_16_GIB},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("device", ["cuda"], indirect=True)
@pytest.mark.parametrize(
    ("program", "row"),
    [
        ("bench_allocator", "C: allocate + free 1 KiB"),
        ("bench_graphs", "stage 32 fresh inputs and replay"),
        ("host_cost", "with stream(s)"),
        ("throughput", "matmul f64"),
        ("transfers", "pinned to device"),
    ],
)
def test_the_table_is_printed(device: str, program: str, row: str) -> None:
    assert f"\n{row} " in printed(program)


@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_the_checkers_cost_beside_another_library(device: str) -> None:
    from tensorplay.cuda import _native

    assert "\nEvent().record() " in printed("checker_cost", str(_native.FOLDER))


@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_a_model_is_timed(device: str, weights_folder: Path) -> None:
    assert "\nfloat16, batch 1, 4 tokens " in printed("model")


@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_a_trace_is_replayed(device: str, tmp_path: Path) -> None:
    trace = tmp_path / "least.txt"
    trace.write_text("a 1 1024 0\nf 1\n")
    assert "\nleast " in printed("replay_trace", str(trace))


def test_a_snapshots_history_is_a_trace(tmp_path: Path) -> None:
    """torch's snapshots have these entries, and more keys."""
    entries = [
        ("segment_alloc", 4096, 2 << 20, 0),
        ("free_requested", 512, 100, 0),  # allocated before the history begins
        ("alloc", 4096, 1000, 0),
        ("alloc", 8192, 3000, 77),
        ("free_requested", 4096, 1000, 0),
        ("free_completed", 4096, 1000, 0),
        ("alloc", 4096, 500, 0),
        ("oom", 0, 9, 0),
    ]
    history = [dict(zip(("action", "addr", "size", "stream"), entry, strict=True)) for entry in entries]
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [history]}))
    command = [sys.executable, str(FOLDER / "traces.py"), str(tmp_path / "snapshot.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "a 2 1000 0\na 3 3000 1\nf 2\na 6 500 0\n"
