"""Functions that are called before and after a module's `forward`."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from ..errors import DTypeError

_numbers = itertools.count()


class Hook(NamedTuple):
    """A function and when it is called."""

    function: Callable[..., Any]
    with_kwargs: bool
    always_call: bool = False


class RemovableHandle:
    """What registering a hook returns; as a context manager it removes the hook at the end.

    Attributes
    ----------
    id : int
        Differs for all handles of the process.
    """

    def __init__(self, hooks: HookList, id: int) -> None:
        self._hooks = weakref.ref(hooks)
        self.id = id

    def remove(self) -> None:
        """Removes the hook; again, or after the module is gone, it does nothing."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class HookList(dict[int, Hook]):
    """Hooks in the order of their calls; a class of its own, since a plain dict takes no weak references."""

    def add(self, operation: str, hook: Hook, first: bool) -> RemovableHandle:
        """Adds a hook behind the others, or before them."""
        if not callable(hook.function):
            raise DTypeError(f"{operation}: got {type(hook.function).__name__}, expected a function")
        handle = RemovableHandle(self, next(_numbers))
        others = list(self.items()) if first else []
        for number, _ in others:
            del self[number]
        self[handle.id] = hook
        self.update(others)
        return handle


def call_with_hooks(module: Any, before: HookList, after: HookList, args: tuple[Any, ...], kwargs: Any) -> Any:
    """`module.forward`, between its hooks; each may put other arguments, or another result, in place."""
    called: set[int] = set()
    result = None
    try:
        for hook in list(before.values()):
            args, kwargs = _arguments(module, hook, args, kwargs)
        result = module.forward(*args, **kwargs)
        for number, hook in list(after.items()):
            called.add(number)
            result = _result(module, hook, args, kwargs, result)
        return result
    except Exception:
        for number, hook in list(after.items()):
            if hook.always_call and number not in called:
                result = _result(module, hook, args, kwargs, result)
        raise


def _arguments(module: Any, hook: Hook, args: tuple[Any, ...], kwargs: Any) -> tuple[tuple[Any, ...], Any]:
    if hook.with_kwargs:
        changed = hook.function(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise DTypeError(f"forward pre-hook: got {changed!r}, expected None or (args, kwargs)")
        return changed
    changed = hook.function(module, args)
    if changed is not None:
        args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _result(module: Any, hook: Hook, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
    changed = hook.function(module, args, kwargs, result) if hook.with_kwargs else hook.function(module, args, result)
    return result if changed is None else changed
