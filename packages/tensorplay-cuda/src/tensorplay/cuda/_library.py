"""The C functions, bound by the first one that is needed.

`native.tp_add` is the function `tp_add` of `include/tensorplay.h`. The first attribute that is touched
selects the variant and binds the library, once and for all threads; every later look-up finds the function
in the object's own dictionary, at the cost of any attribute.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorplay.errors import BackendUnavailableError

from . import _select


class Native:
    """Attributes are the functions of libtensorplay, `ffi` and `NULL`.

    Attributes
    ----------
    at_start : list of callables
        Run once when the library has been bound, before any other call: what was asked for earlier.
    is_forked : bool
        Whether this process was forked from one that had bound the library.
    """

    def __init__(self) -> None:
        self.at_start: list[Callable[[], None]] = []
        self.is_forked = False
        self._lock = threading.RLock()
        self._choice: _select.Choice | None = None
        self._setting: str | None = None
        self._bound: Any = None  # tensorplay.cuda._native, once bound
        self._module: Any = None  # the same, once at_start has run
        os.register_at_fork(after_in_child=self._after_fork)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        module = self._start()
        found = module.ffi if name == "ffi" else module.ffi.NULL if name == "NULL" else getattr(module.lib, name)
        self.__dict__[name] = found
        return found

    @property
    def is_started(self) -> bool:
        """Whether the library is bound. No context has to exist for it."""
        return self._choice is not None

    def choice(self) -> _select.Choice:
        """The variant that serves or would serve. Starts nothing; warns when the variable changed too late."""
        if self._choice is None:
            return _select.choose()
        setting = os.environ.get(_select.VARIABLE)
        if setting != self._setting:
            warnings.warn(
                f"{_select.VARIABLE} became {setting!r} after {self._choice.variant} had been started: no effect",
                RuntimeWarning,
                stacklevel=4,
            )
            self._setting = setting
        return self._choice

    def _start(self) -> Any:
        """Binds the library once and runs what waited for it; returns `tensorplay.cuda._native`.

        Raises
        ------
        BackendUnavailableError
            No variant can serve, or no device is visible; the text says why.
        """
        if self._module is not None:
            return self._module
        with self._lock:
            # The functions of at_start come back to this method; other threads wait at the lock.
            if self._choice is None:
                setting = os.environ.get(_select.VARIABLE)
                choice = _select.choose()
                count, reason = _select.count(choice)
                if choice.variant is None or not count:
                    raise BackendUnavailableError(f"tensorplay.cuda: {reason}")
                module = import_module("tensorplay.cuda._native")
                module.bind(choice.variant)
                self._setting, self._choice, self._bound = setting, choice, module
                for call in self.at_start:
                    call()
                self._module = module
        return self._bound

    def _after_fork(self) -> None:
        """In a forked child: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()
        self.is_forked = self.is_started


native = Native()
