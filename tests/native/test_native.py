"""Compiles every tests/native/test_*.c for the emulated device and runs each in its own process.

TENSORPLAY_SANITIZER=address, undefined or thread selects a build with that sanitizer, TENSORPLAY_BUILD_CUDA the
toolkit whose headers are used.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import build
import pytest
import toolkit

HERE = Path(__file__).resolve().parent
SANITIZER = os.environ.get("TENSORPLAY_SANITIZER") or None
TIME_LIMIT_S = 300  # for what hangs; the longest takes 5, under a sanitizer 60


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the objects of the emulated variant and the kernel images; built once, also by several workers."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "native"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "done").exists():
            build.compile_objects("emulated", kit(), shared / "objects", SANITIZER, strict=True)
            build.build_emulated_images(shared / "kernels")
            (shared / "done").touch()
    return shared


def kit() -> toolkit.Toolkit:
    """The toolkit whose headers the emulated device is compiled with."""
    targets = toolkit.parse_targets(os.environ.get("TENSORPLAY_BUILD_CUDA", "emulated"))
    return toolkit.find_toolkit(toolkit.headers_of_emulated(targets))


@pytest.mark.parametrize("source", sorted(HERE.glob("test_*.c")), ids=lambda path: path.stem)
def test_native(source: Path, folder: Path) -> None:
    program = folder / source.stem
    build.build_program(source, kit(), folder / "objects", folder / "kernels", program, SANITIZER)
    done = subprocess.run([program], capture_output=True, text=True, timeout=TIME_LIMIT_S, env=environment())
    assert done.returncode == 0, f"{source.name}: exit status {done.returncode}\n{done.stdout}{done.stderr}"


def environment() -> dict[str, str]:
    """Ours, without switches of the emulated device that a test does not set itself, two devices, strict sanitizers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TENSORPLAY_EMULATED_")}
    return kept | {
        "TENSORPLAY_EMULATED_DEVICES": "2",
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1",
    }
