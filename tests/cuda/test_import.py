"""What importing does: little, and nothing to the device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from helpers import fresh

from tensorplay import _wheels, cuda

# Modules that take milliseconds and that an import does not need.
LATE = ("_cffi_backend", "subprocess", "secrets", "tensorplay.cuda._native", "tensorplay.cuda._backend")


def test_import_is_light() -> None:
    code = f"""
        import sys
        import numpy, ml_dtypes, tensorplay
        before = set(sys.modules)
        import tensorplay.cuda
        print(set({LATE!r}) & (set(sys.modules) - before))
    """
    assert fresh.run(code) == "set()\n"


def test_without_core_the_import_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "tensorplay").mkdir()
    (tmp_path / "tensorplay" / "cuda").symlink_to(Path(cuda.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import tensorplay.cuda"],
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    advice = _wheels.install("tensorplay-cuda")
    assert done.stderr.endswith(f"tensorplay.cuda: tensorplay-core is not installed; type {advice}\n")


def test_public_names_exist_and_are_told_by_dir() -> None:
    for name in cuda.__all__:
        assert getattr(cuda, name) is not None
        assert name in dir(cuda)
    assert sorted(cuda.__all__) == cuda.__all__


def test_import_of_a_module_and_of_the_class_of_its_name() -> None:
    code = """
        import sys
        import tensorplay.cuda.device
        from tensorplay.cuda import device
        from tensorplay.cuda.device import current_device
        assert isinstance(device, type) and current_device() == 0
    """
    fresh.run(code)
