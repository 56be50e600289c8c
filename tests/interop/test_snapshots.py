"""Snapshots of memory as torch's own reader takes them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import tensorplay as tp

reader = pytest.importorskip("torch.cuda._memory_viz")


def test_torchs_reader_takes_a_snapshot(cuda: Any, tmp_path: Path) -> None:
    cuda.memory._record_memory_history()
    kept = [tp.ones(2**20, device="cuda"), tp.ones(300, device="cuda") * 2]
    cuda.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    cuda.memory._record_memory_history(None)
    taken = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    assert f"segments: {len(taken['segments'])}" in reader.segsum(taken)
    assert "test_torchs_reader_takes_a_snapshot" in reader.trace(taken)
    by_site = reader.memory(taken, format_flamegraph=lambda lines: lines)
    assert f"test_snapshots.py:{test_torchs_reader_takes_a_snapshot.__code__.co_firstlineno + 2}" in by_site
    for page in (reader.trace_plot(taken), reader.segment_plot(taken)):
        assert "<script" in page
    assert len(kept) == 2
