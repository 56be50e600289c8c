"""Shared libraries that tests make of a few lines of C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def shared_library(path: Path, source: str, **macros: int) -> Path:
    """Compiles the source, with these macros, into a library of that path."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "these tests need a C compiler, as the build does"
    file = path.with_name(f"{path.name}.c")
    file.write_text(source)
    defines = [f"-D{name}={value}" for name, value in macros.items()]
    subprocess.run([compiler, "-shared", "-fPIC", *defines, "-o", path, file], check=True)
    return path
