"""What stands in for `tensorplay.cuda` where tensorplay-cuda is not installed.

Programs may import the module and ask whether there is a device, and get the answer "none"; any other
name says what to install.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from . import _plugins
from .errors import BackendUnavailableError


class _Placeholder(ModuleType):
    """A module that answers queries and refuses everything else."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, f"Placeholder: {_plugins.missing(kind)}.")
        self.__path__: list[str] = []  # a package, so that importing a submodule fails as ImportError
        self._kind = kind

    def is_available(self) -> bool:
        """False: there is no such device."""
        return False

    def device_count(self) -> int:
        """0: there is no such device."""
        return 0

    def unavailable_reason(self) -> str:
        """What to install."""
        return _plugins.missing(self._kind)

    def __getattr__(self, name: str) -> Any:
        # Names with underscores are asked for by the import system and by inspection.
        if name.startswith("_"):
            raise AttributeError(name)
        raise BackendUnavailableError(f"{self.__name__}.{name}: {_plugins.missing(self._kind)}")


def fill_in(package: str) -> None:
    """Puts a placeholder into `sys.modules` for every known device type that is not installed."""
    for kind in _plugins.DISTRIBUTIONS:
        name = f"{package}.{kind}"
        if name in sys.modules:
            continue
        spec = find_spec(name)
        # A folder that an uninstall left behind is found too, but has no __init__.py.
        if spec is None or spec.origin is None:
            sys.modules[name] = _Placeholder(name, kind)
            setattr(sys.modules[package], kind, sys.modules[name])
