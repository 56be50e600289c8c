"""The variables of the environment that core lists are those that the sources read."""

from __future__ import annotations

import re

from tree import CORE, LIB, PACKAGES

# Of the build, not of a running program; and an include guard.
BUILD = {"TENSORPLAY_BUILD_CUDA", "TENSORPLAY_KERNELS", "TENSORPLAY_CODES_H"}
LIST = CORE / "_environment.py"


def names(text: str) -> set[str]:
    return set(re.findall(r"\bTENSORPLAY_[A-Z_]+", text))


def test_every_variable_that_is_read_is_listed() -> None:
    python = [path for path in PACKAGES.glob("*/src/**/*.py") if path != LIST]
    sources = [*python, *LIB.glob("src/**/*.c"), *LIB.glob("emulated/*.c")]
    read: set[str] = set().union(*(names(path.read_text()) for path in sources))
    assert read - BUILD == names(LIST.read_text())
