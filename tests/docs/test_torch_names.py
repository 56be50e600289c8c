"""The tables of torch's names tell what is here, what takes less, and what is absent."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tensorplay import cuda

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "torch-names.md"


def load() -> ModuleType:
    """The module that compares, which lies beside the site's pages."""
    spec = importlib.util.spec_from_file_location("torch_names", PAGE.parents[1] / "extensions" / "torch_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


torch_names = load()
SECTIONS = torch_names.sections()


def rows(section: str, kind: str) -> dict[str, str]:
    """The names of a kind, each with its remark."""
    found = torch_names.compare(section)
    return {name: remark for (here, remark), names in found.items() if here == kind for name in names}


def test_the_page_has_a_table_for_every_section() -> None:
    assert re.findall(r"^\.\. torch:: (\S+)$", PAGE.read_text(encoding="utf-8"), re.M) == list(SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_name_stands_once(section: str) -> None:
    names = [name.name for name in SECTIONS[section]]
    assert names == sorted(set(names), key=lambda name: (name.lower(), name))


@pytest.mark.parametrize("line", ["zeros(*, out", "zeros()remark", "zeros() remark", ": remark", "two names"])
def test_a_line_that_is_none_is_shown(line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(line))):
        torch_names.parse(line)


@pytest.mark.parametrize(
    ("line", "value", "lacking"),
    [
        ("f(input, dim, *, out)", lambda input, dim, *, out: None, []),
        ("f(input, dim, *, out)", lambda input, dim: None, ["out"]),
        ("f(value)", lambda other: None, []),  # found by its place
        ("f(input, value)", lambda other: None, ["value"]),
        ("f(size_average, reduce, reduction)", lambda reduction: None, ["size_average", "reduce"]),
        ("f(input, *, first, second)", lambda *input, second: None, ["first"]),
        ("f(a, b)", lambda *anything: None, []),
        ("f(a, *, b)", lambda *anything, **more: None, []),
        ("f(a)", 1.0, []),
        ("f", lambda: None, []),  # torch does not tell its arguments
    ],
)
def test_arguments_are_compared(line: str, value: Any, lacking: list[str]) -> None:
    assert list(torch_names.missing(torch_names.parse(line), value)) == lacking


def test_known_differences_are_told() -> None:
    assert rows("torch", "same")["add"] == ""
    assert "``layout``" in rows("torch", "different")["zeros"]
    assert rows("torch", "absent")["Size"] == "`Tensor.shape` is a tuple"
    assert rows("torch.Tensor", "different")["shape"] == "a tuple"
    assert "LSTM" in rows("torch.nn", "absent")


def test_cuda_and_accelerator_lack_nothing_that_is_common() -> None:
    if not hasattr(cuda, "__all__"):
        pytest.skip("tensorplay-cuda is not installed")
    for section in ("torch.accelerator", "torch.accelerator.Graph", "torch.cuda.Stream", "torch.cuda.Event"):
        assert list(torch_names.compare(section)) == [("same", "")], section
    assert "enforced" in rows("torch.cuda", "different")["set_per_process_memory_fraction"]


def test_remarks_name_what_there_is() -> None:
    remarks = {name.remark for names in SECTIONS.values() for name in names}
    links = {link for remark in remarks for link in re.findall(r"(?<!`)`([^`<]+?)(?: <([^>]+)>)?`(?!`)", remark)}
    assert ("Tensor.shape", "") in links
    for shown, target in links:
        path = (target or shown).removeprefix("tensorplay.")
        owner: Any = import_module("tensorplay")
        for part in path.split("."):
            assert hasattr(owner, part), f"{shown}: no {part}"
            owner = getattr(owner, part)
