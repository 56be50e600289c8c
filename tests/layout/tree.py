"""The sources as the layout tests read them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "libtensorplay"
SRC = LIB / "src"
PACKAGES = ROOT / "packages"
CORE = PACKAGES / "tensorplay-core" / "src" / "tensorplay"
CUDA = PACKAGES / "tensorplay-cuda" / "src" / "tensorplay"
ACCELERATOR = PACKAGES / "tensorplay-accelerator" / "src" / "tensorplay"

# A definition starts in the first column: type, name, arguments, and a brace before any semicolon.
DEFINITION = re.compile(r"^(?!typedef|static|#|return|extern)[A-Za-z_][\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)


def c_sources() -> list[Path]:
    """The library's own .c files."""
    return sorted(SRC.glob("**/*.c"))


def python_sources(*folders: Path) -> list[Path]:
    """Python files under these folders, without what is built."""
    return sorted(path for folder in folders for path in folder.glob("**/*.py") if "lib" not in path.parts)


@cache
def code(path: Path) -> str:
    """A C file without comments and without what stands in string literals."""
    return bare(path.read_text())


def bare(text: str) -> str:
    """C text without these."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


def definitions(path: Path) -> list[str]:
    """Functions that a .c file defines with external linkage."""
    return DEFINITION.findall(code(path))


def calls(path: Path) -> set[str]:
    """tp_ and tp__ functions that a .c file names."""
    return set(re.findall(r"\btp__?[a-z]\w*(?=\s*\()", code(path)))
