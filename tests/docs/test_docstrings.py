"""Examples in docstrings print what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import tensorplay


def examples() -> dict[str, doctest.DocTest]:
    """The examples of every public name, each name once."""
    names = [found.name for found in walk_packages(tensorplay.__path__, "tensorplay.") if "._" not in found.name]
    modules = [tensorplay, *map(import_module, names)]
    owners: dict[str, Any] = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", ())
        if callable(getattr(module, name))
    }
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {name: finder.find(owner, name, globs={"tp": tensorplay}) for name, owner in owners.items()}
    return {test.name: test for tests in found.values() for test in tests if test.examples}


EXAMPLES = examples()


def test_examples_are_found() -> None:
    assert {"tensorplay.einsum", "tensorplay.where"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_it_says(name: str) -> None:
    output: list[str] = []
    result = doctest.DocTestRunner().run(EXAMPLES[name], out=output.append)
    assert not result.failed, "".join(output)
