"""Tests mirror the sources: the same noun in C, Python and tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tree import ACCELERATOR, CORE, CUDA, LIB, PACKAGES, ROOT, code, python_sources

HEADERS = (LIB / "include" / "tensorplay.h", LIB / "emulated" / "emulated.h")


def public_modules() -> list[Path]:
    """Modules whose whole dotted name is public."""
    found = python_sources(CORE, CUDA, ACCELERATOR)
    return [path for path in found if not any(part.startswith("_") for part in path.relative_to(PACKAGES).parts[3:])]


@pytest.mark.parametrize("path", public_modules(), ids=lambda path: str(path.relative_to(PACKAGES)))
def test_public_module_has_a_test(path: Path) -> None:
    tests = [test.stem for test in (ROOT / "tests").glob("*/test_*.py")]
    own, package = f"test_{path.stem}", f"test_{path.parent.name}"
    assert own in tests or any(re.fullmatch(rf"{package}(_\w+)?", test) for test in tests)


def test_public_function_is_used_by_python_or_a_test() -> None:
    declared = set(re.findall(r"\b(tp_[a-z]\w*)\(", code(LIB / "include" / "tensorplay.h")))
    tests = [path for path in (ROOT / "tests").glob("*/*") if path.suffix in (".c", ".py")]
    users = [*LIB.glob("binding/*.c"), *python_sources(CUDA), *tests]
    used = {name for path in users for name in re.findall(r"\btp_[a-z]\w*", path.read_text())}
    assert declared
    assert sorted(declared - used) == []


def test_numbers_that_python_repeats_are_those_of_the_headers() -> None:
    """A few are wanted before the library is bound; a comment behind them names the macros."""
    defined = {
        name: int(number)
        for header in HEADERS
        for name, number in re.findall(r"^#define (\w+) \(?(-?\d+)\)?(?: .*)?$", header.read_text(), re.M)
    }
    repeated = [
        pair
        for path in python_sources(CORE, CUDA)
        for numbers, macros in re.findall(r"^[A-Z_, ]+ = ([-\d, ]+)  # ((?:TP|EMU)_.*)$", path.read_text(), re.M)
        for pair in zip(re.findall(r"(?:TP|EMU)_\w+", macros), map(int, numbers.split(",")), strict=True)
    ]
    assert len(repeated) >= 28
    assert [(name, defined[name]) for name, _ in repeated] == repeated
