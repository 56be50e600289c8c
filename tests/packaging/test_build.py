"""The build recipe: what it asks for, and the sentence that each missing piece gives."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from installs import Environment, run

WHEELS = ["cffi", "nvidia-cuda-crt", "nvidia-cuda-runtime"]
COMPILERS = ["nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvcc-cu12"]


def recipe(checkout: Path) -> Path:
    return checkout / "libtensorplay" / "build.py"


@pytest.mark.parametrize(
    ("targets", "kernels", "expected"),
    [
        ("emulated", "1", [*WHEELS, "nvidia-cuda-cccl"]),
        ("13.0", "0", WHEELS),
        ("12.4", "0", [*WHEELS[:2], "nvidia-cuda-runtime-cu12", "pip"]),
        ("13.5,emulated", "1", [*WHEELS, "nvidia-cuda-cccl", *COMPILERS]),
    ],
)
def test_requirements_follow_the_targets(checkout: Path, targets: str, kernels: str, expected: list[str]) -> None:
    found = run(sys.executable, recipe(checkout), "--requirements", "--cuda", targets, "--kernels", kernels).stdout
    assert [re.split(r"[=>]", line)[0] for line in found.split()] == expected


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ("11.8", ["'11.8'", "12.9", "emulated"]),
        ("", ["nothing to build"]),
        ("12.4,12.9", ["'12.4,12.9'", "one version"]),
    ],
)
def test_bad_targets_are_refused(checkout: Path, targets: str, words: list[str]) -> None:
    done = run(sys.executable, recipe(checkout), "--requirements", "--cuda", targets, check=False)
    assert done.returncode == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment without any of the build's requirements."""
    return Environment(tmp_path_factory.mktemp("bare") / "environment")


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PATH": "/nonexistent"}, ["gcc", "C and a C++ compiler"]),
        ({"CXX": "no-such-compiler"}, ["no-such-compiler", "g++"]),
        ({}, ["nvidia-cuda-runtime", "pip install"]),
    ],
    ids=["no compiler", "no C++ compiler", "no headers"],
)
def test_missing_piece_is_named(
    checkout: Path, bare: Environment, tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    done = run(bare.python, recipe(checkout), "--out", tmp_path / "lib", check=False, **environment)
    assert done.returncode == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


def test_missing_kernel_compiler_is_named(checkout: Path, env: Environment, tmp_path: Path) -> None:
    chosen = ("--cuda", "13.0", "--kernels", "1")
    *others, nvrtc, ptxas = run(env.python, recipe(checkout), "--requirements", *chosen).stdout.split()
    for compiler, installed in ((nvrtc, others), (ptxas, [nvrtc])):
        env.pip("install", *installed)
        done = run(env.python, recipe(checkout), *chosen, "--out", tmp_path / "lib", check=False)
        assert done.returncode == 1
        assert compiler in done.stderr
        assert "Traceback" not in done.stderr


def test_failed_build_says_why(checkout: Path, env: Environment) -> None:
    done = run(
        env.python, "-m", "pip", "install", "--no-deps", checkout / "packages" / "tensorplay-cuda",
        check=False, CXX="no-such-compiler",
    )  # fmt: skip
    assert done.returncode != 0
    assert "no no-such-compiler on PATH" in done.stdout + done.stderr
