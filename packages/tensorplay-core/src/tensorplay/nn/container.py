"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from ..errors import OutOfRangeError
from .module import Module

Self = TypeVar("Self", bound="_Numbered")


class _Numbered(Module):
    """Modules in order, under the names "0", "1" and so on where a subclass gives no others."""

    def append(self: Self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(list(self._own_modules()))

    def __iter__(self) -> Iterator[Any]:
        return iter([module for _, module in self._own_modules()])


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
            named = ((str(position), module) for position, module in enumerate(modules))
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
        return named[_position("Sequential", index, len(named))][1]


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

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Any:
        modules = list(self)
        if isinstance(index, slice):
            return ModuleList(modules[index])
        return modules[_position("ModuleList", index, len(modules))]

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(str(_position("ModuleList", index, len(self))), module)


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

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds or replaces entries."""
        for name, module in modules.items():
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

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and isinstance(self.__dict__.get(name), Module)

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.__dict__[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)


def _position(container: str, index: int, length: int) -> int:
    """An index from 0 to length - 1; negative ones count from the end."""
    if not -length <= index < length:
        raise OutOfRangeError(f"{container}: got index {index}, expected {-length} to {length - 1}")
    return index % length
