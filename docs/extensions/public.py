"""The directive ``public``: a module, or a class, with all its public names, from the docstrings.

A table with a line for each name comes first, then the whole docstring of each.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from types import FunctionType, GenericAlias, ModuleType
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import tensorplay

#: What is told of a module's names. An alias of a type has no docstring.
KINDS = (type, FunctionType, ModuleType, tensorplay.DType, float)


def public_names(module: ModuleType) -> dict[str, Any]:
    """What a module gives away, in the order of the alphabet."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if isinstance(value, (type, FunctionType))]
    members = {name: getattr(module, name) for name in sorted(names, key=str.lower) if not name.startswith("_")}
    # To Python 3.10 an alias is a class too.
    return {k: v for k, v in members.items() if isinstance(v, KINDS) and not isinstance(v, GenericAlias)}


def public_methods(owner: type) -> dict[str, Any]:
    """Methods and properties of a class, those of its bases included."""
    names = sorted((name for name in dir(owner) if not name.startswith("_")), key=str.lower)
    return {name: inspect.getattr_static(owner, name) for name in names}


def line(value: Any) -> str:
    """What a name is: a docstring's first paragraph, on one line."""
    if isinstance(value, tensorplay.DType):
        return f"The dtype {value.name}."
    if isinstance(value, float):
        return f"The number {value}."
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def table(owner: str, members: dict[str, Any]) -> list[str]:
    """A row for each name."""
    rows = [f"   * - :py:obj:`~{owner}.{name}`\n     - {line(value)}" for name, value in members.items()]
    return ["", ".. list-table::", "   :widths: 30 70", "", *rows, ""]


def entry(name: str, value: Any) -> list[str]:
    """The directive that documents one name of a module; modules and tensors have pages of their own."""
    if isinstance(value, ModuleType) or value is tensorplay.Tensor:
        return []
    if isinstance(value, (tensorplay.DType, float)):
        module, _, last = name.rpartition(".")
        return [f".. py:data:: {last}", f"   :module: {module}", "", f"   {line(value)}", ""]
    if not isinstance(value, type):
        return [f".. autofunction:: {name}", ""]
    return [f".. autoexception:: {name}" if issubclass(value, BaseException) else f".. autoclass:: {name}", ""]


class Public(SphinxDirective):
    """``.. public:: NAME`` of a module or a class.

    With ``:beyond: OTHER`` only what another module, which has an entry elsewhere, does not give away too.
    """

    required_arguments = 1
    option_spec = {"beyond": directives.unchanged}  # noqa: RUF012 (as Sphinx has it)

    def run(self) -> list[nodes.Node]:
        """The nodes of the table and the entries."""
        (name,) = self.arguments
        home, _, last = name.rpartition(".")
        if isinstance(owner := getattr(import_module(home or name), last, None), type):
            text = [*table(name, public_methods(owner)), f".. autoclass:: {name}", "   :inherited-members:", ""]
        else:
            others = public_names(import_module(self.options["beyond"])) if "beyond" in self.options else {}
            members = {k: v for k, v in public_names(import_module(name)).items() if others.get(k) is not v}
            text = [f".. automodule:: {name}", "   :no-members:", "", *table(name, members)]
            for key, value in members.items():
                text += entry(f"{name}.{key}", value)
        return self.parse_text_to_nodes("\n".join(text))


def is_field_of_a_tuple(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Whether Python itself has written the docstring: the class's own tells of these."""
    return True if (inspect.getdoc(value) or "").startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive."""
    app.add_directive("public", Public)
    app.connect("autodoc-skip-member", is_field_of_a_tuple)
    return {"parallel_read_safe": True}
