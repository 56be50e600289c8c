"""Writes the pages of this folder from the docstrings: ``python docs/reference/make.py``.

tests/docs/test_reference.py holds that the pages are fresh and leave no public name out.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import FunctionType, GenericAlias, ModuleType
from typing import Any

import tensorplay

HERE = Path(__file__).parent

#: Each page, and the modules on it.
PAGES = {
    "tensorplay.md": ["tensorplay", "tensorplay.errors", "tensorplay.compiler"],
    "nn.md": ["tensorplay.nn", "tensorplay.nn.functional", "tensorplay.nn.init", "tensorplay.nn.utils"],
    "cuda.md": ["tensorplay.cuda", "tensorplay.compiler.backends.cudagraphs"],
    "accelerator.md": ["tensorplay.accelerator"],
    "testing.md": ["tensorplay.testing", "tensorplay.testing.emulated"],
}


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    return {name: page(modules) for name, modules in PAGES.items()}


def page(modules: list[str]) -> str:
    """A table for each module, and one for the tensor behind tensorplay's own."""
    parts = []
    for name in modules:
        module = import_module(name)
        parts.append(section(name, first(module), {key: getattr(module, key) for key in public(module)}))
        if module is tensorplay:
            members = {key: inspect.getattr_static(tensorplay.Tensor, key) for key in dir(tensorplay.Tensor)}
            methods = {key: value for key, value in members.items() if not key.startswith("_")}
            parts.append(section("tensorplay.Tensor", first(tensorplay.Tensor), methods, are_methods=True))
    return "\n".join(["<!-- Made by make.py from the docstrings. -->", *parts])


def public(module: ModuleType) -> list[str]:
    """What the module gives away, without ``__version__`` and aliases of types, which have no docstring."""
    members = {name: getattr(module, name) for name in module.__all__}
    kinds = (type, FunctionType, ModuleType, tensorplay.DType, float)
    # To Python 3.10 an alias is a class too.
    told = [name for name, value in members.items() if isinstance(value, kinds) and not isinstance(value, GenericAlias)]
    return sorted(told, key=str.lower)


def section(title: str, text: str, members: dict[str, Any], are_methods: bool = False) -> str:
    """A heading and a table."""
    rows = [f"| `{name}{arguments(value, are_methods)}` | {cell(line(value))} |" for name, value in members.items()]
    return "\n".join([f"# {title}", "", text, "", "| name | |", "|---|---|", *rows, ""])


def line(value: Any) -> str:
    """What a member is, in one line."""
    if isinstance(value, tensorplay.DType):
        return f"The dtype {value.name}."
    if isinstance(value, float):
        return f"The number {value}."
    return first(value)


def first(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def arguments(value: Any, is_method: bool) -> str:
    """What a call takes, with a ``*`` before arguments that have to be named."""
    if isinstance(value, (property, ModuleType, tensorplay.DType)) or not callable(value):
        return ""
    if value in (tensorplay.DType, tensorplay.Tensor) or (inspect.isclass(value) and issubclass(value, Exception)):
        return ""  # What users do not make.
    parts, named = [], False
    for parameter in list(inspect.signature(value).parameters.values())[is_method:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            named = True
            parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        named = named or stars == "*"
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parts.append(f"{stars}{parameter.name}{default}")
    return f"({', '.join(parts)})"


def cell(text: str) -> str:
    """Text that cannot end a column of a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
