"""torch's names beside ours: which are the same, which take less or mean something else, which are absent.

``docs/guide/torch_names.txt`` has the names that torch documents, by module, with the names of their arguments:
``tests/interop/torch_names.py`` writes them. What stands behind a colon is a remark of ours: what differs, or what to
write instead.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

LIST = Path(__file__).parents[1] / "guide" / "torch_names.txt"

LINE = re.compile(r"(?P<name>\w+)(?:\((?P<arguments>[^)]*)\))?(?:: (?P<remark>.+))?")

#: What a look-up gives where nothing has the name.
ABSENT = object()


@dataclass
class Name:
    """One name of torch."""

    name: str
    positional: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)  # arguments that are given by name only
    remark: str = ""


def sections() -> dict[str, list[Name]]:
    """The names by torch's module, or class."""
    found: dict[str, list[Name]] = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            names = found.setdefault(line.strip("[]"), [])
        elif line:
            names.append(parse(line))
    return found


def parse(line: str) -> Name:
    """One line of the list: ``name(first, second, *, third): remark``."""
    match = LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{LIST.name}: got {line!r}, expected a name, its arguments, and a remark after ': '")
    positional, _, named = (match["arguments"] or "").partition("*")
    return Name(match["name"], words(positional), words(named), match["remark"] or "")


def words(text: str) -> list[str]:
    """Identifiers in a text."""
    return re.findall(r"\w+", text)


def ours(section: str, name: str) -> Any:
    """What has the name here, or `ABSENT`."""
    module, _, last = section.replace("torch", "tensorplay", 1).rpartition(".")
    owner = getattr(import_module(module), last) if module else import_module(last)
    value = getattr(owner, name, ABSENT)
    is_public = isinstance(value, ModuleType) or name in getattr(owner, "__all__", (name,))
    return value if is_public else ABSENT


def compare(section: str) -> dict[tuple[str, str], list[str]]:
    """The names of a section by ("same", "different" or "absent", and why), in the order of a table's rows."""
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in sections()[section]:
        value = ours(section, name.name)
        if value is ABSENT:
            rows["absent", name.remark].append(name.name)
        elif lacking := list(missing(name, value)):
            without = "without " + ", ".join(f"``{word}``" for word in lacking)
            rows["different", "; ".join(filter(None, [without, name.remark]))].append(name.name)
        else:
            rows["different" if name.remark else "same", name.remark].append(name.name)
    kinds = ["same", "different", "absent"]
    return dict(sorted(rows.items(), key=lambda row: (kinds.index(row[0][0]), row[0][1] != "", -len(row[1]), row[0])))


def missing(name: Name, value: Any) -> Iterator[str]:
    """Arguments of torch that our function, method or class does not take.

    An argument that is found by its place may have another word here.
    """
    if isinstance(value, property) or not callable(value) or not (name.positional or name.named):
        return
    parameters = [p for p in inspect.signature(value).parameters.values() if p.name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = {p.name for p in parameters}
    free = [p for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD and p.name not in name.positional + name.named]
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for word in name.positional:
        if word not in known and not takes_more:
            if free:
                free.pop(0)
            else:
                yield word
    yield from (word for word in name.named if word not in known)
