"""The picture in the guide's page on memory is what the allocator does."""

from __future__ import annotations

import shutil
from pathlib import Path

from helpers import fresh

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def test_the_picture_is_up_to_date(tmp_path: Path) -> None:
    program = shutil.copy(GUIDE / "memory_picture.py", tmp_path)
    fresh.run(
        f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')", TENSORPLAY_CUDA_RUNTIME="emulated"
    )
    assert (tmp_path / "memory_picture.svg").read_text() == (GUIDE / "memory_picture.svg").read_text()
