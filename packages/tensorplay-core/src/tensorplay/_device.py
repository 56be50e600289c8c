"""Devices: the one parser for everything that names one."""

from __future__ import annotations

import re
from operator import index as index_of
from typing import Any, SupportsIndex

from .errors import DTypeError, InvalidArgumentError

_SPELLING = re.compile(r"([a-z][a-z0-9_]*?)(?::(0|[1-9][0-9]*))?")
_MAX_INDEX = 2**31 - 1


class Device:
    """Where a tensor lies: a type, and an index among the devices of that type.

    ``device("cuda")`` has no index: it means the thread's current CUDA device at the time of use. An
    index that does not exist is refused when it is used, not here.

    Parameters
    ----------
    type : str or Device or int
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; an int is an index of the accelerator.
    index : int, optional
        The index, where `type` has none.

    Raises
    ------
    InvalidArgumentError
        A spelling that is none of these, a negative index, or an unknown type.
    DTypeError
        An argument of another type.
    """

    __slots__ = ("_hash", "index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | Device | SupportsIndex, index: SupportsIndex | None = None) -> None:
        if isinstance(type, str):
            kind, spelled = _parse(type)
        elif isinstance(type, Device):
            kind, spelled = type.type, type.index
        else:
            spelled = bare_index("device", type, "a device or a text such as 'cuda:0'")
            kind = _accelerator()
        if spelled is not None and index is not None:
            raise InvalidArgumentError(f"device: got index {index} beside {type!r}, expected one index")
        number = spelled if index is None else bare_index("device", index, "an integer as the index")
        if number is not None and not 0 <= number <= _MAX_INDEX:
            raise InvalidArgumentError(f"device: got index {number} in {type!r}, expected 0 to {_MAX_INDEX}")
        self.type = kind
        self.index = number
        self._hash = hash((kind, number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __reduce__(self) -> tuple[Any, tuple[str, int | None]]:
        return Device, (self.type, self.index)


#: Whatever a user may write for a device.
DeviceLike = Device | str | SupportsIndex


def bare_index(operation: str, given: Any, expected: str) -> int:
    """The index that a number names.

    Raises
    ------
    DTypeError
        No integer; True and False are none here. `expected` says what else would have been one.
    """
    try:
        if not isinstance(given, bool):
            return index_of(given)
    except TypeError:
        pass
    raise DTypeError(f"{operation}: got {given!r}, expected {expected}")


def _parse(text: str) -> tuple[str, int | None]:
    """Type and index of a spelling."""
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(
            f"device: got {text!r}, expected a type with or without an index, such as 'cpu', 'cuda' or 'cuda:1'"
        )
    kind, digits = match.groups()
    if kind not in ("cpu", "cuda"):
        from ._plugins import known_types  # Reading the installed entry points takes milliseconds.

        if kind not in known_types():
            raise InvalidArgumentError(
                f"device: got unknown type {kind!r} in {text!r}, expected one of {', '.join(known_types())}"
            )
    return kind, None if digits is None else int(digits)


def _accelerator() -> str:
    """The device type that a bare index means."""
    from ._plugins import accelerator_type, no_accelerator

    found = accelerator_type()
    if found is None:
        raise InvalidArgumentError(f"device: got a bare index, expected a text: {no_accelerator()}")
    return found
