"""The page about the doctor explains each fault that the sources know, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def known_faults() -> Iterator[str]:
    """First arguments of `Fault` and of what makes one."""
    for path in ROOT.glob("packages/*/src/**/*.py"):
        text = path.read_text()
        yield from re.findall(r'\b(?:Fault|_none)\(\s*"([a-z-]+)"', text)
        yield from re.findall(r'^[A-Z_]+_MISSING = "([a-z-]+)"$', text, re.M)


def test_every_fault_has_a_row() -> None:
    page = (ROOT / "docs" / "guide" / "doctor.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \|", page, re.M)
    assert len(set(rows)) == len(rows)
    assert set(rows) == set(known_faults())
