"""The built site leaves no public name out, and its links and pictures lead somewhere.

``tox run -e docs`` builds it and says where it lies.
"""

from __future__ import annotations

import os
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType, GenericAlias, ModuleType
from urllib.parse import unquote, urldefrag

import pytest

import tensorplay

SITE = Path(os.environ.get("TENSORPLAY_SITE", ""))
if not SITE.name:
    pytest.skip("TENSORPLAY_SITE is not set: tox run -e docs builds the site", allow_module_level=True)

from sphinx.util.inventory import InventoryFile  # noqa: E402 (only where a site was built)


class Page(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.pictures: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes ids, links and pictures."""
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a" and found.get("href"):
            self.targets.append(found["href"] or "")
        if tag == "img":
            self.pictures.append(found["src"] or "")


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    return {path: Page(path) for path in SITE.rglob("*.html") if "_static" not in path.parts}


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """The full names that have an entry on some page."""
    inventory = InventoryFile.loads((SITE / "objects.inv").read_bytes(), uri="")
    return {name for kind, names in inventory.data.items() if kind.startswith("py:") for name in names}


def modules() -> list[ModuleType]:
    """Every module whose name has no underscore and that says what it gives away."""
    names = [found.name for found in walk_packages(tensorplay.__path__, "tensorplay.")]
    public = [import_module(name) for name in ["tensorplay", *names] if "._" not in name]
    return [module for module in public if hasattr(module, "__all__")]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_every_public_name_has_an_entry(module: ModuleType, documented: set[str]) -> None:
    parent, _, _ = module.__name__.rpartition(".")
    kinds = (type, FunctionType, tensorplay.DType, float)
    members = {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}
    # To Python 3.10 an alias of a type is a class too.
    told = {k for k, v in members.items() if isinstance(v, kinds) and not isinstance(v, GenericAlias)}
    assert told
    assert not {name for name in told if not {f"{module.__name__}.{name}", f"{parent}.{name}"} & documented}


def test_every_method_of_a_tensor_has_an_entry(documented: set[str]) -> None:
    methods = {f"tensorplay.Tensor.{name}" for name in dir(tensorplay.Tensor) if not name.startswith("_")}
    assert methods <= documented


def test_links_lead_somewhere(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for target in page.targets:
            address, anchor = urldefrag(unquote(target))
            if "://" in address or address.startswith("mailto:"):
                continue
            other = (path.parent / address).resolve() if address else path.resolve()
            assert other.exists(), f"{path.relative_to(SITE)}: {target}"
            if other in pages:
                assert anchor in pages[other].anchors, f"{path.relative_to(SITE)}: {target}"


def test_pictures_are_there(pages: dict[Path, Page]) -> None:
    found = {(path.parent / source).resolve() for path, page in pages.items() for source in page.pictures}
    assert {path.name for path in found} >= {
        "graphs_picture.svg",
        "memory_picture.svg",
        "memory_viz.png",
        "pitch.svg",
        "streams_picture.svg",
    }
    assert all(path.stat().st_size for path in found)
