"""A copy of the checkout, wheels that are built once, and fresh environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installs import Environment, run

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = ("core", "cuda", "accelerator")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git would carry: an editable install writes into it."""
    folder = tmp_path_factory.mktemp("checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "libtensorplay", "packages"]
    for name in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def dist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Source distributions, and wheels that were built from them."""
    out = tmp_path_factory.mktemp("dist")
    for name in DISTRIBUTIONS:
        run(sys.executable, "-m", "build", checkout / "packages" / f"tensorplay-{name}", "--outdir", out)
    return out


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    """A fresh virtual environment."""
    return Environment(tmp_path / "environment")
