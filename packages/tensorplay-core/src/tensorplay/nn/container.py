"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, TypeVar, overload

from ._position import position
from .module import Module

Self = TypeVar("Self", bound="_Numbered")


class _Numbered(Module):
    """Modules in order, under the names "0", "1" and so on where a subclass gives no others."""

    def append(self: Self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: Self, index: int, module: Module) -> Self:
        """Puts a module before the one at an index; those behind it are renamed."""
        modules = list(self)
        place = index if index == len(modules) else position(type(self).__name__, index, len(modules))
        self._renumber([*modules[:place], module, *modules[place:]])
        return self

    def pop(self, index: int = -1) -> Any:
        """Removes the module at an index and returns it; those behind it are renamed."""
        module = list(self)[position(type(self).__name__, index, len(self))]
        del self[index]
        return module

    def _renumber(self, modules: list[Any]) -> None:
        for name, _ in list(self._own_modules()):
            delattr(self, name)
        for place, module in enumerate(modules):
            self.add_module(str(place), module)

    def __len__(self) -> int:
        return len(list(self._own_modules()))

    def __iter__(self) -> Iterator[Any]:
        return iter([module for _, module in self._own_modules()])

    def __setitem__(self, index: int, module: Module) -> None:
        named = list(self._own_modules())
        setattr(self, named[position(type(self).__name__, index, len(named))][0], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        if not isinstance(index, slice):
            index = position(type(self).__name__, index, len(modules))
        del modules[index]
        self._renumber(modules)


class Sequential(_Numbered):
    """Calls its modules one after another, each with what the one before returned.

    Parameters
    ----------
    *modules : Module
        In order of use; their names are "0", "1" and so on. A single mapping gives its own names.
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named: Iterable[tuple[str, Any]] = modules[0].items()
        else:
            named = ((str(place), module) for place, module in enumerate(modules))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """The last module's result."""
        for module in self:
            input = module(input)
        return input

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module | Sequential:
        named = list(self._own_modules())
        if isinstance(index, slice):
            return Sequential(dict(named[index]))
        return named[position("Sequential", index, len(named))][1]


class ModuleList(_Numbered):
    """A list of modules, all of which are registered.

    Parameters
    ----------
    modules : iterable of Module, optional
        The first elements.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Any:
        modules = list(self)
        if isinstance(index, slice):
            return ModuleList(modules[index])
        return modules[position("ModuleList", index, len(modules))]

    def _child_lines(self) -> list[str]:
        """Equal neighbours as one entry."""
        lines, place = [], 0
        for text, equals in groupby(map(repr, self)):
            count = len(list(equals))
            lines.append(f"({place}): {text}" if count == 1 else f"({place}-{place + count - 1}): {count} x {text}")
            place += count
        return lines


class ModuleDict(Module):
    """A dictionary of modules, all of which are registered.

    Parameters
    ----------
    modules : mapping of str to Module, optional
        The first entries.
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds or replaces entries."""
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[name] = module

    def keys(self) -> list[str]:
        """The names, in order."""
        return [name for name, _ in self._own_modules()]

    def values(self) -> list[Any]:
        """The modules, in order."""
        return [module for _, module in self._own_modules()]

    def items(self) -> list[tuple[str, Any]]:
        """Names and modules, in order."""
        return list(self._own_modules())

    def pop(self, key: str) -> Any:
        """Removes an entry and returns its module."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Removes all entries."""
        for name in self.keys():
            del self[name]

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and isinstance(self.__dict__.get(name), Module)

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise KeyError(key)
        return self.__dict__[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        delattr(self, key)
