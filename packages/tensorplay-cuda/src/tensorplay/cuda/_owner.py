"""Objects that own something of C."""

from __future__ import annotations

from typing import NoReturn

from tensorplay.errors import DTypeError


class Owner:
    """Refuses to be copied: each copy would release what is owned once more."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise DTypeError(f"{type(self).__name__}: cannot be copied or pickled: make another one")
