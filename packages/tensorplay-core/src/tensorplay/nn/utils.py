"""Helpers around modules."""

from __future__ import annotations

from typing import Any, TypeVar

from . import init
from .module import Module

__all__ = ["skip_init"]

SomeModule = TypeVar("SomeModule", bound=Module)


def skip_init(module_class: type[SomeModule], *args: Any, **kwargs: Any) -> SomeModule:
    """Makes a module whose parameters are not filled, for weights that are loaded right after.

    Parameters
    ----------
    module_class : type
        The class of the module.
    *args, **kwargs
        Its arguments.
    """
    with init.skipped():
        return module_class(*args, **kwargs)
