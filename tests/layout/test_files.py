"""Sizes of files, length of lines, tables that are made, and what must not be written down."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import tables
from tree import LIB, PACKAGES, ROOT

LIMITS = {".c": 450, ".h": 450, ".cpp": 450, ".cu": 450, ".py": 350}
LINE = 120


def tracked() -> list[Path]:
    """Source files of the working tree that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in sorted(set(names)) if (ROOT / name).is_file()]


SOURCES = [path for path in tracked() if path.suffix in LIMITS]


def test_sources_are_found() -> None:
    assert LIB / "src" / "error.c" in SOURCES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_is_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    if path.name != "tensorplay.h":  # read as a list, so it is one file
        assert len(lines) <= LIMITS[path.suffix]
    long = [number for number, line in enumerate(lines, 1) if len(line) > LINE]
    assert not long, f"lines over {LINE} columns: {long}"


def test_tables_are_fresh() -> None:
    made = {
        tables.CORE_TABLES: tables.core_tables(),
        tables.CUDA_TABLES: tables.cuda_tables(),
        tables.FUNCTIONS: tables.functions(),
        **{path: tables.with_version(path.read_text()) for path in tables.VERSION_COPIES},
    }
    for path, text in made.items():
        assert path.read_text() == text, f"{path.name} is stale: run python libtensorplay/tables.py"


def test_each_distribution_carries_the_licence() -> None:
    for project in sorted(PACKAGES.glob("*/pyproject.toml")):
        assert project.with_name("LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_nothing_is_installed_by_a_name_that_is_anothers_on_an_index() -> None:
    named = re.compile(r"pip3? install[^`\n]*[ '\"]tensorplay(?![\w-]*-\*\.whl)")
    found = [path for path in tracked() if path.suffix in (".py", ".md") and named.search(path.read_text())]
    assert not found, f"type files, as tensorplay/_wheels.py of core does: {found}"


def test_version_stands_in_one_file_and_its_copies() -> None:
    version = re.search('^__version__ = "(.*)"$', tables.VERSION.read_text(), re.M)
    assert version
    named = [
        path
        for path in tracked()
        if path.suffix in (".py", ".toml", ".ini", ".c", ".h") and f'"{version[1]}"' in path.read_text()
    ]
    assert sorted(named) == sorted([tables.VERSION, *tables.VERSION_COPIES])
