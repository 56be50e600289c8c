"""Host memory that runs out in the middle of an operation, told in the words of this library."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..errors import HostMemoryError, SizeOverflowError, TensorPlayError

_Class = TypeVar("_Class", bound=type)

# How NumPy's ValueError for sizes near 2**63 begins; every other one is a mistake of this library.
_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size exceeded")


def telling(*methods: str) -> Callable[[_Class], _Class]:
    """Makes methods of a class raise HostMemoryError or SizeOverflowError where NumPy has no room for an array."""

    def changed(cls: _Class) -> _Class:
        for name in methods:
            setattr(cls, name, _telling(name, getattr(cls, name)))
        return cls

    return changed


def _telling(operation: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def told(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except (MemoryError, ValueError) as error:
            if isinstance(error, TensorPlayError):
                raise
            kind = HostMemoryError if isinstance(error, MemoryError) else SizeOverflowError
            if kind is SizeOverflowError and not str(error).startswith(_TOO_LARGE):
                raise
            raise kind(f"{operation}: the host has no room: {error}") from error

    return told
