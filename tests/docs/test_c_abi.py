"""The guide's C program is compiled against the installed package, runs without Python, and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tensorplay import _tables as core_tables
from tensorplay import cuda
from tensorplay.cuda import __main__ as command
from tensorplay.cuda import _tables as cuda_tables

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "c-abi.md"
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")

compilers = pytest.mark.parametrize(
    "compiler",
    [["cc", "-std=c11"], ["c++", "-std=c++11", "-x", "c++"], ["c++", "-std=c++17", "-x", "c++"]],
    ids=["C", "C++11", "C++17"],
)


def blocks(language: str) -> str:
    """All blocks of a language, one after the other."""
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.M | re.S))


def folder_of_headers(capsys: pytest.CaptureFixture[str]) -> Path:
    assert command.main(["--include"]) == 0
    return Path(capsys.readouterr().out.strip())


def test_program_runs_and_prints_what_the_page_says(tmp_path: Path) -> None:
    if not cuda.is_available():
        pytest.skip(f"no CUDA device: {cuda.unavailable_reason()}")
    (tmp_path / "demo.c").write_text(blocks("c"))
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", "-e", "-c", blocks("sh")],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "TENSORPLAY_EMULATED_DEVICES": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    visible = 1 if cuda._library.native.choice().variant == "emulated" else cuda.device_count()
    assert done.stdout == blocks("text").replace("1 visible", f"{visible} visible")


@compilers
def test_headers_compile_without_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], compiler: list[str]
) -> None:
    source = tmp_path / "include.c"
    source.write_text("#include <tensorplay_codes.h>\n#include <tensorplay.h>\nint main(void) { return TP_OK; }\n")
    subprocess.run([*compiler, *WARNINGS, f"-I{folder_of_headers(capsys)}", source], check=True)


@compilers
def test_program_compiles_without_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], compiler: list[str]
) -> None:
    (tmp_path / "demo.c").write_text(blocks("c"))
    subprocess.run([*compiler, *WARNINGS, f"-I{folder_of_headers(capsys)}", tmp_path / "demo.c"], check=True)


def test_codes_are_those_of_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder_of_headers(capsys) / "tensorplay_codes.h").read_text()
    found = {name: int(number) for name, number in re.findall(r"^  TP_(\w+) = (-?\d+),$", text, re.M)}
    expected = {name: status for status, (name, *_) in cuda_tables.STATUSES.items()}
    expected |= {f"DTYPE_{name}": code for name, (code, *_) in core_tables.DTYPES.items()}
    for macro in ("UNARY", "BINARY", "REDUCE", "ARG_REDUCE", "SCAN"):
        expected |= {f"{macro}_{name}": code for name, (code, *_) in getattr(core_tables, macro).items()}
    lists = {
        "TRACE": cuda_tables.TRACE_ACTIONS,
        "STAT": cuda_tables.STATISTICS,
        "HOST_STAT": cuda_tables.HOST_STATISTICS,
    }
    for prefix, names in lists.items():
        expected |= {f"{prefix}_{name.replace('.', '_')}": place for place, name in enumerate(names)}
        expected[f"{prefix}_COUNT"] = len(names)
    assert found == expected
