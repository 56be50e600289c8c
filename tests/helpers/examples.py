"""Running an example as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
LIMIT_S = 300


def run(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program of that name, with these variables on top of ours, and whatever becomes of it."""
    return subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        timeout=LIMIT_S,
        check=False,
    )
