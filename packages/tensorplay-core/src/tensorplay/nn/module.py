"""The base class of all layers and models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _dtype
from .._gradient import refuse_autograd
from .._ops.conversion import parse_to
from .._tensor import Tensor
from ..errors import DTypeError
from ._hooks import Hook, HookList, RemovableHandle, call_with_hooks
from ._registry import Registry, once
from ._state import IncompatibleKeys, load_state
from .parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._device import DeviceLike
    from .._dtype import DType

Self = TypeVar("Self", bound="Module")


class Module(Registry):
    """A part of a model: it owns parameters, buffers and other modules, and computes in `forward`.

    A subclass calls ``super().__init__()`` first, assigns parameters and modules as attributes, and
    defines ``forward``. Calling the module calls ``forward``, between its hooks.

    Attributes
    ----------
    training : bool
        True until `eval` is called; only layers like `Dropout` ask for it.
    """

    training: bool
    _forward_pre_hooks: HookList
    _forward_hooks: HookList

    #: Names in the state that `load_state_dict` may miss.
    _optional_state: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.__dict__["_buffers"] = {}
        self._forward_pre_hooks = HookList()
        self._forward_hooks = HookList()
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: the class defines no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._forward_pre_hooks or self._forward_hooks:
            return call_with_hooks(self, self._forward_pre_hooks, self._forward_hooks, args, kwargs)
        return self.forward(*args, **kwargs)

    # -- hooks ----------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before `forward`; what it returns, unless None, takes the place of `args`.

        Parameters
        ----------
        hook : callable
            It returns None, a tuple of arguments, or one argument.
        prepend : bool
            Whether it is called before the hooks that are there.
        with_kwargs : bool
            Calls ``hook(module, args, kwargs)``, which returns None or ``(args, kwargs)``.
        """
        return self._forward_pre_hooks.add("register_forward_pre_hook", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls ``hook(module, args, result)`` after `forward`; what it returns, unless None, is the result.

        Parameters
        ----------
        hook : callable
            The function.
        prepend : bool
            Whether it is called before the hooks that are there.
        with_kwargs : bool
            Calls ``hook(module, args, kwargs, result)``.
        always_call : bool
            Whether it is called, with None as the result, also when `forward` raises.
        """
        return self._forward_hooks.add("register_forward_hook", Hook(hook, with_kwargs, always_call), prepend)

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

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Does nothing: there is no autograd, so no gradients."""

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Takes only False: there is no autograd.

        Raises
        ------
        StateError
            For True.
        """
        if requires_grad:
            refuse_autograd("requires_grad_")
        return self

    # -- state ----------------------------------------------------------------------------------------

    def state_dict(
        self, *, destination: dict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted name. They share memory with the module's.

        Parameters
        ----------
        destination : dict, optional
            Takes the entries, and is returned.
        prefix : str
            Stands before every name.
        keep_vars : bool
            The module's own objects, parameters as `Parameter`, instead of plain tensors.
        """
        state = {} if destination is None else destination
        state.update((name, tensor if keep_vars else tensor.detach()) for name, tensor in self._named_state(prefix))
        return state

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
        optional = {
            f"{path}.{name}" if path else name
            for path, module in self.named_modules(remove_duplicate=False)
            for name in module._optional_state
        }
        return load_state(type(self).__name__, dict(self._named_state("")), optional, state_dict, strict, assign)

    def _named_state(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        """The module's own tensor objects in the order of `state_dict`, shared ones under each name."""
        for name, tensor in (*self._own(Parameter), *self._own_buffers(persistent_only=True)):
            yield prefix + name, tensor
        for name, module in self._own_modules():
            yield from module._named_state(f"{prefix}{name}.")

    # -- dtype and device -----------------------------------------------------------------------------

    def _apply(self: Self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Puts ``fn(tensor)`` in the place of every parameter and buffer, here and below.

        Everything is converted before the first tensor is replaced: an error leaves the module as it was, and until
        the end both copies take memory.
        """
        owned = [tensor for _, tensor in once((*self.named_parameters(), *self.named_buffers()))]
        converted = [fn(tensor) for tensor in owned]
        for tensor, result in zip(owned, converted, strict=True):
            if result is not tensor:
                tensor._replace(result)
        return self

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
            A TypeError, if the dtype is neither floating nor complex.
        """
        device, dtype, non_blocking, _ = parse_to(*args, device=device, dtype=dtype, non_blocking=non_blocking)
        if dtype is not None and dtype.category < _dtype.FLOAT:
            raise DTypeError(f"Module.to: got {dtype}, expected a floating or complex dtype")

        def convert(tensor: Tensor) -> Tensor:
            cast = dtype if tensor.dtype.category >= _dtype.FLOAT else None
            return tensor.to(device=device, dtype=cast, non_blocking=non_blocking)

        return self._apply(convert)

    def cuda(self: Self, device: DeviceLike | None = None) -> Self:
        """Moves to a CUDA device, the current one by default; see `to`."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self: Self) -> Self:
        """Moves to the host; see `to`."""
        return self._apply(Tensor.cpu)

    def type(self: Self, dst_type: DType) -> Self:
        """Casts everything, integers too; see `to`."""
        return self._apply(lambda tensor: tensor.to(_dtype.check("Module.type", dst_type)))

    def float(self: Self) -> Self:
        """Casts what is floating to float32; see `to`."""
        return self._cast_floating(_dtype.float32)

    def double(self: Self) -> Self:
        """Casts what is floating to float64; see `to`."""
        return self._cast_floating(_dtype.float64)

    def half(self: Self) -> Self:
        """Casts what is floating to float16; see `to`."""
        return self._cast_floating(_dtype.float16)

    def bfloat16(self: Self) -> Self:
        """Casts what is floating to bfloat16; see `to`."""
        return self._cast_floating(_dtype.bfloat16)

    def _cast_floating(self: Self, dtype: DType) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor)

    # -- text -----------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What `repr` shows in the parentheses; a subclass gives its arguments."""
        return ""

    def _child_lines(self) -> list[str]:
        """One entry for each module below, for `repr`."""
        return [f"({name}): {module!r}" for name, module in self._own_modules()]

    def __repr__(self) -> str:
        own, children = self.extra_repr(), self._child_lines()
        if not children and "\n" not in own:
            return f"{type(self).__name__}({own})"
        lines = own.split("\n") if own else []
        lines += [child.replace("\n", "\n  ") for child in children]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"
