"""Arguments and results that hold tensors: taken apart into leaves, and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: What is left of a value without its leaves; hashable, equal for values that are built alike.
Structure = Any

_LEAF: Structure = None


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a value in order, and what `unflatten` needs to put them together.

    Tuples, named ones too, lists and dicts are taken apart; everything else is a leaf.
    """
    leaves: list[Any] = []
    return leaves, _take_apart(value, leaves)


def unflatten(leaves: list[Any], structure: Structure) -> Any:
    """A value of the same structure with these leaves."""
    return _put_together(structure, iter(leaves))


def _take_apart(value: Any, leaves: list[Any]) -> Structure:
    kind = type(value)
    if kind is dict:
        return kind, tuple(value), tuple([_take_apart(item, leaves) for item in value.values()])
    if kind is tuple or kind is list or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return kind, None, tuple([_take_apart(item, leaves) for item in value])
    leaves.append(value)
    return _LEAF


def _put_together(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure is _LEAF:
        return next(leaves)
    kind, keys, parts = structure
    items = [_put_together(part, leaves) for part in parts]
    if kind is dict:
        return dict(zip(keys, items, strict=True))
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
