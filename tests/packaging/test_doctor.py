"""The doctor in environments as pip leaves them, and what a C program finds there."""

from __future__ import annotations

import json
from pathlib import Path

from installs import Environment, run, write_wheel


def faults(env: Environment) -> list[str]:
    """Codes of what the doctor finds."""
    report = json.loads(run(env.python, "-m", "tensorplay.doctor", "--json", TENSORPLAY_CUDA_RUNTIME="emulated").stdout)
    return [fault["code"] for fault in report["faults"]]


def test_another_tensorplay_over_ours_is_found_and_the_advice_mends_it(
    dist: Path, env: Environment, tmp_path: Path
) -> None:
    env.pip("install", *dist.glob("tensorplay_core-*.whl"), *dist.glob("tensorplay_cuda-*.whl"))
    assert faults(env) == []
    # Another project's package, with our name.
    other = write_wheel(tmp_path, "tensorplay", "9.9", {"tensorplay/__init__.py": b'__version__ = "9.9"\n'})
    env.pip("install", "--no-deps", other)
    assert faults(env) == ["foreign-package"]
    env.pip("uninstall", "-y", "tensorplay")
    wheels = [*dist.glob("tensorplay_core-*.whl"), *dist.glob("tensorplay_cuda-*.whl")]
    env.pip("install", "--force-reinstall", "--no-deps", *wheels)
    assert faults(env) == []


def test_a_c_program_finds_header_library_and_kernels(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("tensorplay_core-*.whl"), *dist.glob("tensorplay_cuda-*.whl"))
    command = ("-m", "tensorplay.cuda", "--include", "--library", "--kernels")
    include, library, kernels = run(env.python, *command, TENSORPLAY_CUDA_RUNTIME="emulated").stdout.splitlines()
    assert {path.name for path in Path(include).iterdir()} == {"tensorplay.h", "tensorplay_codes.h"}
    assert Path(library).is_file()
    assert list(Path(kernels).glob("*.z"))
    done = run(env.python, *command, check=False, TENSORPLAY_CUDA_RUNTIME="none")
    assert done.returncode == 1
    assert "`unset TENSORPLAY_CUDA_RUNTIME`" in done.stderr
