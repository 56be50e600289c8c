"""The pages of the guide, README and the site's first page are programs that run and print what they say."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorplay
from tensorplay import _plugins, cuda

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]

# A block, and the text block behind it where there is one.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """Python blocks of a page, each with what it prints if the page says so."""
    return [(code, printed or None) for code, printed in BLOCK.findall(page.read_text())]


def test_every_topic_has_blocks() -> None:
    # An index, C, and tables.
    assert [page.name for page in PAGES if not blocks(page)] == ["README.md", "c-abi.md", "torch-names.md"]
    for page in PAGES:
        assert len(blocks(page)) == page.read_text().count("```python")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not cuda.is_available():
        pytest.skip(f"no CUDA device: {cuda.unavailable_reason()}")
    variant = tensorplay._plugins.get("cuda").describe()["variant"]
    if page.stem == "emulated" and variant != "emulated":
        pytest.skip(f"the emulated device is needed, {variant} serves")
    monkeypatch.chdir(tmp_path)
    # Pages show the numbers of a fresh process.
    cuda.synchronize()
    cuda.empty_cache()
    cuda.reset_accumulated_memory_stats()
    names: dict[str, Any] = {"__name__": page.stem}
    for code, printed in blocks(page):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, str(page), "exec"), names)
        assert printed is None or output.getvalue() == printed


@pytest.fixture(autouse=True)
def _backends_stay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A page may register a backend for itself."""
    monkeypatch.setattr(_plugins, "_backends", dict(_plugins._backends))
    monkeypatch.setattr(_plugins, "places", dict(_plugins.places))
    yield
    _plugins.accelerator_type.cache_clear()


def test_excerpts_are_lines_of_the_backend_that_they_are_from() -> None:
    lines = (ROOT / "tests" / "helpers" / "fake_backend.py").read_text()
    excerpts = re.findall(r"^```py\n(.*?)^```$", (ROOT / "docs/guide/writing-a-backend.md").read_text(), re.M | re.S)
    assert len(excerpts) == 5
    assert [excerpt for excerpt in excerpts if excerpt not in lines] == []


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("libtensorplay/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
