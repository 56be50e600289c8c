"""Help for the tests of programs. Other distributions add modules here, for their own devices."""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

__path__ = extend_path(__path__, __name__)

from .. import _wheels
from .close import assert_close

if TYPE_CHECKING:
    from ._orders import SeedError, explore_orders

__all__ = ["SeedError", "assert_close", "explore_orders"]

#: What tensorplay-cuda adds, and the module that has it.
_MODULES = {"SeedError": "_orders", "emulated": "emulated", "explore_orders": "_orders"}


def __getattr__(name: str) -> Any:
    """Imported when it is first named."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    part = f"{__name__}.{_MODULES[name]}"
    try:
        module = import_module(part)
    except ModuleNotFoundError as error:
        if error.name != part:
            raise
        raise ImportError(f"{__name__}.{name}: {_wheels.not_installed('tensorplay-cuda')}") from None
    return module if _MODULES[name] == name else getattr(module, name)
