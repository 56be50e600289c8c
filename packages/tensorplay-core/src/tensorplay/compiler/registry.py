"""Names and functions of compiler backends."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _wheels
from ..errors import DTypeError, InvalidArgumentError
from . import backends

#: Of our distributions, the one that ships a backend.
SHIPS = "tensorplay-cuda"

#: Takes a callable and example inputs, returns a callable with the same meaning.
CompilerBackend = Callable[..., Any]

Function = TypeVar("Function", bound=CompilerBackend)

_registered: dict[str, CompilerBackend] = {}


def register_backend(function: Function, name: str | None = None) -> Function:
    """Makes a backend known; also a decorator.

    Parameters
    ----------
    function : callable
        The backend: it takes a callable and example inputs, and returns a callable.
    name : str, optional
        Its name; the function's own by default.

    Returns
    -------
    callable
        `function`.

    Raises
    ------
    InvalidArgumentError
        If another function has the name.
    """
    if not callable(function):
        raise DTypeError(f"register_backend: got {type(function).__name__}, expected a callable")
    chosen = function.__name__ if name is None else name
    if _registered.setdefault(chosen, function) is not function:
        raise InvalidArgumentError(f"register_backend: the name {chosen!r} belongs to another backend")
    return function


def lookup_backend(backend: str | CompilerBackend) -> CompilerBackend:
    """The backend of a name; a callable is returned as it is.

    Raises
    ------
    InvalidArgumentError
        If there is none; the text lists the names that exist.
    """
    if callable(backend):
        return backend
    is_name = isinstance(backend, str)
    if is_name and backend not in _registered and backend in _shipped():
        importlib.import_module(f"{backends.__name__}.{backend}")
    if not is_name or backend not in _registered:
        known = ", ".join(list_backends())
        expected = f"expected one of: {known}" if known else f"and there is none: {_wheels.not_installed(SHIPS)}"
        raise InvalidArgumentError(f"lookup_backend: got {backend!r}, {expected}")
    return _registered[backend]


def list_backends() -> list[str]:
    """The names of all backends, those included that were not imported yet; sorted."""
    return sorted({*_registered, *_shipped()})


def _shipped() -> list[str]:
    """Names of the modules in `tensorplay.compiler.backends`."""
    return [module.name for module in pkgutil.iter_modules(backends.__path__)]
