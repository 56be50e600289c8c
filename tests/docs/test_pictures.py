"""The pictures in the guide are what the allocator, streams and graphs do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers import fresh

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.parametrize("name", ["graphs_picture", "memory_picture", "streams_picture"])
def test_the_picture_is_up_to_date(name: str, tmp_path: Path) -> None:
    program = shutil.copy(GUIDE / f"{name}.py", tmp_path)
    fresh.run(
        f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')", TENSORPLAY_CUDA_RUNTIME="emulated"
    )
    assert (tmp_path / f"{name}.svg").read_text() == (GUIDE / f"{name}.svg").read_text()
