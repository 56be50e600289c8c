"""Help for the tests of programs. Other distributions add modules here, for their own devices."""

from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

__path__ = extend_path(__path__, __name__)

from .close import assert_close

if TYPE_CHECKING:
    from ._orders import SeedError, explore_orders

__all__ = ["SeedError", "assert_close", "explore_orders"]


def __getattr__(name: str) -> Any:
    """What a module of tensorplay-cuda has."""
    if name not in ("SeedError", "explore_orders"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _orders

    return getattr(_orders, name)
