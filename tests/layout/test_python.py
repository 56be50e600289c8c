"""Which Python module may import, load and raise what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tree import ACCELERATOR, CORE, CUDA, PACKAGES, ROOT, python_sources


def name_of(path: Path) -> str:
    """A path for messages and test ids."""
    return str(path.relative_to(PACKAGES))


def module_of(path: Path) -> str:
    """The name by which a file is imported; of a package with ``__init__``."""
    return ".".join(path.relative_to(next(p for p in path.parents if p.name == "src")).with_suffix("").parts)


class AtImport(ast.NodeTransformer):
    """Takes away what runs later, or never."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def imports(path: Path, at_once: bool = False) -> Iterator[str]:
    """Every module that a file imports, also inside functions and through import_module, unless it is `at_once`."""
    package = module_of(path).split(".")
    tree = ast.parse(path.read_text())
    for node in ast.walk(AtImport().visit(tree) if at_once else tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: -node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


def under(module: str, *parents: str) -> bool:
    """True when module is one of parents or lies inside one."""
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)


def test_no_modules_import_each_other() -> None:
    names = {module_of(path).removesuffix(".__init__"): path for path in python_sources(CORE, CUDA, ACCELERATOR)}
    below = {
        name: {found for found in imports(path, at_once=True) if found in names and not under(name, found)}
        for name, path in names.items()
    }
    assert below["tensorplay.cuda.graphs"] >= {"tensorplay.cuda._graph", "tensorplay.cuda._graphed"}
    TopologicalSorter(below).prepare()  # CycleError names the modules


def rows() -> dict[str, int]:
    """Module or folder of core: its row in the table of docs/design/layout.md."""
    table = (ROOT / "docs" / "design" / "layout.md").read_text().partition("| modules | what |")[2]
    named = re.findall(r"^\| (`.*?) \|", table, re.M)
    return {word: row for row, words in enumerate(named) for word in re.findall(r"`(\w+)/?`", words)}


@pytest.mark.parametrize("path", python_sources(CORE), ids=name_of)
def test_core_imports_what_stands_above(path: Path) -> None:
    own, known = module_of(path).split(".")[1], rows()
    if own == "__init__":
        return
    found = {module.split(".")[1] for module in imports(path, at_once=True) if module.startswith("tensorplay.")}
    assert not {module for module in found if known[module] > known[own]}


@pytest.mark.parametrize("path", python_sources(CORE), ids=name_of)
def test_core_imports_no_other_distribution(path: Path) -> None:
    assert not [m for m in imports(path) if under(m, "tensorplay.cuda", "tensorplay.accelerator")]


@pytest.mark.parametrize("path", python_sources(ACCELERATOR), ids=name_of)
def test_accelerator_names_no_backend(path: Path) -> None:
    words: list[str] = list(imports(path))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            words.append(node.id)
        elif isinstance(node, ast.Attribute):
            words.append(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # A text of one word selects something; a sentence may show "cuda:0" as an example.
            words += node.value.split() if len(node.value.split()) == 1 else []
    assert not [word for word in words if "cuda" in word.lower()]


@pytest.mark.parametrize("path", python_sources(CUDA), ids=name_of)
def test_only_native_loads_the_library(path: Path) -> None:
    if path.parent.name == "_native":
        assert "tp_table_bind" in path.read_text()
        return
    assert "tp_table_bind" not in path.read_text()
    assert not [m for m in imports(path) if under(m, "tensorplay.cuda._native.lib")]


@pytest.mark.parametrize("path", python_sources(CUDA), ids=name_of)
def test_only_check_turns_a_status_into_an_exception(path: Path) -> None:
    words = [word for word in ("STATUSES", "tp_error_") if word in path.read_text()]
    if path.name not in ("_check.py", "_tables.py"):
        assert not words


@pytest.mark.parametrize("package", ["tensorplay-cuda", "tensorplay-accelerator"])
def test_only_core_has_the_packages_init(package: str) -> None:
    source = PACKAGES / package / "src" / "tensorplay"
    for shared in (source, source / "testing", source / "compiler", source / "compiler" / "backends"):
        assert not (shared / "__init__.py").exists()


def test_every_distribution_is_typed() -> None:
    for folder in (CORE, CUDA / "cuda", ACCELERATOR / "accelerator"):
        assert (folder / "py.typed").is_file(), folder
