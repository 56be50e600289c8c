"""The reference is what the docstrings say, and leaves nothing public out."""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tensorplay import cuda

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
MODULES = [
    "tensorplay",
    "tensorplay.nn",
    "tensorplay.nn.functional",
    "tensorplay.nn.init",
    "tensorplay.cuda",
    "tensorplay.compiler.backends.cudagraphs",
    "tensorplay.accelerator",
    "tensorplay.testing.emulated",
]


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """The program that writes the pages."""
    spec = importlib.util.spec_from_file_location("make", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_fresh(make: ModuleType) -> None:
    if not hasattr(cuda, "__all__"):
        pytest.skip("tensorplay-cuda is not installed")
    stale = [name for name, text in make.pages().items() if (FOLDER / name).read_text(encoding="utf-8") != text]
    assert not stale, f"{stale}: run python docs/reference/make.py"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_line(name: str) -> None:
    module = import_module(name)
    if not hasattr(module, "__all__"):
        pytest.skip(f"{name} is not installed")
    text = "\n".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    section = text.split(f"# {name}\n")[1].split("\n# ")[0]
    listed = set(re.findall(r"^\| `(\w+)[`(].* \| .+ \|$", section, re.M))
    assert {public for public in module.__all__ if not public.startswith("_")} <= listed
