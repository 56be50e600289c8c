"""Parameters in order, or by name, all of which are registered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import overload

from .._tensor import Tensor
from ..errors import DTypeError
from ._position import position
from .module import Module
from .parameter import Parameter


class ParameterList(Module):
    """A list of parameters, all of which are registered.

    Parameters
    ----------
    values : iterable of Tensor, optional
        The first elements; a plain tensor becomes a parameter over the same elements.
    """

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Tensor) -> ParameterList:
        """Adds a parameter at the end."""
        self.register_parameter(str(len(self)), _parameter("ParameterList", value))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(list(self._own(Parameter)))

    def __iter__(self) -> Iterator[Parameter]:
        return iter([parameter for _, parameter in self._own(Parameter)])

    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    def __getitem__(self, index: int | slice) -> Parameter | ParameterList:
        parameters = list(self)
        if isinstance(index, slice):
            return ParameterList(parameters[index])
        return parameters[position("ParameterList", index, len(parameters))]

    def __setitem__(self, index: int, value: Tensor) -> None:
        name = str(position("ParameterList", index, len(self)))
        self.register_parameter(name, _parameter("ParameterList", value))

    def extra_repr(self) -> str:
        """One line for each parameter, for `repr`."""
        return _lines(self._own(Parameter))


class ParameterDict(Module):
    """A dictionary of parameters, all of which are registered.

    Parameters
    ----------
    parameters : mapping of str to Tensor, optional
        The first entries; a plain tensor becomes a parameter over the same elements.
    """

    def __init__(self, parameters: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters: Mapping[str, Tensor]) -> None:
        """Adds or replaces entries."""
        for name, parameter in parameters.items():
            self[name] = parameter

    def keys(self) -> list[str]:
        """The names, in order."""
        return [name for name, _ in self._own(Parameter)]

    def values(self) -> list[Parameter]:
        """The parameters, in order."""
        return [parameter for _, parameter in self._own(Parameter)]

    def items(self) -> list[tuple[str, Parameter]]:
        """Names and parameters, in order."""
        return list(self._own(Parameter))

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and isinstance(self.__dict__.get(name), Parameter)

    def __getitem__(self, name: str) -> Parameter:
        if name not in self:
            raise KeyError(name)
        return self.__dict__[name]  # type: ignore[no-any-return]

    def __setitem__(self, name: str, value: Tensor) -> None:
        self.register_parameter(name, _parameter("ParameterDict", value))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)

    def extra_repr(self) -> str:
        """One line for each parameter, for `repr`."""
        return _lines(self._own(Parameter))


def _parameter(container: str, value: Tensor) -> Parameter:
    if not isinstance(value, Tensor):
        raise DTypeError(f"{container}: got {type(value).__name__}, expected a Parameter or a Tensor")
    return value if isinstance(value, Parameter) else Parameter(value)


def _lines(named: Iterable[tuple[str, Parameter]]) -> str:
    return "\n".join(
        f"  ({name}): Parameter containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}"
        f"{f' ({value.device})' if value.is_cuda else ''}]"
        for name, value in named
    )
