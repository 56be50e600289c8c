"""A copy of the checkout, wheels that are built once, and fresh environments."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from installs import FULL, Environment, run

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


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The full wheel, and the seconds that its build took once its requirements were installed."""
    env = Environment(tmp_path_factory.mktemp("build") / "environment")
    recipe = checkout / "libtensorplay" / "build.py"
    requirements = run(env.python, recipe, "--requirements", **FULL).stdout.split()
    env.pip("install", "build", "hatchling>=1.27", *requirements)
    out = tmp_path_factory.mktemp("full")
    start, used = time.monotonic(), _processor_seconds()
    source = checkout / "packages" / "tensorplay-cuda"
    run(env.python, "-m", "build", "--wheel", "--no-isolation", source, "--outdir", out, **FULL)
    # Two cores share the work. Where other programs have a part of them, the clock counts those too.
    seconds = min(time.monotonic() - start, (_processor_seconds() - used) / 2)
    return next(out.glob("*.whl")), seconds


def _processor_seconds() -> float:
    """What child processes that have ended used of the processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.fixture(scope="session")
def unpacked(wheel: tuple[Path, float], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The full wheel's files."""
    folder = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel[0]).extractall(folder)
    return folder


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    """A fresh virtual environment."""
    return Environment(tmp_path / "environment")
