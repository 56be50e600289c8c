"""The C functions, bound by the first one that is needed.

`native.tp_add` is the function `tp_add` of `include/tensorplay.h`. The first that is touched selects the variant and
binds the library, once and for all threads; from then on all of them are attributes of a module, the object whose
attributes Python finds fastest.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, cast

from tensorplay.errors import BackendUnavailableError

from . import _select


class Native(Protocol):
    """What `native` has besides the functions of libtensorplay, `ffi` and `NULL`.

    Attributes
    ----------
    at_start : list of callables
        Run once when the library has been bound, before any other call: what was asked for earlier.
    is_started : bool
        Whether the library is bound. No context has to exist for it.
    is_forked : bool
        Whether this process was forked from one that had bound the library.
    """

    at_start: list[Callable[[], None]]
    is_started: bool
    is_forked: bool

    def choice(self) -> _select.Choice:
        """`Starter.choice`."""

    def __getattr__(self, name: str) -> Any: ...


class Starter:
    """Fills `native`, once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._choice: _select.Choice | None = None
        self._settings: set[str | None] = set()  # that of the start, and those that were warned of
        self._functions: dict[str, Any] | None = None

    def choice(self) -> _select.Choice:
        """The variant that serves or would serve. Starts nothing; warns when the variable changed too late."""
        if self._choice is None:
            return _select.choose()
        setting = os.environ.get(_select.VARIABLE)
        if setting not in self._settings:
            self._settings.add(setting)
            warnings.warn(
                f"{_select.VARIABLE} became {setting!r} after {self._choice.variant} had been started: no effect",
                RuntimeWarning,
                stacklevel=4,
            )
        return self._choice

    def find(self, name: str) -> Any:
        """What `native` has not: all of it until the library was bound and what waited for that has run.

        Raises
        ------
        BackendUnavailableError
            No variant can serve, or no device is visible; the text says why.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        with self.lock:
            # The functions of at_start come back to this method; other threads wait at the lock.
            functions = self._functions or self._start()
        if name not in functions:
            raise AttributeError(f"libtensorplay has no {name}")
        return functions[name]

    def _start(self) -> dict[str, Any]:
        setting = os.environ.get(_select.VARIABLE)
        choice = _select.choose()
        count, fault = _select.count(choice)
        if choice.variant is None or not count:
            raise BackendUnavailableError(f"tensorplay.cuda: {fault}")
        calls = ExitStack()  # each is made, also where one before it fails
        for call in reversed(native.at_start):
            calls.callback(call)
        module = import_module("tensorplay.cuda._native")
        module.bind(choice.variant)
        functions = {name: getattr(module.lib, name) for name in dir(module.lib)}
        functions |= {"ffi": module.ffi, "NULL": module.ffi.NULL}
        self._settings, self._choice, self._functions = {setting}, choice, functions
        native.is_started = True
        try:
            calls.close()
        except Exception:
            self._expose(functions)
            raise
        except BaseException:  # of a signal's handler: what it has cut short is done by the next call
            native.is_started, self._functions = False, None
            raise
        self._expose(functions)
        return functions

    def _expose(self, functions: dict[str, Any]) -> None:
        native.__dict__.update(functions)
        del native.__dict__["__getattr__"]  # with it, Python would look up slowly what the module has

    def after_fork(self) -> None:
        """In a forked child: another thread of the parent may have held the lock."""
        self.lock = threading.RLock()
        native.is_forked = native.is_started


def text_of(characters: Any) -> str:
    """A text of C, whose bytes may be anything."""
    return str(native.ffi.string(characters), errors="replace")


starter = Starter()
native = cast(Native, ModuleType("tensorplay.cuda.native"))
native.__dict__.update(at_start=[], is_started=False, is_forked=False, choice=starter.choice, __getattr__=starter.find)
os.register_at_fork(after_in_child=starter.after_fork)
