"""What a module owns: every `Parameter` and every `Module` among its attributes, and its buffers.

They live in the instance's ``__dict__`` like any attribute, so reading one costs no more than that, and there is no
second list that could disagree. Only buffers need one, of names, since they are plain tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .._tensor import Tensor
from ..errors import DTypeError, InvalidArgumentError, StateError
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

Kind = TypeVar("Kind")
Self = TypeVar("Self", bound="Registry")


class Registry:
    """The attributes of a module, and walking through them and those of the modules below."""

    #: Names of the buffers, and whether each is part of the state.
    _buffers: dict[str, bool]

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if "_buffers" not in attributes:
            raise StateError(f"{type(self).__name__}: cannot set {name!r} before Module.__init__() was called")
        former = attributes.get(name)
        for kind in (Parameter, Registry):
            if isinstance(former, kind) and value is not None and not isinstance(value, kind):
                wanted = "Parameter" if kind is Parameter else "Module"
                raise DTypeError(f"{name}: got {type(value).__name__}, expected a {wanted} or None")
        if name in attributes["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(f"{name}: got {type(value).__name__}, expected a Tensor or None")
            if isinstance(value, Parameter):
                del attributes["_buffers"][name]
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._buffers.pop(name, None)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that moves with the module but is no parameter.

        Parameters
        ----------
        name : str
            Name of the attribute.
        tensor : Tensor or None
            The buffer; None reserves the name.
        persistent : bool
            Whether it is part of `state_dict`.
        """
        self._check_name("register_buffer", name, Tensor)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise DTypeError(f"register_buffer: got {type(tensor).__name__}, expected a Tensor or None")
        self._buffers[name] = persistent
        setattr(self, name, tensor.detach() if isinstance(tensor, Parameter) else tensor)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name; None sets the attribute to None."""
        self._check_name("register_parameter", name, Parameter)
        if param is not None and not isinstance(param, Parameter):
            raise DTypeError(f"register_parameter: got {type(param).__name__}, expected a Parameter or None")
        setattr(self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name; None sets the attribute to None."""
        if module is not None and not isinstance(module, Registry):
            raise DTypeError(f"add_module: got {type(module).__name__}, expected a Module or None")
        self._check_name("add_module", name, Registry)
        setattr(self, name, module)

    register_module = add_module

    def _check_name(self, operation: str, name: str, kind: type) -> None:
        """Refuses a name that is none, or that belongs to something of another kind (a method, say)."""
        if not isinstance(name, str):
            raise DTypeError(f"{operation}: got a name of type {type(name).__name__}, expected str")
        if not name or "." in name:
            raise InvalidArgumentError(f"{operation}: got the name {name!r}, expected one without dots, not empty")
        former = getattr(self, name, None)
        again = name in self._buffers if kind is Tensor else isinstance(former, kind)
        if former is not None and not again:
            raise InvalidArgumentError(
                f"{operation}: got the name {name!r}, which is taken by a {type(former).__name__}"
            )

    def _own(self, kind: type[Kind]) -> Iterator[tuple[str, Kind]]:
        """The attributes of one kind, in the order of their first assignment."""
        for name, value in list(self.__dict__.items()):
            if isinstance(value, kind):
                yield name, value

    def _own_modules(self) -> Iterator[tuple[str, Module]]:
        return self._own(Registry)  # type: ignore[arg-type]

    def _own_buffers(self, persistent_only: bool = False) -> Iterator[tuple[str, Tensor]]:
        for name, persistent in self._buffers.items():
            tensor = self.__dict__[name]
            if tensor is not None and (persistent or not persistent_only):
                yield name, tensor

    # -- walking --------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with dotted names; this one's name is `prefix`.

        Parameters
        ----------
        memo : set of Module, optional
            Modules to leave out; those given are added.
        remove_duplicate : bool
            Whether a module that has several names comes only once.
        """
        seen: set[Any] = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, module in self._own_modules():
            yield from module.named_modules(seen, join(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, each once."""
        return once(self._own_modules())

    def children(self) -> Iterator[Module]:
        """The modules directly below this one, each once."""
        return (module for _, module in self.named_children())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with dotted names, each once; without `recurse` only this module's own."""
        return self._walk(lambda module: module._own(Parameter), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names, each once; without `recurse` only this module's own."""
        return self._walk(lambda module: module._own_buffers(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _walk(
        self, own: Callable[[Registry], Iterable[tuple[str, Kind]]], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Kind]]:
        modules: Iterable[tuple[str, Registry]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        found = ((join(path, name), value) for path, module in modules for name, value in own(module))
        return once(found) if remove_duplicate else found

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name; "" is this one.

        Raises
        ------
        AttributeError
            If there is none; the text names the part that is missing.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            child = module.__dict__.get(name)
            if not isinstance(child, Registry):
                raise AttributeError(f"get_submodule: {type(module).__name__} has no module {name!r}, got {target!r}")
            module = child
        return module  # type: ignore[no-any-return]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name; raises AttributeError where there is none."""
        return _one("get_parameter", self, target, "parameter", lambda module: module._own(Parameter))

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name; raises AttributeError where there is none."""
        return _one("get_buffer", self, target, "buffer", lambda module: module._own_buffers())

    def apply(self: Self, fn: Callable[[Any], object]) -> Self:
        """Calls a function with every module below this one, and with this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self


def join(prefix: str, name: str) -> str:
    """A dotted name."""
    return f"{prefix}.{name}" if prefix else name


def once(named: Iterable[tuple[str, Kind]]) -> Iterator[tuple[str, Kind]]:
    """Leaves out objects that came before under another name."""
    seen: set[int] = set()
    for name, value in named:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _one(
    operation: str, root: Registry, target: str, what: str, own: Callable[[Registry], Iterable[tuple[str, Kind]]]
) -> Kind:
    path, _, name = target.rpartition(".")
    module = root.get_submodule(path)
    for found, value in own(module):
        if found == name:
            return value
    raise AttributeError(f"{operation}: {type(module).__name__} has no {what} {name!r}, got {target!r}")
