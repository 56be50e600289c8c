"""Modules whose work is captured: whether they are still the same, and how they were before."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_

from tensorplay import Tensor
from tensorplay.nn import Module


class Weights:
    """The tensors and modules that some modules consist of, and their modes."""

    __slots__ = ("_impls", "_names", "_owners", "_tensors", "_values")

    def __init__(self, roots: Sequence[Module]) -> None:
        found = [
            (vars(module), name, value)
            for root in roots
            for module in root.modules()
            for name, value in vars(module).items()
            if isinstance(value, (Tensor, Module)) or name == "training"
        ]
        # Apart, for the loops in C of `are_the_same`, which every call runs.
        self._owners = [owner for owner, _, _ in found]
        self._names = [name for _, name, _ in found]
        self._values = [value for _, _, value in found]
        self._tensors = [value for value in self._values if isinstance(value, Tensor)]
        self._impls = [tensor._impl for tensor in self._tensors]

    def are_the_same(self) -> bool:
        """Whether no tensor was replaced, moved or cast, no module exchanged, and none is in its other mode."""
        return all(map(is_, map(dict.get, self._owners, self._names), self._values)) and all(
            map(is_, map(attrgetter("_impl"), self._tensors), self._impls)
        )


class Former:
    """The attributes of some modules, to be put back when a capture fails: what it has made was never computed."""

    __slots__ = ("_attributes", "_tensors")

    def __init__(self, roots: Sequence[Module]) -> None:
        owners = [vars(module) for root in roots for module in root.modules()]
        changeable = [*owners, *(owner["_buffers"] for owner in owners)]
        self._attributes = [(found, dict(found)) for found in changeable]
        self._tensors = [
            (value, value._impl, value.detach())
            for owner in owners
            for value in owner.values()
            if isinstance(value, Tensor)
        ]

    def put_back(self) -> None:
        """Makes the modules what they were."""
        for found, former in self._attributes:
            found.clear()
            found.update(former)
        for tensor, impl, former_elements in self._tensors:
            if tensor._impl is not impl:
                tensor._replace(former_elements)
