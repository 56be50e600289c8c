"""The base class of all layers and models.

What a module owns are its attributes: every `Parameter` and every `Module` among them, and the tensors
registered by `register_buffer`. They live in the instance's ``__dict__`` like any attribute, so reading
one costs no more than that, and there is no second list that could disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _dtype
from .._ops.conversion import parse_to
from .._tensor import Tensor
from ..errors import DTypeError, InvalidArgumentError, StateError
from ._state import IncompatibleKeys, load_state
from .parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._device import DeviceLike
    from .._dtype import DType

    Self = TypeVar("Self", bound="Module")

Kind = TypeVar("Kind")


class Module:
    """A part of a model: it owns parameters, buffers and other modules, and computes in `forward`.

    A subclass calls ``super().__init__()`` first, assigns parameters and modules as attributes, and
    defines ``forward``. Calling the module calls ``forward``.

    Attributes
    ----------
    training : bool
        True until `eval` is called; only layers like `Dropout` ask for it.
    """

    training: bool

    def __init__(self) -> None:
        # Names of the buffers, and whether each is part of the state (`persistent`).
        self.__dict__["_buffers"] = {}
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: the class defines no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    # -- what a module owns ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if "_buffers" not in attributes:
            raise StateError(f"{type(self).__name__}: cannot set {name!r} before Module.__init__() was called")
        former = attributes.get(name)
        for kind in (Parameter, Module):
            if isinstance(former, kind) and value is not None and not isinstance(value, kind):
                raise DTypeError(f"{name}: got {type(value).__name__}, expected a {kind.__name__} or None")
        if name in attributes["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(f"{name}: got {type(value).__name__}, expected a Tensor or None")
            if isinstance(value, Parameter):
                del attributes["_buffers"][name]
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._buffers.pop(name, None)

    _buffers: dict[str, bool]

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

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Adds a parameter under a name; None sets the attribute to None."""
        self._check_name("register_parameter", name, Parameter)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise DTypeError(f"register_parameter: got {type(parameter).__name__}, expected a Parameter or None")
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Module) -> None:
        """Adds a module under a name."""
        if not isinstance(module, Module):
            raise DTypeError(f"add_module: got {type(module).__name__}, expected a Module")
        self._check_name("add_module", name, Module)
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

    def _own_buffers(self, persistent_only: bool = False) -> Iterator[tuple[str, Tensor]]:
        for name, persistent in self._buffers.items():
            tensor = self.__dict__[name]
            if tensor is not None and (persistent or not persistent_only):
                yield name, tensor

    # -- walking through them -------------------------------------------------------------------------

    def named_modules(self, prefix: str = "", _seen: set[int] | None = None) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once, with dotted names; this one's name is `prefix`."""
        seen = set() if _seen is None else _seen
        if id(self) not in seen:
            seen.add(id(self))
            yield prefix, self
            for name, module in self._own(Module):
                yield from module.named_modules(_join(prefix, name), seen)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, each once."""
        return _once(self._own(Module))

    def children(self) -> Iterator[Module]:
        """The modules directly below this one, each once."""
        return (module for _, module in self.named_children())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with dotted names; without `recurse` only this module's own."""
        modules = self.named_modules(prefix) if recurse else [(prefix, self)]
        return _once((_join(path, name), value) for path, module in modules for name, value in module._own(Parameter))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers, each once, with dotted names; without `recurse` only this module's own."""
        modules = self.named_modules(prefix) if recurse else [(prefix, self)]
        return _once((_join(path, name), value) for path, module in modules for name, value in module._own_buffers())

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name; "" is this one.

        Raises
        ------
        AttributeError
            If there is none; the text names the part that is missing.
        """
        module = self
        for name in target.split(".") if target else ():
            child = module.__dict__.get(name)
            if not isinstance(child, Module):
                raise AttributeError(f"get_submodule: {type(module).__name__} has no module {name!r}, got {target!r}")
            module = child
        return module

    def apply(self: Self, function: Callable[[Module], object]) -> Self:
        """Calls a function with every module below this one, and with this one last."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    # -- modes ----------------------------------------------------------------------------------------

    def train(self: Self, mode: bool = True) -> Self:
        """Sets `training` here and below."""
        if not isinstance(mode, bool):
            raise DTypeError(f"train: got {type(mode).__name__}, expected bool")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Sets `training` to False here and below."""
        return self.train(False)

    # -- state ----------------------------------------------------------------------------------------

    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted name. They share memory with the module's."""
        return {name: tensor.detach() for name, tensor in self._named_state(prefix)}

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values of a `state_dict` into the parameters and buffers.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            The values; dtype and device may differ from the module's, which stay as they are.
        strict : bool
            Whether missing and unexpected names are errors. Wrong shapes always are.
        assign : bool
            Take over the given tensors, with their dtype and device and sharing their memory, and copy
            nothing.

        Returns
        -------
        IncompatibleKeys
            ``missing_keys`` and ``unexpected_keys``, lists of names.

        Raises
        ------
        InvalidArgumentError
            A ValueError and RuntimeError that lists everything that does not fit. Nothing was changed.
        """
        return load_state(type(self).__name__, dict(self._named_state("")), state_dict, strict, assign)

    def _named_state(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        """The module's own tensor objects in the order of `state_dict`, shared ones under each name."""
        for name, tensor in (*self._own(Parameter), *self._own_buffers(persistent_only=True)):
            yield prefix + name, tensor
        for name, module in self._own(Module):
            yield from module._named_state(f"{prefix}{name}.")

    # -- dtype and device -----------------------------------------------------------------------------

    def to(
        self: Self,
        *args: Any,
        device: DeviceLike | None = None,
        dtype: DType | None = None,
        non_blocking: bool = False,
    ) -> Self:
        """Moves and casts parameters and buffers, in place.

        Called as ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``, with
        ``non_blocking`` as `Tensor.to` has it. Integer and bool tensors are moved but not cast. The
        `Parameter` objects stay the same. Everything is converted before the first tensor is replaced: an
        error leaves the module as it was, and until the end both copies take memory.

        Raises
        ------
        DTypeError
            A TypeError, if the dtype is not a floating one.
        """
        device, dtype, non_blocking, _ = parse_to(*args, device=device, dtype=dtype, non_blocking=non_blocking)
        if dtype is not None and not dtype.is_floating_point:
            raise DTypeError(f"Module.to: got {dtype}, expected a floating dtype")

        def convert(tensor: Tensor) -> Tensor:
            cast = dtype if tensor.dtype.is_floating_point else None
            return tensor.to(device=device, dtype=cast, non_blocking=non_blocking)

        owned = list(_once((name, tensor) for name, tensor in (*self.named_parameters(), *self.named_buffers())))
        converted = [convert(tensor) for _, tensor in owned]
        for (_, tensor), result in zip(owned, converted, strict=True):
            if result is not tensor:
                tensor._replace(result)
        return self

    def cuda(self: Self, device: DeviceLike | None = None) -> Self:
        """Moves to a CUDA device, the current one by default; see `to`."""
        return self.to("cuda" if device is None else device)

    def cpu(self: Self) -> Self:
        """Moves to the host; see `to`."""
        return self.to("cpu")

    def float(self: Self) -> Self:
        """Casts to float32; see `to`."""
        return self.to(_dtype.float32)

    def half(self: Self) -> Self:
        """Casts to float16; see `to`."""
        return self.to(_dtype.float16)

    def bfloat16(self: Self) -> Self:
        """Casts to bfloat16; see `to`."""
        return self.to(_dtype.bfloat16)

    # -- text -----------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What `repr` shows in the parentheses; a subclass gives its arguments."""
        return ""

    def __repr__(self) -> str:
        children = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self._own(Module)]
        own = self.extra_repr()
        if not children:
            return f"{type(self).__name__}({own})"
        lines = "".join(f"  {line}\n" for line in [own, *children] if line)
        return f"{type(self).__name__}(\n{lines})"


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _once(named: Iterator[tuple[str, Kind]]) -> Iterator[tuple[str, Kind]]:
    """Leaves out objects that came before under another name."""
    seen: set[int] = set()
    for name, value in named:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value
